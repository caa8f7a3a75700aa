/// The workloads of Commands, Transactions and Actions, in the order of the report.
///
/// No installable library does the same, so the peers are hand-written, as a user would write them.
let libraryWorkloads: [Workload] = [
    Workload(
        id: "W16-last", title: "Rollback, last step",
        sentence: """
            The last of N steps fails, and all others are undone, last first. Time per undone step; it \
            includes declaring, executing and undoing the steps.
            """,
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .from(2),
        quick: [10, 1_000], smoke: [1_000], thorough: [10, 100, 1_000, 10_000, 100_000],
        expectedChecksum: { Workload.checksumOfRollbacks("W16-last", steps: $0) },
        operations: { Workload.rollbacks(of: $0) * Workload.failingStep("W16-last", of: $0) }),
    Workload(
        id: "W16-half", title: "Rollback, middle step",
        sentence: "The middle one of N steps fails: half of the steps never run, the others are undone.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .from(2),
        quick: [1_000], smoke: [1_000], thorough: [10, 100, 1_000, 10_000, 100_000],
        expectedChecksum: { Workload.checksumOfRollbacks("W16-half", steps: $0) },
        operations: { Workload.rollbacks(of: $0) * Workload.failingStep("W16-half", of: $0) }),
    Workload(
        id: "W21-execute", title: "History, execute",
        sentence: "N undoable changes that may await are made, one after another.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        quick: [100, 1_000], smoke: [1_000], thorough: [100, 1_000, 10_000, 100_000],
        expectedChecksum: { Workload.checksumOfHistories("W21-execute", changes: $0) },
        operations: { $0 * Workload.histories(of: $0) }),
    Workload(
        id: "W21-undo", title: "History, undo",
        sentence: "N changes that may await are undone, one after another.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        quick: [100, 1_000], smoke: [1_000], thorough: [100, 1_000, 10_000, 100_000],
        expectedChecksum: { Workload.checksumOfHistories("W21-undo", changes: $0) },
        operations: { $0 * Workload.histories(of: $0) }),
    Workload(
        id: "W21-redo", title: "History, redo",
        sentence: "N changes that may await, and were undone, are redone, one after another.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        quick: [100, 1_000], smoke: [1_000], thorough: [100, 1_000, 10_000, 100_000],
        expectedChecksum: { Workload.checksumOfHistories("W21-redo", changes: $0) },
        operations: { $0 * Workload.histories(of: $0) }),
    Workload(
        id: "W21-now", title: "History, synchronous",
        sentence: "N changes that never await are made, then undone, then redone. Time per call.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        quick: [100, 1_000], smoke: [1_000], thorough: [100, 1_000, 10_000, 100_000],
        expectedChecksum: { Workload.checksumOfHistories("W21-now", changes: $0) },
        operations: { 3 * $0 * Workload.histories(of: $0) }),
    Workload(
        id: "W21-invoker", title: "Commands in order",
        sentence: """
            N commands that never await are submitted one by one, and run one at a time, in order. Time \
            until the last has run.
            """,
        unit: "ns/op", metric: .throughput, subject: .libraries,
        quick: [100, 1_000], smoke: [1_000], thorough: [100, 1_000, 10_000, 100_000],
        expectedChecksum: { Workload.checksumOfHistories("W21-invoker", changes: $0) },
        operations: { $0 * Workload.histories(of: $0) }),
    Workload(
        id: "W21-memory", title: "History, memory",
        sentence:
            "A history of N changes that may await: live bytes of each entry, and bytes left afterwards.",
        unit: "bytes/op", metric: .cost, subject: .libraries,
        quick: [10_000], smoke: [10_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { Workload.checksumOfHistories("W21-memory", changes: $0) }),
    Workload(
        id: "W22-commit", title: "Model, commit",
        sentence: "A transaction changes N of a model's 1,000 keys, and commits. Time per transaction.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .range(1...Workload.keysOfModel),
        quick: [1, 10, 100], smoke: [100], thorough: [1, 10, 100, 1_000],
        expectedChecksum: { Workload.checksumOfModel("W22-commit", keys: $0) },
        operations: Workload.transactions),
    Workload(
        id: "W22-rollback", title: "Model, rollback",
        sentence:
            "A transaction changes N of a model's 1,000 keys, throws, and rolls back. Time per transaction.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .range(1...Workload.keysOfModel),
        quick: [1, 10, 100], smoke: [100], thorough: [1, 10, 100, 1_000],
        expectedChecksum: { Workload.checksumOfModel("W22-rollback", keys: $0) },
        operations: Workload.transactions),
    Workload(
        id: "W22-members", title: "Model, members",
        sentence: "A transaction changes N related objects; none is notified or validated. Time per object.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        quick: [10, 1_000], smoke: [1_000], thorough: [10, 100, 1_000, 10_000],
        expectedChecksum: { Workload.checksumOfMembers($0) },
        operations: { $0 * Workload.transactions(changing: $0) }),
    Workload(
        id: "W22-threads", title: "Model, many threads",
        sentence: """
            Each of N threads commits transactions to its own model, 1,600 in total; each changes 10 of \
            1,000 keys. Ideally, N does not matter.
            """,
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .divisors(of: Workload.transactionsOfAllThreads),
        quick: [1, 4, 16], smoke: [2], thorough: [1, 2, 4, 8, 16],
        expectedChecksum: { Workload.checksumOfModels(threads: $0) },
        operations: { _ in Workload.transactionsOfAllThreads }),
    Workload(
        id: "W22-readers", title: "Model, readers",
        sentence: """
            One thread commits 1,600 transactions that change two values. Meanwhile N others read both as \
            often as they can, and see the values of one transaction.
            """,
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .threads,
        quick: [1, 4], smoke: [1], thorough: [1, 2, 4, 8],
        expectedChecksum: { _ in Workload.checksumOfTransfers() },
        operations: { _ in Workload.transactionsWithReaders }),
    Workload(
        id: "W23-open", title: "Action, open",
        sentence: "Each of N threads calls its own action, which may run; 4,000 calls in total.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .threads,
        quick: [1, 4, 16], smoke: [4], thorough: [1, 2, 4, 8, 16],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.callsOfAllThreads) },
        operations: { _ in Workload.callsOfAllThreads }),
    Workload(
        id: "W23-closed", title: "Action, closed",
        sentence: "N threads call one action that may not run, 4,000 calls in total. Each is refused.",
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .threads,
        quick: [1, 4, 16], smoke: [4], thorough: [1, 2, 4, 8, 16],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.callsOfAllThreads) },
        operations: { _ in Workload.callsOfAllThreads }),
    Workload(
        id: "W23-contended", title: "Action, contended",
        sentence: """
            N threads call one action that runs one call at a time, 4,000 calls in total. Each runs or \
            is refused. The work writes memory that only the action protects, and yields its CPU once in \
            64 calls.
            """,
        unit: "ns/op", metric: .throughput, subject: .libraries,
        sizes: .threads,
        quick: [1, 4, 16], smoke: [4], thorough: [1, 2, 4, 8, 16],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.callsOfAllThreads) },
        operations: { _ in Workload.callsOfAllThreads }),
]

