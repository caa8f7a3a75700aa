import BenchmarkHarness

/// The first picture: a row for each workload, a dot with its interval for each peer, a line at 1.
struct ForestChart {
    struct Row {
        let label: String
        /// By peer, in the order of the chart's peers.
        let estimates: [Estimate?]
    }

    let peers: [String]
    let rows: [Row]

    func render(title: String, note: String) -> String {
        let left = 190.0
        let width = 900.0
        let top = 92.0
        let heights = rows.map { 16.0 + 9.0 * Double(max(1, $0.estimates.count { $0 != nil })) }
        let bottom = top + heights.reduce(0, +)
        let ends = rows.flatMap(\.estimates).compactMap(\.self).flatMap { [$0.low, $0.high] }
        let x = Scale(ends, including: 1, from: left, to: width - 24)
        var drawing = SVG(width: width, height: bottom + 50)
        drawing.text(16, 26, title, class: "title")
        drawing.text(16, 46, note, class: "small")
        drawing.rectangle(x: x(1), y: top, width: width - 24 - x(1), height: bottom - top, class: "ours")
        drawing.rectangle(x: left, y: top, width: x(1) - left, height: bottom - top, class: "theirs")
        for tick in x.ticks {
            drawing.line(from: (x(tick), top), to: (x(tick), bottom), class: "grid")
            drawing.text(x(tick), bottom + 16, "\(Format.tick(tick))×", class: "small", anchor: .middle)
        }
        drawing.line(from: (x(1), top - 6), to: (x(1), bottom), class: "one")
        drawing.text(x(1) + 8, bottom + 36, "→ ours is faster", class: "small")
        drawing.text(x(1) - 8, bottom + 36, "the peer is faster ←", class: "small", anchor: .end)
        legend(&drawing, left: left)
        var y = top
        for (row, height) in zip(rows, heights) {
            drawing.line(from: (16, y), to: (width - 24, y), class: "grid")
            drawing.text(16, y + height / 2 + 4, row.label)
            var line = y + 3
            for (peer, estimate) in row.estimates.enumerated() {
                guard let estimate else { continue }
                line += 9
                let hue = SVG.hue(of: peer)
                drawing.line(from: (x(estimate.low), line), to: (x(estimate.high), line), class: "s\(hue)")
                let ratio = Format.ratio((estimate.median, estimate.low, estimate.high))
                drawing.dot(
                    x(estimate.median), line, radius: 4, class: "f\(hue)",
                    hint: "\(row.label): \(peers[peer]) takes \(ratio) the time of ours")
            }
            y += height
        }
        return drawing.render(title: title)
    }

    private func legend(_ drawing: inout SVG, left: Double) {
        var x = left
        for (index, peer) in peers.enumerated() {
            drawing.dot(x + 5, 70, radius: 4.5, class: "f\(SVG.hue(of: index))", hint: peer)
            drawing.text(x + 13, 74, peer, class: "small")
            x += 26 + 6.2 * Double(peer.count)  // about the width of the name
        }
    }
}
