/// Rows with marks on one logarithmic axis, small enough to be placed next to other charts: costs, and the distance
/// to the floor.
struct StripChart {
    struct Row {
        let label: String
        /// The text at its end: the figure of ours.
        let note: String
        /// Not negative. A value of 0 is drawn on a separate line, left of the axis.
        let values: [(name: String, value: Double, text: String)]
    }

    static let width = 360.0

    let title: String
    /// Below the title: what the axis shows.
    let caption: String
    let rows: [Row]
    /// A value that is marked by a line.
    let mark: Double?
    let tick: (Double) -> String

    func render() -> String {
        let label = min(128, rows.map { TextMetrics.width($0.label, class: "small") }.max() ?? 0)
        let note = rows.map { TextMetrics.width($0.note, class: "small") }.max() ?? 0
        let hasZero = rows.contains { $0.values.contains { $0.value == 0 } }
        let zero = label + 14
        let from = hasZero ? zero + 12 : zero - 6
        let to = Self.width - note - 12
        let values = rows.flatMap { $0.values.map(\.value) }
        let x = Scale(values, including: mark, margin: 1.5, from: from, to: to)
        let top = 46.0
        func place(_ value: Double) -> Double { value > 0 ? x(value) : zero }
        let lanes = rows.map { row in ForestChart.lanes(row.values.map { place($0.value) }, apart: 7) }
        let heights = lanes.map { 15 + 6.5 * Double($0.max() ?? 0) }
        let bottom = top + heights.reduce(0, +)
        var drawing = SVG(width: Self.width, height: bottom + 24)
        drawing.text(0, 14, title, class: "title")
        drawing.text(0, 32, TextMetrics.fit(caption, into: Self.width, class: "small"), class: "small")
        func room(_ value: Double) -> Double { TextMetrics.width(tick(value), class: "small") }
        for value in x.ticks(gap: 8, room: room) {
            drawing.line(from: (x(value), top), to: (x(value), bottom), class: "grid")
            let isApart = !hasZero || x(value) - room(value) / 2 > zero + 10
            if isApart { drawing.text(x(value), bottom + 16, tick(value), class: "small", anchor: .middle) }
        }
        if hasZero {
            drawing.line(from: (zero, top), to: (zero, bottom), class: "grid")
            drawing.text(zero, bottom + 16, "0", class: "small", anchor: .middle)
        }
        if let mark { drawing.line(from: (x(mark), top), to: (x(mark), bottom), class: "one") }
        var y = top
        for (row, (height, lanes)) in zip(rows, zip(heights, lanes)) {
            drawing.line(from: (0, y + height), to: (Self.width, y + height), class: "grid")
            drawing.text(0, y + 11.5, TextMetrics.fit(row.label, into: label, class: "small"), class: "small")
            drawing.text(Self.width, y + 11.5, row.note, class: "small", anchor: .end)
            for (each, lane) in zip(row.values, lanes) {
                drawing.mark(
                    Look.of(each.name), place(each.value), y + 7.5 + 6.5 * Double(lane),
                    radius: each.name == "ours" ? 4.4 : 3, hint: "\(row.label), \(each.name): \(each.text)")
            }
            y += height
        }
        return drawing.render(title: title)
    }
}
