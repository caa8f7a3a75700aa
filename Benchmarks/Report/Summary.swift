import BenchmarkCore
public import BenchmarkHarness
import Foundation

/// The content of the table and of the page: one row for each workload, at the largest size at which ours was measured; and
/// parts, which group the rows with the same peers.
public struct Summary {
    /// A peer in a row, compared with ours.
    struct Peer {
        let name: String
        let series: RunDocument.Series?
        let figure: Estimate?
        /// The time of the peer over the time of ours.
        let ratio: Estimate?

        var stopped: String? { series?.stopped }
    }

    /// One workload.
    struct Row {
        let workload: Workload
        let n: Int
        let series: RunDocument.Series
        let ours: Estimate
        /// Ours against a second process of ours.
        let again: Estimate?
        /// All peers of its part.
        let peers: [Peer]
        let standing: Standing

        /// The workload's identifier and title.
        var name: String { "\(workload.id) \(workload.title)" }

        /// The ratios of the peers that a user might choose instead of ours.
        var rivals: [(peer: Peer, ratio: Estimate)] {
            peers.compactMap { peer in
                Summary.references.contains(peer.name) ? nil : peer.ratio.map { (peer, $0) }
            }
        }

        /// The peer that is nearest to ours, or furthest ahead of it.
        var best: (peer: Peer, ratio: Estimate)? { rivals.min { $0.ratio.median < $1.ratio.median } }
    }

    /// The rows of one subject, and the peers that were measured in any of them.
    struct Part {
        let subject: Workload.Subject
        let rows: [Row]
        let peers: [String]

        /// The peers that a user might choose instead of ours.
        var rivals: [String] { peers.filter { !Summary.references.contains($0) } }
    }

    /// How ours compares in a row, as far as its intervals show.
    enum Standing: Equatable {
        /// Ahead of every peer.
        case ahead
        /// Neither ahead of all peers, nor behind one.
        case level
        /// Behind a peer.
        case behind
        /// No peer to compare with.
        case alone
        /// Nothing can be concluded, and why.
        case unknown(Objection)

        /// The class of its colour.
        var name: String {
            switch self {
            case .ahead: "ahead"
            case .level: "level"
            case .behind: "behind"
            case .alone, .unknown: "unknown"
            }
        }
    }

    /// Why nothing can be concluded about a row.
    enum Objection: Equatable {
        /// How many times longer a second process of ours takes.
        case unlikeItself(Double)
        case notComparedWithItself
        case fewRestarts

        var sentence: String {
            switch self {
            case .unlikeItself(let ratio): "a second process of ours takes \(Format.times(ratio)) our time"
            case .notComparedWithItself: "ours was not compared with itself"
            case .fewRestarts: "too few restarts for an interval"
            }
        }
    }

    let document: RunDocument
    let parts: [Part]
    /// By workload, size and peer: linear searches would take seconds.
    private let index: Index

    var rows: [Row] { parts.flatMap(\.rows) }

    /// Summarises a run.
    public init(_ document: RunDocument) {
        self.document = document
        let index = Index(document)
        self.index = index
        let all = Workload.Subject.allCases.map { Self.part($0, of: document, index) }
        let measured = all.filter { !$0.rows.isEmpty }
        parts = measured.isEmpty ? Array(all.prefix(1)) : measured  // a run without results is drawn too
    }

    private static func part(_ subject: Workload.Subject, of document: RunDocument, _ index: Index) -> Part {
        let workloads = BenchmarkCore.workloads.filter { $0.subject == subject }
        let ids = Set(workloads.map(\.id))
        let measured = Set(document.results.lazy.filter { ids.contains($0.workload) }.map(\.peer))
        let names = document.peers.map(\.name).filter { $0 != "ours" && measured.contains($0) }
        let hasAgain = measured.contains(Coordinator.again) || index.hasAgain
        let rows = workloads.compactMap { workload -> Row? in
            let all = index.sizes(workload.id).lazy.compactMap {
                index.series(workload.id, n: $0, peer: "ours")
            }
            guard let ours = all.last(where: { !$0.values.isEmpty }),
                let figure = Estimate(ours.restartMedians)
            else { return nil }
            func ratio(_ series: RunDocument.Series?) -> Estimate? {
                series.flatMap { Estimate($0.logRatios(to: ours).compactMap(\.self)) }?.map { exp($0) }
            }
            let peers = names.map { name in
                let theirs = index.series(workload.id, n: ours.n, peer: name)
                return Peer(
                    name: name, series: theirs, figure: theirs.flatMap { Estimate($0.restartMedians) },
                    ratio: ratio(theirs))
            }
            let again = ratio(index.series(workload.id, n: ours.n, peer: Coordinator.again))
            let rivals = peers.filter { !references.contains($0.name) }.compactMap(\.ratio)
            let objection = objection(to: workload, again: again, isOwed: hasAgain, rivals: rivals)
            return Row(
                workload: workload, n: ours.n, series: ours, ours: figure, again: again, peers: peers,
                standing: objection.map(Standing.unknown) ?? standing(rivals))
        }
        return Part(subject: subject, rows: rows, peers: names)
    }

    private static func standing(_ rivals: [Estimate]) -> Standing {
        guard let best = rivals.min(by: { $0.median < $1.median }) else { return .alone }
        return best.low > 1 ? .ahead : rivals.contains { $0.high < 1 } ? .behind : .level
    }

    /// The series of a peer, if there is one.
    func series(_ workload: String, n: Int, peer: String) -> RunDocument.Series? {
        index.series(workload, n: n, peer: peer)
    }

    /// The series of a peer in a row's workload, by size.
    func series(of peer: String, in row: Row) -> [RunDocument.Series] {
        index.sizes(row.workload.id).compactMap { index.series(row.workload.id, n: $0, peer: peer) }
    }

