import BenchmarkHarness

/// A row for each workload: a mark with its interval for each peer, a line at 1, and behind each row the noise,
/// which is the interval of ours against ours.
struct ForestChart {
    struct Row {
        let label: String
        /// The class of its colour.
        let standing: String
        /// The text at its end.
        let note: String
        /// Ours against ours.
        let noise: Estimate?
        let ratios: [(peer: String, ratio: Estimate)]
    }

    let peers: [String]
    let rows: [Row]

    /// The layout: side by side, or one below the other on narrow screens.
    private struct Layout {
        let width: Double
        /// Where the axis begins and ends.
        let axis: (from: Double, to: Double)
        /// The width of labels.
        let label: Double
        /// Whether a row has its label above its marks.
        let isNarrow: Bool

        private static let wideWidth = 880.0
        private static let narrowWidth = 360.0

        /// The part of a row that has marks.
        func strip(ofRowAt y: Double, height: Double) -> (y: Double, height: Double) {
            isNarrow ? (y + 18, height - 18) : (y, height)
        }

        static func wide(_ rows: [Row]) -> Layout {
            let label = min(270, rows.map { TextMetrics.width($0.label) }.max() ?? 0)
            let note = rows.map { TextMetrics.width($0.note, class: "small") }.max() ?? 0
            return Layout(
                width: wideWidth, axis: (label + 40, wideWidth - note - 28), label: label, isNarrow: false)
        }

        static func narrow(_ rows: [Row]) -> Layout {
            let note = rows.map { TextMetrics.width($0.note, class: "small") }.max() ?? 0
            return Layout(
                width: narrowWidth, axis: (0, narrowWidth), label: narrowWidth - 14 - note - 14,
                isNarrow: true)
        }
    }

    func render(title: String, isAlone: Bool = false) -> String {
        render(Layout.wide(rows), title: title, isAlone: isAlone)
    }

    func renderNarrow(title: String) -> String { render(Layout.narrow(rows), title: title, isAlone: false) }

    /// A value that does not fit is drawn at the end of the axis.
    private static let limits = 0.01...100.0
    private static let lane = 9.0

    private func render(_ layout: Layout, title: String, isAlone: Bool) -> String {
        let ends = rows.flatMap { $0.ratios.flatMap { [$0.ratio.low, $0.ratio.high] } }
        let x = Scale(
            ends, including: 1, limits: Self.limits, margin: 1.3, from: layout.axis.from, to: layout.axis.to)
        let lanes = rows.map { Self.lanes($0.ratios.map { x($0.ratio.median) }) }
        let heights = lanes.map { lanes in
            (layout.isNarrow ? 40.0 : 22.0) + Self.lane * Double(lanes.max() ?? 0)
        }
        let legend = legend(layout)
        let head = isAlone ? 34.0 : 8.0
        let top = head + Double(legend.count) * 18 + 38
        let bottom = top + heights.reduce(0, +)
        var drawing = SVG(width: layout.width, height: bottom + 28)
        if isAlone { drawing.text(0, 22, title, class: "title") }
        for (line, entries) in legend.enumerated() {
            let y = head + 8 + Double(line) * 18
            for entry in entries {
                drawing.mark(Look.of(entry.name), entry.x + 6, y, radius: 4.5, hint: entry.name)
                drawing.text(entry.x + 15, y + 4, entry.name, class: "small")
            }
        }
        axis(&drawing, x, layout.axis, top: top, bottom: bottom)
        var y = top
        for (row, (height, lanes)) in zip(rows, zip(heights, lanes)) {
            draw(row, lanes, in: &drawing, layout, x, y: y, height: height)
            y += height
        }
        return drawing.render(title: title, isAlone: isAlone)
    }

    private static func tick(_ value: Double) -> String { "\(Format.tick(value))×" }

    private static func ticks(_ x: Scale) -> [Double] {
        x.ticks { TextMetrics.width(tick($0), class: "small") }
    }

