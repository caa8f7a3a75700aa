public import BenchmarkComparison
import BenchmarkHarness
import Foundation
import Rainbow
import TextTable

/// The changes between two programs, as text and as Markdown: rows that are worse, rows that could not be judged,
/// rows that are better, unclear rows, and unchanged rows. Each group has the greatest slowdown first.
public struct ChangeTable {
    private struct Row {
        let name: String
        let before: String
        let after: String
        let change: Interval?
        let control: Interval?
        let verdict: Verdict
        let note: String?
    }

    private let title: String
    private let summary: [String]
    private let outcome: GateOutcome
    private let rows: [Row]
    private let heads: (before: String, after: String)
    private let hasControls: Bool

    /// The table of two commits that ran side by side.
    public init(_ document: GateDocument) {
        title = "HEAD \(document.head.title) against BASE \(document.base.title)"
        outcome = document.outcome
        heads = ("BASE", "HEAD")
        hasControls = true
        rows = document.rows.map { line in
            let restarts = line.confirmation.isEmpty ? line.screening : line.confirmation
            func figure(_ values: [Double]) -> String {
                Estimate.median(values).map { Format.value($0, unit: line.unit) } ?? "-"
            }
            return Row(
                name: "\(line.row.workload) n=\(Format.count(Double(line.row.n)))",
                before: figure(restarts.flatMap { $0.base + $0.again }),
                after: figure(restarts.flatMap(\.head)),
                change: line.change, control: line.control, verdict: line.verdict, note: line.failure)
        }
        let threshold = Self.percent(document.rule.threshold)
        var summary = [Self.sentence(document.outcome, rows, threshold, document.rule.alpha)]
        func only(_ rows: [BenchmarkComparison.Row], _ name: String) -> String? {
            rows.isEmpty
                ? nil : "Only \(name) has \(rows.map { "\($0.workload) n=\($0.n)" }.joined(separator: ", "))."
        }
        summary += [only(document.onlyBase, "BASE"), only(document.onlyHead, "HEAD")].compactMap(\.self)
        self.summary = summary
    }

    /// The table of two runs.
    public init(_ comparison: RunComparison) {
        title = "The run of \(comparison.dates[1]) against that of \(comparison.dates[0])"
        outcome = comparison.outcome
        heads = ("before", "after")
        hasControls = false
        rows = comparison.rows.map { line in
            Row(
                name: "\(line.workload) n=\(Format.count(Double(line.n)))",
                before: Format.value(line.before, unit: line.unit),
                after: Format.value(line.after, unit: line.unit),
                change: line.change, control: nil, verdict: line.verdict,
                note: line.peers == 0 ? "no peer to compare with" : nil)
        }
        var summary: [String] = []
        if let band = comparison.band, let drift = comparison.drift {
            summary.append(
                """
                The runs were not side by side: in the second, all peers took \(Format.number(drift))× their time in the \
                first. So ours is compared with the peers, which did not change but differ by up to \
                \(Self.percent(band)); the intervals are wider by that.
                """)
        } else {
            summary.append(
                """
                The runs were not side by side, and have no peer in common that shows how the machine changed: \
                these changes may have any cause.
                """)
        }
        if comparison.canShow || comparison.outcome == .worse {
            let threshold = Self.percent(comparison.threshold + (comparison.band ?? 0))
            summary.append(Self.sentence(comparison.outcome, rows, threshold, comparison.alpha))
        } else {
            summary.append(
                """
                With so few restarts nothing can be shown for \(rows.count) rows together: '--workloads' compares fewer, runs \
                with '--thorough' have more restarts, and 'benchmarks ab' measures two commits side by side.
                """)
        }
        self.summary = summary + comparison.missing.map { "\($0)." }
    }

    private static func sentence(
        _ outcome: GateOutcome, _ rows: [Row], _ threshold: String, _ alpha: Double
    ) -> String {
        func count(_ verdict: Verdict, _ what: String) -> String? {
            let count = rows.count { $0.verdict == verdict }
            return count == 0 ? nil : "\(count) \(what)"
        }
        let counts = [
            count(.worse, "worse"), count(.better, "better"), count(.same, "not changed"),
            count(.unclear, "too noisy to exclude a change that matters"),
            count(.controlOff, "without a verdict, because BASE differs from itself"),
            count(.failed, "not measured"),
        ]
        let first =
            switch outcome {
            case .worse: "Worse by more than \(threshold): \(names(rows, .worse))."
            case .notMeasured:
                "No verdict: \(names(rows, .controlOff, .failed)) could not be judged."
            case .passed: "Nothing is worse by more than \(threshold)."
            }
        return """
            \(first) Of \(rows.count) rows: \(counts.compactMap(\.self).joined(separator: ", ")). The probability of any false \
            alarm is at most \(percent(alpha)).
            """
    }

