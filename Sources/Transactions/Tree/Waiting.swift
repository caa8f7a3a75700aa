// Tasks that wait for trees to be free, and the transactions that they open.
//
//   I10  a waiter enters the lines of all of its trees in one step, so any two waiters are in the same order everywhere. A
//        waiter that is first in all of its lines and finds the gates free begins.
//   I11  a waiter that leaves a line while the gate is free wakes the new first waiter: a wake-up is never lost with its
//        receiver.

import CompositeOperationsBasics
import Synchronization

/// How long a task waits for a tree to be free.
public enum TransactionWait: Hashable, Sendable {
    /// Until the tree is free, or the task is cancelled.
    case untilFree
    /// At most this long; then ``TransactionFault/timedOut`` is thrown.
    case atMost(Duration)
}

/// The transactions opened by the current task, or by a task whose task-local values it inherits.
enum OpenTransactions {
    struct Open: Sendable {
        let number: UInt64
        /// The serial numbers of its trees.
        let trees: [UInt64]
    }

    @TaskLocal static var all: [Open] = []

    static func contains(_ transaction: Transaction?) -> Bool {
        transaction.map { contains($0.number) } ?? false
    }

    static func contains(_ number: UInt64) -> Bool { all.contains { $0.number == number } }

    /// The serial numbers of the trees of all open transactions but one.
    static func serials(but transaction: Transaction) -> [UInt64] {
        all.filter { $0.number != transaction.number }.flatMap(\.trees)
    }

    /// All open transactions, and one more.
    static func and(_ transaction: Transaction, of trees: Trees) -> [Open] {
        all + [Open(number: transaction.number, trees: trees.serials)]
    }
}

/// The waiters for a tree, in order of arrival. Entering and leaving is O(1), amortised.
final class Line {
    /// May include waiters that have left; all before `head` have.
    private var waiters: [Waiter] = []
    private var head = 0
    private(set) var count = 0
    var first: Waiter? { head < waiters.count ? waiters[head] : nil }

    func add(_ waiter: Waiter) {
        waiters.append(waiter)
        count += 1
    }

    /// A waiter that leaves one line leaves all, in one step.
    func remove(_ waiter: Waiter) {
        waiter.hasLeft = true
        count -= 1
        while head < waiters.count, waiters[head].hasLeft { head += 1 }
        guard waiters.count > 2 * count else { return }
        waiters.removeAll { $0.hasLeft }
        head = 0
    }

    func wakeFirst() { first?.wake() }
}

/// A task that waits for a wake-up, which may come before it waits.
final class Waiter: @unchecked Sendable {
    private enum Phase: UInt8, AtomicRepresentable {
        case none, waits, woken
    }

    // Unchecked: written before `waits` is stored, read only by the caller that moves `phase` from `waits`.
    private var continuation: CheckedContinuation<Void, Never>?
    private let phase = Atomic(Phase.none)
    /// Written by the timer's task, which is in no isolation.
    private let late = Atomic(false)
    private let instance = Instance(.waiters)
    /// Used only by the lines.
    var hasLeft = false

    func reset() { phase.store(.none, ordering: .relaxed) }

    func wait(isolation: isolated (any Actor)?) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: isolation) { continuation in
                self.continuation = continuation
                let before = phase.compareExchange(
                    expected: .none, desired: .waits, ordering: .acquiringAndReleasing)
                if !before.exchanged { continuation.resume() }
            }
        } onCancel: {
            wake()
        }
    }

    /// Whether the time limit has passed.
    var isLate: Bool { late.load(ordering: .acquiring) }

    func timeIsOver() {
        late.store(true, ordering: .releasing)
        wake()
    }

    func wake() {
        if phase.exchange(.woken, ordering: .acquiringAndReleasing) == .waits { continuation?.resume() }
    }
}

extension Trees {
    /// Waits until all trees are free and earlier waiters have left; then begins.
    func beginWhenFree(
        _ transaction: Transaction, _ opener: Tree.Opener, waiting: TransactionWait,
        isolation: isolated (any Actor)?
    ) async throws {
        // The caller would wait for itself.
        guard allSatisfy({ !OpenTransactions.contains($0.active) }) else {
            throw TransactionError.anotherTransactionIsActive
        }
        if waiting == .untilFree, !allSatisfy({ !$0.isOpenedByHandHere }) { throw TransactionFault.deadlock }
        let waiter = Waiter()
        forEach { $0.line.add(waiter) }
        defer {
            forEach { tree in
                tree.line.remove(waiter)
                if tree.active == nil { tree.line.wakeFirst() }
            }
        }
        var end: ContinuousClock.Instant?
        if case .atMost(let duration) = waiting { end = .now + duration }
        var timer: Task<Void, Never>?
        defer { timer?.cancel() }
        var wait: Int?
        defer { if let wait { WaitGraph.leave(wait) } }
        while true {
            waiter.reset()
            if Task.isCancelled { throw CancellationError() }
            try forEach { try $0.requireRoot() }
            if allSatisfy({ $0.line.first === waiter && $0.active == nil }) {
                return try begin(transaction, opener)
            }
            if let end {
                if waiter.isLate || .now >= end { throw TransactionFault.timedOut }
                if timer == nil {
                    timer = Task {
                        do { try await Task.sleep(until: end, clock: .continuous) } catch { return }
                        waiter.timeIsOver()
                    }
                }
            }
            if wait == nil {
                wait = WaitGraph.enter(
                    wanting: serials, open: OpenTransactions.serials(but: transaction), hasLimit: end != nil)
                if wait == nil { throw TransactionFault.deadlock }
            }
            await waiter.wait(isolation: isolation)
        }
    }

