/// The bytes that successive runs of a workload leave allocated.
///
/// The storage of a scheduler's queues follows the load, and moves between a few levels; a leak grows with every run. So
/// nothing has leaked if memory returns to an earlier level; otherwise the median of many runs is the result.
public struct Leftovers {
    private static let most = 25

    private var left: [Int] = []
    private var level = 0
    private var levels: Set = [0]

    /// Starts without any runs.
    public init() {}

    /// Adds a run, given the bytes that it allocated and did not free; negative if it freed older ones.
    public mutating func add(_ bytes: Int) {
        left.append(bytes)
        level += bytes
        levels.insert(level)
    }

    /// Whether another run could add information.
    public var isOpen: Bool { isRising && left.count < Self.most }

    /// The bytes that each run leaves.
    public var ofEachRun: Int { isRising ? left.sorted()[left.count / 2] : 0 }

    /// Whether memory was never at the same level twice.
    private var isRising: Bool { levels.count > left.count }
}
