import BenchmarkCore
public import BenchmarkHarness
import Rainbow
import TextTable

/// The whole run as text: tables of all rows, a verdict for each, costs, the controls.
public struct FullReport {
    private let summary: Summary

    /// Creates the text of a run.
    public init(_ document: RunDocument) { summary = Summary(document) }

    /// The text, with colours only if standard output shows them.
    public func render() -> String {
        var parts = [header] + summary.parts.map(table) + [verdicts, costs, controls]
        if summary.document.isPartial {
            parts.append(Page.endedEarly.yellow)
        }
        return parts.filter { !$0.isEmpty }.joined(separator: "\n\n") + "\n"
    }

    private var header: String {
        """
        \("A peer's time over ours".bold) (above 1: ours is faster)
        \(Page(summary.document).machineLine); seed \(summary.document.seed)
        """
    }

    private func table(_ part: Summary.Part) -> String {
        let table = TextTable<Summary.Row> { row in
            [
                Column(title: "workload", value: "\(row.workload.id) \(row.workload.title)"),
                Column(title: "n", value: Format.count(Double(row.n)), align: .right),
                Column(
                    title: "ours", value: Format.value(row.ours.median, unit: row.workload.unit),
                    align: .right),
                Column(
                    title: "A/A", value: row.again.map { Format.number($0.median) } ?? "-", align: .right),
            ]
                + part.peers.map { name in
                    Column(title: name, value: cell(row, name), align: .right)
                }
        }
        return table.string(for: part.rows, style: Style.simple) ?? ""
    }

    private func cell(_ row: Summary.Row, _ name: String) -> String {
        guard let peer = row.peers.first(where: { $0.name == name }) else { return "n/a" }
        if let ratio = peer.ratio { return Format.times(ratio.median) }
        if let figure = peer.figure { return Format.value(figure.median, unit: row.workload.unit) }
        return peer.stopped == nil ? "n/a" : "stopped"
    }

    private var verdicts: String {
        summary.rows.map { row in
            let sentence = summary.verdict(row)
            let coloured = row.standing == .ahead ? sentence.green : sentence.yellow
            let floor = summary.floorSentence(row).map { " \($0)" } ?? ""
            return "\(row.workload.id)  \(coloured)\(floor)"
        }.joined(separator: "\n")
    }

    private var costs: String {
        summary.rows.map { row in
            let shown = row.series.counts.filter { key, _ in key != "peak_resident_bytes" }
                .sorted { $0.key < $1.key }
                .map { "\($0.key) \(Format.number($0.value))" }
            return "\(row.workload.id)  ours: \(shown.joined(separator: ", "))"
        }.joined(separator: "\n")
    }

    private var controls: String {
        let warnings = summary.document.controls.warnings.map { $0.yellow }
        return ([summary.selfVerdict] + warnings).joined(separator: "\n")
    }
}
