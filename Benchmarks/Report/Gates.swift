import BenchmarkCore
public import BenchmarkHarness

/// The conditions that a run must meet to pass in CI: counts, slopes, and ratios within the same run with a wide band;
/// never absolute times.
public struct Gates {
    private let document: RunDocument
    private let recorded: RecordedCounts

    /// Creates the gates of a run.
    ///
    /// - Parameter recorded: the allocations and bytes that the run is compared with.
    public init(_ document: RunDocument, recorded: RecordedCounts) {
        self.document = document
        self.recorded = recorded
    }

    /// A sentence for each gate that does not hold.
    public func failures() -> [String] { countFailures() + ratios + demands }

    /// A sentence for each gate that the run cannot decide, because it lacks a workload or a peer.
    public func missing(onlyCounts: Bool) -> [String] {
        let counted =
            ["W13"] + comparable.map(\.workload.id) + Array(recorded.pendingBytes.keys) + Self.linear
        let needed = Set(counted.map { [$0, "ours"] })
        let compared = onlyCounts ? [] : Self.demanded.map { [$0.workload, $0.peer] }
        let measured = Set(
            document.results.lazy.filter { !$0.values.isEmpty }.map { [$0.workload, $0.peer] })
        return needed.union(compared).subtracting(measured).map { $0.joined(separator: " with ") }.sorted()
            .map { "\($0) was not measured." }
    }

    /// Like ``failures()``, without the gates that other programs on the machine could disturb.
    public func countFailures() -> [String] { idleSwitches + operationCounts + slopes }

    private var idleSwitches: [String] {
        var failures: [String] = []
        for series in document.results where series.peer == "ours" {
            if let switches = series.counts["idle_switches_per_s"], switches > 0 {
                failures.append(
                    "\(series.workload): idle workers switch \(Format.number(switches)) times a second, not 0."
                )
            }
        }
        return failures
    }

    /// The failures of recorded counts, and of counts that must be 0.
    private var operationCounts: [String] {
        var failures: [String] = []
        func compare(_ series: RunDocument.Series, _ key: String, _ recorded: Double?, _ what: String) {
            // Five per cent of zero is zero, and a single event is within the slack.
            guard let recorded, let count = series.counts[key],
                count > recorded * RecordedCounts.toleranceOfRuns + 0.05
            else { return }
            failures.append(
                "\(series.workload): \(Format.number(count)) \(what) per operation; \(Format.number(recorded)) are recorded."
            )
        }
        let rows = Dictionary(uniqueKeysWithValues: comparable.map { ($0.workload.id, $0) })
        for series in document.results where series.peer == "ours" {
            if let row = rows[series.workload], let counts = recorded.rows[row.name],
                isComparable(series, row, counts)
            {
                compare(series, "allocations_per_op", counts.allocations, "allocations")
            }
            if series.n == RecordedCounts.sizeOfBytes {
                compare(series, "bytes_per_op", recorded.pendingBytes[series.workload], "bytes")
            }
            if let ran = series.counts["ran_after_cancel"], ran > 0 {
                failures.append(
                    "\(series.workload): \(Format.number(ran)) operations ran after the cancellation, not 0.")
            }
            if let left = series.counts["bytes_left"], left > 0 {
                failures.append(
                    "\(series.workload): \(Format.number(left)) bytes are left after \(series.n) operations, not 0."
                )
            }
        }
        return failures
    }

    /// The rows of ours whose allocations can be compared in a run: those that are deterministic.
    private var comparable: [CountedRow] {
        workloads.compactMap { CountedRow($0, peer: "ours") }.filter { row in
            recorded.rows[row.name] != nil && row.band.reason == nil
        }
    }

    private func isComparable(
        _ series: RunDocument.Series, _ row: CountedRow, _ recorded: OperationCounts
    ) -> Bool {
        if series.n == recorded.n { return true }
        return !row.dependsOnSize && series.n == document.sizes(series.workload).last
            && (row.isOfThreads || series.n >= RecordedCounts.leastSize)
    }

    /// The promised ratios: the minimum ratio to ours, by workload and peer.
    private static let demanded: [(workload: String, peer: String, ratio: Double)] = [
        ("W5", "dispatch", 3), ("W5", "taskgroup", 10), ("W6-cascade", "ours-bare", 0.5),
        ("W6-cascade", "dispatch", 3),
        ("W24-group", "taskgroup", 1), ("W24-group-main", "taskgroup", 1),
        ("W24-discarding", "taskgroup", 1), ("W24-discarding-main", "taskgroup", 1),
        ("W24-asynclet", "taskgroup", 1), ("W24-asynclet-main", "taskgroup", 1),
        ("W24-tasks", "taskgroup", 0.9), ("W24-tasks-main", "taskgroup", 0.9),
        ("W24-actor", "taskgroup", 0.9), ("W24-actor-main", "taskgroup", 0.9),
        ("W24-handover", "taskgroup", 0.9), ("W24-handover-main", "taskgroup", 0.9),
        ("R4", "taskgroup", 1), ("R4-late", "taskgroup", 1), ("R4-mixed", "taskgroup", 0.9),
    ]

    private var demands: [String] {
        Self.demanded.compactMap { demand in
            guard let n = document.sizes(demand.workload).last,
                let ratio = document.ratio(demand.workload, n: n, peer: demand.peer),
                ratio.high < demand.ratio
            else { return nil }
            return """
                \(demand.workload): \(demand.peer) takes \(Format.number(ratio.median))× our time; at least \
                \(Format.number(demand.ratio))× is promised.
                """
        }
    }

    /// The workloads whose time may grow no faster than n.
    private static let linear = [
        "W1", "W3", "W5", "W5-range", "W6", "W6-cascade", "W6-small", "W10", "W14-0", "W14-1", "W14-50",
        "W16-last",
        "W16-half", "W21-execute", "W21-undo", "W21-redo", "W21-now", "W21-invoker",
        "W22-members", "W24-group", "W24-discarding", "W24-asynclet", "W24-tasks", "W24-actor",
        "W24-handover", "W24-group-main", "W24-discarding-main", "W24-asynclet-main", "W24-tasks-main",
        "W24-actor-main", "W24-handover-main", "W27-set", "W27-cancel", "W27-fire",
    ]

    private var slopes: [String] {
        Self.linear.compactMap { workload in
            guard let slope = document.slope(workload, peer: "ours"), slope > 1.1,
                document.slopeOfCPUTime(workload, peer: "ours") ?? slope > 1.1
            else { return nil }
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
