// The protocol that the members of a tree conform to, and the calls that each of them gets.

/// A member of a tree of objects that change together.
///
/// A member keeps the context that it made at the end of its initialiser. There are no default hooks: one would
/// hide a hook whose name is misspelt. See ``TransactableDefaults`` to do without them.
///
/// A tree lives in one isolation. Its members are used from there alone; ``CommittedView`` is for others.
public protocol Transactable: AnyObject {
    /// Ties the member into its tree; not asked for before the member has made it.
    var transactionContext: TransactionContext { get }
    /// A transaction begins. Parents are told first.
    ///
    /// - Throws: what keeps the transaction from beginning; the caller of begin receives it.
    func onBegin(transaction: Transaction) throws
    /// The changes are to be kept. Parents are asked first; a change made here leads to another pass.
    ///
    /// - Throws: why they cannot be kept; the caller of commit receives it.
    func onValidateCommit() throws
    /// All members are valid, and the changes are kept. Children are told first.
    func onCommit(transaction: Transaction)
    /// The changes are taken back; logged state is restored already. Children are told first.
    func onRollback(transaction: Transaction)
}

extension Transactable {
    /// Whether the member's tree has an active transaction. O(1).
    public var transactionIsActive: Bool { transactionContext.transactionIsActive }

    /// The transaction that is active in the member's tree. O(1).
    public var activeTransaction: Transaction? { transactionContext.activeTransaction }

    /// Begins a transaction of the member's tree, by hand.
    ///
    /// - Throws: ``TransactionError/anotherTransactionIsActive``, ``TransactionFault/detached``, or what a hook threw,
    ///   after which the tree is idle again.
    /// - Complexity: O(members); O(1) where no member has an `onBegin` of its own.
    @discardableResult public func beginTransaction() throws -> Transaction {
        try transactionContext.beginTransaction()
    }

    /// Validates all members, then keeps the changes.
    ///
    /// - Throws: what validation threw, and the transaction is still active; or why the call was refused.
    /// - Complexity: O(members whose class has the hook, those above them, and the siblings of all these).
    public func commitTransaction(_ transaction: Transaction = Transaction.any) throws {
        try transactionContext.commitTransaction(transaction)
    }

    /// Takes the changes back.
    ///
    /// - Throws: why the call was refused; nothing else can fail.
    /// - Complexity: O(members whose class has the hook, those above them, and the siblings of all these).
    public func rollbackTransaction(_ transaction: Transaction = Transaction.any) throws {
        try transactionContext.rollbackTransaction(transaction)
    }

    /// Runs `body` in a transaction; inside of an active one, as a part of it.
    ///
    /// When `body` or validation throws, all is taken back, and that very error is thrown. A closure that joined does
    /// nothing of this: what it changed stays if an outer body catches its error. See ``transaction(nesting:_:)``.
    ///
    /// - Throws: what `body` or validation throws; ``TransactionError/anotherTransactionIsActive``, where one is active that it
    ///   cannot join; ``TransactionFault/detached``, ``TransactionFault/reentrant(_:)``, ``TransactionFault/rolledBackInsideBody``
    ///   and ``TransactionFault/validationDoesNotSettle``.
    @discardableResult public func transaction<Result>(_ body: () throws -> Result) throws -> Result {
        try transactionContext.perform(.join, body)
    }

    /// The same as ``transaction(_:)``, by its older name.
    @discardableResult public func doTransactionally<Result>(_ body: () throws -> Result) throws -> Result {
        try transactionContext.perform(.join, body)
    }

    /// Runs `body` in a transaction, and says what happens inside of an active one.
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

    /// Begins a transaction that is rolled back when its handle goes, unless it was committed.
    ///
    /// - Throws: as ``beginTransaction()``.
    public func scopedTransaction() throws -> ScopedTransaction {
        let context = transactionContext
        return ScopedTransaction(context: context, transaction: try context.beginTransaction())
    }
}

/// The role of a closure when a transaction is active already.
public enum TransactionNesting: Hashable, Sendable {
    /// A part of it.
    case join
    /// A part of it that is taken back by itself when its body throws.
    case savepoint
}
