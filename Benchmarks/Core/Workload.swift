/// A unit of work that is measured, the same for every peer.
public struct Workload: Sendable {
    /// The figure that samples are compared by.
    public enum Metric: String, Sendable {
        /// ``Sample/nanoseconds`` divided by ``Sample/operations``.
        case throughput
        /// The percentiles of ``Sample/latencies_ns``.
        case latency
        /// The costs in ``Sample/extra``.
        case cost
    }

    /// The subject of the work, which decides which peers are possible.
    public enum Subject: String, Sendable, CaseIterable {
        /// The scheduler: closures, tasks and timers, and when and where they run.
        case scheduler
        /// The layer on the scheduler: operations that are groups and cascades, and that can be cancelled and redone.
        case operations
        /// Commands, model transactions and actions; their peers are hand-written.
        case libraries
    }

    /// The sizes that a workload accepts.
    public enum Sizes: Sendable {
        case from(Int)
        case range(ClosedRange<Int>)
        case divisors(of: Int)
        /// Powers of a number, from its first power on.
        case powers(of: Int)

        /// Sizes that are a number of threads.
        static let threads = range(1...1_000)

        /// Whether `size`, which is at least 1, is one of them.
        public func contain(_ size: Int) -> Bool {
            switch self {
            case .from(let first): return size >= first
            case .range(let range): return range.contains(size)
            case .divisors(let number): return number % size == 0
            case .powers(let base):
                var rest = size
                while rest % base == 0 { rest /= base }
                return rest == 1 && size > 1
            }
        }

        /// The accepted sizes in words.
        public var name: String {
            switch self {
            case .from(let first): "sizes of at least \(first)"
            case .range(let range): "sizes from \(range.lowerBound) to \(range.upperBound)"
            case .divisors(let number): "divisors of \(number)"
            case .powers(let base): "powers of \(base), from \(base) on"
            }
        }
    }

    /// The identifier, "W1".
    public let id: String
    /// The title, a few words.
    public let title: String
    /// A description of the work, in one sentence for the report.
    public let sentence: String
    /// The unit of the figure that is compared, "ns/op".
    public let unit: String
    /// The figure that samples are compared by.
    public let metric: Metric
    /// The subject of the work.
    public let subject: Subject
    /// The sizes that it accepts.
    public let sizes: Sizes
    /// The sizes of a run that takes minutes.
    public let quick: [Int]
    /// The sizes of a run that takes seconds, which only checks the results.
    public let smoke: [Int]
    /// The sizes of a run for publication.
    public let thorough: [Int]
    /// The checksum of a correct sample, by size.
    public let expectedChecksum: @Sendable (Int) -> UInt64
    /// The operations of a sample, by size.
    public let operations: @Sendable (Int) -> Int
    /// The least seconds that a sample takes on any peer, because its operations come at fixed times; by size.
    public let leastSeconds: @Sendable (Int) -> Double

    init(
        id: String, title: String, sentence: String, unit: String, metric: Metric,
        subject: Subject = .scheduler, sizes: Sizes = .from(1), quick: [Int], smoke: [Int], thorough: [Int],
        expectedChecksum: @escaping @Sendable (Int) -> UInt64,
        operations: @escaping @Sendable (Int) -> Int = { $0 },
        leastSeconds: @escaping @Sendable (Int) -> Double = { _ in 0 }
    ) {
        self.id = id
        self.title = title
        self.sentence = sentence
        self.unit = unit
        self.metric = metric
        self.subject = subject
        self.sizes = sizes
        self.quick = quick
        self.smoke = smoke
        self.thorough = thorough
        self.expectedChecksum = expectedChecksum
        self.operations = operations
        self.leastSeconds = leastSeconds
    }
}

extension Workload {
    /// Whether the bytes that remain allocated are counted exactly for ours: nothing may remain of cancelled or finished
    /// operations, or of a history that has been deallocated.
    public static func findsLeftovers(_ workload: String) -> Bool {
        workload.hasPrefix("W14-") || workload.hasPrefix("W20") || workload == "W21-memory"
    }

    /// The first part of the identifier: W14 of W14-50.
    public var family: String { String(id.prefix { $0 != "-" }) }

    /// Whether more worker threads should make it faster.
    public var scales: Bool {
        ["W1", "W3", "W5", "W9", "W10", "W18-tree", "R1", "R2", "R3"].contains(id)
    }

    /// Whether a sample keeps an object of a kilobyte or more for each operation. The first sample of a process then
    /// measures page faults, however long it takes.
    public var fillsMemory: Bool { family == "W24" }

    /// Whether it is a workload of Commands, Transactions or Actions.
    public static func isOfLibraries(_ workload: String) -> Bool {
        libraryWorkloads.contains { $0.id == workload }
    }

    /// Whether it is a workload of the kind that a server puts on a scheduler.
    public static func isOfServers(_ workload: String) -> Bool {
        serverWorkloads.contains { $0.id == workload }
    }

    /// The operations of one sample of W2, whatever the number of submitting threads: divisible by every number used.
    public static let submissionsOfAllThreads = 20_000

    /// The operations of one sample of W4.
    public static let submissionsWhileBusy = 120

    /// The time between two submissions of W4.
    public static let betweenSubmissions_ns = 250_000

    /// The length of each operation that keeps the pool of W4 busy.
    public static let busy_ns = 50_000

    /// The stages of W7 at this width: 1,000 × 10, 100 × 100, 10 × 10,000.
    public static func stages(ofWidth width: Int) -> Int { max(10, 10_000 / width) }

    /// The steps of the composite that W15 redoes.
    public static let stepsOfOneRun = 10

    /// The steps of a small cascade.
    public static let stepsOfSmallOne = 5

    /// How many operations of W14 have begun when it is cancelled, taken from the end of the identifier.
    public static func started(_ workload: String, of count: Int) -> Int {
        let percent = workload.split(separator: "-").last.flatMap { Int($0) } ?? 0
        return count * percent / 100
    }

    /// The value that operation `index` writes: all bits depend on the index, so that two errors do not cancel in the sum.
    @inlinable
    public static func mark(_ index: Int) -> UInt64 {
        (UInt64(truncatingIfNeeded: index) &+ 1) &* 0x9E37_79B9_7F4A_7C15
    }

    /// The sum of the marks of `0..<count`, modulo 2⁶⁴.
    public static func sumOfMarks(_ count: Int) -> UInt64 {
        (0..<count).reduce(0) { $0 &+ mark($1) }
    }

    /// The Fibonacci number of `n`: 0, 1, 1, 2, ...
    public static func fibonacci(_ n: Int) -> UInt64 {
        var (now, next): (UInt64, UInt64) = (0, 1)
        for _ in 0..<n { (now, next) = (next, now + next) }
        return now
    }

    /// How many operations the fork-join computation of the Fibonacci number of `n` spawns: two for every call with `n` of
    /// at least 2.
    public static func spawnsOfFibonacci(_ n: Int) -> Int {
        n < 2 ? 0 : 2 * Int(fibonacci(n + 1) - 1)
    }
}
