// The errors of this module's calls, except those of hooks and bodies, which are rethrown unchanged.

/// Why a call on a transaction was refused. No case is ever added: clients switch over the three.
public enum TransactionError: Error {
    /// A transaction was to begin while another is active.
    case anotherTransactionIsActive
    /// There is no transaction to end.
    case transactionIsNotActive
    /// The descriptor names a transaction other than the active one.
    case wrongTransactionDescriptor
}

/// Why a call was refused, for reasons that the first version of this interface did not distinguish.
public enum TransactionFault: Error, Hashable, Sendable {
    /// A hook made a call that would end the transaction, or change the tree, in the middle of this phase.
    case reentrant(TransactionPhase)
    /// The member has left its tree, or the owner of the tree's root is gone.
    case detached
    /// The body of a closure rolled its transaction back by hand, and then returned as if it had been kept.
    case rolledBackInsideBody
    /// One tree of a joint transaction cannot be ended separately.
    case partOfJointTransaction
    /// The transaction was opened by another task's `withTransaction`.
    case ownedByAnotherTask
    /// A member was to move under itself.
    case cycle
    /// A member was to move to another tree while one of the two is active, or the member is a root.
    case otherTree
    /// A member can neither log its state nor keep savepoints.
    case savepointUnsupported
    /// A savepoint was ended before one that another child task had set inside it, so their changes cannot be separated. The
    /// whole transaction is rolled back at its end.
    case savepointsInterleave
    /// Validation changed the model in each of 16 passes.
    case validationDoesNotSettle
    /// A step cannot be undone or redone: a later change affected the same properties or members.
    case outOfOrder
    /// The tree did not become free within the time limit.
    case timedOut
    /// Waiting could never succeed: the task itself began the active transaction by hand, or the tasks it would wait for are
    /// waiting for a tree that it has open.
    case deadlock
}

/// The phase of a transaction.
public enum TransactionPhase: Hashable, Sendable {
    /// `onBegin` is being called.
    case begin
    /// The transaction is open for changes.
    case body
    /// `onValidateCommit` is being called.
    case validate
    /// `onCommit` is being called.
    case commit
    /// State is being restored, and `onRollback` is being called.
    case rollback
}

/// A member whose validation threw, in the last attempt to commit.
public struct ValidationFailure {
    /// The member, if it still exists.
    public private(set) weak var member: (any Transactable)?
    /// The error that its `onValidateCommit` threw.
    public let error: any Error
}
