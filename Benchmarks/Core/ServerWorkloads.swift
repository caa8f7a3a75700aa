/// The workloads that a server puts on a scheduler, in the order of the report: bodies that block, Swift
/// tasks, priorities, timers, requests.
let serverWorkloads: [Workload] = [
    Workload(
        id: "W19", title: "Blocked threads",
        sentence: """
            N operations each block a thread, unannounced. Meanwhile one operation is due every 10 ms: how \
            late each starts. Blockers that have not begun when the time is up no longer block.
            """,
        unit: "us", metric: .latency,
        sizes: .range(1...400),
        quick: [20], smoke: [10], thorough: [20, 60],
        expectedChecksum: Workload.checksumOfBlocking, operations: Workload.startsWhileBlocked,
        leastSeconds: Workload.secondsOfBlocking),
    Workload(
        id: "W19-task", title: "Blocked threads, a task",
        sentence: "As W19, but the work that is due is a Swift task, unrelated to the blockers.",
        unit: "us", metric: .latency,
        sizes: .range(1...400),
        quick: [20], smoke: [10], thorough: [20, 60],
        expectedChecksum: Workload.checksumOfBlocking, operations: Workload.startsWhileBlocked,
        leastSeconds: Workload.secondsOfBlocking),
    Workload(
        id: "W19-announced", title: "Announced blocking",
        sentence: "As W19, but each blocker announces that it will block.",
        unit: "us", metric: .latency,
        sizes: .range(1...400),
        quick: [20], smoke: [10], thorough: [20, 60],
        expectedChecksum: Workload.checksumOfBlocking, operations: Workload.startsWhileBlocked,
        leastSeconds: Workload.secondsOfBlocking),
    Workload(
        id: "W19-announced-task", title: "Announced, a task",
        sentence: "As W19-task, but each blocker announces that it will block.",
        unit: "us", metric: .latency,
        sizes: .range(1...400),
        quick: [20], smoke: [10], thorough: [20, 60],
        expectedChecksum: Workload.checksumOfBlocking, operations: Workload.startsWhileBlocked,
        leastSeconds: Workload.secondsOfBlocking),
    tasks("W24-group", "Task group", "A task group of N child tasks, added and awaited by a task"),
    tasks(
        "W24-discarding", "Discarding task group", "A discarding task group of N child tasks, added by a task"
    ),
    tasks(
        "W24-asynclet", "async let",
        "A binary tree of async let, down to N leaves, whose marks are summed, awaited by a task"),
    tasks("W24-tasks", "Unstructured tasks", "N unstructured tasks, created and then awaited by a task"),
    tasks("W24-actor", "Shared actor", "N calls to one actor by 100 tasks, awaited by a task"),
    tasks(
        "W24-handover", "Hand-over",
        "N hand-overs by continuation, back and forth between two tasks, awaited by a task"),
    tasks("W24-group-main", "Task group", "A task group of N child tasks, added and awaited by a task"),
    tasks(
        "W24-discarding-main", "Discarding task group",
        "A discarding task group of N child tasks, added by a task"),
    tasks(
        "W24-asynclet-main", "async let",
        "A binary tree of async let, down to N leaves, whose marks are summed, awaited by a task"),
    tasks("W24-tasks-main", "Unstructured tasks", "N unstructured tasks, created and then awaited by a task"),
    tasks("W24-actor-main", "Shared actor", "N calls to one actor by 100 tasks, awaited by a task"),
    tasks(
        "W24-handover-main", "Hand-over",
        "N hand-overs by continuation, back and forth between two tasks, awaited by a task"),
    Workload(
        id: "W26", title: "Priority under a flood",
        sentence: """
            Background operations of 100 us arrive at N % of the threads' capacity. Meanwhile one \
            high-priority operation is due every millisecond, 200 in total: how late each starts.
            """,
        unit: "us", metric: .latency,
        sizes: .range(1...1_000),
        quick: [100], smoke: [50], thorough: [50, 100, 200],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.urgentOperations) },
        operations: { _ in Workload.urgentOperations }, leastSeconds: { 0.2 * max(1, Double($0) / 100) }),
    Workload(
        id: "W27-set", title: "Timers, set",
        sentence: "One thread sets N timers that are due in an hour and stay pending.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W27-cancel", title: "Timers, cancel",
        sentence:
            "One thread cancels N pending timers, in another order than it set them. Time of the calls.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W27-fire", title: "Timers, fire",
        sentence: """
            N timers are due at once, 10 ms plus 4 us per timer after the first was set. Time from then \
            until the last has run.
            """,
        unit: "ns/op", metric: .throughput,
        quick: [2_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks,
        leastSeconds: { Double(Workload.untilDue_ns(timers: $0)) / 1e9 }),
    Workload(
        id: "W27-late", title: "Timers, accuracy",
        sentence: "N timers, 2.3 ms apart, are all set at once on an idle pool: how late each starts.",
        unit: "us", metric: .latency,
        quick: [40], smoke: [20], thorough: [200],
        expectedChecksum: Workload.sumOfMarks, leastSeconds: { Double($0) * 0.0023 }),
    Workload(
        id: "R4", title: "Server",
        sentence: """
            Event loops serve N connections on loopback, each with a task that answers one request after \
            another, 4,800 in total. A client thread sends the next one when the answer has arrived. Time \
            per request. Event loops, handlers and client share the CPUs.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...500),
        quick: [16], smoke: [4], thorough: [1, 16, 64],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.requests) },
        operations: { _ in Workload.requests }, leastSeconds: { _ in Workload.leastSecondsOfRequests }),
    Workload(
        id: "R4-late", title: "Server, latency",
        sentence: "As R4, but the time from sending a request until its answer arrives.",
        unit: "us", metric: .latency,
        sizes: .range(1...500),
        quick: [16], smoke: [4], thorough: [1, 16, 64],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.requests) },
        operations: { _ in Workload.requests }, leastSeconds: { _ in Workload.leastSecondsOfRequests }),
    Workload(
        id: "R4-mixed", title: "Server, some block",
        sentence: """
            As R4, but one handler in \(Workload.betweenBlockingRequests) blocks its thread for \
            \(Workload.blockingRequest_us / 1_000) ms.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...500),
        quick: [16], smoke: [4], thorough: [1, 16, 64],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.requests) },
        operations: { _ in Workload.requests }, leastSeconds: { _ in Workload.leastSecondsOfRequests }),
]

