public import BenchmarkCore

/// What a run is to measure.
public struct Plan: Sendable {
    /// How much time a run takes.
    public enum Depth: String, Sendable, CaseIterable {
        /// Every workload once, small: seconds.
        case smoke
        /// Minutes.
        case quick
        /// For publication: an hour.
        case thorough

        var limit: Duration {
            switch self {
            case .smoke: .seconds(20)
            case .quick: .seconds(2)
            case .thorough: .seconds(30)
            }
        }
    }

    /// The workloads, in the order of the report.
    public var workloads: [Workload]
    /// The names of the peers; `ours` first.
    public var peers: [String]
    /// The worker threads of every peer.
    public var threads: Int
    /// The seed of the order of the rounds.
    public var seed: UInt64
    /// How much time the run takes.
    public var depth: Depth
    /// The longest that one sample may take; a size that is predicted to take longer is not asked, and a process that
    /// takes twice as long is killed.
    public var limit: Duration
    /// The sizes of every workload; nil: as the depth says.
    public var sizes: [Int]?

    /// Creates a plan, and checks that its names exist.
    ///
    /// - Parameters:
    ///   - filter: identifiers of workloads, or their beginnings up to a hyphen; nil: all.
    ///   - peers: names; nil: all that are known.
    ///   - known: the names that users see.
    ///   - hidden: names that take part only when they are asked for.
    ///   - sizes: instead of those of the depth.
    ///   - limit: the longest that one sample may take; nil: as the depth says.
    /// - Throws: ``BenchmarkError`` that names what is unknown.
    public init(
        filter: [String]?, peers wanted: [String]?, known: [String], hidden: [String] = [], threads: Int,
        seed: UInt64, depth: Depth, limit: Duration? = nil, sizes: [Int]? = nil
    ) throws {
        let all = BenchmarkCore.workloads
        for id in filter ?? [] where !all.contains(where: { $0.belongs(to: id) }) {
            throw BenchmarkError(
                "There is no workload '\(id)'; there are \(all.map(\.id).joined(separator: ", ")).")
        }
        for name in wanted ?? [] where !(known + hidden).contains(name) {
            throw BenchmarkError("There is no peer '\(name)'; there are \(known.joined(separator: ", ")).")
        }
        guard Self.threads.contains(threads) else {
            throw BenchmarkError(
                "The number of threads must be from 1 to \(Self.threads.upperBound), not \(threads).")
        }
        if let size = sizes?.first(where: { $0 < 1 }) {
            throw BenchmarkError("A size must be at least 1, not \(size).")
        }
        workloads = all.filter { workload in
            filter?.contains(where: workload.belongs) ?? (workload.id != "W0")  // W0 is a control
        }
        for workload in workloads {
            guard let size = sizes?.first(where: { !workload.sizes.contain($0) }) else { continue }
            throw BenchmarkError("\(workload.id) takes \(workload.sizes.name), not \(size).")
        }
        self.sizes = sizes
        // Everything is compared with ours, so it always takes part.
        peers = ["ours"]
        peers += known.filter { $0 != "ours" && (wanted?.contains($0) ?? true) }
        peers += hidden.filter { wanted?.contains($0) ?? false }
        self.threads = threads
        self.seed = seed
        self.depth = depth
        self.limit = limit ?? depth.limit
        guard self.limit > .zero else {
            throw BenchmarkError("The limit must be more than 0 seconds, not \(self.limit).")
        }
    }

    /// What every peer can have.
    static let threads = 1...256

    /// The sizes of a workload.
    public func sizes(of workload: Workload) -> [Int] {
        if let sizes { return sizes }
        return switch depth {
        case .smoke: workload.smoke
        case .quick: workload.quick
        case .thorough: workload.thorough
        }
    }

    /// How often the processes are started anew.
    public var restarts: Int {
        switch depth {
        case .smoke: 1
        case .quick: 6
        case .thorough: 15
        }
    }

    /// How often each process is asked for each size, after one answer that is thrown away.
    public var rounds: Int {
        switch depth {
        case .smoke: 1
        case .quick: 3
        case .thorough: 5
        }
    }

    /// Samples that take longer than this are asked once for each restart, and not to warm up: they are long enough to
    /// be warm for the most of themselves.
    static let long_s = 0.1

    /// Whether a workload is measured with this set of processes: costs vary little, and take long.
    func includes(_ workload: Workload, restart: Int) -> Bool { workload.metric != .cost || restart < 2 }
}

extension Workload {
    /// Whether it is the one that is named, or one of a family: W14 is W14-0, W14-1 and so on.
    fileprivate func belongs(to name: String) -> Bool { id == name || id.hasPrefix("\(name)-") }
}

/// Predicts how long a peer will take for a size, by what it took for the sizes before.
struct Prediction {
    private var last: [String: (operations: Int, seconds: Double)] = [:]

    mutating func note(_ workload: Workload, _ peer: String, n: Int, seconds: Double) {
        last["\(workload.id) \(peer)"] = (workload.operations(n), seconds)
    }

    /// The seconds, at least linear in the operations; for the first size the least that it can be.
    func seconds(_ workload: Workload, _ peer: String, n: Int) -> Double {
        let predicted = last["\(workload.id) \(peer)"].map {
            $0.seconds * max(1, Double(workload.operations(n)) / Double(max(1, $0.operations)))
        }
        return max(predicted ?? 0, workload.leastSeconds(n))
    }
}
