import BenchmarkCore
import BenchmarkHarness
import Foundation

/// The side that is ahead on average, its lead, and how certain that is: for each peer the geometric mean, over rows, of
/// its time over ours.
///
/// The value of a restart is the mean over the rows of the log ratio; the figure is the median over the restarts, with
/// its exact order-statistic interval, as everywhere (see `Estimate`). That assumes that restarts are independent and
/// identically distributed. Nothing is assumed about the rows, which may drift together. The rows are given, not sampled:
/// the interval says how certain the mean of *these* rows is, not that of other workloads. All rows have equal weight. A
/// row takes part when both sides have a value in every restart that counts. Rows with an objection are excluded, and so
/// are costs, which are not times.
struct Headline {
    /// The mean of one peer.
    struct Mean {
        let peer: String
        let estimate: Estimate
        /// How many rows took part.
        let rows: Int

        /// Whether it is certainly slower than ours (1), certainly faster (-1), or neither can be concluded.
        var side: Int {
            guard estimate.coverage >= Summary.leastCoverage else { return 0 }
            return estimate.low > 1 ? 1 : estimate.high < 1 ? -1 : 0
        }
    }

    let part: Summary.Part
    /// The nearest peer first.
    let means: [Mean]

    init(_ part: Summary.Part) {
        self.part = part
        let rows = part.rows.filter { $0.workload.metric != .cost && $0.mayCount }
        means = part.rivals.compactMap { Self.mean(of: $0, over: rows) }
            .sorted { ($0.estimate.median, $0.peer) < ($1.estimate.median, $1.peer) }
    }

    /// How many restarts a row must have to take part: as many as an interval requires.
    private static let neededRestarts = 6

    private static func mean(of peer: String, over rows: [Summary.Row]) -> Mean? {
        let all = rows.compactMap { row -> [Int: Double]? in
            guard let theirs = row.peers.first(where: { $0.name == peer })?.series else { return nil }
            let logs = theirs.logRatios(to: row.series).enumerated().compactMap { restart, log in
                log.map { (restart, $0) }
            }
            return logs.isEmpty ? nil : Dictionary(uniqueKeysWithValues: logs)
        }
        let needed = min(neededRestarts, all.map(\.count).max() ?? 0)
        let taking = all.filter { $0.count >= needed }
        guard let first = taking.first else { return nil }
        let restarts = first.keys.filter { restart in taking.allSatisfy { $0[restart] != nil } }.sorted()
        let means = restarts.map { restart in
            taking.compactMap { $0[restart] }.reduce(0, +) / Double(taking.count)
        }
        return Estimate(means).map { Mean(peer: peer, estimate: $0.map(exp), rows: taking.count) }
    }

    /// The number of rows with a given standing.
    func count(_ isMeant: (Summary.Standing) -> Bool) -> Int { part.rows.count { isMeant($0.standing) } }

    /// The answer, in one sentence.
    var sentence: String {
        guard let nearest = means.first, let furthest = means.last else {
            return "No verdict: no workload has both a peer and a sound A/A."
        }
        func times(_ mean: Mean) -> String { Format.times(mean.estimate.median) }
        let ahead = means.filter { $0.side > 0 }
        let behind = means.filter { $0.side < 0 }
        if means.allSatisfy({ $0.estimate.coverage < Summary.leastCoverage }) {
            return "The run is too short to say who is ahead: it needs 5 restarts."
        }
        if ahead.count == means.count {
            return means.count == 1
                ? "Ahead of \(nearest.peer) on average: it takes \(times(nearest)) our time."
                : """
                Ahead of all \(means.count) peers on average: they take from \(times(nearest)) (\(nearest.peer)) to \
                \(times(furthest)) (\(furthest.peer)) our time.
                """
        }
        if behind.count == means.count {
            return means.count == 1
                ? "Behind \(nearest.peer) on average: it takes \(times(nearest)) our time."
                : """
                Behind all \(means.count) peers on average: they take from \(times(nearest)) (\(nearest.peer)) to \
                \(times(furthest)) (\(furthest.peer)) our time.
                """
        }
        var parts = ["Ahead of \(ahead.count) of \(means.count) peers on average"]
        if !behind.isEmpty {
            parts.append("behind " + behind.map { "\($0.peer) (\(times($0)))" }.joined(separator: ", "))
        }
        let level = means.filter { $0.side == 0 }
        if !level.isEmpty { parts.append("level with " + level.map(\.peer).joined(separator: ", ")) }
        return parts.joined(separator: "; ") + "."
    }

    /// The rows that do not count, and why; nil if all count.
    var leftOut: String? {
        let reasons = Dictionary(grouping: part.rows.filter { !$0.mayCount }) { row -> String in
            row.again == nil ? "not compared with itself" : "ours differs from itself (A/A)"
        }
        if reasons.isEmpty { return nil }
        let texts = reasons.sorted { $0.key < $1.key }.map { reason, rows in
            "\(rows.map(\.workload.id).joined(separator: ", ")): \(reason)"
        }
        return "Not in the means: \(texts.joined(separator: "; "))."
    }
}

extension Summary.Row {
    /// Whether ours agrees with itself here, if that was measured.
    fileprivate var mayCount: Bool {
        switch standing {
        case .unknown(.unlikeItself), .unknown(.notComparedWithItself): false
        default: true
        }
    }
}

extension Summary {
    /// A row in which a peer is certainly ahead of ours.
    struct Loss {
        let row: Row
        let peers: [(peer: Peer, ratio: Estimate, restarts: (ahead: Int, all: Int))]
    }

    /// Returns the rows that we lose, the worst first.
    func losses(_ part: Part) -> [Loss] {
        part.rows.compactMap { row -> Loss? in
            if case .unknown = row.standing { return nil }
            let ahead = row.rivals.filter { $0.ratio.high < 1 }.sorted { $0.ratio.median < $1.ratio.median }
                .map { rival in
                    let logs = rival.peer.series?.logRatios(to: row.series).compactMap(\.self) ?? []
                    return (rival.peer, rival.ratio, (logs.count { $0 < 0 }, logs.count))
                }
            return ahead.isEmpty ? nil : Loss(row: row, peers: ahead)
        }.sorted { $0.peers[0].ratio.median < $1.peers[0].ratio.median }
    }
}
