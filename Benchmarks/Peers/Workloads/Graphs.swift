import BenchmarkCore
import Synchronization

/// The nodes of W8, with their values, and how many of those they wait for have not run.
///
/// Sendable: a node's value is written by the operation that its count lets run, and read by those that it lets run.
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

    /// The work of a node: what it makes of the values of those before it shows whether they had run.
    @inline(__always)
    func compute(_ node: Int) {
        var value = Workload.mark(node)
        for other in graph.predecessors[node] {
            value = Workload.trace(value, values.address(of: other).pointee)
        }
        values.address(of: node).pointee = value
    }

    /// Tells those that wait for a node that it has run; calls `start` with each that waits for no other.
    @inline(__always)
    func ended(_ node: Int, _ start: (Int) -> Void) {
        for other in graph.successors[node] {
            // Acquire: the values that other threads wrote; release: this node's.
            if unmet[other].subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { start(other) }
        }
    }

    /// Calls `start` with each node that waits for none.
    func begin(_ start: (Int) -> Void) {
        for node in 0..<count where graph.predecessors[node].isEmpty { start(node) }
    }

    func sample(from start: Int, to stop: Int) -> Sample {
        Sample(
            from: start, to: stop, operations: count, checksum: Workload.checksum(ofModel: values.values))
    }
}

/// W8: who ends as the last one of those that a node waits for submits it.
func runGraph<P: Pool>(_ pool: P, _ workload: String, n: Int) throws -> Sample {
    let run = GraphRun(workload, n: n)
    let start = startClock()
    let batch = try pool.batch(of: run.count)
    let submission = GraphSubmission(pool: pool, batch: batch, run: run)
    run.begin { pool.submit(GraphNode(submission: submission, node: $0), in: batch) }
    pool.wait(for: batch)
    let stop = stopClock()
    withExtendedLifetime(submission) {}
    return run.sample(from: start, to: stop)
}

private final class GraphSubmission<P: Pool>: Sendable {
    let pool: P
    let batch: P.Batch
    let run: GraphRun

    init(pool: P, batch: P.Batch, run: GraphRun) {
        self.pool = pool
        self.batch = batch
        self.run = run
    }
}

private struct GraphNode<P: Pool>: Job {
    unowned(unsafe) let submission: GraphSubmission<P>  // whoever waits for the batch keeps it
    let node: Int

    func run() {
        submission.run.compute(node)
        submission.run.ended(node) { next in
            submission.pool.submit(GraphNode(submission: submission, node: next), in: submission.batch)
        }
    }
}

/// W8-declared by hand: as W8, with a handle for each node, which is made before the first one is submitted.
func runDeclaredGraph<P: Pool>(_ pool: P, _ workload: String, n: Int) throws -> Sample {
    let run = GraphRun(workload, n: n)
    let start = startClock()
    let batch = try pool.batch(of: run.count)
    let declared = DeclaredGraph(pool: pool, batch: batch, run: run)
    run.begin { pool.submit(DeclaredNode(declared: declared, node: $0), in: batch) }
    pool.wait(for: batch)
    let stop = stopClock()
    withExtendedLifetime(declared) {}
    return run.sample(from: start, to: stop)
}

private final class DeclaredGraph<P: Pool>: Sendable {
    let pool: P
    let batch: P.Batch
    let run: GraphRun
    let group: HandMadeGroup
    let works: [HandMadeWork<NodeWork>]

    init(pool: P, batch: P.Batch, run: GraphRun) {
        self.pool = pool
        self.batch = batch
        self.run = run
        let group = HandMadeGroup(count: run.count)
        self.group = group
        works = (0..<run.count).map { group.child(NodeWork(nodes: run, node: $0)) }
    }
}

struct NodeWork: Job {
    unowned(unsafe) let nodes: GraphRun
    let node: Int

    func run() { nodes.compute(node) }
}

private struct DeclaredNode<P: Pool>: Job {
    unowned(unsafe) let declared: DeclaredGraph<P>  // whoever waits for the batch keeps it
    let node: Int

    func run() {
        declared.works[node].run()
        declared.run.ended(node) { next in
            declared.pool.submit(DeclaredNode(declared: declared, node: next), in: declared.batch)
        }
    }
}
