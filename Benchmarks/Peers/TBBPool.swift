import BenchmarkCore
import Foundation
import TBBPeer

/// oneTBB: a `task_group` for operations that are waited for, `task_arena::enqueue` for all others.
///
/// Sendable: oneTBB synchronises, and the last use is `shutdown()`.
final class TBBPool: ThreadPool, @unchecked Sendable {
    static let name = "tbb"
    static let version = tbb_peer_version().map { String(cString: $0) } ?? "not installed"
    static let source = "Benchmarks/Peers/TBBPool.swift"

    private var peer: OpaquePointer
    let threads: Int

    static let missing: String? =
        tbb_peer_version() == nil
        ? "oneTBB was not installed when this was built; ./bootstrap installs libtbb-dev, and the next run includes it."
        : nil

    static func form(_ workload: String) -> String? {
        switch workload {
        case "W4": "task_arena::enqueue; one of its threads waits for the group that keeps it busy."
        case "W8-declared": "A flow graph of continue nodes, which can be cancelled as a whole."
        case "W25":
            "A limit and an arena, then finalize; one thread fewer than the others, started with the operation."
        case "R1", "R2", "R3": "parallel_for."
        default: nil
        }
    }

    static func notApplicable(_ workload: String) -> String? {
        if let missing { return missing }
        switch workload {
        case "W14-0", "W14-1", "W14-50", "W15-suspend":
            return "It cannot be kept from starting operations: its arenas have no pause."
        case "W20", "W20-leaf", "W20-child", "W20-queued":
            return "Its tasks come from its own allocator, which does not report live bytes."
        case "W26": return "Only its arenas have priorities."
        default: return withoutGroups(workload)
        }
    }

    init(threads: Int) throws {
        if let missing = Self.missing { throw PeerError(missing) }
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

    func run(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W4": busyStarts(busy: n)
        case "W8-declared": declaredGraph(workload, n: n)
        case "W25": try livesAlone(count: n)
        default: try runOnThreads(workload, n: n)
        }
    }

    func loop(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
        let turns = TBBCalls(body)
        tbb_peer_for(count, TBBCalls.call, turns.context)
        withExtendedLifetime(turns) {}
    }

    /// W4: the thread that waits for the group is one of the pool's.
    private func busyStarts(busy: Int) -> Sample {
        startsOnBusyPool(busy: busy) { occupation in
            Thread.detachNewThread { [self] in
                let chunks = TBBRepetitions(occupation)
                tbb_peer_repeat(peer, busy, TBBRepetitions.call, chunks.context)
                withExtendedLifetime(chunks) {}
            }
        } submit: {
            submit($0)
        }
    }

    private func declaredGraph(_ workload: String, n: Int) -> Sample {
        let run = GraphRun(workload, n: n)
        let nodes = TBBCalls { run.compute($0) }
        let start = startClock()
        let graph = tbb_peer_graph_create(run.count, TBBCalls.call, nodes.context)
        for (node, others) in run.graph.predecessors.enumerated() {
            for other in others { tbb_peer_graph_edge(graph, other, node) }
        }
        tbb_peer_graph_run(graph)
        tbb_peer_graph_destroy(graph)
        let stop = stopClock()
        withExtendedLifetime(nodes) {}
        return run.sample(from: start, to: stop)
    }

    /// W25: oneTBB's threads end only if the process has no other arena or handle.
    private func livesAlone(count: Int) throws -> Sample {
        tbb_peer_destroy(peer)
        defer { peer = tbb_peer_create(threads) }
        return try lives(of: Self.self, threads: threads, count: count)
    }

    func lanes(_ count: Int) throws -> [TBBLane] {
        // The only thread would be the caller's, which waits: no thread would run a node.
        guard threads > 1 else { throw PeerError("oneTBB's flow graph needs a thread besides the caller's.") }
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

    /// W9 by `parallel_invoke`, which is faster than two tasks of a group; a waiting thread runs tasks.
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

/// A closure that C++ calls with a number, from any thread, while this object is retained.
private final class TBBCalls: Sendable {
    private let body: @Sendable (Int) -> Void

    init(_ body: @escaping @Sendable (Int) -> Void) { self.body = body }

    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static let call: @convention(c) (UnsafeMutableRawPointer?, Int) -> Void = { context, index in
        Unmanaged<TBBCalls>.fromOpaque(context.unsafelyUnwrapped)._withUnsafeGuaranteedRef { $0.body(index) }
    }
}

/// The operations that keep the pool of W4 busy, for C++ to call while this object is retained.
private final class TBBRepetitions: Sendable {
    private let occupation: Occupation

    init(_ occupation: Occupation) { self.occupation = occupation }

    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static let call: @convention(c) (UnsafeMutableRawPointer?, Int) -> Bool = { context, index in
        Unmanaged<TBBRepetitions>.fromOpaque(context.unsafelyUnwrapped)
            ._withUnsafeGuaranteedRef { $0.occupation.runOnce(index) }
    }
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
