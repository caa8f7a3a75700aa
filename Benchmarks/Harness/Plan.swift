public import BenchmarkCore

/// A plan of the measurements of a run.
public struct Plan: Sendable {
    /// How much time a run takes.
    public enum Depth: String, Codable, Sendable, CaseIterable {
        /// Every workload once, small: seconds.
        case smoke
        /// Minutes.
        case quick
        /// For publication: about 45 minutes on two CPUs.
        case thorough

        var limit: Duration {
            switch self {
            case .smoke: .seconds(20)
            case .quick: .seconds(2)
            case .thorough: .seconds(10)
            }
        }

        var restarts: Int {
            switch self {
            case .smoke: 1
            case .quick: 6
            case .thorough: 15
            }
        }
    }

    /// The options that the user asked for.
    public let options: PlanOptions
    /// The workloads, in the order of the report.
    public let workloads: [Workload]
    /// The names of the peers; `ours` first.
    public internal(set) var peers: [String]
    /// The units that are measured, in this order.
    public let units: [RunUnit]
    /// The longest that one sample may take; a size that is predicted to take longer is skipped, and a process that takes
    /// twice as long is killed.
    public let limit: Duration

    /// The worker threads of every peer.
    public var threads: Int { options.threads }

    /// Creates a plan, and checks that its names exist.
    ///
    /// - Parameters:
    ///   - known: the names of the peers that users see.
    ///   - hidden: the names of peers that take part only if the options name them.
    ///   - only: the units to measure, by their names; all if it is empty.
    /// - Throws: ``BenchmarkError`` that names anything unknown.
    public init(_ options: PlanOptions, known: [String], hidden: [String] = [], only: [String] = []) throws {
        let all = BenchmarkCore.workloads
        for id in options.filter ?? [] where !all.contains(where: { $0.belongs(to: id) }) {
            throw BenchmarkError(
                "There is no workload '\(id)'; there are \(all.map(\.id).joined(separator: ", ")).")
        }
        for name in options.peers ?? [] where !(known + hidden).contains(name) {
            throw BenchmarkError("There is no peer '\(name)'; there are \(known.joined(separator: ", ")).")
        }
        for threads in [options.threads] + (options.threadSweep ?? []) where !Self.threads.contains(threads) {
            throw BenchmarkError(
                "The number of threads must be from 1 to \(Self.threads.upperBound), not \(threads).")
        }
        if let size = options.sizes?.first(where: { $0 < 1 }) {
            throw BenchmarkError("A size must be at least 1, not \(size).")
        }
        workloads = all.filter { workload in
            options.filter?.contains(where: workload.belongs) ?? (workload.id != "W0")  // W0 is a control
        }
        for workload in workloads {
            guard let size = options.sizes?.first(where: { !workload.sizes.contain($0) }) else { continue }
            throw BenchmarkError("\(workload.id) takes \(workload.sizes.name), not \(size).")
        }
        // All peers are compared with `ours`, so `ours` always takes part.
        let wanted = options.peers
        peers =
            ["ours"] + known.filter { $0 != "ours" && (wanted?.contains($0) ?? true) }
            + hidden.filter { wanted?.contains($0) ?? false }
        limit = options.limit_s.map { .seconds($0) } ?? options.depth.limit
        guard limit > .zero else {
            throw BenchmarkError("The limit must be more than 0 seconds, not \(limit).")
        }
        self.options = options
        let units = Self.units(of: workloads, options)
        self.units = only.isEmpty ? units : units.filter { only.contains($0.description) }
        if let name = only.first(where: { name in !units.contains { $0.description == name } }) {
            throw BenchmarkError(
                "There is no command and no unit '\(name)'; --help lists the commands, 'units' the units.")
        }
    }

    /// The numbers of threads that every peer can have.
    static let threads = 1...256

    /// The sizes of a workload, ascending; the report compares the last one.
    public func sizes(of workload: Workload) -> [Int] {
        if let sizes = options.sizes { return sizes.sorted() }
        return switch options.depth {
        case .smoke: workload.smoke
        case .quick: workload.quick
        case .thorough: workload.thorough
        }
    }

    /// How many times the processes are restarted.
    public var restarts: Int { options.depth.restarts }

    /// The maximum number of samples that each process runs for each size, after one that is discarded.
    var rounds: Int {
        switch options.depth {
        case .smoke: 1
        case .quick: 3
        case .thorough: 5
        }
    }

    /// A sample that takes longer than this is run once in each restart. Unless its workload fills memory, there is no
    /// warm-up: the sample is long enough to be warm for most of its time.
    static let long_s = 0.04

    private static func units(of workloads: [Workload], _ options: PlanOptions) -> [RunUnit] {
        (0..<options.depth.restarts).flatMap { restart in
            // Costs vary little and take long to measure, so two restarts are enough.
            workloads.filter { $0.metric != .cost || restart < 2 }
                .map { RunUnit(workload: $0.id, restart: restart) } + sweep(workloads, options, restart)
        }
    }

    /// A curve needs no confidence interval, so three sets of processes are enough.
    private static func sweep(_ workloads: [Workload], _ options: PlanOptions, _ restart: Int) -> [RunUnit] {
        guard restart < 3 else { return [] }
        return (options.threadSweep ?? []).filter { $0 != options.threads }.flatMap { threads in
            workloads.filter(\.scales).map {
                RunUnit(workload: $0.id, restart: restart, threads: threads)
            }
        }
    }

    /// Peers that a sweep over threads skips: they choose their own number of threads, or need none.
    static let withOwnThreads: Set = ["dispatch", "taskgroup", "ours-preferred", "serial", "floor"]

    /// - Precondition: the unit is one of this plan's.
    func workload(of unit: RunUnit) -> Workload {
        guard let workload = workloads.first(where: { $0.id == unit.workload }) else {
            preconditionFailure("The plan has no workload \(unit.workload).")
        }
        return workload
    }

    /// The sizes that one set of processes measures. Sizes that are only points of a curve are measured by the first three
    /// sets.
    package func sizes(of workload: Workload, restart: Int) -> [Int] {
        let sizes = sizes(of: workload)
        return restart < 3 ? sizes : sizes.suffix(1)
    }
}

extension Workload {
    /// Whether this is the named workload, or one of the named family: W14 names W14-0, W14-1 and so on.
    fileprivate func belongs(to name: String) -> Bool { id == name || id.hasPrefix("\(name)-") }
}

/// Predicts how long a peer will take for a size, from its times for the smaller sizes.
struct Prediction {
    private var last: [String: (operations: Int, seconds: Double)] = [:]

    mutating func note(_ workload: Workload, _ peer: String, n: Int, seconds: Double) {
        last["\(workload.id) \(peer)"] = (workload.operations(n), seconds)
    }

    /// Adds the values of a run that is resumed.
    mutating func note(_ series: RunDocument.Series) {
        guard let workload = workloads.first(where: { $0.id == series.workload }),
            workload.metric == .throughput, let value = Estimate.median(series.values)
        else { return }
        let operations = workload.operations(series.n)
        note(workload, series.peer, n: series.n, seconds: value * Double(operations) / 1e9)
    }

    /// The predicted seconds, at least linear in the operations; for the first size, the least possible time.
    func seconds(_ workload: Workload, _ peer: String, n: Int) -> Double {
        let predicted = last["\(workload.id) \(peer)"].map {
            $0.seconds * max(1, Double(workload.operations(n)) / Double(max(1, $0.operations)))
        }
        return max(predicted ?? 0, workload.leastSeconds(n))
    }
}
