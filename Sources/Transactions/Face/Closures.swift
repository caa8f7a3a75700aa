// Closures that run as transactions, as joined parts of one, or as savepoints in one.

extension TransactionContext {
    func perform<Result>(_ nesting: TransactionNesting, _ body: () throws -> Result) throws -> Result {
        let tree = try attachedTree()
        guard try tree.joins() else { return try Trees(tree).perform(body) }
        return try tree.run.nested(nesting, in: tree, body)
    }
}

extension Run {
    func nested<Result>(_ nesting: TransactionNesting, in tree: Tree, _ body: () throws -> Result) throws
        -> Result
    {
        guard nesting == .savepoint else { return try body() }
        let mark = try setSavepoint(in: tree)
        let result: Result
        do { result = try body() } catch {
            rollback(to: mark, in: tree)
            throw error
        }
        try release(mark, in: tree)
        return result
    }
}

extension Tree {
    /// The body of a closure threw: rolls back, unless the body ended the transaction by hand.
    func abandon(_ transaction: Transaction) {
        if isActive(transaction) {
            run.rollback()
        } else {
            _ = wasRolledBackInsideBody(transaction, forget: true)
        }
    }

    /// The body of a closure returned: commits the transaction if it is still active, and rolls it back when
    /// that fails.
    func close(_ transaction: Transaction) throws {
        if isActive(transaction) {
            do {
                try run.commit()
            } catch {
                run.rollback()
                throw error
            }
        } else if wasRolledBackInsideBody(transaction, forget: true) {
            throw TransactionFault.rolledBackInsideBody
        }
    }
}

/// A transaction that is rolled back when its handle is destroyed, unless it was ended.
public struct ScopedTransaction: ~Copyable {
    private var context: TransactionContext?

    /// The descriptor.
    public let transaction: Transaction

    init(context: TransactionContext, transaction: Transaction) {
        self.context = context
        self.transaction = transaction
    }

    /// Validates, then keeps the changes.
    ///
    /// - Throws: the error of validation, after the transaction has been rolled back; or the reason the call
    ///   was refused.
    public consuming func commit() throws {
        guard let context = context.take() else { return }
        do { try context.commitTransaction(transaction) } catch {
            if context.activeTransaction == transaction { try? context.rollbackTransaction(transaction) }
            throw error
        }
    }

    /// Rolls the changes back.
    public consuming func rollback() {}

    deinit {
        if let context, context.activeTransaction == transaction {
            try? context.rollbackTransaction(transaction)
        }
    }
}
