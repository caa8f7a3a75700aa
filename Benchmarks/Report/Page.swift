import BenchmarkCore
public import BenchmarkHarness
import Foundation
import Mustache

/// The run as one page: inline drawings, no script, light and dark, for phones and wide screens.
public struct Page {
    let document: RunDocument
    let summary: Summary
    let headlines: [Headline]

    /// Creates the page of a run.
    public init(_ document: RunDocument) {
        self.document = document
        summary = Summary(document)
        headlines = summary.parts.map(Headline.init)
    }

    /// Drawings that a README can show, each with the name of its file.
    public func pictures() -> [(name: String, drawing: String)] {
        let headline = HeadlineChart.together(
            headlines, title: "Peers' time over ours: above 1, ours is faster",
            note: machineLine)
        return [("headline.svg", headline)]
            + summary.parts.map { part in
                (
                    "forest-\(part.subject).svg",
                    forest(part).render(title: Self.title(of: part), isAlone: true)
                )
            }
    }

    /// The page.
    ///
    /// - Throws: an error if the template is invalid, which a test rules out.
    public func render() throws -> String {
        let (floors, costs, curves, latencies, order) = (floors, costs, curves, latencies, order)
        let threadCurves = threadCurves
        let context: [String: Any] = [
            "hasFloors": !floors.isEmpty, "hasCosts": !costs.isEmpty, "hasCurves": !curves.isEmpty,
            "hasLatencies": !latencies.isEmpty, "hasThreads": !threadCurves.isEmpty, "threads": threadCurves,
            "hasOrder": !order.isEmpty,
            "style": Look.style, "headline": headline, "machine": machineLine,
            "verdict": [summary.selfVerdict], "isTrusted": summary.isLikeItself,
            "warnings": warnings, "panels": panels, "losses": losses, "hasLosses": !losses.isEmpty,
            "withoutLosses": [withoutLosses],
            "forests": summary.parts.map(forestSection),
            "facts": facts.map { ["name": $0.name, "value": $0.value] },
            "floors": floors, "grains": grains, "hasGrains": summary.rows.contains(where: isOfGrains),
            "costs": costs, "curves": curves, "latencies": latencies, "order": order,
            "parts": summary.parts.map(cards), "absences": Absences(summary).lines,
        ]
        return try MustacheTemplate(string: Self.template).render(context)
    }

    var headline: String {
        let rows = summary.rows
        func count(_ standing: Summary.Standing) -> Int { rows.count { $0.standing == standing } }
        let ahead = "Ours is faster than every peer in \(count(.ahead)) of \(rows.count) workloads"
        let unknown = rows.count { $0.standing.name == "unknown" }
        let others = [
            (count(.level), "level with the best in"), (count(.behind), "behind in"),
            (unknown, "without a verdict in"),
        ].filter { $0.0 > 0 }.map { "\($0.1) \($0.0)" }
        return ([ahead] + others).joined(separator: ", ") + "."
    }

    package static let endedEarly = "The run was ended early; only finished measurements are shown."

    /// The most important warning comes first: a terminal shows only one.
    var warnings: [String] {
        var warnings = document.controls.warnings
        if summary.restarts < Summary.leastRestarts,
            summary.rows.contains(where: { $0.standing == .unknown(.fewRestarts) })
        {
            warnings.insert(
                "Restarts: \(summary.restarts); an interval needs \(Summary.leastRestarts), so there is no verdict yet.",
                at: 0)
        }
        if document.isPartial {
            warnings.insert(Self.endedEarly, at: 0)
        }
        return warnings
    }

    // MARK: The first screen

    private var panels: [[String: Any]] {
        let most = headlines.map(\.means.count).max() ?? 1
        return headlines.map { headline in
            let title = headline.part.subject.title
            return [
                "title": title, "scope": headline.part.subject.scope, "sentence": headline.sentence,
                "drawing": HeadlineChart(headline: headline, peers: most).render(
                    title: "\(title): mean time of each peer over ours"),
                "leftOut": [headline.leftOut].compactMap(\.self),
            ]
        }
    }

    /// The sentence if there is no loss.
    var withoutLosses: String {
        summary.rows.contains { $0.standing.name != "unknown" }
            ? "Nothing in this run beyond the noise." : "Unknown: no workload has a verdict."
    }

    private var losses: [[String: Any]] {
        summary.parts.compactMap { part in
            let losses = summary.losses(part)
            if losses.isEmpty { return nil }
            let lines = losses.map { loss -> [String: Any] in
                [
                    "id": loss.row.workload.id, "title": loss.row.workload.title,
                    "peers": loss.peers.map { peer, ratio, restarts -> [String: String] in
                        [
                            "name": peer.name, "mark": Self.mark(peer.name),
                            "ratio": Format.times(ratio.median),
                            "interval": Format.interval(ratio.low, ratio.high),
                            "sure": "\(restarts.ahead) of \(restarts.all)",
                        ]
                    },
                ]
            }
            return [
                "title": part.subject.title, "count": losses.count, "all": part.rows.count, "lines": lines,
                "isOpen": losses.count <= 12,
            ]
        }
    }

    // MARK: All workloads in one picture

    private static func title(of part: Summary.Part) -> String {
        let what =
            part.subject == .libraries
            ? "time of hand-written code, which does less, over ours"
            : "a peer's time over ours"
        return "\(part.subject.title): \(what)"
    }

    private func forest(_ part: Summary.Part) -> ForestChart {
        // Only rows with a ratio: a cost of zero has none.
        let rows = part.rows.filter { row in row.peers.contains { $0.ratio != nil } }.map { row in
            ForestChart.Row(
                label: row.name, standing: row.standing.name, note: note(row), noise: row.again,
                ratios: row.peers.compactMap { peer in peer.ratio.map { (peer.name, $0) } })
        }
        return ForestChart(peers: part.peers, rows: rows)
    }

    private func forestSection(_ part: Summary.Part) -> [String: Any] {
        let title = Self.title(of: part)
        let chart = forest(part)
        return [
            "title": title, "wide": chart.render(title: title), "narrow": chart.renderNarrow(title: title),
        ]
    }

    /// The nearest peer, or why there is no verdict.
    private func note(_ row: Summary.Row) -> String {
        switch row.standing {
        case .unknown(.unlikeItself(let ratio)): "A/A \(Format.times(ratio))"
        case .unknown(.notComparedWithItself): "no A/A"
        default: row.best.map { "\($0.peer.name) \(Format.times($0.ratio.median))" } ?? "no peer"
        }
    }

    /// The names with their colours, for drawings without room for a legend.
    func legend(_ names: [String]) -> [[String: String]] {
        names.map { ["name": $0, "mark": Self.mark($0)] }
    }

    private static func mark(_ name: String) -> String {
        var mark = SVG(width: 12, height: 12)
        mark.mark(Look.of(name), 6, 6, radius: 4.2, hint: name)
        return mark.render(title: name)
    }
}
