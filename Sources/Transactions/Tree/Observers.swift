// The observers of a tree's commits and rollbacks.
//
//   I12  observers are notified when the tree is free again, so another thread may be running the next transaction and
//        posting its events: a lock guards the events and the observers. Bodies are called and released outside the lock.

@_spi(Faces) import CompositeOperationsBasics
import Synchronization

/// The registration of an observer; it ends when the subscription is deallocated or cancelled.
public final class TransactionSubscription {
    private let observer: Observers.Observer

    init(_ observer: Observers.Observer) { self.observer = observer }

    deinit { cancel() }

    /// Ends the registration: the observer is no longer notified.
    public func cancel() { observer.cancel() }
}

final class Observers {
    enum Event {
        case committed(TransactionChanges)
        case rolledBack(Transaction)
    }

    final class Observer {
        /// A struct, because a bare closure would be wrapped in another closure at each call.
        struct Body {
            let call: (Event) -> Void
        }

        /// True: notified of commits; false: notified of rollbacks.
        let wantsCommits: Bool
        private let lock: Lock
        private var body: Body?
        private let instance = Instance(.observers)

        init(commits: Bool, _ lock: Lock, _ body: @escaping (Event) -> Void) {
            wantsCommits = commits
            self.lock = lock
            self.body = Body(call: body)
        }

        /// Read under the lock.
        var isCancelled: Bool { body == nil }

        func tell(_ event: Event) {
            let body = lock.locked { self.body }
            body?.call(event)
        }

        func cancel() {
            // Released outside the lock: the `deinit` of a captured object may cancel, too.
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
    /// Set by the first registration: a tree that never had an observer reads only this word. The holder of the gate sees
    /// every registration made before the gate became free.
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

    /// Queues an event for the next ``deliver()``, or for the one in progress.
    func post(_ event: Event) {
        guard areThere.load(ordering: .acquiring) else { return }
        lock.locked { if !observers.isEmpty { pending.append(event) } }
    }

    /// Whether the caller must deliver. If so, no other caller delivers meanwhile.
    func claim() -> Bool { areThere.load(ordering: .acquiring) && lock.locked { pending.claim() } }

    /// Notifies the observers in order of registration. When an observer ends a transaction, that event follows after all
    /// observers have been notified of the current one. Called only after ``claim()`` returned true.
    func deliver() {
        // Dequeued first: releasing an event may run a user's `deinit`, which may end a transaction.
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
    /// Calls `body` after each commit of the tree, in order of registration, when the tree is idle again. `body` may begin
    /// transactions; their notifications follow.
    ///
    /// - Precondition: the member has not left its tree.
    public func didCommit(_ body: @escaping (TransactionChanges) -> Void) -> TransactionSubscription {
        observe(commits: true) { event in
            if case .committed(let changes) = event { body(changes) }
        }
    }

    /// Calls `body` after each rollback of the tree, including that of a failed begin; otherwise as ``didCommit(_:)``.
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