    var serials: [UInt64] { [first.serial] + others.map(\.serial) }

    func performWhenFree<Result>(
        waiting: TransactionWait, isolation: isolated (any Actor)?, _ body: () async throws -> Result
    ) async throws -> Result {
        let transaction = Transaction(number: Serial.next())
        return try await OpenTransactions.$all.withValue(OpenTransactions.and(transaction, of: self)) {
            try await beginWhenFree(transaction, .task, waiting: waiting, isolation: isolation)
            let result: Result
            do {
                result = try await body()
                if first.isActive(transaction) { try Task.checkCancellation() }
            } catch {
                first.abandon(transaction)
                throw error
            }
            try first.close(transaction)
            return result
        }
    }
}

extension TransactionContext {
    func performWhenFree<Result>(
        joining: Transaction?, waiting: TransactionWait, nesting: TransactionNesting,
        isolation: isolated (any Actor)?, _ body: () async throws -> Result
    ) async throws -> Result {
        let tree = try attachedTree()
        let isOpenedHere = OpenTransactions.contains(tree.active)
        guard let active = tree.active, active == joining || isOpenedHere else {
            return try await Trees(tree).performWhenFree(waiting: waiting, isolation: isolation, body)
        }
        try tree.run.requireChangeable()
        if isOpenedHere { return try await tree.run.nested(nesting, in: tree, isolation: isolation, body) }
        return try await OpenTransactions.$all.withValue(OpenTransactions.and(active, of: Trees(tree))) {
            try await tree.run.nested(nesting, in: tree, isolation: isolation, body)
        }
    }
}

extension Run {
    fileprivate func nested<Result>(
        _ nesting: TransactionNesting, in tree: Tree, isolation: isolated (any Actor)?,
        _ body: () async throws -> Result
    ) async throws -> Result {
        guard nesting == .savepoint else { return try await body() }
        let mark = try setSavepoint(in: tree)
        let result: Result
        do { result = try await body() } catch {
            rollback(to: mark, in: tree)
            throw error
        }
        try release(mark, in: tree)
        return result
    }
}

extension Transactable {
    /// Runs an asynchronous body in a transaction, as soon as the tree is free: first come, first served.
    ///
    /// The body joins a transaction that the current task opened with this method, and the one named by `joining` if that is
    /// active. While the transaction is open, synchronous closures of other tasks throw
    /// ``TransactionError/anotherTransactionIsActive``, and it cannot be ended by hand from elsewhere. The call waits for a
    /// transaction that was begun by hand.
    ///
    /// - Throws: `CancellationError` if the task is cancelled while it waits or before the body returns, and all changes are
    ///   rolled back; ``TransactionFault/timedOut``; ``TransactionFault/deadlock``; otherwise as ``transaction(_:)``.
    @discardableResult
    public func withTransaction<Result>(
        joining: Transaction? = nil, waiting: TransactionWait = .untilFree,
        nesting: TransactionNesting = .join,
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async throws -> Result {
        try await transactionContext.performWhenFree(
            joining: joining, waiting: waiting, nesting: nesting, isolation: isolation, body)
    }

    /// Begins a transaction by hand as soon as the tree is free: first come, first served.
    ///
    /// - Throws: `CancellationError`, ``TransactionFault/timedOut``; ``TransactionError/anotherTransactionIsActive`` inside a
    ///   `withTransaction` of the same tree, where the task would wait for itself; otherwise as ``beginTransaction()``.
    @discardableResult
    public func beginTransactionWhenFree(
        waiting: TransactionWait = .untilFree, isolation: isolated (any Actor)? = #isolation
    ) async throws -> Transaction {
        let transaction = Transaction(number: Serial.next())
        try await Trees(transactionContext.attachedTree())
            .beginWhenFree(transaction, .byHand, waiting: waiting, isolation: isolation)
        return transaction
    }
}

/// Runs an asynchronous body in one transaction of the trees of all `members`, as soon as all are free.
///
/// The call is refused inside a transaction that the current task opened on some of the trees, but not on all.
///
/// - Throws: as ``jointTransaction(over:_:)`` and ``Transactable/withTransaction(joining:waiting:nesting:isolation:_:)``.
@discardableResult
public func withJointTransaction<Result>(
    over members: [any Transactable], waiting: TransactionWait = .untilFree,
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
) async throws -> Result {
    guard let trees = try Trees(of: members) else { return try await body() }
    if OpenTransactions.contains(trees.first.active), try trees.join() {
        return try await body()
    }
    return try await trees.performWhenFree(waiting: waiting, isolation: isolation, body)
}
