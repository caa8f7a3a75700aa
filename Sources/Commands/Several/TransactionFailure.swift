// TransactionFailure.swift - why a run of several commands failed, and what became of those that were done.

/// Why a run of several commands failed, and how far it was taken back. Members are named by their place, from 0.
public struct TransactionFailure: Error {
    /// A command that could not be taken back.
    public struct CompensationFailure: Error {
        /// Which one.
        public let member: Int
        /// The error that its undo threw.
        public let error: any Error
    }

    /// How far a run was taken back.
    public enum Rollback: Hashable, Sendable {
        /// As if it had never begun.
        case complete
        /// But for commands that cannot be taken back.
        case completeExceptIrreversible
        /// Something that could have been taken back was not.
        case incomplete
    }

    /// The first error: a command's, untouched; or a `CancellationError`.
    public let cause: any Error
    /// The command that threw; nil when none did.
    public let failedMember: Int?
    /// The members that were taken back, in that order.
    public internal(set) var compensated: [Int] = []
    /// The members whose undo threw, each with its error.
    public internal(set) var compensationFailures: [CompensationFailure] = []
    /// The members that were not taken back, because of ``TransactionOptions/Compensation/stopOnFailure``, or because the call did not await.
    public internal(set) var notCompensated: [Int] = []
    /// The members that were done and cannot be taken back.
    public internal(set) var irreversible: [Int] = []
    /// Whether a run inside of it, which failed, left something that cannot be taken back.
    var leavesIrreversible = false

    private var isIncomplete: Bool { !compensationFailures.isEmpty || !notCompensated.isEmpty }
    /// Of this run; its cause may have others.
    var hasLeftovers: Bool { isIncomplete || leavesIrreversible }

    init(cause: any Error, failedMember: Int?) {
        self.cause = cause
        self.failedMember = failedMember
    }

    /// How far the run was taken back.
    public var rollback: Rollback {
        if isIncomplete { return .incomplete }
        // A run inside of it that could not be taken back whole leaves something here, too.
        let inner = leftovers(of: cause)
        if inner != .complete { return inner }
        return irreversible.isEmpty && !leavesIrreversible ? .complete : .completeExceptIrreversible
    }

    /// The places of the commands that failed: in this run, in the one inside of it, and so on.
    public var path: [Int] {
        var path: [Int] = []
        var next: TransactionFailure? = self
        while let each = next, let member = each.failedMember {
            path.append(member)
            next = each.cause as? TransactionFailure
        }
        return path
    }

    /// Whether the run was given up, rather than impossible.
    public var isCancellation: Bool { Commands.isCancellation(rootCause) }

    /// The error at the end of ``path``.
    public var rootCause: any Error {
        var failure = self
        while let inner = failure.cause as? TransactionFailure { failure = inner }
        return failure.cause
    }
}

/// Thrown by a command that cannot tell whether its work was done: the answer of whoever does it was lost, for one.
///
/// Any other error says that nothing was done. After this one nothing is taken back that may not be there, and nobody says that all
/// is as before: the run is rolled back ``TransactionFailure/Rollback/incomplete``, an ``UndoStack`` is broken, and in a journal
/// the command stays in doubt, for recovery.
public struct OutcomeUnknown: Error {
    /// Why nobody can tell.
    public let cause: any Error

    /// Creates one.
    public init(because cause: any Error) { self.cause = cause }
}

/// The failed command was taken back as far as that is possible.
package struct LeftIrreversible: Error {}

/// Thrown in place of a part that failed to be taken back already: not to be tried again.
struct FailedBefore: Error { let error: any Error }

/// A run was refused before its first command started, because of ``TransactionOptions/irreversible``.
public struct IrreversibleMember: Error, Hashable {
    /// The command that cannot be taken back.
    public let member: Int

    /// Names the command.
    public init(member: Int) { self.member = member }
}
