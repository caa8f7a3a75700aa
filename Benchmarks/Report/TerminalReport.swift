import BenchmarkCore
public import BenchmarkHarness
import Foundation
import Rainbow

/// The run for a terminal, in the order of the page: who is ahead on average, each family of workloads, the losses,
/// how far to trust the run, and the missing peers.
public struct TerminalReport {
    private static let columns = 100
    /// At most 60 lines, including the paths of the files, which are printed below.
    private static let lines = 56

    private let document: RunDocument
    private let summary: Summary
    private let page: Page

    /// Creates the text of a run.
    public init(_ document: RunDocument) {
        self.document = document
        page = Page(document)
        summary = page.summary
    }

    /// The text: at most 56 lines of 100 columns, with colours only if standard output shows them.
    public func render() -> String {
        let head = wrapped(page.headline).map(\.bold) + [fitted(page.machineLine).lightBlack, ""]
        let body = head + page.headlines.flatMap(means) + families
        let foot = controls + absences
        let losses = losses(atMost: max(3, Self.lines - body.count - foot.count - 1))
        return (body + losses + [""] + foot).joined(separator: "\n") + "\n"
    }

    private func fitted(_ text: String, into width: Int = columns) -> String {
        text.count <= width ? text : text.prefix(width - 1) + "…"
    }

    /// At most two lines, broken between words.
    private func wrapped(_ text: String) -> [String] {
        guard text.count > Self.columns,
            let end = text.prefix(Self.columns + 1).lastIndex(of: " ")
        else { return [fitted(text)] }
        return [String(text[..<end]), fitted(String(text[text.index(after: end)...]))]
    }

    private func padded(_ text: String, _ width: Int) -> String {
        let fitted = fitted(text, into: width)
        return fitted + String(repeating: " ", count: width - fitted.count)
    }

    private func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    // MARK: Means

    private func means(_ headline: Headline) -> [String] {
        let title = headline.part.subject.title
        if headline.means.isEmpty { return ["\(title.bold): \(headline.sentence)", ""] }
        let caption = fitted(
            "a peer's time over ours, mean of the rows that both run; above 1× ours is faster", into: 86)
        let ends = headline.means.flatMap { [$0.estimate.low, $0.estimate.high] }
        let x = Scale(ends, including: 1, limits: 0.005...200, margin: 1.1, from: 0, to: 37)
        let lines = headline.means.map { mean in
            let estimate = mean.estimate
            var dots = [Character](repeating: " ", count: 38)
            dots[Int(x(1).rounded())] = "│"
            for place in Int(x(estimate.low).rounded())...Int(x(estimate.high).rounded()) {
                dots[place] = "─"
            }
            dots[Int(x(estimate.median).rounded())] = "●"
            let isSure = estimate.coverage >= Summary.leastCoverage
            let interval = isSure ? Format.interval(estimate.low, estimate.high) : "not sure"
            let figures =
                "  \(padded(mean.peer, 15))\(right(Format.times(estimate.median), 7))  \(padded(interval, 18))"
                + right("\(mean.rows) row\(mean.rows == 1 ? "" : "s")", 9)
            return
                "\(figures)  \(coloured(String(dots), mean.side > 0 ? .ahead : mean.side < 0 ? .behind : .level))"
        }
        return ["\(title.bold)  \(caption.lightBlack)"] + lines + [""]
    }

    private func coloured(_ text: String, _ standing: Summary.Standing) -> String {
        switch standing {
        case .ahead: text.green
        case .behind: text.red
        case .level: text
        case .alone, .unknown: text.lightBlack
        }
    }

    // MARK: Families of workloads

    /// Two side by side: a sign, the nearest peer in the row where it is nearest, and its ratio there and where it is
    /// furthest away.
    private var families: [String] {
        var names: [String] = []
        let groups = Dictionary(grouping: summary.rows, by: \.workload.family)
        for row in summary.rows where !names.contains(row.workload.family) {
            names.append(row.workload.family)
        }
        let cells = names.sorted { Self.isBefore($0, $1) }.compactMap { groups[$0].map(family) }
        if cells.isEmpty { return [] }
        let half = (cells.count + 1) / 2
        let lines = (0..<half).map { line in
            let second = half + line < cells.count ? " " + cells[half + line] : ""
            return cells[line] + second
        }
        let caption = "the nearest peer, and its time over ours in the worst and the best row"
        return ["\("Workloads".bold)  \(caption.lightBlack)"] + lines + [""]
    }

