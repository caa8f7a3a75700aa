/// What an operation of the layer costs in memory, as it was measured when that was last changed on purpose. Does a
/// count grow by more than a twentieth, CI fails.
enum RecordedCounts {
    /// How much more than recorded is too much.
    static let tolerance = 1.05

    /// The least size at which what a run allocates once hardly shows; of the sizes of a run the largest is compared.
    static let leastSize = 1_000

    /// Allocations of each operation, those of its closures included, by workload.
    static let allocationsPerOperation = [
        "W5": 2.0, "W6-cascade": 2.0, "W6-serial": 2.0, "W10": 4.9, "W14-0": 2.0, "W14-1": 2.0, "W14-50": 2.0,
        "W15-rerun": 37.0, "W15-rebuild": 43.0,
    ]

    /// Allocations of each operation of the libraries, those of its closures and of what it works on included, and the size
    /// at which they were recorded, by workload.
    static let allocationsOfLibraries: [String: (n: Int, allocations: Double)] = [
        "W16-last": (1_000, 3.05), "W16-half": (1_000, 3.1), "W21-execute": (1_000, 6.03),
        "W21-undo": (1_000, 14.02), "W21-redo": (1_000, 26.02), "W21-now": (1_000, 1.67),
        "W21-invoker": (1_000, 2.2),
        "W22-commit": (100, 157.3), "W22-rollback": (100, 158.3), "W22-members": (1_000, 3.26),
        "W23-open": (4, 1.07), "W23-closed": (4, 1.03),
    ]

    /// The size at which the bytes were recorded: what grows by doubling is more or less full at another one.
    static let sizeOfBytes = 10_000

    /// Live bytes of each pending operation, those of its closures included, by workload.
    static let bytesPerOperation = [
        "W20-leaf": 201.0, "W20-child": 152.3, "W20-composite": 537.0, "W20-queued": 288.0,
        "W21-memory": 217.0,
    ]
}
