public import BenchmarkCore
public import BenchmarkHarness
import Mustache

/// The run as one page: inline drawings, no script, light and dark.
public struct Page {
    private let document: RunDocument
    private let summary: Summary

    /// Creates the page of a run.
    public init(_ document: RunDocument) {
        self.document = document
        summary = Summary(document)
    }

    /// The forest plots, each a file that a README can show: of operations, and of the libraries.
    public func forests() -> [(subject: Workload.Subject, drawing: String)] {
        summary.parts.map { ($0.subject, forest($0)) }
    }

    private func forest(_ part: Summary.Part) -> String {
        let peers = [Coordinator.again] + part.peers
        // Only what can be divided: a cost of zero has no ratio.
        let rows = part.rows.filter { $0.workload.metric != .cost }.map { row in
            ForestChart.Row(
                label: "\(row.workload.id) \(row.workload.title)",
                estimates: peers.map { document.ratio(row.workload.id, n: row.n, peer: $0) })
        }
        return ForestChart(peers: peers, rows: rows).render(
            title: part.subject == .libraries
                ? "Time of what one writes by hand, which does less, over time of ours"
                : "Time of a peer over time of ours",
            note:
                "Dots are medians, lines exact intervals of the median over restarts; the axis is logarithmic."
        )
    }

    /// The page.
    ///
    /// - Throws: when the template is not valid, which a test rules out.
    public func render() throws -> String {
        let context: [String: Any] = [
            "headline": headline, "forests": forests().map(\.drawing), "verdict": summary.selfVerdict,
            "warnings": document.controls.warnings,
            "facts": facts.map { ["name": $0.0, "value": $0.1] }, "cards": summary.rows.map(card),
            "losses": losses, "absences": absences, "isPartial": document.isPartial,
        ]
        return try MustacheTemplate(string: Self.template).render(context)
    }

    private var headline: String {
        let won = summary.rows.filter(summary.isFirst).count
        return "Ours is faster than every peer in \(won) of \(summary.rows.count) workloads on this machine."
    }

    private var facts: [(String, String)] {
        let machine = document.machine.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        let build = document.build.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return [
            ("date", document.date), ("seed", "\(document.seed)"),
        ]
            + machine + build
            + document.peers.map { ("peer \($0.name)", "\($0.version), \($0.threads) threads") }
    }

    private func card(_ row: Summary.Row) -> [String: Any] {
        let names = ["ours"] + row.peers.map(\.name)
        let lines = names.compactMap { name -> [String: Any]? in
            guard let series = document.series(row.workload.id, n: row.n, peer: name) else { return nil }
            let figure = Estimate(series.restartMedians)
            let ratio = name == "ours" ? nil : document.ratio(row.workload.id, n: row.n, peer: name)
            func count(_ key: String) -> String { series.counts[key].map(Format.number) ?? "" }
            return [
                "name": name, "source": document.peers.first { $0.name == name }?.source ?? "",
                "figure": figure.map { Format.value($0.median, unit: row.workload.unit) } ?? series.stopped
                    ?? "n/a",
                "ratio": ratio.map { Format.ratio(($0.median, $0.low, $0.high)) } ?? "",
                "allocations": count("allocations_per_op"), "cpu": count("cpu_ns_per_op"),
                "switches": count("voluntary_switches_per_op"),
            ]
        }
        return [
            "id": row.workload.id, "title": row.workload.title, "sentence": row.workload.sentence,
            "n": Format.count(Double(row.n)), "verdict": summary.verdict(row),
            "floor": summary.floorSentence(row) ?? "", "lines": lines, "curve": curve(row) ?? "",
            "costs": ownCosts(row), "forms": forms(row),
        ]
    }

    /// What stands for the peers, where they are written for this workload.
    private func forms(_ row: Summary.Row) -> [[String: String]] {
        document.peers.compactMap { peer in
            let isMeasured = document.series(row.workload.id, n: row.n, peer: peer.name) != nil
            guard isMeasured, let form = peer.forms?[row.workload.id] else { return nil }
            return ["name": peer.name, "form": form]
        }
    }

    private func curve(_ row: Summary.Row) -> String? {
        guard document.sizes(row.workload.id).count > 1, row.workload.metric == .throughput else {
            return nil
        }
        let names = ["ours"] + row.peers.map(\.name)
        let curves = names.enumerated().compactMap { index, name -> CurveChart.Curve? in
            let series = document.sizes(row.workload.id).compactMap {
                document.series(row.workload.id, n: $0, peer: name)
            }
            let points = series.compactMap { series in
                Estimate(series.restartMedians).map { (n: series.n, estimate: $0) }
            }
            guard !points.isEmpty else { return nil }
            return CurveChart.Curve(
                name: name, hue: index, points: points, isStopped: series.contains { $0.stopped != nil })
        }
        return CurveChart(curves: curves, unit: row.workload.unit)
            .render(title: "\(row.workload.id): \(row.workload.unit) by size")
    }

    private func ownCosts(_ row: Summary.Row) -> String {
        guard let series = document.series(row.workload.id, n: row.n, peer: "ours") else { return "" }
        return series.counts.sorted { $0.key < $1.key }
            .map { "\($0.key) = \(Format.number($0.value))" }.joined(separator: ", ")
    }

    private var losses: [String] {
        summary.rows.flatMap { row in
            row.peers.filter { !Summary.references.contains($0.name) }.compactMap { peer in
                guard let ratio = peer.ratio, ratio.high < 1 else { return nil }
                return "\(row.workload.id) \(row.workload.title): \(peer.name) takes "
                    + "\(Format.number(ratio.median))× our time."
            }
        }
    }

    private var absences: [String] {
        let measured = Set(document.results.map(\.peer))
        let never = document.peers.filter { !measured.contains($0.name) }.map {
            "\($0.name): nothing is applicable; `benchmarks list` says why."
        }
        return never
            + summary.rows.flatMap { row in
                row.peers.filter { $0.figure == nil }.map { peer in
                    "\(row.workload.id), \(peer.name): \(peer.stopped ?? "not applicable; `benchmarks list` says why")."
                }
            }
    }
}
