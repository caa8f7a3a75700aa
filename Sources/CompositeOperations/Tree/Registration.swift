// Registration.swift - the block that registers the children of a composite, as the user passed it, not wrapped in
// another closure.

/// A registration block. Only its composite knows the types of its argument and its result: so an object that stores it
/// needs no type that is instantiated at run time.
struct Registration: Sendable {
    private enum Kind {
        case cascade, transaction
        // Of a composite without a value.
        case cascadeWithoutValue, transactionWithoutValue
    }

    private let kind: Kind
    private let block: AnyClosure

    // A struct for each type: a bare closure would be wrapped in another one when passed as a generic argument.
    private struct Cascade<Success: Sendable> {
        let block: @Sendable (CascadeScope) throws -> Results<Success>
    }

    private struct CascadeWithoutValue {
        let block: @Sendable (CascadeScope) throws -> Void
    }

    private struct Transaction<Success: Sendable> {
        let block: @Sendable (TransactionScope) throws -> Results<Success>
    }

    private struct TransactionWithoutValue {
        let block: @Sendable (TransactionScope) throws -> Void
    }

    static func cascade<Success>(
        _ block: @escaping @Sendable (CascadeScope) throws -> Results<Success>
    ) -> Registration {
        Registration(kind: .cascade, block: AnyClosure(Cascade(block: block)))
    }

    static func cascadeWithoutValue(
        _ block: @escaping @Sendable (CascadeScope) throws -> Void
    ) -> Registration {
        Registration(kind: .cascadeWithoutValue, block: AnyClosure(CascadeWithoutValue(block: block)))
    }

    static func transaction<Success>(
        _ block: @escaping @Sendable (TransactionScope) throws -> Results<Success>
    ) -> Registration {
        Registration(kind: .transaction, block: AnyClosure(Transaction(block: block)))
    }

    static func transactionWithoutValue(
        _ block: @escaping @Sendable (TransactionScope) throws -> Void
    ) -> Registration {
        Registration(
            kind: .transactionWithoutValue, block: AnyClosure(TransactionWithoutValue(block: block)))
    }

    /// Calls the block to register children. On the target.
    ///
    /// - Parameters:
    ///   - composite: the composite whose block it is.
    ///   - type: the type of the composite's value.
    /// - Returns: the children whose values make up the composite's value.
    @inline(__always)
    func call<Success>(
        for composite: AnyOperation, _ epoch: Int32, _ type: Success.Type
    ) throws -> Results<Success> {
        let cascade = CascadeScope(control: composite, epoch: epoch)
        let transaction = TransactionScope(control: composite, epoch: epoch)
        switch kind {
        case .cascade: return try block.typed(Cascade<Success>.self).block(cascade)
        case .transaction: return try block.typed(Transaction<Success>.self).block(transaction)
        case .cascadeWithoutValue: try block.typed(CascadeWithoutValue.self).block(cascade)
        case .transactionWithoutValue:
            try block.typed(TransactionWithoutValue.self).block(transaction)
        }
        return unsafeBitCast(Results<Void>.nothing, to: Results<Success>.self)
    }
}
