// TransactionFailure.swift - why a run of several commands failed, and how far it was rolled back.

/// Why a run of several commands failed, and how far it was rolled back. Members are identified by index, from 0.
public struct TransactionFailure: Error {
    /// A command that could not be undone.
    public struct CompensationFailure: Error {
        /// The index of the command.
        public let member: Int
        /// The error that its undo threw.
        public let error: any Error
    }

    /// How far a run was rolled back.
    public enum Rollback: Hashable, Sendable {
        /// As if it had never begun.
        case complete
        /// Rolled back except for irreversible commands.
        case completeExceptIrreversible
        /// Something reversible was not undone.
        case incomplete
    }

    /// The first error: that of a command, unchanged; or a `CancellationError`.
    public let cause: any Error
    /// The command that threw; nil if none did.
    public let failedMember: Int?
    /// The members that were undone, in that order.
    public internal(set) var compensated: [Int] = []
    /// The members whose undo threw, each with its error.
    public internal(set) var compensationFailures: [CompensationFailure] = []
    /// The members that were not undone, because of ``TransactionOptions/Compensation/stopOnFailure``, or because the call did not await.
    public internal(set) var notCompensated: [Int] = []
    /// The members that were done and cannot be undone.
    public internal(set) var irreversible: [Int] = []
    /// Whether a failed nested run left something irreversible.
    var leavesIrreversible = false

    private var isIncomplete: Bool { !compensationFailures.isEmpty || !notCompensated.isEmpty }
    /// Whether this run itself has leftovers; its cause may report others.
    var hasLeftovers: Bool { isIncomplete || leavesIrreversible }

    init(cause: any Error, failedMember: Int?) {
        self.cause = cause
        self.failedMember = failedMember
    }

    /// How far the run was rolled back.
    public var rollback: Rollback {
        if isIncomplete { return .incomplete }
        // The leftovers of a nested run are leftovers of this run, too.
        let inner = leftovers(of: cause)
        if inner != .complete { return inner }
        return irreversible.isEmpty && !leavesIrreversible ? .complete : .completeExceptIrreversible
    }

    /// The indices of the commands that failed: in this run, in the nested run, and so on.
    public var path: [Int] {
        var path: [Int] = []
        var next: TransactionFailure? = self
        while let each = next, let member = each.failedMember {
            path.append(member)
            next = each.cause as? TransactionFailure
        }
        return path
    }

    /// Whether the run ended because of a cancellation, rather than because its work was impossible.
    public var isCancellation: Bool { Commands.isCancellation(rootCause) }

    /// The error at the end of ``path``.
    public var rootCause: any Error {
        var failure = self
        while let inner = failure.cause as? TransactionFailure { failure = inner }
        return failure.cause
    }
}

/// Thrown by a command that does not know whether its work was done: for example, because a server's answer was lost.
///
/// Any other error means that nothing was done. After this error, the command is not undone, since its work may not exist, and nothing
/// reports a complete rollback: the rollback is ``TransactionFailure/Rollback/incomplete``, an ``UndoStack`` treats it as a failed undo,
/// and in a journal the command stays in doubt, for recovery.
public struct OutcomeUnknown: Error {
    /// Why the result is unknown.
    public let cause: any Error

    /// Creates an error.
    public init(because cause: any Error) { self.cause = cause }
}

/// Thrown by compensation: everything was undone except irreversible work.
package struct LeftIrreversible: Error {}

/// Thrown by the stand-in for a part whose undo has already failed: not to be retried.
struct FailedBefore: Error { let error: any Error }

/// A run was refused before its first command started, because of ``TransactionOptions/irreversible``.
public struct IrreversibleMember: Error, Hashable {
    /// The command that cannot be undone.
    public let member: Int

    /// Creates an error.
    public init(member: Int) { self.member = member }
}