    /// W2 before W10, and before R4.
    private static func isBefore(_ one: String, _ other: String) -> Bool {
        func key(_ name: String) -> (Int, Int) { (name.hasPrefix("W") ? 0 : 1, Int(name.dropFirst()) ?? 0) }
        return key(one) < key(other)
    }

    private func family(_ rows: [Summary.Row]) -> String {
        let first = rows[0].workload
        let more = rows.count == 1 ? "" : " +\(rows.count - 1)"
        let title = fitted(String(first.title.prefix { $0 != "," }), into: 17 - more.count) + more
        let head = "\(padded(first.family, 4))\(padded(title, 18))"
        let known = rows.filter { if case .unknown = $0.standing { false } else { true } }
        let nearest = known.compactMap { row in row.best.map { (row, $0) } }
            .sorted { $0.1.ratio.median < $1.1.ratio.median }
        guard let (row, worst) = nearest.first, let (_, best) = nearest.last else {
            let why = known.isEmpty ? "no verdict" : "no peer"
            return "? \(head) \(padded(why, 24))".lightBlack
        }
        let range =
            nearest.count == 1
            ? Self.short(worst.ratio.median)
            : "\(Self.short(worst.ratio.median))–\(Self.short(best.ratio.median))"
        let sign = row.standing == .ahead ? "+" : row.standing == .behind ? "-" : "="
        let text = "\(sign) \(head)\(right(range, 11)) \(padded(worst.peer.name, 13))"
        return coloured(text, row.standing)
    }

    /// At most five columns.
    private static func short(_ ratio: Double) -> String {
        ratio < 0.01 ? "<0.01" : ratio >= 10_000 ? "≥10k" : Format.number(ratio)
    }

    // MARK: Losses

    private func losses(atMost room: Int) -> [String] {
        let all = summary.parts.flatMap { part in summary.losses(part).map { (part, $0) } }
        if all.isEmpty { return ["\("What we lose".bold)  \(page.withoutLosses)"] }
        let lines = all.map { part, loss in
            let peers = loss.peers.map { peer, ratio, _ in
                "\(peer.name) \(Format.ratio((ratio.median, ratio.low, ratio.high)))"
            }
            return "  \(padded(loss.row.name, 34)) \(fitted(peers.joined(separator: ", "), into: 62))"
        }
        let title =
            "\("What we lose".bold)  \(all.count) of \(summary.rows.count) workloads; time over ours, and interval"
        if lines.count < room { return [title] + lines }
        // The worst of each subject, in the order of the subjects; at least one of each.
        var shown: [String] = []
        var left = room - 2
        for (place, part) in summary.parts.enumerated() {
            let own = zip(all, lines).filter { $0.0.0.subject == part.subject }.map(\.1)
            let kept = summary.parts[(place + 1)...].count { next in
                all.contains { $0.0.subject == next.subject }
            }
            let some = own.prefix(min(left, max(1, left - kept)))
            shown += some
            left -= some.count
        }
        let rest = "  and \(lines.count - shown.count) more: on the page, and in 'report --all'"
        return [title] + shown + [rest.lightBlack]
    }

    // MARK: Controls and missing peers

    private var controls: [String] {
        let warnings = page.warnings
        let verdict = wrapped(summary.selfVerdict)
        var lines = summary.isLikeItself ? verdict : verdict.map(\.yellow)
        if let first = warnings.first { lines.append(fitted(first).yellow) }
        if warnings.count > 1 { lines.append("and \(warnings.count - 1) more warnings, on the page".yellow) }
        return lines
    }

    private var absences: [String] {
        let absences = Absences(summary)
        var lines: [String] = []
        if !absences.peers.isEmpty {
            lines.append(fitted("Missing: \(absences.peers.joined(separator: " "))").lightBlack)
        }
        if !absences.stopped.isEmpty {
            lines.append(fitted("Cut or stopped: \(absences.stopped.joined(separator: " "))").lightBlack)
        }
        return lines
    }
}
