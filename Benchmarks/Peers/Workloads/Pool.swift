import BenchmarkCore

/// The work of an operation. A struct and not a closure, so that every peer wraps it in the one closure that its own API
/// takes: each pays for one box, and not for a second one around the first.
protocol Job: Sendable {
    func run()
}

/// A peer that runs operations. The workloads are written once over this protocol, in the same module as the peers, so that
/// the compiler specialises them.
protocol Pool: Peer, Sendable {
    /// The peer's own means of detecting that a known number of operations has run.
    associatedtype Batch: Sendable

    /// How many operations it may run at once.
    var threads: Int { get }

    /// Begins a batch of exactly `count` operations, including those that its operations submit.
    func batch(of count: Int) throws -> Batch

    /// Submits an operation of a batch: from the thread that began it, or from one of its operations.
    func submit(_ job: some Job, in batch: Batch)

    /// Blocks until all operations of the batch have run. Called by the thread that began it.
    func wait(for batch: Batch)

    /// Submits an operation that is not waited for, from any thread.
    func submit(_ job: some Job)

    /// Calls `body` once for each number below `count`, on the peer's threads, and returns after the last call; a peer with
    /// its own parallel loop overrides this.
    func loop(_ count: Int, _ body: @escaping @Sendable (Int) -> Void)

    /// W6; a peer with a better form overrides this.
    func chain(steps: Int) throws -> Sample

    /// W9; a peer with a better form overrides this.
    func forkJoin(n: Int) throws -> Sample
}

/// A pool with its own threads, and with places where operations run one at a time, in order.
protocol ThreadPool: Pool {
    associatedtype SerialPlace: Lane

    /// Creates serial places; they end when they are released.
    func lanes(_ count: Int) throws -> [SerialPlace]
}

/// A pool that can be kept from starting operations.
protocol PausablePool: ThreadPool {
    /// Keeps further operations from starting; returns when none can start.
    func pause()

    /// Undoes ``pause()``.
    func unpause()
}

/// A place where operations run one at a time, in order.
protocol Lane: Sendable {
    func submit(_ job: some Job)
}

extension Pool {
    func loop(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
        // Without a batch the checksum is wrong, which ends the run.
        guard let batch = try? batch(of: count) else { return }
        for index in 0..<count { submit(Turn(body: body, index: index), in: batch) }
        wait(for: batch)
    }

    func chain(steps: Int) -> Sample { chainOfSubmissions(self, steps: steps) }

    func forkJoin(n: Int) -> Sample { forkJoinByCounting(self, n: n) }

    /// The workloads that need no threads.
    func runWithoutThreads(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W0": emptySample()
        case "W1": try submitFromOutside(self, count: n)
        case "W3": try spawnFromInside(self, count: n)
        case "W5", "W5-range": try groupByHand(self, count: n)
        case "W6", "W6-cascade": try chain(steps: n)
        case "W6-small": smallChains(self, count: n)
        case "W7": stagesByHand(self, width: n)
        case "W8", "W8-levels": try runGraph(self, workload, n: n)
        case "W8-declared": try runDeclaredGraph(self, workload, n: n)
        case "W9": try forkJoin(n: n)
        case "W10": skynetByCounting(self, leaves: n)
        case "W15-rerun", "W15-rebuild": try runsByChain(self, runs: n)
        case "W17", "W18-pareto": try spawnGrains(self, workload, n: n)
        case "W18-tree": try searchTree(self, branches: n)
        case "R1": mergeSort(self, count: n)
        case "R2": mandelbrot(self, side: n)
        case "R3": try countWords(self, files: n)
        default: throw PeerError("The peer '\(Self.name)' has no workload '\(workload)'.")
        }
    }
}

extension ThreadPool {
    static func notApplicable(_ workload: String) -> String? { withoutGroups(workload) }

    func run(_ workload: String, n: Int) throws -> Sample { try runOnThreads(workload, n: n) }

    /// All workloads except those that need a pause.
    func runOnThreads(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W2": submitFromOutside(self, threads: n, count: Workload.submissionsOfAllThreads)
        case "W4": startsOnBusyPool(self, busy: n)
        case "W6-serial": try chainInOnePlace(self, steps: n)
        case "W11": try pingPong(self, rounds: n)
        case "W12": wakeUp(interval_ns: 1_000_000, count: n) { submit($0) }
        case "W13": idleCost(count: n) { submit($0) }
        case "W25": try lives(of: Self.self, threads: threads, count: n)
        default: try runWithoutThreads(workload, n: n)
        }
    }
}

extension PausablePool {
    func run(_ workload: String, n: Int) throws -> Sample { try runPausing(workload, n: n) }

    /// All workloads.
    func runPausing(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W14-0", "W14-1", "W14-50":
            try stormByHand(self, count: n, begun: Workload.started(workload, of: n))
        case "W15-suspend": try resumption(self, count: n)
        case "W20", "W20-leaf", "W20-queued": try pendingMemory(self, count: n)
        case "W20-child": try pendingGroup(self, count: n)
        default: try runOnThreads(workload, n: n)
        }
    }
}

/// An iteration of a loop.
private struct Turn: Job {
    let body: @Sendable (Int) -> Void
    let index: Int

    func run() { body(index) }
}

/// Why a peer that runs closures cannot run a workload.
func withoutGroups(_ workload: String) -> String? {
    if Workload.isOfLibraries(workload) { return "It runs operations: this measures what operations do." }
    if Workload.isOfServers(workload) { return withoutServers(workload) }
    return workload == "W20-composite" ? "It has nothing that waits to declare children." : nil
}

/// Why a peer that takes only closures cannot run a workload of servers.
private func withoutServers(_ workload: String) -> String {
    switch workload {
    case "W19", "W19-task": "Its number of threads is fixed, like that of NIO's pool: see there."
    case "W19-announced", "W19-announced-task": cannotBeTold
    case "W26": "Its operations have no priority."
    case _ where workload.hasPrefix("W27-"): "It has no timers."
    default: "It runs no Swift tasks."
    }
}

/// Runs a job as a Swift task on the default executor, for peers that do not run tasks.
func runAsTask(_ job: some Job) { Task.detached { job.run() } }

/// Why only ours can run an announced workload.
let cannotBeTold = "An operation cannot announce that it will block: see W19."

/// Why a peer whose threads can only be occupied cannot run a workload.
func withoutSuspension(_ workload: String) -> String? {
    workload == "W15-suspend"
        ? "It cannot be suspended: its threads can only be kept busy." : withoutGroups(workload)
}

/// A failure of a peer, in a sentence.
struct PeerError: Error, CustomStringConvertible {
    let description: String

    init(_ sentence: String) { description = sentence }
}

extension Sample {
    init(from start_ns: Int, to end_ns: Int, operations: Int, checksum: UInt64) {
        self.init(nanoseconds: UInt64(end_ns - start_ns), operations: operations, checksum: checksum)
    }
}
