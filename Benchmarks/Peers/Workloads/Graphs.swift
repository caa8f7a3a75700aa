import BenchmarkCore
import Synchronization

/// The nodes of W8, with their values, and the number of their predecessors that have not run.
///
/// Sendable: a node's value is written by the operation that its count releases, and read by the successors that it
/// releases.
final class GraphRun: @unchecked Sendable {
    let graph: TaskGraph
    private let values: Slots
    private let unmet: UnsafeMutablePointer<Atomic<Int>>

    init(_ workload: String, n: Int) {
        graph = TaskGraph.of(workload, n: n)
        values = Slots(count: graph.count)
        unmet = .allocate(capacity: graph.count)
        for (node, others) in graph.predecessors.enumerated() {
            (unmet + node).initialize(to: Atomic(others.count))
        }
    }

    deinit {
        unmet.deinitialize(count: graph.count)
        unmet.deallocate()
    }

    var count: Int { graph.count }

    /// The work of a node: its value, computed from those of its predecessors, shows whether they had run.
    @inline(__always)
    func compute(_ node: Int) {
        var value = Workload.mark(node)
        for other in graph.predecessors[node] {
            value = Workload.trace(value, values.address(of: other).pointee)
        }
        values.address(of: node).pointee = value
    }

    /// Notifies a node's successors that it has run; calls `start` with each that waits for no other node.
    @inline(__always)
    func ended(_ node: Int, _ start: (Int) -> Void) {
        for other in graph.successors[node] {
            // Acquire: the values that other threads wrote; release: this node's.
            if unmet[other].subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { start(other) }
        }
    }

    /// Calls `start` with each node that has no predecessors.
    func begin(_ start: (Int) -> Void) {
        for node in 0..<count where graph.predecessors[node].isEmpty { start(node) }
    }

    func sample(from start: Int, to stop: Int) -> Sample {
        Sample(
            from: start, to: stop, operations: count, checksum: Workload.checksum(ofModel: values.values))
    }
}

/// How the nodes of a graph are run.
protocol GraphWork: Sendable {
    func run(_ node: Int)
}

/// W8: the predecessor of a node that completes last submits the node.
func runGraph<P: Pool>(_ pool: P, _ workload: String, n: Int) throws -> Sample {
    try runGraph(pool, GraphRun(workload, n: n)) { ComputedNodes(run: $0) }
}

/// W8-declared by hand: like W8, with a handle for each node, created before the first node is submitted.
func runDeclaredGraph<P: Pool>(_ pool: P, _ workload: String, n: Int) throws -> Sample {
    try runGraph(pool, GraphRun(workload, n: n)) { DeclaredNodes($0) }
}

private struct ComputedNodes: GraphWork {
    unowned(unsafe) let run: GraphRun  // kept alive by the submission

    func run(_ node: Int) { run.compute(node) }
}

private struct DeclaredNodes: GraphWork {
    private let group: HandMadeGroup
    private let works: [HandMadeWork<NodeWork>]

    init(_ run: GraphRun) {
        let group = HandMadeGroup(count: run.count)
        self.group = group
        works = (0..<run.count).map { group.child(NodeWork(nodes: run, node: $0)) }
    }

    func run(_ node: Int) { works[node].run() }
}

struct NodeWork: Job {
    unowned(unsafe) let nodes: GraphRun
    let node: Int

    func run() { nodes.compute(node) }
}

private func runGraph<P: Pool, Work: GraphWork>(
    _ pool: P, _ run: GraphRun, _ declare: (GraphRun) -> Work
) throws -> Sample {
    let start = startClock()
    let batch = try pool.batch(of: run.count)
    let submission = GraphSubmission(pool: pool, batch: batch, run: run, work: declare(run))
    run.begin { pool.submit(GraphNode(submission: submission, node: $0), in: batch) }
    pool.wait(for: batch)
    let stop = stopClock()
    withExtendedLifetime(submission) {}
    return run.sample(from: start, to: stop)
}

private final class GraphSubmission<P: Pool, Work: GraphWork>: Sendable {
    let pool: P
    let batch: P.Batch
    let run: GraphRun
    let work: Work

    init(pool: P, batch: P.Batch, run: GraphRun, work: Work) {
        self.pool = pool
        self.batch = batch
        self.run = run
        self.work = work
    }
}

private struct GraphNode<P: Pool, Work: GraphWork>: Job {
    unowned(unsafe) let submission: GraphSubmission<P, Work>  // kept alive until the batch has ended
    let node: Int

    func run() {
        submission.work.run(node)
        submission.run.ended(node) { next in
            submission.pool.submit(GraphNode(submission: submission, node: next), in: submission.batch)
        }
    }
}
