/// Every workload, in the order of the report; W0 is the control and stands first.
public let workloads: [Workload] = [
    Workload(
        id: "W0", title: "Empty sample",
        sentence: "Nothing is submitted: what is left is the cost of the measurement itself.",
        unit: "ns/op", metric: .throughput, quick: [1], smoke: [1], thorough: [1],
        expectedChecksum: { _ in 0 }),
    Workload(
        id: "W1", title: "Submit from outside",
        sentence: "One outside thread submits N operations, each of which writes a slot of its own.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000, 100_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W2", title: "Submit from many threads",
        sentence: "P outside threads submit 50,000 operations in all; ideally P does not matter.",
        unit: "ns/op", metric: .throughput,
        quick: [1, 4, 16], smoke: [2], thorough: [1, 2, 4, 8, 16],
        expectedChecksum: { _ in Workload.sumOfMarks(Workload.submissionsOfAllThreads) },
        operations: { _ in Workload.submissionsOfAllThreads }),
    Workload(
        id: "W3", title: "Spawn from inside",
        sentence: "One operation submits N others to the pool it runs on.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000, 100_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W6", title: "Chain",
        sentence: "Each of N operations passes a value on to the next, which it submits.",
        unit: "ns/op", metric: .throughput,
        quick: [1_000, 10_000, 100_000], smoke: [1_000], thorough: [1_000, 10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
    Workload(
        id: "W9", title: "Fork and join",
        sentence:
            "The Fibonacci number of N, two branches per call and no cut-off: nothing but overhead, by branch.",
        unit: "ns/op", metric: .throughput,
        quick: [15, 20, 24], smoke: [10], thorough: [15, 18, 21, 24],
        expectedChecksum: Workload.fibonacci,
        operations: Workload.spawnsOfFibonacci),
    Workload(
        id: "W11", title: "Ping-pong",
        sentence: "Two serial places answer each other N times, each turn an operation: one round trip.",
        unit: "us", metric: .latency,
        quick: [10_000], smoke: [200], thorough: [10_000, 100_000],
        expectedChecksum: { Workload.sumOfMarks(2 * $0) }),
    Workload(
        id: "W12", title: "Wake-up from idle",
        sentence: "One operation is due every millisecond, N in all: how late it starts on an idle pool.",
        unit: "us", metric: .latency,
        quick: [500], smoke: [20], thorough: [5_000],
        expectedChecksum: Workload.sumOfMarks, leastSeconds: { Double($0) / 1000 }),
    Workload(
        id: "W13", title: "Cost of being idle",
        sentence: "N operations 10 ms apart, then a second without any: what the threads burn meanwhile.",
        unit: "switches/s", metric: .cost,
        quick: [50], smoke: [5], thorough: [500],
        expectedChecksum: Workload.sumOfMarks, leastSeconds: { Double($0) / 100 + 1 }),
    Workload(
        id: "W20", title: "Memory of what is pending",
        sentence: "N operations wait behind blocked workers: the live bytes of each, and what stays.",
        unit: "bytes/op", metric: .cost,
        quick: [10_000, 100_000], smoke: [1_000], thorough: [10_000, 100_000, 1_000_000],
        expectedChecksum: Workload.sumOfMarks),
]