private func tasks(_ id: String, _ title: String, _ sentence: String) -> Workload {
    let isMain = Workload.isFromMainActor(id)
    return Workload(
        id: id, title: isMain ? "\(title), main" : title,
        sentence: sentence + (isMain ? " on the main actor." : " on the executor itself."),
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000], smoke: [1_000],
        thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks)
}

extension Workload {
    // MARK: W24

    /// Whether the task that creates the others belongs to the main actor.
    public static func isFromMainActor(_ workload: String) -> Bool { workload.hasSuffix("-main") }

    /// The tasks that call the actor of W24.
    public static let callersOfActor = 100

    // MARK: W19

    /// How long each blocker of W19 blocks; other operations are due during that time.
    public static func blocking_ns(blockers: Int) -> Int {
        blockers >= 300 ? 2_000_000_000 : blockers >= 60 ? 150_000_000 : 50_000_000
    }

    /// The time between two operations of W19.
    public static let betweenStarts_ns = 10_000_000

    /// How many operations are due while the others block.
    public static func startsWhileBlocked(_ blockers: Int) -> Int {
        blocking_ns(blockers: blockers) / betweenStarts_ns
    }

    /// Whether W19 counts the remaining threads a second later; done where the sample is long anyway.
    public static func countsThreadsLater(blockers: Int) -> Bool { blockers >= 300 }

    static func secondsOfBlocking(_ blockers: Int) -> Double {
        Double(blocking_ns(blockers: blockers)) / 1e9 + (countsThreadsLater(blockers: blockers) ? 1 : 0)
    }

    static func checksumOfBlocking(_ blockers: Int) -> UInt64 {
        sumOfMarks(startsWhileBlocked(blockers)) &+ sumOfMarks(blockers)
    }

    // MARK: W26, W27, R4

    /// The operations of high priority of one sample of W26.
    public static let urgentOperations = 200

    /// The time from setting the first timer of W27-fire until the timers are due.
    public static func untilDue_ns(timers: Int) -> Int { 10_000_000 + 4_000 * timers }

    /// The requests of one sample of R4, over all connections.
    public static let requests = 4_800

    /// The least time that the requests take: two turns of an event loop each.
    static let leastSecondsOfRequests = Double(requests) * 10e-6

    /// In R4-mixed, one request in this many blocks.
    public static let betweenBlockingRequests = 50

    /// How many microseconds such a request blocks its thread.
    public static let blockingRequest_us = 2_000
}
