// RunID.swift - an ID for each run of a process.

internal import Synchronization

/// Identifies a run within the process: an operation, a run of a command, or an execution of an action. IDs are ordered by
/// creation.
public struct RunID: Hashable, Comparable, Sendable, CustomStringConvertible {
    private static let last = Atomic<UInt64>(0)

    package let number: UInt64

    package init(number: UInt64) { self.number = number }

    /// A new ID.
    package static func next() -> RunID {
        RunID(number: last.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    /// Creation order.
    public static func < (left: RunID, right: RunID) -> Bool { left.number < right.number }

    /// The number, as in `#17`.
    public var description: String { "#\(number)" }
}
