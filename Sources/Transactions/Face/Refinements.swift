// The promises and requests of a member beyond the protocol that all conform to.

/// Hooks that do nothing, for those who ask for them. A class that keeps the default of a hook is not asked any more once that has
/// been called: a walk of a transaction passes by.
public protocol TransactableDefaults: Transactable {}

extension TransactableDefaults {
    /// Does nothing.
    public func onBegin(transaction: Transaction) { MemberType.hasDefault(.begin, self) }
    /// Finds nothing wrong.
    public func onValidateCommit() throws { MemberType.hasDefault(.validate, self) }
    /// Does nothing.
    public func onCommit(transaction: Transaction) { MemberType.hasDefault(.commit, self) }
    /// Does nothing.
    public func onRollback(transaction: Transaction) { MemberType.hasDefault(.rollback, self) }
}

/// Promises that all mutable state of the member is ``Transacted``, so that savepoints and undo steps need nothing of
/// it.
public protocol LoggedTransactable: Transactable {}

/// A member with state of its own keeping that can go back to savepoints. Its hooks follow the rules of those of a
/// transaction: those of release the rules of `onCommit`.
public protocol SavepointTransactable: Transactable {
    /// A savepoint is set. Parents are told first.
    func onSavepoint(_ savepoint: Savepoint)
    /// All is as it was at the savepoint, but for what the member itself restores here. Children are told first.
    func onRollback(to savepoint: Savepoint)
    /// The savepoint is no longer needed. Children are told first.
    func onRelease(_ savepoint: Savepoint)
}

/// Names one savepoint; never reused.
public struct Savepoint: Hashable, Sendable {
    let number: UInt64
}
