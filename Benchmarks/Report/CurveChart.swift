import BenchmarkHarness

/// How a figure grows with the size: a line with its band for each peer. A series that was stopped says so at
/// its end.
struct CurveChart {
    struct Curve {
        let name: String
        /// The place of the peer's hue; -1 is ours, drawn bold.
        let hue: Int
        let points: [(n: Int, estimate: Estimate)]
        let isStopped: Bool
    }

    let curves: [Curve]
    let unit: String

    func render(title: String) -> String {
        let width = 900.0
        let height = 360.0
        let (left, right, top, bottom) = (80.0, 150.0, 44.0, 48.0)
        let points = curves.flatMap(\.points)
        let x = Scale(points.map { Double($0.n) }, from: left, to: width - right)
        let y = Scale(points.flatMap { [$0.estimate.low, $0.estimate.high] }, from: height - bottom, to: top)
        var drawing = SVG(width: width, height: height)
        drawing.text(16, 26, title, class: "title")
        for tick in y.ticks {
            drawing.line(from: (left, y(tick)), to: (width - right, y(tick)), class: "grid")
            drawing.text(left - 8, y(tick) + 4, Format.value(tick, unit: unit), class: "small", anchor: .end)
        }
        for n in Set(points.map(\.n)).sorted() {
            drawing.line(from: (x(Double(n)), top), to: (x(Double(n)), height - bottom), class: "grid")
            drawing.text(
                x(Double(n)), height - bottom + 16, Format.count(Double(n)), class: "small", anchor: .middle)
        }
        drawing.text((left + width - right) / 2, height - 8, "n", class: "small", anchor: .middle)
        for curve in curves { draw(curve, in: &drawing, x: x, y: y) }
        labels(&drawing, x: width - right + 14, y: y)
        return drawing.render(title: title)
    }

    private func draw(_ curve: Curve, in drawing: inout SVG, x: Scale, y: Scale) {
        let hue = SVG.hue(of: max(0, curve.hue))
        let high = curve.points.map { (x(Double($0.n)), y($0.estimate.high)) }
        let low = curve.points.reversed().map { (x(Double($0.n)), y($0.estimate.low)) }
        drawing.path(high + low, class: "b\(hue)", isClosed: true)
        drawing.path(curve.points.map { (x(Double($0.n)), y($0.estimate.median)) }, class: "s\(hue)")
        for point in curve.points {
            drawing.dot(
                x(Double(point.n)), y(point.estimate.median), radius: 3, class: "f\(hue)",
                hint: "\(curve.name), n = \(point.n): \(Format.value(point.estimate.median, unit: unit))")
        }
        if curve.isStopped, let last = curve.points.last {
            drawing.text(x(Double(last.n)) + 6, y(last.estimate.median) - 6, "stopped", class: "small")
        }
    }

    /// Names at the right, moved apart where they would overlap.
    private func labels(_ drawing: inout SVG, x: Double, y: Scale) {
        let ends = curves.compactMap { curve in
            curve.points.last.map { (curve: curve, y: y($0.estimate.median)) }
        }
        var previous = -100.0
        for end in ends.sorted(by: { $0.y < $1.y }) {
            let place = max(end.y, previous + 15)
            previous = place
            let hue = SVG.hue(of: max(0, end.curve.hue))
            drawing.dot(x, place, radius: 4, class: "f\(hue)", hint: end.curve.name)
            drawing.text(
                x + 9, place + 4, end.curve.name, class: end.curve.name == "ours" ? "strong" : "small")
        }
    }
}
