/// Every workload, in the order of the report; W0 is the control and comes first.
public let workloads: [Workload] =
    operationWorkloads + loadWorkloads + serverWorkloads + realWorkloads + libraryWorkloads

/// The workloads of the scheduler, and of operations, cascades and groups.
private let operationWorkloads: [Workload] = [
    Workload(
        id: "W0", title: "Empty sample",
        sentence: "Nothing is submitted. The result is the cost of the measurement itself.",
        unit: "ns/op", metric: .throughput, quick: [1], smoke: [1], thorough: [1],
        expectedChecksum: { _ in 0 }),
    Workload(
        id: "W1", title: "Submit from outside",
        sentence: "One outside thread submits N operations. Each writes to its own slot.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W2", title: "Submit from many threads",
        sentence: "N outside threads submit 20,000 operations in total. Ideally, N does not matter.",
        unit: "ns/op", metric: .throughput,
        sizes: .threads,
        quick: [8], smoke: [2], thorough: [1, 2, 4, 8, 16],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.submissionsOfAllThreads) },
        operations: { _ in Workload.submissionsOfAllThreads }),
    Workload(
        id: "W3", title: "Spawn from inside",
        sentence: "One operation submits N others to the pool it runs on.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W4", title: "Submit to a busy pool",
        sentence: """
            N operations of 50 us, each resubmitting itself at its end, keep the pool busy. Meanwhile \
            another thread submits an operation every 250 us, 120 in total: how late each starts.
            """,
        unit: "us", metric: .latency,
        sizes: .threads,
        quick: [4], smoke: [2], thorough: [2, 4, 8],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.submissionsWhileBusy) },
        operations: { _ in Workload.submissionsWhileBusy },
        leastSeconds: { _ in Double(Workload.submissionsWhileBusy * Workload.betweenSubmissions_ns) / 1e9 }),
    Workload(
        id: "W5", title: "Group",
        sentence: """
            One operation creates a group of N, each with a handle and a state, and one completion follows. \
            After a cancellation, none would begin. Peers without such groups use a hand-written one.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000, 10_000], smoke: [10_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W5-range", title: "Group of a range",
        sentence: """
            As W5, but the N operations differ only in a number. Ours are a single range: one block, and \
            handles only on request. Peers run the group of W5.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6", title: "Chain",
        sentence: "Each of N operations submits the next, and passes a value to it.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6-cascade", title: "Cascade",
        sentence: """
            A cascade of N steps, declared in advance. Each step receives its predecessor's value. Peers \
            without sequences run the chain of W6, whose steps may also end anywhere, at any time.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6-serial", title: "Cascade, serial queues",
        sentence: """
            A cascade of N steps without values. The peers submit N closures to a serial queue of theirs, \
            where a step ends no later than it returns.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6-small", title: "Small cascades",
        sentence: """
            One operation creates N cascades of 5 steps, each with a completion. Peers without sequences run \
            N chains of 5 steps, each of which submits the next. Time per cascade.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks($0 * Workload.stepsOfSmallOne) }),
    Workload(
        id: "W7", title: "Cascade of groups",
        sentence: """
            Groups of N, one after another: 1,000 of 10, 100 of 100, 10 of 10,000. Every operation checks \
            that the previous group has run.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [10, 1_000], smoke: [100], thorough: [10, 100, 10_000],
        expectedChecksum: { Workload.sumOfMarks($0 * Workload.stages(ofWidth: $0)) },
        operations: { $0 * Workload.stages(ofWidth: $0) }),
    Workload(
        id: "W8", title: "Wavefront",
        sentence: """
            N × N blocks. Each is an operation, submitted when its upper and left neighbours have run; its \
            value is computed from theirs. The graph and its counts are built in advance. Time per block.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...1_000),
        quick: [64], smoke: [40], thorough: [8, 32, 128, 512],
        expectedChecksum: { Workload.checksumOfGraph("W8", n: $0) },
        operations: { $0 * $0 }),
    Workload(
        id: "W8-levels", title: "Random level graph",
        sentence: """
            N levels of \(Workload.widthOfLevel) operations. Each depends on one to three random operations \
            of the previous level, and is submitted when they have run. The graph and its counts are built \
            in advance. Time per operation.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...10_000),
        quick: [128], smoke: [40], thorough: [8, 32, 128, 512],
        expectedChecksum: { Workload.checksumOfGraph("W8-levels", n: $0) },
        operations: { $0 * Workload.widthOfLevel }),
    Workload(
        id: "W8-declared", title: "Wavefront, declared",
        sentence: """
            As W8, but the blocks and their dependencies are declared, then started. Each block has a \
            handle and a state; after a cancellation, none would begin. Peers without dependencies use \
            hand-written ones.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        sizes: .range(1...100),
        quick: [16], smoke: [16], thorough: [8, 16, 32],
        expectedChecksum: { Workload.checksumOfGraph("W8-declared", n: $0) },
        operations: { $0 * $0 }),
    Workload(
        id: "W9", title: "Fork and join",
        sentence:
            "The Fibonacci number of N, two branches per call, no cut-off: pure overhead. Time per branch.",
        unit: "ns/op", metric: .throughput,
        sizes: .range(2...40),  // a third of a billion branches
        quick: [15, 20], smoke: [10], thorough: [15, 18, 21, 24],
        expectedChecksum: Workload.fibonacci,
        operations: Workload.spawnsOfFibonacci),
    Workload(
        id: "W10", title: "Skynet",
        sentence:
            "A tree of groups, ten branches each, down to N leaves, whose numbers are summed. Time per leaf.",
        unit: "ns/op", metric: .throughput, subject: .operations,
        sizes: .powers(of: 10),
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { UInt64($0) * UInt64($0 - 1) / 2 }),
    Workload(
        id: "W11", title: "Ping-pong",
        sentence:
            "Two serial contexts answer each other N times; each turn is an operation. Time per round trip.",
        unit: "us", metric: .latency,
        quick: [1_000], smoke: [200], thorough: [1_000, 10_000],
        expectedChecksum: { Workload.sumOfMarks(2 * $0) }),
    Workload(
        id: "W12", title: "Wake-up from idle",
        sentence: "N operations, one due every millisecond, on an idle pool: how late each starts.",
        unit: "us", metric: .latency,
        quick: [70], smoke: [20], thorough: [1_000],
        expectedChecksum: Workload.sumOfMarks, leastSeconds: { Double($0) / 1000 }),
    Workload(
        id: "W13", title: "Cost of being idle",
        sentence: "N operations 10 ms apart, then none for 0.3 s: the costs of the idle threads.",
        unit: "switches/s", metric: .cost,
        quick: [10], smoke: [5], thorough: [50],
        expectedChecksum: Workload.sumOfMarks, leastSeconds: { Double($0) / 100 + 0.3 }),
    Workload(
        id: "W14-0", title: "Cancellation, 0 % begun",
        sentence: """
            A group of N is cancelled before any operation has begun; none may begin afterwards. Time until \
            all N have ended.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000, 10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks(Workload.started("W14-0", of: $0)) }),
    Workload(
        id: "W14-1", title: "Cancellation, 1 % begun",
        sentence: """
            A group of N is cancelled when 1 % have begun and none has ended; no other may begin afterwards. \
            Time until all N have ended.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        sizes: .from(100),
        quick: [1_000, 10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks(Workload.started("W14-1", of: $0)) }),
    Workload(
        id: "W14-50", title: "Cancellation, 50 % begun",
        sentence: """
            A group of N is cancelled when 50 % have begun and none has ended; no other may begin \
            afterwards. Time until all N have ended.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        sizes: .from(2),
        quick: [1_000, 10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks(Workload.started("W14-50", of: $0)) }),
    Workload(
        id: "W15-suspend", title: "Suspend and resume",
        sentence: "N operations wait behind a closed gate. Time from its opening until all have run.",
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W15-rerun", title: "Rerun",
        sentence: """
            A cascade of 10 steps, whose last step cancels it, is rerun N times. Peers without rerun run a \
            chain of 10 N steps. Time per run.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks($0 * Workload.stepsOfOneRun) }),
    Workload(
        id: "W15-rebuild", title: "Rebuild",
        sentence: "As W15-rerun, but a new cascade of 10 steps is built each time.",
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks($0 * Workload.stepsOfOneRun) }),
    Workload(
        id: "W20", title: "Memory of pending work",
        sentence: "N operations wait behind blocked workers: live bytes of each, and bytes left afterwards.",
        unit: "bytes/op", metric: .cost,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W20-leaf", title: "Memory, operations",
        sentence: """
            N operations wait for a worker, ours with a handle and a state each: live bytes of each, and \
            bytes left afterwards.
            """,
        unit: "bytes/op", metric: .cost, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W20-child", title: "Memory, children",
        sentence: """
            N children of one group wait behind its closed gate: live bytes of each, and bytes left \
            afterwards.
            """,
        unit: "bytes/op", metric: .cost, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W20-composite", title: "Memory, composites",
        sentence: """
            N groups wait for a worker, before declaring their children: live bytes of each, and bytes \
            left afterwards.
            """,
        unit: "bytes/op", metric: .cost, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W20-queued", title: "Memory, queued",
        sentence: """
            N operations wait in a suspended queue of limited width: live bytes of each, and bytes left \
            afterwards.
            """,
        unit: "bytes/op", metric: .cost, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
]
