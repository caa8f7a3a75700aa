// The protocol that members of a tree conform to, and the calls that it provides.

/// A member of a tree of objects that change together.
///
/// A member keeps the context that it creates at the end of its initialiser. There are no default hooks: a default would hide a
/// hook whose name is misspelt. A class that needs no hooks, or only some, conforms to ``TransactableDefaults``.
///
/// A tree lives in one isolation. Its members may be used only from there; other isolations read a ``CommittedView``.
public protocol Transactable: AnyObject {
    /// Ties the member into its tree. Accessed only after the member has created it.
    var transactionContext: TransactionContext { get }
    /// A transaction begins. Called on parents first.
    ///
    /// - Throws: an error that keeps the transaction from beginning; the caller of begin receives it.
    func onBegin(transaction: Transaction) throws
    /// Validates the member before the changes are kept. Called on parents first; a change made here causes another pass.
    ///
    /// - Throws: the reason the changes cannot be kept; the caller of commit receives it.
    func onValidateCommit() throws
    /// All members are valid, and the changes are kept. Called on children first.
    func onCommit(transaction: Transaction)
    /// The changes are rolled back; logged state is already restored. Called on children first.
    func onRollback(transaction: Transaction)
}

extension Transactable {
    /// Whether the member's tree has an active transaction. O(1).
    public var transactionIsActive: Bool { transactionContext.transactionIsActive }

    /// The transaction that is active in the member's tree. O(1).
    public var activeTransaction: Transaction? { transactionContext.activeTransaction }

    /// Begins a transaction of the member's tree, by hand.
    ///
    /// - Throws: ``TransactionError/anotherTransactionIsActive``, ``TransactionFault/detached``, or the error of a hook, after
    ///   which the tree is idle again.
    /// - Complexity: O(members); O(1) where no member implements `onBegin`.
    @discardableResult public func beginTransaction() throws -> Transaction {
        try transactionContext.beginTransaction()
    }

    /// Validates all members, then keeps the changes.
    ///
    /// - Throws: the error of validation, in which case the transaction is still active; or the reason the call was refused.
    /// - Complexity: O(members whose class has the hook, their ancestors, and the siblings of both).
    public func commitTransaction(_ transaction: Transaction = Transaction.any) throws {
        try transactionContext.commitTransaction(transaction)
    }

    /// Rolls the changes back.
    ///
    /// - Throws: the reason the call was refused; nothing else can fail.
    /// - Complexity: O(members whose class has the hook, their ancestors, and the siblings of both).
    public func rollbackTransaction(_ transaction: Transaction = Transaction.any) throws {
        try transactionContext.rollbackTransaction(transaction)
    }

    /// Runs `body` in a transaction; inside an active one, as a part of it.
    ///
    /// When `body` or validation throws, all changes are rolled back, and that same error is thrown. A closure that joined does
    /// none of this: its changes stay if an outer body catches its error. See ``transaction(nesting:_:)``.
    ///
    /// - Throws: the error of `body` or of validation; ``TransactionError/anotherTransactionIsActive``, if the closure cannot join
    ///   the active one; ``TransactionFault/detached``, ``TransactionFault/reentrant(_:)``,
    ///   ``TransactionFault/rolledBackInsideBody`` and ``TransactionFault/validationDoesNotSettle``.
    @discardableResult public func transaction<Result>(_ body: () throws -> Result) throws -> Result {
        try transactionContext.perform(.join, body)
    }

    /// The same as ``transaction(_:)``, by its older name.
    @discardableResult public func doTransactionally<Result>(_ body: () throws -> Result) throws -> Result {
        try transactionContext.perform(.join, body)
    }

    /// Runs `body` in a transaction; `nesting` is its role inside an active one.
    ///
    /// - Throws: ``TransactionFault/savepointUnsupported`` before anything runs; otherwise as ``transaction(_:)``.
    @discardableResult public func transaction<Result>(
        nesting: TransactionNesting, _ body: () throws -> Result
    )
        throws -> Result
    {
        try transactionContext.perform(nesting, body)
    }

    /// The same as ``transaction(nesting:_:)``, by the older name.
    @discardableResult
    public func doTransactionally<Result>(nesting: TransactionNesting, _ body: () throws -> Result) throws
        -> Result
    {
        try transactionContext.perform(nesting, body)
    }

    /// Begins a transaction that is rolled back when its handle is destroyed, unless it was committed.
    ///
    /// - Throws: as ``beginTransaction()``.
    public func scopedTransaction() throws -> ScopedTransaction {
        let context = transactionContext
        return ScopedTransaction(context: context, transaction: try context.beginTransaction())
    }
}

/// The role of a closure when a transaction is already active.
public enum TransactionNesting: Hashable, Sendable {
    /// A part of it.
    case join
    /// A part of it that is rolled back separately when its body throws.
    case savepoint
}
