import BenchmarkCore
public import BenchmarkHarness

/// What a run must hold to pass in CI: counts, slopes, and ratios of the same run with a wide band; never
/// absolute times.
public struct Gates {
    private let document: RunDocument

    /// Creates the gates of a run.
    public init(_ document: RunDocument) { self.document = document }

    /// A sentence for each gate that does not hold.
    public func failures() -> [String] { counts + slopes + ratios }

    private var counts: [String] {
        var failures: [String] = []
        for series in document.results where series.peer == "ours" {
            if let switches = series.counts["idle_switches_per_s"], switches > 0 {
                failures.append(
                    "\(series.workload): idle workers switch \(Format.number(switches)) times a second, not 0."
                )
            }
            if let left = series.counts["bytes_left"], let n = series.params["n"], left > Double(n) {
                failures.append(
                    "\(series.workload): \(Format.number(left)) bytes are left after the drain of \(n) operations."
                )
            }
            if ["W1", "W3", "W6"].contains(series.workload), series.n >= 10_000,
                let allocations = series.counts["allocations_per_op"], allocations > 1.1
            {
                failures.append(
                    "\(series.workload): \(Format.number(allocations)) allocations an operation; the closure's own is 1."
                )
            }
        }
        return failures
    }

    private var slopes: [String] {
        ["W1", "W3", "W6"].compactMap { workload in
            guard let slope = document.slope(workload, peer: "ours"), slope > 1.1 else { return nil }
            return "\(workload): time grows with n to the power \(Format.number(slope)), more than 1.1."
        }
    }

    private var ratios: [String] {
        Summary(document).rows.filter { ["W1", "W3", "W6", "W9"].contains($0.workload.id) }.flatMap { row in
            row.peers.filter {
                ["dispatch", "operationqueue", "taskgroup", "nio", "pthread"].contains($0.name)
            }
            .compactMap { peer in
                guard let ratio = peer.ratio, ratio.high < 1 else { return nil }
                return "\(row.workload.id): \(peer.name) takes \(Format.number(ratio.median))× our time."
            }
        }
    }
}
