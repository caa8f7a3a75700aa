// CommandTransaction.swift - the token: the name of one run.

internal import Runs

/// Names one run of a command, from before it is submitted. To be stored, compared and hashed; its value means nothing.
///
/// No two runs of a process share a token. It holds nothing alive.
public struct CommandTransaction: Hashable, Sendable, CustomDebugStringConvertible {
    private let id = RunID.next()

    init() {}

    /// As traces name it.
    var number: UInt64 { id.number }

    /// As dumps name it.
    var name: String { id.description }

    /// A tag for logs.
    public var debugDescription: String { "transaction \(id)" }
}

/// Which of several overlapping runs began last: only that one may close the spinner.
///
/// Share one among all places that are told of an end.
public struct LatestTransaction: Hashable, Sendable {
    private var latest: CommandTransaction?

    /// None has begun.
    public init() {}

    /// A run begins; the one before is not the latest any more. To be called before anybody can run the command.
    public mutating func begin(_ transaction: CommandTransaction) { latest = transaction }

    /// A run has ended.
    ///
    /// - Returns: true for the one that began last, once.
    public mutating func finish(_ transaction: CommandTransaction) -> Bool {
        guard latest == transaction else { return false }
        latest = nil
        return true
    }
}
