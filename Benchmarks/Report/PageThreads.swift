import BenchmarkCore
import BenchmarkHarness

/// How the time of an operation changes with the number of worker threads.
extension Page {
    /// A drawing for each workload of a sweep.
    var threadCurves: [String] {
        guard let sweep = document.threadSweep, !sweep.isEmpty else { return [] }
        let cpus = document.machine["cpus"].flatMap { Int($0) } ?? .max
        return summary.rows.compactMap { row in
            let curves = (["ours"] + row.peers.map(\.name)).compactMap { name -> CurveChart.Curve? in
                let swept = sweep.filter {
                    $0.workload == row.workload.id && $0.n == row.n && $0.peer == name
                }
                if swept.isEmpty { return nil }
                // The run itself is one of the points.
                let own = document.series(row.workload.id, n: row.n, peer: name).flatMap { series in
                    document.peers.first { $0.name == name }.map { ($0.threads, series) }
                }
                let all = swept.map { ($0.threads ?? 0, $0) } + [own].compactMap(\.self)
                let points = all.compactMap { threads, series in
                    Estimate.median(series.restartMedians).map {
                        CurveChart.Point(x: Double(threads), y: $0)
                    }
                }.sorted { $0.x < $1.x }
                return points.isEmpty ? nil : CurveChart.Curve(name: name, points: points, isCut: false)
            }
            let counts = Set(curves.flatMap { $0.points.map(\.x) }).sorted()
            guard counts.count > 1 else { return nil }
            let mark = counts.contains { Int($0) > cpus } ? "; *: more than CPUs" : ""
            return CurveChart(
                title: row.name,
                caption: "time per operation, by threads, N = \(Format.count(Double(row.n)))\(mark)",
                curves: curves, places: counts.map { ($0, "\(Int($0))" + (Int($0) > cpus ? "*" : "")) },
                tick: { Format.short($0, unit: row.workload.unit) }
            ).render()
        }
    }
}
