// Registration.swift - the block that registers the children of a composite, as the user gave it: no closure around it.

/// A registration block.
enum Registration<Success: Sendable>: Sendable {
    case cascade(@Sendable (CascadeScope) throws -> Results<Success>)
    case transaction(@Sendable (TransactionScope) throws -> Results<Success>)
    // Where `Success` is `Void`.
    case cascadeWithoutValue(@Sendable (CascadeScope) throws -> Void)
    case transactionWithoutValue(@Sendable (TransactionScope) throws -> Void)

    /// Has it register children. On the target.
    ///
    /// - Returns: what the value is made of.
    func call(for composite: AnyOperation, _ epoch: Int32) throws -> Results<Success> {
        switch self {
        case .cascade(let block): return try block(CascadeScope(control: composite, epoch: epoch))
        case .transaction(let block): return try block(TransactionScope(control: composite, epoch: epoch))
        case .cascadeWithoutValue(let block): try block(CascadeScope(control: composite, epoch: epoch))
        case .transactionWithoutValue(let block):
            try block(TransactionScope(control: composite, epoch: epoch))
        }
        return unsafeBitCast(Results<Void>.nothing, to: Results<Success>.self)
    }
}
