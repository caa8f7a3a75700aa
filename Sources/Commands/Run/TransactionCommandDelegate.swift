// TransactionCommandDelegate.swift - the delegate, notified of the end of a run.

internal import Runs

/// Notified once of how a run ended: exactly one of the two methods is called.
///
/// A delegate cannot throw, and is called under no lock. It is retained until that call, unless its command holds it
/// weakly.
public protocol TransactionCommandDelegate: AnyObject, Sendable {
    /// `execute` returned.
    func commandTransactionDidSucceed(_ transaction: CommandTransaction)
    /// `execute` threw `error`, or was never called.
    func commandTransaction(_ transaction: CommandTransaction, didFailWithError error: any Error)
}

/// As ``TransactionCommandDelegate``, but always notified on the main actor.
@MainActor
public protocol MainActorTransactionCommandDelegate: AnyObject, Sendable {
    /// `execute` returned.
    func commandTransactionDidSucceed(_ transaction: CommandTransaction)
    /// `execute` threw `error`, or was never called.
    func commandTransaction(_ transaction: CommandTransaction, didFailWithError error: any Error)
}

/// How a command holds its delegate.
public enum DelegateOwnership: Hashable, Sendable {
    /// The command retains the delegate until it has been notified.
    case strongUntilTerminal
    /// The command does not retain the delegate: a deallocated delegate is not notified.
    case weak
}

/// A delegate, held strongly or weakly, and where it is notified.
struct DelegateReference: Sendable {
    private enum Kind: Sendable {
        case strong(any TransactionCommandDelegate)
        case weak(WeakDelegate)
        case strongOnMain(any MainActorTransactionCommandDelegate)
        case weakOnMain(WeakMainDelegate)
    }

    private let kind: Kind
    let delivery: Delivery

    init(_ delegate: any TransactionCommandDelegate, _ options: TransactionOptions) {
        kind = options.delegateOwnership == .weak ? .weak(WeakDelegate(delegate)) : .strong(delegate)
        delivery = options.delivery
    }

    init(_ delegate: any MainActorTransactionCommandDelegate, _ options: TransactionOptions) {
        kind =
            options.delegateOwnership == .weak
            ? .weakOnMain(WeakMainDelegate(delegate)) : .strongOnMain(delegate)
        delivery = .main
    }

    func tell(_ transaction: CommandTransaction, _ error: (any Error)?) {
        switch kind {
        case .strong(let delegate): Self.tell(delegate, transaction, error)
        case .weak(let reference):
            if let delegate = reference.delegate { Self.tell(delegate, transaction, error) }
        case .strongOnMain(let delegate):
            MainActor.assumeIsolated { Self.tellOnMain(delegate, transaction, error) }
        case .weakOnMain(let reference):
            MainActor.assumeIsolated {
                if let delegate = reference.delegate { Self.tellOnMain(delegate, transaction, error) }
            }
        }
    }

    private static func tell(
        _ delegate: any TransactionCommandDelegate, _ transaction: CommandTransaction,
        _ error: (any Error)?
    ) {
        if let error {
            delegate.commandTransaction(transaction, didFailWithError: error)
        } else {
            delegate.commandTransactionDidSucceed(transaction)
        }
    }

    @MainActor
    private static func tellOnMain(
        _ delegate: any MainActorTransactionCommandDelegate, _ transaction: CommandTransaction,
        _ error: (any Error)?
    ) {
        if let error {
            delegate.commandTransaction(transaction, didFailWithError: error)
        } else {
            delegate.commandTransactionDidSucceed(transaction)
        }
    }
}

private struct WeakDelegate: Sendable {
    weak let delegate: (any TransactionCommandDelegate)?
    init(_ delegate: any TransactionCommandDelegate) { self.delegate = delegate }
}

private struct WeakMainDelegate: Sendable {
    weak let delegate: (any MainActorTransactionCommandDelegate)?
    init(_ delegate: any MainActorTransactionCommandDelegate) { self.delegate = delegate }
}
