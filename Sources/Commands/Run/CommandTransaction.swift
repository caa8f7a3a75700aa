// CommandTransaction.swift - the token: the name of one run.

internal import Runs

/// Names one run of a command, even before it is submitted. To be stored, compared and hashed; its value has no
/// meaning.
///
/// No two runs of a process share a token. A token keeps nothing alive.
public struct CommandTransaction: Hashable, Sendable, CustomDebugStringConvertible {
    private let id = RunID.next()

    init() {}

    /// The number used in traces.
    var number: UInt64 { id.number }

    /// The name used in dumps.
    var name: String { id.description }

    /// A tag for logs.
    public var debugDescription: String { "transaction \(id)" }
}

/// Tracks which of several overlapping runs began last: only that run may, for example, hide a spinner.
///
/// Share one instance among all places that are notified of an end.
public struct LatestTransaction: Hashable, Sendable {
    private var latest: CommandTransaction?

    /// Creates a tracker for which no run has begun.
    public init() {}

    /// Records that a run begins; the previous run is no longer the latest. Call this before the command can run.
    public mutating func begin(_ transaction: CommandTransaction) { latest = transaction }

    /// Records that a run has ended.
    ///
    /// - Returns: true for the run that began last, once.
    public mutating func finish(_ transaction: CommandTransaction) -> Bool {
        guard latest == transaction else { return false }
        latest = nil
        return true
    }
}
