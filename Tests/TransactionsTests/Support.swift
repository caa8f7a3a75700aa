// Members that record the calls of their hooks, and run what a test gives them to run.

import CompositeOperationsTestSupport
import Glibc
import Transactions

func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * min(1, stressScale))) }

struct TestError: Error, Hashable {
    var number = 0
}

enum Hook: String, CaseIterable {
    case begin, validate, commit, rollback
}

/// The hook calls of all members that share the trace.
final class Trace {
    var calls: [String] = []
    func take() -> [String] {
        defer { calls = [] }
        return calls
    }
}

/// A member with hooks that a test can replace; without logged state.
class Member: Transactable {
    let name: String
    let trace: Trace
    private(set) var context: TransactionContext?
    var transactionContext: TransactionContext { context! }
    /// Called by hooks, after the call is in the trace.
    var onHook: (Hook) throws -> Void = { _ in }
    /// The error that validation throws.
    var failure: (any Error)?

    init(root name: String, _ trace: Trace = Trace()) {
        self.name = name
        self.trace = trace
        context = TransactionContext.createRoot(owner: self)
    }

    init(_ name: String, below parent: Member, onHook: @escaping (Hook) throws -> Void = { _ in }) {
        self.name = name
        trace = parent.trace
        self.onHook = onHook
        TransactionContext.createNode(owner: self, parent: parent) { context = $0 }
    }

    func called(_ hook: Hook) throws {
        trace.calls.append("\(hook) \(name)")
        try onHook(hook)
    }

    func onBegin(transaction: Transaction) throws { try called(.begin) }
    func onValidateCommit() throws {
        try called(.validate)
        if let failure { throw failure }
    }
    func onCommit(transaction: Transaction) { try! called(.commit) }
    func onRollback(transaction: Transaction) { try! called(.rollback) }
}

/// A member all of whose state is logged.
final class Logged: Member, LoggedTransactable {
    @Transacted var number = 0
    @Transacted var list: [Int] = []
    @Transacted(outside: .transact) var free = 0
    @Transacted var children: [Logged] = []
}

/// Calls a closure when deallocated.
final class Going {
    private let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
    deinit { body() }
}

/// A root that holds objects with side effects in their `deinit`.
final class Keeper: LoggedTransactable, TransactableDefaults {
    @Transacted var going: [Going] = []
    @Transacted(outside: .transact) var number = 0
    private var context: TransactionContext?
    var transactionContext: TransactionContext { context! }
    init() { context = TransactionContext.createRoot(owner: self) }
}

/// The fault or error that a call throws; nil if it throws none.
func thrown(_ body: () throws -> Void) -> (any Error)? {
    do { try body() } catch { return error }
    return nil
}

func fault(_ body: () throws -> Void) -> TransactionFault? { thrown(body) as? TransactionFault }
func refusal(_ body: () throws -> Void) -> TransactionError? { thrown(body) as? TransactionError }