extension Workload {
    // MARK: W16, W21

    /// Extends the trace by a step that is executed or undone; the order of any two steps affects the result.
    @inlinable
    public static func trace(_ before: UInt64, _ step: UInt64) -> UInt64 {
        (before << 7 | before >> 57) &+ step
    }

    /// The step of W16 that fails; the steps before it are undone.
    public static func failingStep(_ workload: String, of steps: Int) -> Int {
        workload == "W16-half" ? steps / 2 : steps - 1
    }

    /// The rollbacks of one sample of W16.
    public static func rollbacks(of steps: Int) -> Int { max(1, 2_000 / steps) }

    /// The histories of one sample of W21, one after another.
    public static func histories(of changes: Int) -> Int { max(1, 2_000 / changes) }

    private static func done(_ steps: Range<Int>, after trace: UInt64) -> UInt64 {
        steps.reduce(trace) { Self.trace($0, mark($1)) }
    }

    private static func takenBack(_ steps: Range<Int>, after trace: UInt64) -> UInt64 {
        steps.reversed().reduce(trace) { Self.trace($0, ~mark($1)) }
    }

    static func checksumOfRollbacks(_ workload: String, steps: Int) -> UInt64 {
        let done = 0..<failingStep(workload, of: steps)
        return (0..<rollbacks(of: steps)).reduce(0) { trace, _ in
            takenBack(done, after: Self.done(done, after: trace))
        }
    }

