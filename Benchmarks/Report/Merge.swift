import BenchmarkCore
public import BenchmarkHarness
import Foundation
import TextTable

/// Parts of one run, from one host or from many, combined.
///
/// Parts of one host form one run, as if one process had measured it. Times of different hosts are never pooled: for each
/// row, a host contributes its own ratio to ours, and the figure is the median over the hosts. A host on which ours did not
/// agree with itself in a row (A/A) is excluded from that row.
public struct Merge: Codable, Sendable {
    /// The runs, one for each host.
    public private(set) var hosts: [RunDocument]
    /// Sentences about what was not included.
    public let remarks: [String]

    /// Combines parts.
    ///
    /// - Parameter parts: the documents, with the names of their files.
    /// - Throws: ``BenchmarkError`` that names a part of another run.
    public init(_ parts: [(name: String, document: RunDocument)]) throws {
        guard let first = parts.first else { throw BenchmarkError("There is nothing to merge.") }
        var hosts: [(key: [String?], document: RunDocument)] = []
        var remarks: [String] = []
        for (name, document) in parts {
            guard document.isOfSameRun(as: first.document) else {
                throw BenchmarkError(
                    "'\(name)' is from another run than '\(first.name)': its arguments, commit or compiler differ."
                )
            }
            let key = ["host", "processor", "cpus"].map { document.machine[$0] }
            if let index = hosts.firstIndex(where: { $0.key == key }) {
                let doubled = hosts[index].document.takeIn(document)
                if !doubled.isEmpty {
                    let names = doubled.map(\.description).joined(separator: ", ")
                    remarks.append("\(names) of '\(name)' was already measured; the first values are kept.")
                }
            } else {
                hosts.append((key, document))
            }
        }
        self.hosts = hosts.map(\.document)
        self.remarks = remarks
    }

    /// Returns a sentence for each host that lacks units of the plan.
    ///
    /// - Parameter units: the units of the whole run.
    public func lacking(of units: [RunUnit]) -> [String] {
        hosts.compactMap { host in
            let lacking = Set(units).subtracting((host.units ?? []).map(\.unit))
            guard !lacking.isEmpty else { return nil }
            let names = units.filter(lacking.contains).map(\.description).joined(separator: ", ")
            return "\(Self.name(host)) lacks \(lacking.count) of \(units.count) units: \(names)."
        }
    }

    /// Records whether units are missing.
    public mutating func mark(isPartial: Bool) {
        for index in hosts.indices { hosts[index].isPartial = isPartial }
    }

    private static func name(_ host: RunDocument) -> String { host.machine["host"] ?? "a host" }

    /// How many times longer a peer takes than ours: the median over the hosts.
    ///
    /// - Returns: the figure, nil if no host can contribute, and the hosts that were excluded.
    public func ratio(_ workload: String, n: Int, peer: String) -> (figure: Estimate?, leftOut: [String]) {
        var logs: [Double] = []
        var leftOut: [String] = []
        for host in hosts {
            guard let ratio = host.ratio(workload, n: n, peer: peer) else { continue }
            if let again = host.ratio(workload, n: n, peer: Coordinator.again), Summary.isWithinBand(again) {
                logs.append(log(ratio.median))
            } else {
                leftOut.append(Self.name(host))
            }
        }
        return (Estimate(logs)?.map(exp), leftOut)
    }

    /// As text: a row for each workload and peer that more than one host measured.
    public func render() -> String {
        struct Row {
            let workload: Workload
            let n: Int
            let peer: String
        }
        let names = hosts.flatMap { $0.peers.map(\.name) }
        let peers = names.enumerated().filter {
            $0.element != "ours" && names.firstIndex(of: $0.element) == $0.offset
        }
        .map(\.element)
        let rows = BenchmarkCore.workloads.flatMap { workload -> [Row] in
            guard let n = hosts.compactMap({ $0.sizes(workload.id).last }).min() else { return [] }
            return peers.map { Row(workload: workload, n: n, peer: $0) }
        }.filter {
            let ratio = ratio($0.workload.id, n: $0.n, peer: $0.peer)
            return ratio.figure != nil || !ratio.leftOut.isEmpty
        }
        let table = TextTable<Row> { row in
            let ratio = ratio(row.workload.id, n: row.n, peer: row.peer)
            let interval = ratio.figure.map { "\(Format.number($0.low)) to \(Format.number($0.high))" }
            return [
                Column(title: "workload", value: "\(row.workload.id) \(row.workload.title)"),
                Column(title: "n", value: Format.count(Double(row.n)), align: .right),
                Column(title: "peer", value: row.peer),
                Column(
                    title: "time over ours",
                    value: ratio.figure.map { "\(Format.number($0.median))×" } ?? "-",
                    align: .right),
                Column(title: "over hosts", value: interval ?? "-", align: .right),
                Column(title: "left out", value: ratio.leftOut.joined(separator: ", ")),
            ]
        }
        let head = "Medians over \(hosts.count) hosts: \(hosts.map(Self.name).joined(separator: ", "))."
        return ([head, table.string(for: rows, style: Style.simple) ?? ""] + remarks).joined(separator: "\n")
            + "\n"
    }
}
