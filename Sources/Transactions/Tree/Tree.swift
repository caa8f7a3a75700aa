// The state of a root: the gate, how many members there are of each kind, and the observers.
//
//   I3  the gate's word is 0, or names the transaction and its opener; only the caller that moves it from 0 may begin.
//   P1  opening the gate acquires what closing it released: the effects of the last transaction are visible
//       to the next.

internal import CInspection
import CompositeOperationsBasics
import Glibc
import Synchronization

final class Tree {
    /// Ascending in the order of creation.
    let serial = Serial.next()
    private let gate = Atomic<UInt64>(0)
    /// The thread of an open synchronous closure.
    private let thread = Atomic<UInt>(0)

    /// The task that began the transaction by hand; 0: none.
    private let handOf = Atomic<Int>(0)

    /// The root holds the tree, and is the last of the contexts to be deallocated.
    unowned(unsafe) var root: TransactionContext?
    /// The tree's own run, or in a joint transaction the run of the first tree.
    var run: Run { runReference.takeUnretainedValue() }
    /// As ``run``, but unmanaged: for code that need not retain the run.
    @exclusivity(unchecked) private(set) var runReference: Unmanaged<Run>
    private let ownRun = Run()

    var validation = ValidationMode.failFast
    var failures: [ValidationFailure] = []
    let observers = Observers()
    var views: [any PublishedView] = []
    let line = Line()
    /// Transactions that were rolled back by hand in the body of a closure that has not noticed yet.
    private var rolledBackInsideBody: Set<Transaction> = []
    private let instance = Instance(.trees)

    /// See ``learn()``.
    var knowledge = MemberType.knowledge
    var departed = 0
    var lastType: (id: ObjectIdentifier, type: MemberType)?

    private(set) var members = 0
    private(set) var unlogged = 0
    private(set) var withSavepoints = 0
    /// How many members keep state that no savepoint can restore; some of them may no longer have an owner.
    private(set) var withoutSavepoints = 0

    init() { runReference = .passRetained(ownRun) }

    deinit { runReference.release() }

    // MARK: Members

    func count(_ context: TransactionContext) { count(context, 1) }

    func forget(_ context: TransactionContext) {
        count(context, -1)
        if !context.hooks.isEmpty { departed += 1 }
        if root === context { root = nil }
    }

    private func count(_ context: TransactionContext, _ one: Int) {
        members += one
        if !context.kind.contains(.logged) { unlogged += one }
        if context.kind.contains(.savepoints) { withSavepoints += one }
        if context.kind.isEmpty { withoutSavepoints += one }
    }

    // MARK: The gate

    enum Opener: UInt64 {
        case byHand, closure, task
    }

    private static func opener(of word: UInt64) -> Opener { Opener(rawValue: word & 3) ?? .byHand }
    private static var thisThread: UInt { UInt(pthread_self()) }

    private static var thisTask: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }

    /// Whether the current task has begun a transaction by hand that is still active.
    var isOpenedByHandHere: Bool {
        let hand = handOf.load(ordering: .relaxed)
        return active != nil && isOpenedByHand && hand != 0 && hand == Tree.thisTask
    }

    var active: Transaction? {
        let word = gate.load(ordering: .acquiring)
        return word == 0 ? nil : Transaction(number: word >> 2)
    }

    func isActive(_ transaction: Transaction) -> Bool { active == transaction }

    func open(_ transaction: Transaction, by opener: Opener) -> Bool {
        let word = transaction.number << 2 | opener.rawValue
        guard gate.compareExchange(expected: 0, desired: word, ordering: .acquiringAndReleasing).exchanged
        else {
            return false
        }
        switch opener {
        case .byHand: handOf.store(Tree.thisTask, ordering: .relaxed)
        case .closure: thread.store(Tree.thisThread, ordering: .relaxed)
        case .task: break
        }
        if inspection_is_on() { keepForDumps(transaction, opener) }
        return true
    }

    func close() {
        if inspection_is_on() { forgetForDumps() }
        adopt(ownRun)
        thread.store(0, ordering: .relaxed)
        gate.store(0, ordering: .releasing)
    }

    /// Whether a transaction is active and the calling code belongs to it.
    @inline(__always)
    var isActiveHere: Bool {
        let word = gate.load(ordering: .acquiring)
        return word != 0 && isMine(word)
    }

    /// Whether the calling code belongs to the active transaction, if there is one.
    var isMine: Bool { isMine(gate.load(ordering: .acquiring)) }

    private func isMine(_ word: UInt64) -> Bool {
        switch Tree.opener(of: word) {
        case .byHand: return true
        case .closure: return thread.load(ordering: .relaxed) == Tree.thisThread
        case .task: return OpenTransactions.contains(word >> 2)
        }
    }

    var isOwnedByTask: Bool { Tree.opener(of: gate.load(ordering: .acquiring)) == .task }

    func requireRoot() throws {
        guard root?.owner != nil else { throw TransactionFault.detached }
    }

    /// Computes the values of the views. A computation, and its release, run user code, so both happen outside any
    /// access to `views`.
    func publish() {
        let known = views
        var areAllRead = true
        for view in known where !view.publish() { areAllRead = false }
        if !areAllRead { views = views.filter { $0.isRead } }
        withExtendedLifetime(known) {}
    }

    // MARK: Calls

    func begin(_ opener: Opener) throws -> Transaction {
        let transaction = Transaction(number: Serial.next())
        try Trees(self).begin(transaction, opener)
        return transaction
    }

    /// Uses the run of a joint transaction until the gate is closed.
    func adopt(_ run: Run) {
        if runReference.toOpaque() == Unmanaged.passUnretained(run).toOpaque() { return }
        let former = runReference
        runReference = .passRetained(run)
        former.release()
    }

    func commit(_ descriptor: Transaction) throws {
        try judge(descriptor, needsRoot: true)
        try run.commit()
    }

    func rollback(_ descriptor: Transaction) throws {
        try judge(descriptor, needsRoot: false)
        if !isOpenedByHand || run.scope != run.transaction.number {
            rolledBackInsideBody.insert(run.transaction)
        }
        run.rollback()
    }

    func wasRolledBackInsideBody(_ transaction: Transaction, forget: Bool) -> Bool {
        if rolledBackInsideBody.isEmpty { return false }
        return forget
            ? rolledBackInsideBody.remove(transaction) != nil : rolledBackInsideBody.contains(transaction)
    }

    var isOpenedByHand: Bool { Tree.opener(of: gate.load(ordering: .acquiring)) == .byHand }

    /// Checks a call by hand: descriptor, then activity, then re-entrancy, then ownership.
    private func judge(_ descriptor: Transaction, needsRoot: Bool) throws {
        let active = active
        if descriptor != .any, descriptor != active { throw TransactionError.wrongTransactionDescriptor }
        if needsRoot { try requireRoot() }
        guard active != nil else { throw TransactionError.transactionIsNotActive }
        if run.phase != .body { throw TransactionFault.reentrant(run.phase) }
        if run.isJoint { throw TransactionFault.partOfJointTransaction }
        if isOwnedByTask, !isMine { throw TransactionFault.ownedByAnotherTask }
        assert(isMine, "a transaction was ended from another thread than its closure's")
    }

    /// Whether a closure joins the active transaction.
    func joins() throws -> Bool {
        // Read once: another thread's transaction may end at any time.
        let word = gate.load(ordering: .acquiring)
        guard word != 0 else { return false }
        guard isMine(word) else { throw TransactionError.anotherTransactionIsActive }
        try run.requireChangeable()
        return true
    }
}
