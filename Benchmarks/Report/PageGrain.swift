import BenchmarkCore
import BenchmarkHarness

/// How long operations have to be so that most of the time is spent on them.
extension Page {
    /// Whether a row's size is the length of its operations.
    func isOfGrains(_ row: Summary.Row) -> Bool { row.series.counts["grain_ns"] != nil }

    /// The efficiency by length, and METG for each peer.
    var grains: [[String: Any]] {
        summary.rows.filter(isOfGrains).compactMap { row in
            let id = row.workload.id
            let names = ["ours"] + row.peers.map(\.name)
            let curves = names.compactMap { name -> CurveChart.Curve? in
                let points = summary.series(of: name, in: row).compactMap { series in
                    document.efficiency(id, n: series.n, peer: name).map {
                        CurveChart.Point(x: series.counts["grain_ns"] ?? Double(series.n), y: $0)
                    }
                }
                return points.isEmpty ? nil : CurveChart.Curve(name: name, points: points, isCut: false)
            }
            let sizes = summary.series(of: "ours", in: row)
            let drawing = CurveChart(
                title: row.name, caption: "share of time spent on operations, by their length",
                curves: curves,
                places: sizes.map { series in
                    let grain_ns = series.counts["grain_ns"] ?? Double(series.n)
                    return (grain_ns, Format.short(Double(series.n), unit: "ns"))
                },
                tick: { "\(Format.tick(($0 * 1_000).rounded() / 10)) %" }, mark: 0.5)
            let lines = names.compactMap { name -> [String: String]? in
                guard let half = document.effectiveGrain(name, efficiency: 0.5, workload: id),
                    let most = document.effectiveGrain(name, efficiency: 0.9, workload: id)
                else { return nil }
                return ["name": name, "half": half.text, "most": most.text]
            }
            return ["drawing": drawing.render(), "lines": lines]
        }
    }
}

extension EffectiveGrain {
    fileprivate var text: String {
        switch self {
        case .about(let ns): Format.short(ns, unit: "ns")
        case .atMost(let ns): "≤ \(Format.short(ns, unit: "ns"))"
        case .moreThan(let ns): "> \(Format.short(ns, unit: "ns"))"
        }
    }
}
