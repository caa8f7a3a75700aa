// Who is told of a tree's commits and rollbacks.

@_spi(Faces) import CompositeOperationsBasics

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
        /// For commits, or for rollbacks.
        let wantsCommits: Bool
        private(set) var body: ((Event) -> Void)?
        private let instance = Instance(.observers)

        init(commits: Bool, _ body: @escaping (Event) -> Void) {
            wantsCommits = commits
            self.body = body
        }

        func cancel() {
            // Released outside of the access: `deinit` of what it captured may cancel, too.
            let gone = body
            body = nil
            withExtendedLifetime(gone) {}
        }
    }

    private var observers: [Observer] = []
    private var pending = Notices<Event>()

    var wantCommits: Bool { observers.contains { $0.wantsCommits && $0.body != nil } }

    func add(_ observer: Observer) -> TransactionSubscription {
        observers.removeAll { $0.body == nil }
        observers.append(observer)
        return TransactionSubscription(observer)
    }

    /// Has an event told by the next ``deliver()``, or by the one that is under way.
    func post(_ event: Event) {
        // Nothing is written when there is none: the gate is free, and another may be at it.
        if !observers.isEmpty { pending.append(event) }
    }

    /// Whether the caller is to deliver, and nobody else meanwhile.
    func claim() -> Bool { !observers.isEmpty && pending.claim() }

    /// In order of registration; what is to be told of a transaction that an observer ends follows after the others have
    /// been told of this one. For who has a ``claim()``.
    func deliver() {
        // Taken out first: what goes with an event is anyone's, and its `deinit` may end a transaction.
        while let event = pending.next() {
            let isCommit = if case .committed = event { true } else { false }
            for observer in observers where observer.wantsCommits == isCommit { observer.body?(event) }
        }
    }
}

extension TransactionContext {
    /// Calls `body` after each commit of the tree, in order of registration, when the tree is idle again. It may begin
    /// transactions; what they tell follows.
    ///
    /// - Precondition: the member has not left its tree.
    public func didCommit(_ body: @escaping (TransactionChanges) -> Void) -> TransactionSubscription {
        observe(
            Observers.Observer(commits: true) { event in
                if case .committed(let changes) = event { body(changes) }
            })
    }

    /// Calls `body` after each rollback of the tree, also that of a begin that failed; as ``didCommit(_:)``.
    ///
    /// - Precondition: the member has not left its tree.
    public func didRollback(_ body: @escaping (Transaction) -> Void) -> TransactionSubscription {
        observe(
            Observers.Observer(commits: false) { event in
                if case .rolledBack(let transaction) = event { body(transaction) }
            })
    }

    private func observe(_ observer: Observers.Observer) -> TransactionSubscription {
        guard let tree else { fatalError("a member that left its tree cannot observe it") }
        return tree.observers.add(observer)
    }
}
