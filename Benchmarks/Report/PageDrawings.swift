import BenchmarkCore
import BenchmarkHarness
import Foundation

/// Small drawings side by side: the distance to the floor, costs, sizes, percentiles, and the run in chronological order.
extension Page {
    /// How far ours, and the best of the peers, are from unscheduled work.
    var floors: [[String: Any]] {
        summary.parts.compactMap { part -> [String: Any]? in
            let rows = part.rows.compactMap { row -> StripChart.Row? in
                guard row.workload.metric == .throughput,
                    let floor = row.peers.first(where: { $0.name == "floor" })?.ratio
                else { return nil }
                let ours = 1 / floor.median
                let others = row.rivals.min { $0.ratio.median < $1.ratio.median }.map { best in
                    (name: best.peer.name, value: best.ratio.median / floor.median)
                }
                let values = [(name: "ours", value: ours)] + (others.map { [$0] } ?? [])
                return StripChart.Row(
                    label: row.workload.id, note: Format.times(ours),
                    values: values.map { ($0.name, $0.value, "\(Format.times($0.value)) the floor") })
            }
            if rows.isEmpty { return nil }
            let drawing = StripChart(
                title: part.subject.title,
                caption: "time over the floor's: ours, and the fastest peer",
                rows: rows, mark: 1, tick: { "\(Format.tick($0))×" }
            ).render()
            let shown = Set(rows.flatMap { $0.values.map(\.name) })
            return ["drawing": drawing, "legend": legend((["ours"] + part.peers).filter(shown.contains))]
        }
    }

    /// By subject, a drawing for each kind of cost.
    var costs: [[String: Any]] {
        summary.parts.compactMap { part in
            let kinds = [
                ("cpu_ns_per_op", "CPU time", "per operation, all threads", "ns", 1.0),
                ("voluntary_switches_per_op", "Context switches", "per 1,000 operations, to wait", "", 1_000),
                ("allocations_per_op", "Allocations", "per operation", "", 1),
                ("allocated_bytes_per_op", "Bytes allocated", "per operation", "", 1),
            ]
            var drawings = kinds.compactMap { key, title, caption, unit, factor in
                strip(part, title: title, caption: caption, unit: unit) {
                    $0?.counts[key].map { $0 * factor }
                }
            }
            let pending = strip(part, title: "Memory", caption: "live bytes of pending work", unit: "") {
                $0?.unit == "bytes/op" ? $0.flatMap { Estimate.median($0.values) } : nil
            }
            if let pending { drawings.append(pending) }
            return drawings.isEmpty
                ? nil
                : [
                    "title": part.subject.title, "drawings": drawings,
                    "legend": legend(["ours"] + part.peers),
                ]
        }
    }

    private func strip(
        _ part: Summary.Part, title: String, caption: String, unit: String,
        value: (RunDocument.Series?) -> Double?
    ) -> String? {
        func text(_ value: Double) -> String {
            unit.isEmpty ? Format.number(value) : Format.short(value, unit: unit)
        }
        let rows = part.rows.compactMap { row -> StripChart.Row? in
            guard let ours = value(row.series) else { return nil }
            let others = row.peers.compactMap { peer in value(peer.series).map { (peer.name, $0, text($0)) } }
            return StripChart.Row(
                label: row.workload.id, note: text(ours), values: [("ours", ours, text(ours))] + others)
        }
        if rows.isEmpty { return nil }
        func tick(_ value: Double) -> String {
            unit.isEmpty ? Format.tick(value) : Format.short(value, unit: unit)
        }
        return StripChart(title: title, caption: caption, rows: rows, mark: nil, tick: tick).render()
    }

    /// By subject, how the time of an operation changes with the size.
    var curves: [[String: Any]] {
        summary.parts.compactMap { part in
            let drawings = part.rows.compactMap(curve)
            if drawings.isEmpty { return nil }
            return ["title": part.subject.title, "drawings": drawings, "isOpen": part.subject == .scheduler]
        }
    }

    private func curve(_ row: Summary.Row) -> String? {
        guard row.workload.metric == .throughput, !isOfGrains(row) else { return nil }
        let curves = (["ours"] + row.peers.map(\.name)).compactMap { name -> CurveChart.Curve? in
            let series = summary.series(of: name, in: row)
            let points = series.compactMap { each in
                Estimate(each.restartMedians).map {
                    CurveChart.Point(x: Double(each.n), y: $0.median, low: $0.low, high: $0.high)
                }
            }
            let isCut = series.contains { $0.stopped != nil }
            return points.isEmpty ? nil : CurveChart.Curve(name: name, points: points, isCut: isCut)
        }
        let sizes = Set(curves.flatMap { $0.points.map(\.x) }).sorted()
        guard sizes.count > 1 else { return nil }
        let power = power(row).map { "; our total grows as N^\($0)" } ?? ""
        return CurveChart(
            title: row.name, caption: "time per operation, by N\(power)", curves: curves,
            places: sizes.map { ($0, Format.count($0)) }, tick: { Format.short($0, unit: row.workload.unit) }
        ).render()
    }