    static func checksumOfHistories(_ workload: String, changes: Int) -> UInt64 {
        let all = 0..<changes
        let histories = workload == "W21-memory" ? 1 : histories(of: changes)
        var trace: UInt64 = 0
        for _ in 0..<histories {
            trace = done(all, after: trace)
            if workload != "W21-execute" && workload != "W21-invoker" { trace = takenBack(all, after: trace) }
            if workload == "W21-redo" || workload == "W21-now" { trace = done(all, after: trace) }
        }
        // The model contains the changes that are in effect at the end.
        let areDone = workload != "W21-undo" && workload != "W21-memory"
        return trace &+ (areDone ? UInt64(histories) &* sumOfMarks(changes) : 0)
    }

    // MARK: W22

    /// The keys of the models of W22.
    public static let keysOfModel = 1_000

    /// The keys that a transaction of W22-threads changes.
    public static let keysOfOneTransaction = 10

    /// The transactions of one sample of W22-threads, whatever the number of threads: divisible by every number used.
    public static let transactionsOfAllThreads = 1_600

    /// The transactions of one sample, if each changes this many keys.
    public static func transactions(changing keys: Int) -> Int { max(4, 4_000 / keys) }

    /// The key that a transaction changes at one of its steps: a prime number apart, so that the keys are
    /// scattered.
    @inlinable
    public static func key(_ turn: Int, of transaction: Int) -> Int {
        (transaction &+ turn &* 37) % keysOfModel
    }

    /// Returns the checksum of a model; swapping any two different values changes it.
    @inlinable
    public static func checksum(ofModel values: some Sequence<UInt64>) -> UInt64 {
        values.enumerated().reduce(0) { $0 &+ $1.element &* UInt64(2 * $1.offset + 1) }
    }

    private static func model(after transactions: Int, changing keys: Int) -> [UInt64] {
        var values = (0..<keysOfModel).map { mark($0) }
        for transaction in 0..<transactions {
            for turn in 0..<keys { values[key(turn, of: transaction)] &+= mark(transaction) }
        }
        return values
    }

    static func checksumOfModel(_ workload: String, keys: Int) -> UInt64 {
        let kept = workload == "W22-commit" ? transactions(changing: keys) : 0
        return checksum(ofModel: model(after: kept, changing: keys))
    }

    static func checksumOfMembers(_ members: Int) -> UInt64 {
        let changes = (0..<transactions(changing: members)).reduce(UInt64(0)) { $0 &+ mark($1) }
        return checksum(ofModel: (0..<members).map { mark($0) &+ changes })
    }

    static func checksumOfModels(threads: Int) -> UInt64 {
        let share = transactionsOfAllThreads / threads
        return UInt64(threads) &* checksum(ofModel: model(after: share, changing: keysOfOneTransaction))
    }

    /// The transactions of one sample of W22-readers.
    public static let transactionsWithReaders = 1_600

    static func checksumOfTransfers() -> UInt64 {
        let amount = sumOfMarks(transactionsWithReaders)
        return checksum(ofModel: [mark(0) &- amount, mark(1) &+ amount])
    }

    // MARK: W23

    /// The calls of one sample of W23, whatever the number of threads: divisible by every number used.
    public static let callsOfAllThreads = 4_000
}
