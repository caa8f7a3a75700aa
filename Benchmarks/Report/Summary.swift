import BenchmarkCore
public import BenchmarkHarness

/// What the table and the page both say: one row for each workload, at its largest size that ours was
/// measured at; and parts, of the rows that have the same peers.
public struct Summary {
    /// One workload.
    struct Row {
        let workload: Workload
        let n: Int
        let ours: Estimate
        /// Of the peers of its part: name, figure, and ratio to ours.
        let peers: [(name: String, figure: Estimate?, ratio: Estimate?, stopped: String?)]
    }

    /// The rows of one subject, and the peers that were measured in any of them.
    struct Part {
        let subject: Workload.Subject
        let rows: [Row]
        let peers: [String]
    }

    let document: RunDocument
    let parts: [Part]

    var rows: [Row] { parts.flatMap(\.rows) }

    /// Sums a run up.
    public init(_ document: RunDocument) {
        self.document = document
        let all = Workload.Subject.allCases.map { Self.part($0, of: document) }
        let measured = all.filter { !$0.rows.isEmpty }
        parts = measured.isEmpty ? Array(all.prefix(1)) : measured  // also a run without a result is drawn
    }

    private static func part(_ subject: Workload.Subject, of document: RunDocument) -> Part {
        let workloads = BenchmarkCore.workloads.filter { $0.subject == subject }
        let ids = Set(workloads.map(\.id))
        let measured = Set(document.results.lazy.filter { ids.contains($0.workload) }.map(\.peer))
        let names = document.peers.map(\.name).filter { $0 != "ours" && measured.contains($0) }
        let rows = workloads.compactMap { workload -> Row? in
            let sizes = document.sizes(workload.id)
            let measured = sizes.last { n in
                document.series(workload.id, n: n, peer: "ours").map { !$0.values.isEmpty } ?? false
            }
            guard let n = measured, let series = document.series(workload.id, n: n, peer: "ours"),
                let ours = Estimate(series.restartMedians)
            else { return nil }
            let peers = names.map { name in
                let theirs = document.series(workload.id, n: n, peer: name)
                return (
                    name: name, figure: theirs.flatMap { Estimate($0.restartMedians) },
                    ratio: document.ratio(workload.id, n: n, peer: name), stopped: theirs?.stopped
                )
            }
            return Row(workload: workload, n: n, ours: ours, peers: peers)
        }
        return Part(subject: subject, rows: rows, peers: names)
    }

    /// The A/A comparison: ours against a second process of ours, for each workload whose figure can be
    /// divided.
    var selfComparisons: [(row: Row, ratio: Estimate)] {
        rows.compactMap { row in
            document.ratio(row.workload.id, n: row.n, peer: Coordinator.again).map { (row, $0) }
        }
    }

    /// Why nothing can be said of a row: ours is not like itself there, or was not compared with itself though
    /// it was elsewhere in the run. Costs may all be 0, and are not compared.
    private func objection(_ row: Row) -> String? {
        guard let ratio = document.ratio(row.workload.id, n: row.n, peer: Coordinator.again) else {
            let isOwed =
                row.workload.metric != .cost && document.results.contains { $0.peer == Coordinator.again }
            return isOwed ? "ours was not compared with itself" : nil
        }
        return Self.isWithinBand(ratio)
            ? nil : "a second process of ours takes \(Format.number(ratio.median))× our time"
    }

    /// How far from 1 an A/A figure may be: its interval holds 1, or the median is within a tenth.
    public static func isWithinBand(_ ratio: Estimate) -> Bool {
        (ratio.low <= 1 && ratio.high >= 1) || abs(ratio.median - 1) <= 0.1
    }

    /// One sentence about all A/A comparisons.
    var selfVerdict: String {
        let compared = selfComparisons
        if compared.isEmpty { return "A/A: ours was not compared with itself." }
        let outside = compared.filter { !Self.isWithinBand($0.ratio) }
        if outside.isEmpty {
            return "A/A: ours against ours is 1 within its band in each of \(compared.count) workloads."
        }
        let names = outside.map { "\($0.row.workload.id) (\(Format.number($0.ratio.median))×)" }
        return "A/A: ours against ours is NOT 1 in \(names.joined(separator: ", ")): no verdict there."
    }

    /// The peer that is nearest to ours, or furthest ahead of it.
    private func best(_ row: Row) -> (name: String, ratio: Estimate)? {
        row.peers.filter { !Self.references.contains($0.name) }
            .compactMap { peer in peer.ratio.map { (name: peer.name, ratio: $0) } }
            .min { $0.ratio.median < $1.ratio.median }
    }

    /// Whether ours is surely ahead of every peer.
    func isFirst(_ row: Row) -> Bool {
        objection(row) == nil && best(row).map { $0.ratio.low > 1 } ?? false
    }

    /// One sentence about a row.
    func verdict(_ row: Row) -> String {
        if let objection = objection(row) { return "No verdict: \(objection)." }
        guard let best = best(row) else { return "No peer to compare with." }
        let figure = "\(best.name) (\(Format.number(best.ratio.median))×)"
        if isFirst(row) { return "Ours is \(row.workload.better) every peer; next is \(figure)." }
        if best.ratio.high < 1 { return "Ours is not \(row.workload.better) \(figure)." }
        return "No difference can be told from \(figure)."
    }

    /// What is measured beside the peers, to compare with: nobody would use it instead.
    static let references: Set = ["ours-bare", "ours-preferred", "serial", "floor"]

    /// The sentence about the distance to the physical limit, and to our scheduler where ours is the layer on it.
    func floorSentence(_ row: Row) -> String? {
        func ratio(_ name: String) -> String? {
            guard row.workload.metric != .cost || name != "floor",
                let ratio = row.peers.first(where: { $0.name == name })?.ratio, ratio.median > 0
            else { return nil }
            return "\(Format.number(ratio.median))×"
        }
        let bare = ratio("ours-bare").map { "Our scheduler without the layer takes \($0) our time." }
        let what =
            row.workload.subject == .libraries
            ? "the work alone" : "the same allocations and calls, no scheduling"
        let floor = ratio("floor").map { "The floor (\(what)) takes \($0) our time." }
        let sentences = [bare, floor].compactMap(\.self)
        return sentences.isEmpty ? nil : sentences.joined(separator: " ")
    }
}

extension Workload {
    /// What a ratio above 1 says about ours.
    fileprivate var better: String { metric == .cost ? "smaller than" : "faster than" }
}

extension RunDocument.Series {
    /// The median of each restart: rounds of one process are not independent of each other.
    var restartMedians: [Double] { restarts.compactMap { Estimate.median($0.rounds) } }
}
