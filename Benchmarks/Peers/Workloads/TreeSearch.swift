import BenchmarkCore
import Synchronization

/// W18-tree: every node is an operation, which submits an operation for each of its branches.
func searchTree<P: Pool>(_ pool: P, branches: Int) throws -> Sample {
    let tree = UnbalancedTree.of(branches: branches)
    let ideal = idealOfTree(tree, threads: pool.threads)
    let sum = StripedSum()
    let start = startClock()
    let batch = try pool.batch(of: tree.nodes)
    let search = TreeSearch(pool: pool, batch: batch, sum: sum, branchesOfRoot: branches)
    pool.submit(TreeNode(search: search, number: UnbalancedTree.root), in: batch)
    pool.wait(for: batch)
    let stop = stopClock()
    withExtendedLifetime(search) {}
    return sampleOfTree(from: start, to: stop, tree, sum, ideal: ideal)
}

func idealOfTree(_ tree: UnbalancedTree, threads: Int) -> [String: Double] {
    let each = Workload.stepsOfNode
    return Spin.ideal(
        steps: each * tree.nodes, longest: each * tree.depth, operations: tree.nodes, threads: threads)
}

func sampleOfTree(
    from start: Int, to stop: Int, _ tree: UnbalancedTree, _ sum: StripedSum, ideal: [String: Double]
) -> Sample {
    var sample = Sample(from: start, to: stop, operations: tree.nodes, checksum: sum.value)
    sample.extra = ideal
    return sample
}

/// The work of a node: the same for every peer.
@inline(__always)
func visit(_ node: UInt64, _ sum: StripedSum) {
    if Spin.steps(Workload.stepsOfNode) != 0 { sum.add(node) }
}

private final class TreeSearch<P: Pool>: Sendable {
    let pool: P
    let batch: P.Batch
    let sum: StripedSum
    let branchesOfRoot: Int

    init(pool: P, batch: P.Batch, sum: StripedSum, branchesOfRoot: Int) {
        self.pool = pool
        self.batch = batch
        self.sum = sum
        self.branchesOfRoot = branchesOfRoot
    }
}

private struct TreeNode<P: Pool>: Job {
    unowned(unsafe) let search: TreeSearch<P>  // kept alive until the batch has ended
    let number: UInt64

    func run() {
        visit(number, search.sum)
        let isRoot = number == UnbalancedTree.root
        for index in 0..<(isRoot ? search.branchesOfRoot : UnbalancedTree.branches(of: number)) {
            let branch = UnbalancedTree.branch(index, of: number)
            search.pool.submit(TreeNode(search: search, number: branch), in: search.batch)
        }
    }
}

/// A sum to which any thread adds. It is spread over many cache lines; operations cannot have slots of their own,
/// because their number is not known beforehand.
///
/// Sendable: the words are atomic.
final class StripedSum: @unchecked Sendable {
    private static let stripes = 64
    private static let wordsOfLine = 16  // processors fetch lines in pairs
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    init() {
        words = .allocate(capacity: Self.stripes * Self.wordsOfLine)
        for index in 0..<Self.stripes * Self.wordsOfLine { (words + index).initialize(to: Atomic(0)) }
    }

    deinit {
        words.deinitialize(count: Self.stripes * Self.wordsOfLine)
        words.deallocate()
    }

    @inline(__always)
    func add(_ number: UInt64) {
        let stripe = Int(truncatingIfNeeded: number >> 32) & (Self.stripes - 1)
        words[stripe * Self.wordsOfLine].wrappingAdd(number, ordering: .relaxed)
    }

    var value: UInt64 {
        (0..<Self.stripes).reduce(0) { $0 &+ words[$1 * Self.wordsOfLine].load(ordering: .relaxed) }
    }
}
