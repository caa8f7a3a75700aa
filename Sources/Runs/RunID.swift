// RunID.swift - a name for each run of a process.

internal import Synchronization

/// Tells the runs of a process apart: operations, runs of commands, executions of actions. In the order in which they were made.
public struct RunID: Hashable, Comparable, Sendable, CustomStringConvertible {
    private static let last = Atomic<UInt64>(0)

    package let number: UInt64

    package init(number: UInt64) { self.number = number }

    /// A new one.
    package static func next() -> RunID {
        RunID(number: last.wrappingAdd(1, ordering: .relaxed).newValue)
    }

    /// The order in which they were made.
    public static func < (left: RunID, right: RunID) -> Bool { left.number < right.number }

    /// As in `#17`.
    public var description: String { "#\(number)" }
}
