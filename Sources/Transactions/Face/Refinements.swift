// The optional protocols of a member, beyond the one that all members conform to: default hooks, logged state, and savepoints.

/// Hooks that do nothing, as opt-in defaults. Once the default of a hook has been called for a class, the walks of a transaction
/// skip members of that class for this hook.
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

/// Promises that all mutable state of the member is ``Transacted``, so savepoints and undo steps need no cooperation from the
/// member.
public protocol LoggedTransactable: Transactable {}

/// A member that keeps state itself and can restore it to a savepoint. Its hooks follow the rules of the hooks of a transaction;
/// `onRelease` follows those of `onCommit`.
public protocol SavepointTransactable: Transactable {
    /// A savepoint is set. Called on parents first.
    func onSavepoint(_ savepoint: Savepoint)
    /// Everything is as it was at the savepoint, except the state that the member restores here. Called on children first.
    func onRollback(to savepoint: Savepoint)
    /// The savepoint is no longer needed. Called on children first.
    func onRelease(_ savepoint: Savepoint)
}

/// Names one savepoint; never reused.
public struct Savepoint: Hashable, Sendable {
    let number: UInt64
}
