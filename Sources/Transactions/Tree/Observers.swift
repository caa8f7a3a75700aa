// The observers of a tree's commits and rollbacks.
//
//   I12  they are told when the tree is free again, so another thread may be at the next transaction, and tell of that: the
//        events and the observers are under a lock. Bodies are called, and released, outside of it.

@_spi(Faces) import CompositeOperationsBasics
import Synchronization

/// Ends what it stands for when it goes, or is cancelled.
public final class TransactionSubscription {
    private let observer: Observers.Observer

    init(_ observer: Observers.Observer) { self.observer = observer }

    deinit { cancel() }

    /// From now on nothing is told.
    public func cancel() { observer.cancel() }
}

final class Observers {
    enum Event {
        case committed(TransactionChanges)
        case rolledBack(Transaction)
    }

    final class Observer {
        /// Without a type a closure would be wrapped in another at each call.
        struct Body {
            let call: (Event) -> Void
        }

        /// For commits, or for rollbacks.
        let wantsCommits: Bool
        private let lock: Lock
        private var body: Body?
        private let instance = Instance(.observers)

        init(commits: Bool, _ lock: Lock, _ body: @escaping (Event) -> Void) {
            wantsCommits = commits
            self.lock = lock
            self.body = Body(call: body)
        }

        /// Under the lock.
        var isCancelled: Bool { body == nil }

        func tell(_ event: Event) {
            let body = lock.locked { self.body }
            body?.call(event)
        }

        func cancel() {
            // Released outside of the lock: `deinit` of what it captured may cancel, too.
            let gone = lock.locked {
                defer { body = nil }
                return body
            }
            withExtendedLifetime(gone) {}
        }
    }

    private let lock = Lock()
    private var observers: [Observer] = []
    private var pending = Notices<Event>()
    /// There has been one: a word to look at for trees without. Whoever has the gate sees what came before it was free.
    private let areThere = Atomic(false)

    var wantCommits: Bool {
        areThere.load(ordering: .acquiring)
            && lock.locked { observers.contains { $0.wantsCommits && !$0.isCancelled } }
    }

    func add(commits: Bool, _ body: @escaping (Event) -> Void) -> TransactionSubscription {
        let observer = Observer(commits: commits, lock, body)
        lock.locked {
            observers.removeAll { $0.isCancelled }
            observers.append(observer)
        }
        areThere.store(true, ordering: .releasing)
        return TransactionSubscription(observer)
    }

    /// Has an event told by the next ``deliver()``, or by the one that is under way.
    func post(_ event: Event) {
        guard areThere.load(ordering: .acquiring) else { return }
        lock.locked { if !observers.isEmpty { pending.append(event) } }
    }

    /// Whether the caller is to deliver, and nobody else meanwhile.
    func claim() -> Bool { areThere.load(ordering: .acquiring) && lock.locked { pending.claim() } }

    /// In order of registration; what is to be told of a transaction that an observer ends follows after the others have
    /// been told of this one. For who has a ``claim()``.
    func deliver() {
        // Taken out first: what goes with an event is anyone's, and its `deinit` may end a transaction.
        while let (event, observers) = next() {
            let isCommit = if case .committed = event { true } else { false }
            for observer in observers where observer.wantsCommits == isCommit { observer.tell(event) }
        }
    }

    private func next() -> (Event, [Observer])? {
        lock.locked { pending.next().map { ($0, observers) } }
    }
}

extension TransactionContext {
    /// Calls `body` after each commit of the tree, in order of registration, when the tree is idle again. It may begin
    /// transactions; what they tell follows.
    ///
    /// - Precondition: the member has not left its tree.
    public func didCommit(_ body: @escaping (TransactionChanges) -> Void) -> TransactionSubscription {
        observe(commits: true) { event in
            if case .committed(let changes) = event { body(changes) }
        }
    }

    /// Calls `body` after each rollback of the tree, also that of a begin that failed; as ``didCommit(_:)``.
    ///
    /// - Precondition: the member has not left its tree.
    public func didRollback(_ body: @escaping (Transaction) -> Void) -> TransactionSubscription {
        observe(commits: false) { event in
            if case .rolledBack(let transaction) = event { body(transaction) }
        }
    }

    private func observe(
        commits: Bool, _ body: @escaping (Observers.Event) -> Void
    ) -> TransactionSubscription {
        guard let tree else { fatalError("a member that left its tree cannot observe it") }
        return tree.observers.add(commits: commits, body)
    }
}
