/// A line with its band for each peer, small enough to be placed next to other charts: sizes, percentiles, restarts.
/// A curve that was cut off ends with a bar.
struct CurveChart {
    struct Point {
        let x: Double
        let y: Double
        /// The band.
        let low: Double
        let high: Double

        init(x: Double, y: Double, low: Double? = nil, high: Double? = nil) {
            self.x = x
            self.y = y
            self.low = low ?? y
            self.high = high ?? y
        }
    }

    struct Curve {
        let name: String
        let points: [Point]
        let isCut: Bool
    }

    static let width = 360.0
    private static let height = 236.0

    let title: String
    /// Below the title: what the axes show.
    let caption: String
    /// Ours first: it is drawn on top of the others.
    let curves: [Curve]
    /// The places on the x axis that are labelled.
    let places: [(x: Double, text: String)]
    let tick: (Double) -> String
    /// A value that is marked by a line, and always shown.
    var mark: Double?

    func render() -> String {
        let (top, bottom) = (46.0, Self.height - 24)
        let names = curves.map { TextMetrics.width($0.name, class: $0.name == "ours" ? "strong" : "small") }
        let right = Self.width - 16 - (names.max() ?? 0)
        let points = curves.flatMap(\.points)
        let y = Scale(
            points.flatMap { [$0.low, $0.high] }, including: mark, margin: 1.15, from: bottom, to: top)
        let ticks = y.ticks(gap: 10) { _ in 12 }
        let left = 8 + (ticks.map { TextMetrics.width(tick($0), class: "small") }.max() ?? 0)
        let x = Scale(places.map(\.x), margin: 1.15, from: left, to: right)
        var drawing = SVG(width: Self.width, height: Self.height)
        drawing.text(0, 14, TextMetrics.fit(title, into: Self.width, class: "title"), class: "title")
        drawing.text(0, 32, TextMetrics.fit(caption, into: Self.width, class: "small"), class: "small")
        for value in ticks {
            drawing.line(from: (left, y(value)), to: (right, y(value)), class: "grid")
            drawing.text(left - 6, y(value) + 4, tick(value), class: "small", anchor: .end)
        }
        var end = -100.0
        for place in places {
            let room = TextMetrics.width(place.text, class: "small")
            drawing.line(from: (x(place.x), top), to: (x(place.x), bottom), class: "grid")
            guard x(place.x) - room / 2 > end + 6 else { continue }
            end = x(place.x) + room / 2
            drawing.text(x(place.x), bottom + 16, place.text, class: "small", anchor: .middle)
        }
        if let mark { drawing.line(from: (left, y(mark)), to: (right, y(mark)), class: "one") }
        for curve in curves.reversed() { draw(curve, in: &drawing, x: x, y: y) }
        labels(&drawing, x: right + 6, from: top + 6, to: bottom - 2, y: y)
        return drawing.render(title: title)
    }

    private func draw(_ curve: Curve, in drawing: inout SVG, x: Scale, y: Scale) {
        let look = Look.of(curve.name)
        let high = curve.points.map { (x($0.x), y($0.high)) }
        let low = curve.points.reversed().map { (x($0.x), y($0.low)) }
        if curve.points.contains(where: { $0.low < $0.high }) {
            drawing.path(high + low, class: "b\(look.hue)", isClosed: true)
        }
        drawing.path(
            curve.points.map { (x($0.x), y($0.y)) }, class: curve.name == "ours" ? "s0" : "s\(look.hue) thin")
        for point in curve.points {
            let place = places.first { $0.x == point.x }?.text ?? Format.count(point.x)
            drawing.mark(
                look, x(point.x), y(point.y), radius: curve.name == "ours" ? 3.5 : 2.6,
                hint: "\(curve.name), \(place): \(tick(point.y))")
        }
        if curve.isCut, let last = curve.points.last {
            let (x, y) = (x(last.x) + 6, y(last.y))
            drawing.line(from: (x, y - 5), to: (x, y + 5), class: "s\(look.hue)")
        }
    }

    /// Names at the right, moved apart where they would overlap.
    private func labels(_ drawing: inout SVG, x: Double, from top: Double, to bottom: Double, y: Scale) {
        let ends = curves.compactMap { curve in curve.points.last.map { (curve: curve, y: y($0.y)) } }
            .sorted { $0.y < $1.y }
        let gap = 13.0
        var places = ends.map(\.y)
        for index in places.indices {
            places[index] = max(places[index], index == 0 ? top : places[index - 1] + gap)
        }
        for index in places.indices.reversed() {
            places[index] = min(places[index], index + 1 == places.count ? bottom : places[index + 1] - gap)
        }
        for (end, place) in zip(ends, places) {
            let look = Look.of(end.curve.name)
            drawing.mark(look, x + 4, place, radius: 3.6, hint: end.curve.name)
            drawing.text(
                x + 10, place + 4, end.curve.name, class: end.curve.name == "ours" ? "strong" : "small")
        }
    }
}
