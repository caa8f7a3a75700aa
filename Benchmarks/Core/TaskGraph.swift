/// The graphs of W8: which node runs after which. Nodes are numbered so that each comes after its predecessors.
public struct TaskGraph: Sendable {
    /// By node, the nodes that it waits for, ascending.
    public let predecessors: [[Int]]
    /// By node, the nodes that wait for it, ascending.
    public let successors: [[Int]]

    /// The number of nodes.
    public var count: Int { predecessors.count }

    private init(predecessors: [[Int]]) {
        var successors = [[Int]](repeating: [], count: predecessors.count)
        for (node, others) in predecessors.enumerated() {
            for other in others { successors[other].append(node) }
        }
        self.predecessors = predecessors
        self.successors = successors
    }

    /// The graph of a workload of W8.
    ///
    /// - Complexity: O(nodes) for the first time, O(1) after that.
    public static func of(_ workload: String, n: Int) -> TaskGraph {
        graphs.value(Key(isOfLevels: workload == "W8-levels", n: n)) {
            workload == "W8-levels" ? levels(n) : wavefront(n)
        }
    }

    private struct Key: Hashable {
        let isOfLevels: Bool
        let n: Int
    }

    private static let graphs = Remembered<Key, TaskGraph>()

    /// Blocks in a square, by rows; each waits for the one above and the one to the left.
    private static func wavefront(_ side: Int) -> TaskGraph {
        TaskGraph(
            predecessors: (0..<side * side).map { node in
                (node < side ? [] : [node - side]) + (node % side == 0 ? [] : [node - 1])
            })
    }

    /// Levels of equal width; each node waits for one to three nodes of the previous level.
    private static func levels(_ count: Int) -> TaskGraph {
        let width = Workload.widthOfLevel
        return TaskGraph(
            predecessors: (0..<count * width).map { node in
                guard node >= width else { return [] }
                let first = (node / width - 1) * width
                let random = Workload.mixed(UInt64(node))
                let others = (0...Int(random % 3)).map { turn in
                    first + Int(Workload.mixed(random &+ UInt64(turn)) % UInt64(width))
                }
                return Set(others).sorted()
            })
    }
}

extension Workload {
    /// The operations of each level of W8-levels.
    public static let widthOfLevel = 32

    /// Scatters a number over all 64 bits; distinct numbers stay distinct.
    ///
    /// Source: the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    @inlinable
    public static func mixed(_ number: UInt64) -> UInt64 {
        var z = number &+ 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    static func checksumOfGraph(_ workload: String, n: Int) -> UInt64 {
        let graph = TaskGraph.of(workload, n: n)
        var values: [UInt64] = []
        values.reserveCapacity(graph.count)
        for (node, others) in graph.predecessors.enumerated() {
            values.append(others.reduce(mark(node)) { trace($0, values[$1]) })
        }
        return checksum(ofModel: values)
    }
}