    /// The slope of ours, if N is proportional to the number of operations.
    func power(_ row: Summary.Row) -> String? {
        let sizes = summary.series(of: "ours", in: row).map(\.n)
        guard let least = sizes.first, let most = sizes.last,
            row.workload.operations(least) * most == row.workload.operations(most) * least
        else { return nil }
        return document.slope(row.workload.id, peer: "ours").map { String(format: "%.2f", $0) }
    }

    /// Lateness by percentile.
    var latencies: [String] {
        let percentiles = [
            (50.0, "50 %", 2.0), (90, "90 %", 10), (99, "99 %", 100), (99.9, "99.9 %", 1_000),
            (100, "max", 10_000),
        ]
        return summary.rows.compactMap { row in
            guard row.workload.metric == .latency else { return nil }
            let all =
                [("ours", row.series)] + row.peers.compactMap { peer in peer.series.map { (peer.name, $0) } }
            let curves = all.compactMap { name, series -> CurveChart.Curve? in
                let points = percentiles.compactMap { percentile, _, x in
                    series.counts["latency_p\(percentile)_ns"].map { CurveChart.Point(x: x, y: max($0, 1)) }
                }
                return points.isEmpty ? nil : CurveChart.Curve(name: name, points: points, isCut: false)
            }
            if curves.isEmpty { return nil }
            return CurveChart(
                title: row.name,
                caption: "lateness by percentile; N = \(Format.count(Double(row.n)))",
                curves: curves, places: percentiles.map { ($0.2, $0.1) },
                tick: { Format.short($0, unit: "ns") }
            ).render()
        }
    }

    /// The time of each restart over the median of all: how the machine changed during the run.
    var order: [String] {
        summary.parts.compactMap { part in
            let restarts = part.rows.map(\.series.restarts.count).max() ?? 0
            guard restarts > 1 else { return nil }
            let rows = part.rows.filter { $0.workload.metric == .throughput }
            let curves = (["ours"] + part.rivals).compactMap { name -> CurveChart.Curve? in
                let series = rows.compactMap { row in
                    name == "ours" ? row.series : row.peers.first { $0.name == name }?.series
                }
                let points = (0..<restarts).compactMap { restart -> CurveChart.Point? in
                    let logs = series.compactMap { Self.drift(of: $0, restart: restart) }
                    if logs.isEmpty { return nil }
                    return CurveChart.Point(
                        x: Self.place(ofRestart: restart), y: exp(logs.reduce(0, +) / Double(logs.count)))
                }
                return points.isEmpty ? nil : CurveChart.Curve(name: name, points: points, isCut: false)
            }
            if curves.isEmpty { return nil }
            return CurveChart(
                title: part.subject.title,
                caption: "time over the run's median, mean of all rows, by restart",
                curves: curves, places: (0..<restarts).map { (Self.place(ofRestart: $0), "\($0 + 1)") },
                tick: { "\(Format.tick($0))×" }, mark: 1
            ).render()
        }
    }

    /// Places on a logarithmic axis, equally far from each other.
    private static func place(ofRestart restart: Int) -> Double { exp(Double(restart)) }

    private static func drift(of series: RunDocument.Series, restart: Int) -> Double? {
        guard series.restarts.indices.contains(restart),
            let now = Estimate.median(series.restarts[restart].rounds),
            let usual = Estimate.median(series.restartMedians), now > 0, usual > 0
        else { return nil }
        return log(now / usual)
    }

    /// All rounds of a series in order, as a line in a table; its height is a factor of 2.
    static func sparkline(_ series: RunDocument.Series, hue: Int) -> String? {
        let values = series.values
        guard values.count > 1, let median = Estimate.median(values), median > 0 else { return nil }
        var drawing = SVG(width: 72, height: 16)
        let points = values.enumerated().map { index, value in
            let bend = value > 0 ? min(max(log2(value / median), -0.5), 0.5) : -0.5
            return (72 * Double(index) / Double(values.count - 1), 8 - 15 * bend)
        }
        drawing.path(points, class: "s\(hue) thin")
        return drawing.render(title: "\(values.count) rounds in order")
    }
}
