import BenchmarkCore
import TBBPeer

/// oneTBB: a `task_group` where somebody waits, `task_arena::enqueue` where nobody does.
///
/// Sendable: oneTBB synchronises, and the last use is `shutdown()`.
final class TBBPool: ThreadPool, @unchecked Sendable {
    static let name = "tbb"
    static let version = tbb_peer_version().map { String(cString: $0) } ?? "not installed"
    static let source = "Benchmarks/Peers/TBBPool.swift"

    private let peer: OpaquePointer
    private let threads: Int

    static func notApplicable(_ workload: String) -> String? {
        if tbb_peer_version() == nil { return "It was built where oneTBB (libtbb-dev) is not installed." }
        switch workload {
        case "W14-0", "W14-1", "W14-50", "W15-suspend":
            return "It cannot be kept from starting: its arenas have no pause."
        case "W20", "W20-leaf", "W20-child", "W20-queued":
            return "Its tasks come from an allocator of its own, which tells no live bytes."
        case "W26": return "Its priorities are those of arenas."
        default: return withoutGroups(workload)
        }
    }

    init(threads: Int) throws {
        guard tbb_peer_version() != nil else { throw PeerError("oneTBB (libtbb-dev) is not installed.") }
        peer = tbb_peer_create(threads)
        self.threads = threads
    }

    func batch(of count: Int) -> TBBGroup { TBBGroup() }

    @inline(__always)
    func submit(_ job: some Job, in batch: TBBGroup) { batch.run(job) }

    func wait(for batch: TBBGroup) { batch.wait() }

    @inline(__always)
    func submit(_ job: some Job) {
        Words.of({ job.run() }) { tbb_peer_enqueue(peer, $0, $1, $2) }
    }

    func shutdown() { tbb_peer_destroy(peer) }

    func lanes(_ count: Int) throws -> [TBBLane] {
        // One of the threads is the caller's, which waits: nobody would run a node.
        guard threads > 1 else { throw PeerError("oneTBB's flow graph needs a thread beside the caller's.") }
        return (0..<count).map { _ in TBBLane() }
    }

    /// W6 within a group: `run` in a task goes to the thread's own deque, `enqueue` to a stream of the arena.
    func chain(steps: Int) -> Sample {
        let end = ChainEnd()
        let start = startClock()
        let group = TBBGroup()
        group.run(TBBChainStep(group: group, step: 0, steps: steps, value: 0, end: end))
        group.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: steps, checksum: end.value)
    }

    /// W9 by `parallel_invoke`, which is faster than two tasks of a group; its waits help.
    func forkJoin(n: Int) -> Sample {
        let start = startClock()
        let value = tbb_peer_fibonacci(UInt32(n))
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: Workload.spawnsOfFibonacci(n), checksum: value)
    }
}

/// A `task_group`.
///
/// Sendable: oneTBB synchronises.
final class TBBGroup: @unchecked Sendable {
    private let group: OpaquePointer = tbb_peer_group_create()

    deinit { tbb_peer_group_destroy(group) }

    @inline(__always)
    func run(_ job: some Job) {
        Words.of({ job.run() }) { tbb_peer_group_run(group, $0, $1, $2) }
    }

    func wait() { tbb_peer_group_wait(group) }
}

/// A serial node of a flow graph.
///
/// Sendable: oneTBB synchronises.
final class TBBLane: Lane, @unchecked Sendable {
    private let lane: OpaquePointer = tbb_peer_lane_create()

    deinit { tbb_peer_lane_destroy(lane) }

    @inline(__always)
    func submit(_ job: some Job) {
        Words.of({ job.run() }) { tbb_peer_lane_enqueue(lane, $0, $1, $2) }
    }
}

private struct TBBChainStep: Job {
    unowned(unsafe) let group: TBBGroup
    let step: Int
    let steps: Int
    let value: UInt64
    unowned(unsafe) let end: ChainEnd

    func run() {
        let value = value &+ Workload.mark(step)
        if step + 1 == steps {
            end.reach(value)
        } else {
            group.run(TBBChainStep(group: group, step: step + 1, steps: steps, value: value, end: end))
        }
    }
}
