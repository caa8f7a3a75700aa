import BenchmarkCore
import BenchmarkHarness

/// The missing measurements, with the reasons.
struct Absences {
    /// Peers that gave the same reason everywhere, such as one that is not installed.
    let peers: [String]
    /// Peers that have nothing to do in this run.
    let idle: [String]
    /// Measurements that were stopped, or left out because they would take too long.
    let stopped: [String]
    /// Peers in workloads that they cannot run.
    let rows: [String]

    var lines: [String] {
        let nowhere =
            idle.isEmpty ? [] : ["No workload of this run applies to \(idle.joined(separator: ", "))."]
        return peers + nowhere + stopped + rows
    }

    init(_ summary: Summary) {
        let document = summary.document
        let measured = Set(document.results.lazy.filter { !$0.values.isEmpty }.map(\.peer))
        let asked = Set(document.results.map(\.peer))
        let reasons = document.peers.filter { !asked.contains($0.name) }.map { peer in
            (name: peer.name, all: Set((peer.notApplicable ?? [:]).values))
        }
        peers =
            (document.absent ?? [])
            + reasons.filter { $0.all.count == 1 }.map { Self.sentence($0.name, $0.all.first ?? "") }
        idle = reasons.filter { $0.all.count != 1 }.map(\.name)
        stopped = Self.stopped(document)
        rows = document.peers.filter { measured.contains($0.name) }.flatMap { peer in
            let ids = summary.rows.filter { row in
                row.peers.contains { $0.name == peer.name && $0.series == nil }
            }.map(\.workload.id)
            let unknown = "not applicable; 'benchmarks list' says why"
            return Self.grouped(ids.map { ($0, peer.notApplicable?[$0] ?? unknown) }).map { reason, ids in
                Self.sentence("\(peer.name), \(ids.joined(separator: ", "))", reason)
            }
        }
    }

    /// The stopped measurements by size and reason, with the peers.
    private static func stopped(_ document: RunDocument) -> [String] {
        let ends = document.results.filter { $0.peer != Coordinator.again }.compactMap { series in
            series.stopped.map { reason in
                (series.peer, "\(series.workload) with n = \(Format.count(Double(series.n)))\n\(reason)")
            }
        }
        return grouped(ends).map { end, peers in
            let parts = end.split(separator: "\n", maxSplits: 1).map(String.init)
            return sentence("\(parts[0]), \(peers.joined(separator: ", "))", parts[1])
        }
    }

    /// Grouped by reason, in the order of first occurrence.
    private static func grouped(_ all: [(name: String, reason: String)]) -> [(
        reason: String, names: [String]
    )] {
        var reasons: [String] = []
        var names: [String: [String]] = [:]
        for (name, reason) in all {
            if names[reason] == nil { reasons.append(reason) }
            names[reason, default: []].append(name)
        }
        return reasons.map { ($0, names[$0, default: []]) }
    }

    private static func sentence(_ what: String, _ reason: String) -> String {
        "\(what): \(reason)\(reason.hasSuffix(".") ? "" : ".")"
    }
}
