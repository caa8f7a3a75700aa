/// What an operation of the layer costs in memory, as it was measured when that was last changed on purpose. Does a
/// count grow by more than a twentieth, CI fails.
enum RecordedCounts {
    /// How much more than recorded is too much.
    static let tolerance = 1.05

    /// The bytes of a run that may be left, whatever its size: those of its own answer.
    static let bytesLeft = 4_096.0

    /// Allocations of each operation, those of its closures included, by workload.
    static let allocationsPerOperation: [String: Double] = [:]

    /// Live bytes of each pending operation, those of its closures included, by workload.
    static let bytesPerOperation: [String: Double] = [:]
}
