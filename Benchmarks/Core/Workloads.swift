/// Every workload, in the order of the report; W0 is the control and comes first.
public let workloads: [Workload] =
    operationWorkloads + loadWorkloads + serverWorkloads + realWorkloads + libraryWorkloads

/// The workloads of the scheduler, and of operations, cascades and groups.
private let operationWorkloads: [Workload] = [
    Workload(
        id: "W0", title: "Empty sample",
        sentence: "Nothing is submitted: what is left is the cost of the measurement itself.",
        unit: "ns/op", metric: .throughput, quick: [1], smoke: [1], thorough: [1],
        expectedChecksum: { _ in 0 }),
    Workload(
        id: "W1", title: "Submit from outside",
        sentence: "One outside thread submits N operations, each of which writes a slot of its own.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W2", title: "Submit from many threads",
        sentence: "P outside threads submit 20,000 operations in all; ideally P does not matter.",
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
            N operations of 50 us, each of which submits itself again at its end, keep the pool busy; meanwhile another \
            thread submits an operation every 250 us, 120 in all: how late it starts.
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
            One operation makes a group of N, each with a handle and a state, of which a cancellation would let none \
            begin; then one completion. Peers that have no such group get it written by hand.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000, 10_000], smoke: [10_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W5-range", title: "Group of a range",
        sentence: """
            As W5, but all that differs between the N operations is a number, and ours are one range: one block, and a handle \
            for each that is asked for. Peers run the group of W5.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6", title: "Chain",
        sentence: "Each of N operations passes a value on to the next, which it submits.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6-cascade", title: "Cascade",
        sentence: """
            A cascade of N steps, declared beforehand; each is given the value of the one before. Peers without \
            sequences run the chain of W6, whose steps may end at any time and place, too.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6-serial", title: "Cascade, serial queues",
        sentence: """
            A cascade of N steps without values; the peers submit N closures to a serial place of theirs, where a step \
            cannot end later than it returns.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6-small", title: "Small cascades",
        sentence: """
            One operation makes N cascades of 5 steps, each with a completion; by cascade. Peers without sequences run N chains \
            of 5 steps, each of which submits the next.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks($0 * Workload.stepsOfSmallOne) }),
    Workload(
        id: "W7", title: "Cascade of groups",
        sentence: """
            Groups of N one after another: 1,000 of 10, 100 of 100, 10 of 10,000. Every operation checks that the group \
            before has run.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [10, 1_000], smoke: [100], thorough: [10, 100, 10_000],
        expectedChecksum: { Workload.sumOfMarks($0 * Workload.stages(ofWidth: $0)) },
        operations: { $0 * Workload.stages(ofWidth: $0) }),
    Workload(
        id: "W8", title: "Wavefront",
        sentence: """
            N × N blocks, each an operation that is submitted when its upper and its left neighbour have run; its value is \
            made of theirs. The graph and its counts are there beforehand; by block.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...1_000),
        quick: [64], smoke: [40], thorough: [8, 32, 128, 512],
        expectedChecksum: { Workload.checksumOfGraph("W8", n: $0) },
        operations: { $0 * $0 }),
    Workload(
        id: "W8-levels", title: "Random level graph",
        sentence: """
            N levels of \(Workload.widthOfLevel) operations, each submitted when those of the level before have run on \
            which it depends: one to three, at random. The graph and its counts are there beforehand; by operation.
            """,
        unit: "ns/op", metric: .throughput,
        sizes: .range(1...10_000),
        quick: [128], smoke: [40], thorough: [8, 32, 128, 512],
        expectedChecksum: { Workload.checksumOfGraph("W8-levels", n: $0) },
        operations: { $0 * Workload.widthOfLevel }),
    Workload(
        id: "W8-declared", title: "Wavefront, declared",
        sentence: """
            As W8, but the blocks and their dependencies are declared and then started, each with a handle and a state, of \
            which a cancellation would let none begin. Peers that have no dependencies get them written by hand.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        sizes: .range(1...100),
        quick: [16], smoke: [16], thorough: [8, 16, 32],
        expectedChecksum: { Workload.checksumOfGraph("W8-declared", n: $0) },
        operations: { $0 * $0 }),
    Workload(
        id: "W9", title: "Fork and join",
        sentence:
            "The Fibonacci number of N, two branches per call and no cut-off: nothing but overhead, by branch.",
        unit: "ns/op", metric: .throughput,
        sizes: .range(2...40),  // a third of a billion branches
        quick: [15, 20], smoke: [10], thorough: [15, 18, 21, 24],
        expectedChecksum: Workload.fibonacci,
        operations: Workload.spawnsOfFibonacci),
    Workload(
        id: "W10", title: "Skynet",
        sentence:
            "A tree of groups, ten branches each, down to N leaves; the sum of their numbers comes up; by leaf.",
        unit: "ns/op", metric: .throughput, subject: .operations,
        sizes: .powers(of: 10),
        quick: [1_000, 10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { UInt64($0) * UInt64($0 - 1) / 2 }),
    Workload(
        id: "W11", title: "Ping-pong",
        sentence: "Two serial places answer each other N times, each turn an operation: one round trip.",
        unit: "us", metric: .latency,
        quick: [1_000], smoke: [200], thorough: [1_000, 10_000],
        expectedChecksum: { Workload.sumOfMarks(2 * $0) }),
    Workload(
        id: "W12", title: "Wake-up from idle",
        sentence: "One operation is due every millisecond, N in all: how late it starts on an idle pool.",
        unit: "us", metric: .latency,
        quick: [70], smoke: [20], thorough: [1_000],
        expectedChecksum: Workload.sumOfMarks, leastSeconds: { Double($0) / 1000 }),
    Workload(
        id: "W13", title: "Cost of being idle",
        sentence:
            "N operations 10 ms apart, then 0.3 s without any: what the threads burn meanwhile.",
        unit: "switches/s", metric: .cost,
        quick: [10], smoke: [5], thorough: [50],
        expectedChecksum: Workload.sumOfMarks, leastSeconds: { Double($0) / 100 + 0.3 }),
    Workload(
        id: "W14-0", title: "Cancellation, 0 % begun",
        sentence: """
            A group of N is cancelled before any of them begins: the time until all have ended. None may begin any more.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000, 10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks(Workload.started("W14-0", of: $0)) }),
    Workload(
        id: "W14-1", title: "Cancellation, 1 % begun",
        sentence: """
            A group of N is cancelled when 1 % have begun, and none of these has ended: the time until all have ended. None may begin any more.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        sizes: .from(100),
        quick: [1_000, 10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks(Workload.started("W14-1", of: $0)) }),
    Workload(
        id: "W14-50", title: "Cancellation, 50 % begun",
        sentence: """
            A group of N is cancelled when 50 % have begun, and none of these has ended: the time until all have ended. None may begin any more.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        sizes: .from(2),
        quick: [1_000, 10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks(Workload.started("W14-50", of: $0)) }),
    Workload(
        id: "W15-suspend", title: "Suspend and resume",
        sentence: "N operations wait behind a closed gate: from its opening until all have run.",
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [10_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W15-rerun", title: "Rerun",
        sentence: """
            A cascade of 10 steps, the last of which cancels it, is done again N times by a rerun; by run. Where there is \
            no rerun, a chain of 10 N steps.
            """,
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks($0 * Workload.stepsOfOneRun) }),
    Workload(
        id: "W15-rebuild", title: "Rebuild",
        sentence: "As the rerun, but a new cascade of 10 steps is built each time.",
        unit: "ns/op", metric: .throughput, subject: .operations,
        quick: [1_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks($0 * Workload.stepsOfOneRun) }),
    Workload(
        id: "W20", title: "Memory of what is pending",
        sentence: "N operations wait behind blocked workers: the live bytes of each, and what stays.",
        unit: "bytes/op", metric: .cost,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W20-leaf", title: "Memory, operations",
        sentence:
            "N operations wait for a worker, ours with a handle and a state each: the live bytes of each, and what stays.",
        unit: "bytes/op", metric: .cost, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W20-child", title: "Memory, children",
        sentence:
            "N children of one group wait behind its closed gate: the live bytes of each, and what stays.",
        unit: "bytes/op", metric: .cost, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W20-composite", title: "Memory, composites",
        sentence:
            "N groups wait for a worker to declare their children: the live bytes of each, and what stays.",
        unit: "bytes/op", metric: .cost, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W20-queued", title: "Memory, queued",
        sentence:
            "N operations wait in a suspended queue of a limited width: the live bytes of each, and what stays.",
        unit: "bytes/op", metric: .cost, subject: .operations,
        quick: [10_000], smoke: [10_000], thorough: [10_000, 100_000],
        expectedChecksum: Workload.sumOfMarks),
]
