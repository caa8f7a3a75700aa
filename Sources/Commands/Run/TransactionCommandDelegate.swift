// TransactionCommandDelegate.swift - who is told of the end of a run.

internal import Runs

/// Is told once how a run ended: with exactly one of the two.
///
/// It cannot throw, and is called under no lock. It is held until then, unless its command is told to hold it weakly.
public protocol TransactionCommandDelegate: AnyObject, Sendable {
    /// `execute` returned.
    func commandTransactionDidSucceed(_ transaction: CommandTransaction)
    /// `execute` threw `error`, or was never called.
    func commandTransaction(_ transaction: CommandTransaction, didFailWithError error: any Error)
}

/// As ``TransactionCommandDelegate``, always told on the main actor.
@MainActor
public protocol MainActorTransactionCommandDelegate: AnyObject, Sendable {
    /// `execute` returned.
    func commandTransactionDidSucceed(_ transaction: CommandTransaction)
    /// `execute` threw `error`, or was never called.
    func commandTransaction(_ transaction: CommandTransaction, didFailWithError error: any Error)
}

/// How a command holds its delegate.
public enum DelegateOwnership: Hashable, Sendable {
    /// The command, until the delegate has been told.
    case strongUntilTerminal
    /// Not the command: a delegate that is gone is not told.
    case weak
}

/// A delegate, held or not, and where it is told.
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