    private static func names(_ rows: [Row], _ verdicts: Verdict...) -> String {
        rows.filter { verdicts.contains($0.verdict) }.map(\.name).joined(separator: ", ")
    }

    /// Worst first, in groups by the action that a row calls for.
    private var sorted: [Row] {
        let order: [Verdict] = [.worse, .failed, .controlOff, .better, .unclear, .same]
        return order.flatMap { verdict in rows.filter { $0.verdict == verdict } }
    }

    // MARK: Text

    /// The table as text, with colours only if standard output shows them.
    public func render() -> String {
        let table = TextTable<Row> { row in
            [
                Column(title: "workload", value: row.name),
                Column(title: heads.before, value: row.before, align: .right),
                Column(title: heads.after, value: row.after, align: .right),
                Column(title: "change", value: Self.change(row.change), align: .right),
                Column(title: "95 % interval", value: Self.interval(row.change), align: .right),
            ] + (hasControls ? [Column(title: "A/A", value: Self.change(row.control), align: .right)] : [])
                + [
                    Column(title: "", value: Self.coloured(row))
                ]
        }
        let sentences = summary.map { sentence in
            switch outcome {
            case .worse: sentence.red
            case .notMeasured: sentence.yellow
            case .passed: sentence
            }
        }
        return ([title.bold, table.string(for: sorted, style: Style.simple) ?? ""] + sentences).joined(
            separator: "\n")
            + "\n"
    }

    private static func coloured(_ row: Row) -> String {
        let text = row.note.map { "\(row.verdict.rawValue): \($0)" } ?? row.verdict.rawValue
        return switch row.verdict {
        case .worse: text.red
        case .better: text.green
        case .failed, .controlOff: text.yellow
        case .same, .unclear: text.lightBlack
        }
    }

    // MARK: Markdown

    /// The table as Markdown, for a comment on a pull request; unchanged rows are folded away.
    public func markdown() -> String {
        let sign =
            switch outcome {
            case .worse: "🔴"
            case .notMeasured: "🟡"
            case .passed: "🟢"
            }
        let loud = sorted.filter { $0.verdict != .same && $0.verdict != .unclear }
        let quiet = sorted.filter { $0.verdict == .same || $0.verdict == .unclear }
        var parts = ["### \(sign) \(Self.escaped(title))"] + summary.map(Self.escaped)
        if !loud.isEmpty { parts.append(markdownTable(loud)) }
        if !quiet.isEmpty {
            let summary = "<summary>\(quiet.count) rows without a proven change</summary>"
            parts.append("<details>\(summary)\n\n\(markdownTable(quiet))\n\n</details>")
        }
        return parts.joined(separator: "\n\n") + "\n"
    }

    private func markdownTable(_ rows: [Row]) -> String {
        var lines = [
            "| workload | \(heads.before) | \(heads.after) | change | 95 % interval |\(hasControls ? " A/A |" : "") verdict |",
            "|:--|--:|--:|--:|--:|\(hasControls ? "--:|" : "")" + ":--|",
        ]
        for row in rows {
            let verdict = row.note.map { "\(row.verdict.rawValue): \($0)" } ?? row.verdict.rawValue
            let cells =
                [row.name, row.before, row.after, Self.change(row.change), Self.interval(row.change)]
                + (hasControls ? [Self.change(row.control)] : []) + [verdict]
            lines.append("| \(cells.map(Self.escaped).joined(separator: " | ")) |")
        }
        return lines.joined(separator: "\n")
    }

    /// A commit's subject must stay text, whatever it contains.
    private static func escaped(_ text: String) -> String {
        text.replacing("|", with: "\\|").replacing("<", with: "&lt;").replacing("\n", with: " ")
    }

    // MARK: Numbers

    private static func percent(_ fraction: Double) -> String { String(format: "%.3g %%", fraction * 100) }

    /// A factor as a signed percentage, or as a factor if that is easier to grasp.
    private static func signed(_ factor: Double) -> String {
        guard factor < 2, factor > 0.5 else { return "×\(Format.number(factor))" }
        let tenths = ((factor - 1) * 1000).rounded() / 10
        return String(format: "%@%.1f %%", tenths < 0 ? "−" : "+", abs(tenths))
    }

    private static func change(_ interval: Interval?) -> String { interval.map { signed($0.median) } ?? "-" }

    private static func interval(_ interval: Interval?) -> String {
        interval.map { "\(signed($0.low)) … \(signed($0.high))" } ?? "-"
    }
}
