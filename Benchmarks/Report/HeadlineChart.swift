import BenchmarkHarness

/// The first chart: for each peer the mean of its time over ours, and the number of rows by
/// standing.
struct HeadlineChart {
    static let width = 360.0

    let headline: Headline
    /// The number of peers in the tallest of the neighbouring charts; it aligns the bars.
    let peers: Int

    private var top: Double { 14 }
    private var bottom: Double { top + 24 * Double(max(1, peers)) + 6 }
    var height: Double { bottom + 82 }

    func render(title: String) -> String {
        var drawing = SVG(width: Self.width, height: height)
        draw(in: &drawing, x: 0, y: 0)
        return drawing.render(title: title)
    }

    /// Draws at a place of a larger drawing.
    func draw(in drawing: inout SVG, x left: Double, y top: Double) {
        means(&drawing, left, top)
        standings(&drawing, left, top + bottom + 40)
    }

    private func means(_ drawing: inout SVG, _ dx: Double, _ dy: Double) {
        if headline.means.isEmpty {
            drawing.text(dx, dy + top + 19, "no peer to compare with", class: "small")
            return
        }
        let texts = headline.means.map(Self.texts)
        func widest(_ texts: [String], class name: String) -> Double {
            texts.map { TextMetrics.width($0, class: name) }.max() ?? 0
        }
        let numbers = widest(texts.map(\.number), class: "strong")
        let intervals = widest(texts.map(\.interval), class: "small")
        let from = dx + widest(headline.means.map(\.peer), class: "") + 12
        let to = dx + Self.width - numbers - intervals - 14
        let ends = headline.means.flatMap { [$0.estimate.low, $0.estimate.high] }
        let x = Scale(ends, including: 1, limits: 0.005...200, margin: 1.25, from: from, to: to)
        let (top, bottom) = (dy + top, dy + bottom)
        drawing.rectangle(x: from, y: top, width: x(1) - from, height: bottom - top, class: "theirs")
        drawing.rectangle(x: x(1), y: top, width: to - x(1), height: bottom - top, class: "ours")
        func tick(_ value: Double) -> String { "\(Format.tick(value))×" }
        for value in x.ticks(gap: 6, room: { TextMetrics.width(tick($0), class: "small") }) {
            drawing.line(from: (x(value), top), to: (x(value), bottom), class: "grid")
            drawing.text(x(value), bottom + 15, tick(value), class: "small", anchor: .middle)
        }
        drawing.line(from: (x(1), top - 4), to: (x(1), bottom), class: "one")
        for (place, (mean, text)) in zip(headline.means, texts).enumerated() {
            let y = top + 15 + 24 * Double(place)
            let estimate = mean.estimate
            let look = Look.of(mean.peer)
            drawing.text(dx, y + 4, mean.peer)
            drawing.line(from: (x(estimate.low), y), to: (x(estimate.high), y), class: "s\(look.hue)")
            drawing.mark(
                look, x(estimate.median), y, radius: 5,
                hint: """
                    \(mean.peer) takes \(Format.ratio((estimate.median, estimate.low, estimate.high))) our time, \
                    mean of \(mean.rows) rows
                    """)
            drawing.text(to + 8 + numbers, y + 4, text.number, class: "strong", anchor: .end)
            drawing.text(to + 14 + numbers, y + 4, text.interval, class: "small")
        }
    }

    private static func texts(_ mean: Headline.Mean) -> (number: String, interval: String) {
        let estimate = mean.estimate
        let isSure = estimate.coverage >= Summary.leastCoverage
        let interval = "\(Format.number(estimate.low))–\(Format.number(estimate.high))"
        return (Format.times(estimate.median), isSure ? interval : "not sure")
    }

    /// A bar of all rows, and its legend.
    private func standings(_ drawing: inout SVG, _ dx: Double, _ y: Double) {
        let parts = [
            ("ahead", "ahead of all", headline.count { $0 == .ahead }),
            ("level", "level", headline.count { $0 == .level }),
            ("behind", "behind", headline.count { $0 == .behind }),
            ("unknown", "no verdict", headline.count { $0.name == "unknown" }),
        ].filter { $0.2 > 0 }
        let all = Double(max(1, parts.map(\.2).reduce(0, +)))
        drawing.text(dx, y - 6, "\(Int(all)) workloads", class: "small")
        var (x, text) = (dx, dx)
        for (name, words, count) in parts {
            let width = Self.width * Double(count) / all
            drawing.rectangle(x: x, y: y, width: max(1, width - 1.5), height: 11, class: name)
            x += width
            let label = "\(count) \(words)"
            drawing.rectangle(x: text, y: y + 20, width: 8, height: 8, class: name)
            drawing.text(text + 11, y + 28, label, class: "small")
            text += 11 + TextMetrics.width(label, class: "small") + 7
        }
    }

    /// All parts side by side, for a separate file.
    static func together(_ headlines: [Headline], title: String, note: String) -> String {
        let most = headlines.map(\.means.count).max() ?? 1
        let charts = headlines.map { HeadlineChart(headline: $0, peers: most) }
        let (margin, gap, top) = (16.0, 36.0, 104.0)
        let width = margin * 2 + Double(charts.count) * (Self.width + gap) - gap
        let height = top + (charts.first?.height ?? 0) + 14
        var drawing = SVG(width: width, height: height)
        func line(_ y: Double, _ text: String, _ name: String) {
            drawing.text(margin, y, TextMetrics.fit(text, into: width - 2 * margin, class: name), class: name)
        }
        line(26, title, "title")
        line(46, note, "small")
        for (place, chart) in charts.enumerated() {
            let x = margin + Double(place) * (Self.width + gap)
            drawing.text(x, 76, chart.headline.part.subject.title, class: "strong")
            drawing.text(x, 94, "mean over rows of a peer's time over ours", class: "small")
            chart.draw(in: &drawing, x: x, y: top)
        }
        return drawing.render(title: title, isAlone: true)
    }
}