    // MARK: A/A comparisons

    /// The A/A comparison: ours against a second process of ours, for each workload whose figure can be
    /// divided.
    var selfComparisons: [(row: Row, ratio: Estimate)] {
        rows.compactMap { row in row.again.map { (row, $0) } }
    }

    /// Why nothing can be concluded about a row: ours does not agree with itself there, or was not compared with itself
    /// although it was elsewhere in the run, or the restarts are too few for an interval. Costs may all be 0, and are not
    /// compared.
    private static func objection(
        to workload: Workload, again: Estimate?, isOwed: Bool, rivals: [Estimate]
    ) -> Objection? {
        if let again, !isWithinBand(again) { return .unlikeItself(again.median) }
        if workload.metric == .cost { return nil }
        if again == nil && isOwed { return .notComparedWithItself }
        return rivals.contains { $0.coverage < leastCoverage } ? .fewRestarts : nil
    }

    /// The least coverage of an interval for a verdict, which ``leastRestarts`` provide.
    static let leastCoverage = 0.9
    /// The fewest restarts of a run that allow verdicts.
    static let leastRestarts = 5

    /// Whether an A/A figure is close enough to 1: its interval must not lie entirely more than a tenth away.
    ///
    /// An interval excludes 1 by chance in 3 of 100 rows of six restarts, and its median is then wherever the noise put it. In
    /// 40 runs of 12 rows, 7 rows had an interval that excluded 1 and a median more than a tenth away, but no interval lay
    /// entirely beyond a tenth. A process that takes a fifth longer in each restart is detected by either criterion.
    public static func isWithinBand(_ ratio: Estimate) -> Bool {
        ratio.low <= 1 + tenth && ratio.high >= 1 / (1 + tenth)
    }
    private static let tenth = 0.1

    /// One sentence about all A/A comparisons.
    var selfVerdict: String {
        let compared = selfComparisons
        if compared.isEmpty { return "A/A: ours was not compared with itself." }
        let outside = compared.filter { !Self.isWithinBand($0.ratio) }
        if outside.isEmpty {
            return "A/A: ours against ours is 1 within its band in each of \(compared.count) workloads."
        }
        let names = outside.map { "\($0.row.workload.id) (\(Format.times($0.ratio.median)))" }
        return "A/A: ours against ours is NOT 1 in \(names.joined(separator: ", ")): no verdict there."
    }

    /// Whether ours agrees with itself wherever that was measured.
    var isLikeItself: Bool { selfComparisons.allSatisfy { Self.isWithinBand($0.ratio) } }

    /// The most restarts that a row has.
    var restarts: Int { rows.map(\.series.restarts.count).max() ?? 0 }

    // MARK: Verdicts

    /// One sentence about a row.
    func verdict(_ row: Row) -> String {
        if case .unknown(let objection) = row.standing { return "No verdict: \(objection.sentence)." }
        guard let best = row.best else { return "No peer to compare with." }
        let figure = "\(best.peer.name) (\(Format.times(best.ratio.median)))"
        switch row.standing {
        case .ahead: return "Ours is \(row.workload.metric.better) than every peer; next is \(figure)."
        case .behind: return "Ours is \(row.workload.metric.worse) than \(figure)."
        default: return "No difference from \(figure) can be shown."
        }
    }

    /// The peers that are measured for reference only: they are not alternatives to ours.
    static let references: Set = ["ours-bare", "ours-preferred", "ours-recorded", "serial", "floor"]

    /// The sentence about the distance to the physical limit, and to our scheduler where ours is the layer on it.
    func floorSentence(_ row: Row) -> String? {
        func ratio(_ name: String) -> String? {
            guard row.workload.metric != .cost || name != "floor",
                let ratio = row.peers.first(where: { $0.name == name })?.ratio, ratio.median > 0
            else { return nil }
            return Format.times(ratio.median)
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

/// An index of the series of a document.
private struct Index {
    private struct Key: Hashable {
        let workload: String
        let n: Int
        let peer: String
    }

    private var series: [Key: RunDocument.Series] = [:]
    private var sizes: [String: [Int]] = [:]
    /// Whether ours was compared with itself anywhere.
    let hasAgain: Bool

    init(_ document: RunDocument) {
        for each in document.results {
            series[Key(workload: each.workload, n: each.n, peer: each.peer)] = each
            sizes[each.workload, default: []].append(each.n)
        }
        sizes = sizes.mapValues { Set($0).sorted() }
        hasAgain = document.results.contains { $0.peer == Coordinator.again }
    }

    func series(_ workload: String, n: Int, peer: String) -> RunDocument.Series? {
        series[Key(workload: workload, n: n, peer: peer)]
    }

    func sizes(_ workload: String) -> [Int] { sizes[workload] ?? [] }
}

extension Workload.Metric {
    /// The words for ours where a ratio is above 1, and below.
    fileprivate var better: String { self == .cost ? "smaller" : "faster" }
    fileprivate var worse: String { self == .cost ? "larger" : "slower" }
}

extension Workload.Subject {
    /// In a word.
    var title: String {
        switch self {
        case .scheduler: "Scheduler"
        case .operations: "Operations"
        case .libraries: "Libraries"
        }
    }

    /// The scope of the measurements, in a few words.
    var scope: String {
        switch self {
        case .scheduler: "closures, Swift tasks, timers, idle and blocked threads"
        case .operations: "groups, cascades, cancellation, rerun, memory"
        case .libraries:
            "commands, model transactions and actions, against hand-written code, which does less"
        }
    }
}

extension RunDocument.Series {
    /// The median of each restart: rounds of one process are not independent of each other.
    var restartMedians: [Double] { restarts.compactMap { Estimate.median($0.rounds) } }
}