    /// The texts above and below.
    private func axis(
        _ drawing: inout SVG, _ x: Scale, _ ends: (from: Double, to: Double), top: Double, bottom: Double
    ) {
        for value in Self.ticks(x) {
            let place = x.middle(value, room: TextMetrics.width(Self.tick(value), class: "small"))
            for y in [top - 6, bottom + 17] {
                drawing.text(place, y, Self.tick(value), class: "small", anchor: .middle)
            }
        }
        let (theirs, ours) = ("the peer is faster", "ours is faster")
        func fits(_ text: String, _ room: Double) -> Bool {
            TextMetrics.width(text, class: "small") + 12 <= room
        }
        if fits(theirs, x(1) - ends.from) {
            drawing.text(x(1) - 8, top - 22, theirs, class: "small", anchor: .end)
        }
        if fits(ours, ends.to - x(1)) { drawing.text(x(1) + 8, top - 22, ours, class: "small") }
    }

    private func draw(
        _ row: Row, _ lanes: [Int], in drawing: inout SVG, _ layout: Layout, _ x: Scale, y: Double,
        height: Double
    ) {
        let (from, to) = layout.axis
        let strip = layout.strip(ofRowAt: y, height: height)
        let end = strip.y + strip.height
        drawing.rectangle(x: from, y: strip.y, width: x(1) - from, height: strip.height, class: "theirs")
        drawing.rectangle(x: x(1), y: strip.y, width: to - x(1), height: strip.height, class: "ours")
        for value in Self.ticks(x) {
            drawing.line(from: (x(value), strip.y), to: (x(value), end), class: "grid")
        }
        if let noise = row.noise {
            let (low, high) = (x(noise.low), x(noise.high))
            drawing.rectangle(
                x: low, y: strip.y + 1, width: max(2, high - low), height: strip.height - 2, class: "noise")
        }
        drawing.line(from: (x(1), strip.y), to: (x(1), end), class: "one")
        let text = layout.isNarrow ? y + 14 : y + height / 2 + 4
        if !layout.isNarrow { drawing.line(from: (0, end), to: (layout.width, end), class: "grid") }
        drawing.rectangle(x: 0, y: text - 9, width: 9, height: 9, class: row.standing)
        drawing.text(14, text, TextMetrics.fit(row.label, into: layout.label))
        drawing.text(layout.width, text, row.note, class: "small", anchor: .end)
        for ((peer, ratio), lane) in zip(row.ratios, lanes) {
            let line = strip.y + 11 + Self.lane * Double(lane)
            let look = Look.of(peer)
            drawing.line(
                from: (x(ratio.low), line), to: (x(ratio.high), line), class: "s\(look.hue) thin")
            let words = Format.ratio((ratio.median, ratio.low, ratio.high))
            drawing.mark(
                look, x(ratio.median), line, radius: 4, hint: "\(row.label): \(peer) takes \(words) our time")
        }
    }

    /// Assigns each mark to a lane, so that none covers another.
    static func lanes(_ places: [Double], apart: Double = 9.5) -> [Int] {
        var ends: [Double] = []
        var lanes = [Int](repeating: 0, count: places.count)
        for index in places.indices.sorted(by: { places[$0] < places[$1] }) {
            let free = ends.firstIndex { $0 + apart <= places[index] }
            lanes[index] = free ?? ends.count
            if let free { ends[free] = places[index] } else { ends.append(places[index]) }
        }
        return lanes
    }

    /// By line of the legend: the peers, and where their marks begin.
    private func legend(_ layout: Layout) -> [[(name: String, x: Double)]] {
        var lines: [[(name: String, x: Double)]] = [[]]
        var x = 0.0
        for name in peers {
            let width = 15 + TextMetrics.width(name, class: "small") + 14
            if x + width > layout.width && !lines[lines.count - 1].isEmpty {
                lines.append([])
                x = 0
            }
            lines[lines.count - 1].append((name, x))
            x += width
        }
        return lines
    }
}
