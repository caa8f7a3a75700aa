/// The bytes that runs of a workload leave, one after the other.
///
/// The storage of a scheduler's queues follows the load, and goes up and down between a few levels; what is lost is lost in
/// each run. So nothing is lost where memory comes back to a level at which it was before; else the middle one of many
/// runs counts.
public struct Leftovers {
    private static let most = 25

    private var left: [Int] = []
    private var level = 0
    private var levels: Set = [0]

    /// Nothing has run yet.
    public init() {}

    /// Adds a run, by the bytes that it allocated and did not free, fewer than 0 where it freed older ones.
    public mutating func add(_ bytes: Int) {
        left.append(bytes)
        level += bytes
        levels.insert(level)
    }

    /// Whether another run could tell more.
    public var isOpen: Bool { isRising && left.count < Self.most }

    /// The bytes that each run leaves.
    public var ofEachRun: Int { isRising ? left.sorted()[left.count / 2] : 0 }

    /// Whether memory was never at the same level twice.
    private var isRising: Bool { levels.count > left.count }
}
