/// A row whose operations are counted instruction by instruction, in addition to being timed.
public struct CountedRow: Sendable {
    /// The workload.
    public let workload: Workload
    /// The peer: ours, in one of its forms.
    public let peer: String

    /// Creates a row. Nil if the workload is not compared by the time of its operations, or if nearly everything that it
    /// executes is not our code.
    public init?(_ workload: Workload, peer: String) {
        guard workload.metric == .throughput || Self.alsoCounted.contains(workload.id),
            !Self.uncounted.contains(workload.id)
        else { return nil }
        self.workload = workload
        self.peer = peer
    }

    /// Also counted: an operation that is queued and then runs. The row itself is compared by the memory of all of them together.
    private static let alsoCounted: Set = ["W20-queued"]

    /// Not counted: no work at all; operations that spin, search, sort, draw or read; and starting and ending threads,
    /// which is the kernel's work.
    private static let uncounted: Set = ["W0", "W17", "W18-pareto", "W18-tree", "W25", "R1", "R2", "R3"]

    /// The name in the record, "W3 ours".
    public var name: String { "\(workload.id) \(peer)" }

    /// The size of the sample that is counted: large enough that the fixed costs of a sample hardly show, and small because
    /// callgrind makes a program fifty times slower.
    public var n: Int {
        if let size = Self.size[workload.id] { return size }
        if workload.sizes.contain(Self.usualSize) { return Self.usualSize }
        return workload.smoke[0]
    }

    private static let usualSize = 3_000

    private static let size = [
        "W2": 1, "W6-small": 300, "W7": 100, "W9": 15, "W10": 1_000, "W15-rerun": 300, "W15-rebuild": 300,
        "W16-last": 1_000,
        "W16-half": 1_000, "W21-execute": 2_000, "W21-undo": 2_000, "W21-redo": 2_000, "W21-now": 2_000,
        "W21-invoker": 2_000, "W22-commit": 100, "W22-rollback": 100, "W22-members": 1_000, "W22-threads": 1,
        "W22-readers": 1, "W23-open": 1, "W23-closed": 1, "W23-contended": 1, "R4": 10,
    ]

    /// Whether the cost of an operation depends on the size: then only equal sizes can be compared.
    public var dependsOnSize: Bool {
        // The callers of an actor and the threads of a model are a fixed cost, which shows in a small sample.
        ["W24-actor", "W24-actor-main", "W22-threads", "W7"].contains(workload.id)
            || workload.subject == .libraries && !isOfThreads
    }

    /// Whether the size is a number of threads, which share a fixed number of operations.
    public var isOfThreads: Bool { n == 1 }

    /// Whether the row covers one of the paths that everything else is built on.
    public var isHotPath: Bool { Self.hotPaths.contains(name) }

    /// Submit, spawn, chain, fork; a child of a group, a step of a cascade, a composite; a command executed and undone; a
    /// model transaction; an accepted and a refused trigger; a Swift task, a timer.
    private static let hotPaths: Set = [
        "W1 ours", "W3 ours", "W6 ours", "W9 ours", "W5 ours", "W6-cascade ours", "W15-rebuild ours",
        "W21-execute ours", "W21-undo ours", "W22-commit ours", "W23-open ours", "W23-closed ours",
        "W24-tasks ours", "W27-set ours",
    ]

    /// The tolerance of a count, as a share. If it is more than a hundredth, also the reason: mostly that threads decide at
    /// run time which of them does the work.
    public var band: (share: Double, reason: String?) {
        for (ids, share, reason) in Self.wide where ids.contains(workload.id) { return (share, reason) }
        return (0.01, nil)
    }

    private static let wide: [(ids: Set<String>, share: Double, reason: String)] = [
        (
            ["W1", "W2"], 0.02,
            "The worker frees memory of another thread, in batches whose size depends on the progress of both."
        ),
        (
            ["W14-0", "W14-1", "W14-50"], 0.35,
            "The cancelling thread and the worker share the work of ending and freeing the children."
        ),
        (["W22-readers"], 0.6, "The reader reads as often as possible: two or four times per commit."),
        (
            ["W23-open", "W23-closed", "W23-contended"], 0.03,
            "The calls are so short that occasional work of the allocator shows."
        ),
        (["W24-asynclet"], 0.03, "A branch that has ended before it is awaited costs less."),
        (
            ["W24-group-main", "W24-discarding-main", "W24-asynclet-main", "W24-tasks-main"], 0.25,
            "A task that has ended before the main thread awaits it costs less."
        ),
        (["W27-cancel"], 0.3, "The worker removes cancelled timers while more are being cancelled."),
        (["W27-fire"], 0.03, "The clock decides how many timers are due at a time."),
        (["R4", "R4-mixed"], 0.05, "The sockets decide how many requests arrive at a time."),
    ]
}

extension Workload {
    /// All rows of these peers that are counted, in the order of the report.
    ///
    /// - Parameter isApplicable: whether a peer can run a workload.
    public static func countedRows(
        peers: [String], isApplicable: (_ workload: String, _ peer: String) -> Bool
    ) -> [CountedRow] {
        workloads.flatMap { workload in
            peers.filter { isApplicable(workload.id, $0) }.compactMap { CountedRow(workload, peer: $0) }
        }
    }
}
