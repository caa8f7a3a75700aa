/// The countable costs of one operation of a row: the same on each machine, whatever else runs there.
public struct OperationCounts: Sendable, Hashable {
    /// The size of the sample that was counted.
    public var n: Int
    /// Instructions by category; a category with less than one instruction in ten operations is omitted.
    public var instructions: [CountCategory: Double]
    /// Calls that allocate memory.
    public var allocations: Double
    /// Increments of reference counts.
    public var retains: Double
    /// Decrements of reference counts.
    public var releases: Double
    /// Atomic read-modify-writes, including those of retains, releases and locks.
    public var atomics: Double
    /// Lock operations on POSIX mutexes, except the allocator's own.
    public var mutexes: Double

    /// All instructions.
    public var allInstructions: Double { instructions.values.reduce(0, +) }

    /// Creates counts.
    public init(
        n: Int, instructions: [CountCategory: Double], allocations: Double, retains: Double, releases: Double,
        atomics: Double, mutexes: Double
    ) {
        self.n = n
        self.instructions = instructions
        self.allocations = allocations
        self.retains = retains
        self.releases = releases
        self.atomics = atomics
        self.mutexes = mutexes
    }

    /// All counts by name, as stored in a file.
    public var figures: [String: Double] {
        var figures = [
            "n": Double(n), "allocations": allocations, "retains": retains, "releases": releases,
            "atomics": atomics, "mutexes": mutexes,
        ]
        for (category, count) in instructions { figures["instructions of \(category.rawValue)"] = count }
        return figures
    }

    /// Creates counts from their ``figures``; nil when one is missing.
    public init?(figures: [String: Double]) {
        guard let n = figures["n"], let allocations = figures["allocations"],
            let retains = figures["retains"],
            let releases = figures["releases"], let atomics = figures["atomics"],
            let mutexes = figures["mutexes"]
        else { return nil }
        let instructions = CountCategory.allCases.compactMap { category in
            figures["instructions of \(category.rawValue)"].map { (category, $0) }
        }
        self.init(
            n: Int(n), instructions: Dictionary(uniqueKeysWithValues: instructions), allocations: allocations,
            retains: retains, releases: releases, atomics: atomics, mutexes: mutexes)
    }

    /// Creates counts from everything that a loop of this many operations executed.
    package init(_ profile: CallgrindProfile, n: Int, operations: Int) {
        func each(_ count: Int, _ digits: Double) -> Double {
            (Double(count) / Double(max(1, operations)) * digits).rounded() / digits
        }
        func calls(_ names: String...) -> Double {
            each(names.reduce(0) { $0 + (profile.calls[$1] ?? 0) }, 100)
        }
        var instructions: [CountCategory: Int] = [:]
        for (function, cost) in profile.costs {
            instructions[CountCategory(function), default: 0] += cost.instructions
        }
        self.init(
            n: n, instructions: instructions.mapValues { each($0, 10) }.filter { $0.value >= 0.1 },
            allocations: calls("malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign"),
            retains: calls("swift_retain", "swift_bridgeObjectRetain"),
            releases: calls("swift_release", "swift_bridgeObjectRelease"),
            atomics: each(profile.costs.values.reduce(0) { $0 + $1.atomics }, 100),
            mutexes: calls(
                "pthread_mutex_lock", "pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_trylock@@GLIBC_2.34"))
    }
}
