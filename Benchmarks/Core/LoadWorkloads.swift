import Glibc

/// The workloads of operations that take time, of equal and of varying length, and the lifetime of a pool; in the order
/// of the report.
let loadWorkloads: [Workload] = [
    Workload(
        id: "W17", title: "Grain size",
        sentence: """
            One operation submits others of N arithmetic steps each, about N ns. Per CPU: 2 ms of work, but \
            at least 20 and at most 2,500 operations.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...100_000_000),
        quick: [100, 1_000, 10_000, 100_000], smoke: [1_000, 10_000],
        thorough: [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000],
        expectedChecksum: { Workload.sumOfMarks(Workload.grains(of: $0)) },
        operations: Workload.grains),
    Workload(
        id: "W18-pareto", title: "Uneven operations",
        sentence: """
            One operation submits N others, whose lengths have a Pareto distribution: at least 10 us, 28 us \
            on average, at most 1 ms.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...1_000_000),
        quick: [300], smoke: [100], thorough: [300, 3_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W18-tree", title: "Unbalanced tree",
        sentence: """
            A search of a tree whose shape is not known in advance: the root has N branches, every other \
            node eight or none. Each node is an operation of 1 us that submits its branches. Time per node.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...10_000),
        quick: [64], smoke: [16], thorough: [16, 64, 256],
        expectedChecksum: { UnbalancedTree.of(branches: $0).checksum },
        operations: { UnbalancedTree.of(branches: $0).nodes }),
    Workload(
        id: "W25", title: "Start and end of a pool",
        sentence: """
            A pool is created with its threads, runs one operation, and is shut down, which joins the \
            threads: N times in succession.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...10_000),
        quick: [10], smoke: [5], thorough: [10, 50],
        expectedChecksum: Workload.sumOfMarks),
]

extension Workload {
    // MARK: W17, W18

    /// The CPUs that are online.
    public static let cpus = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    /// The operations of one sample of W17, of about `grain_ns` each: the same work per CPU, on a small machine or a
    /// large one.
    public static func grains(of grain_ns: Int) -> Int {
        cpus * min(2_500, max(20, 2_000_000 / grain_ns))
    }

    /// By operation, the steps of arithmetic in W17 and W18-pareto, about a nanosecond each.
    public static func lengths(_ workload: String, n: Int) -> [UInt64] {
        workload == "W17"
            ? .init(repeating: UInt64(n), count: grains(of: n)) : (0..<n).map(paretoLength)
    }

    /// A Pareto-distributed length of shape 3/2, from 10,000 to 1,000,000.
    ///
    /// Source: inversion of the distribution function.
    private static func paretoLength(_ index: Int) -> UInt64 {
        let share = Double(mixed(UInt64(index)) >> 11) / Double(UInt64(1) << 53)  // [0, 1)
        return UInt64(min(1_000_000, 10_000 * pow(1 - share, -2 / 3)))
    }

    /// The steps of arithmetic in each node of W18-tree.
    public static let stepsOfNode = 1_000
}

/// The tree of W18-tree. Its shape follows from the numbers of its nodes alone, so the work cannot be divided
/// beforehand.
///
/// Source: Olivier et al., UTS: An Unbalanced Tree Search Benchmark (2006), binomial trees; with a mixer in place of
/// SHA-1.
public struct UnbalancedTree: Sendable {
    /// How many nodes it has.
    public let nodes: Int
    /// How many levels it has.
    public let depth: Int
    /// The sum of the numbers of its nodes.
    public let checksum: UInt64

    /// The number of the root. With 64 branches, the tree has 5,632 nodes below them.
    public static let root: UInt64 = 17

    /// The number of branches of a node: eight or none, so that a branch of the root has some 50 nodes on average.
    @inlinable
    public static func branches(of node: UInt64) -> Int {
        // 49/400 of all numbers; the mean number of branches is 0.98, less than 1.
        node % 400 < 49 ? 8 : 0
    }

    /// The number of a node's branch.
    @inlinable
    public static func branch(_ index: Int, of node: UInt64) -> UInt64 {
        Workload.mixed(node ^ Workload.mark(index))
    }

    /// The tree whose root has this many branches.
    ///
    /// - Complexity: O(nodes) for the first time, O(1) after that.
    public static func of(branches: Int) -> UnbalancedTree {
        trees.value(branches) { search(branches: branches) }
    }

    private static let trees = Remembered<Int, UnbalancedTree>()

    private static func search(branches count: Int) -> UnbalancedTree {
        var nodes = 0
        var depth = 0
        var checksum: UInt64 = 0
        var level = [root]
        while !level.isEmpty {
            nodes += level.count
            depth += 1
            checksum = level.reduce(checksum, &+)
            level = level.flatMap { node in
                (0..<(node == root ? count : branches(of: node))).map { branch($0, of: node) }
            }
        }
        return UnbalancedTree(nodes: nodes, depth: depth, checksum: checksum)
    }
}
