// One active transaction: of one tree, or of several trees that go through each phase together.
//
//   I4  `phase` is `.body` exactly while no hook runs.
//   I5  a member's hooks are called only through `beginMember` and `end`, which call each hook once.
//   I6  only the code that opened the gates of all trees of the run reads or writes anything here.

import CompositeOperationsBasics

final class Run {
    @exclusivity(unchecked) private(set) var transaction = Transaction.any
    @exclusivity(unchecked) var phase = TransactionPhase.body
    private unowned(unsafe) var first: Tree?
    /// The other trees of a joint transaction; the first tree owns the run.
    private var others: [Tree] = []
    private(set) var isJoint = false

    /// The changes that a rollback undoes, in order.
    @exclusivity(unchecked) var log = Log()
    /// The parent of members that left, until the end of the transaction.
    let limbo = TransactionContext.limbo()
    /// The walks in progress; adjusted when members leave and move.
    var cursors: [Cursor] = []

    /// The innermost open savepoint, and the one set last; the transaction itself counts as one.
    @exclusivity(unchecked) var scope: UInt64 = 0
    var lastScope: UInt64 = 0
    /// Grows with every change that a validation might have to see.
    @exclusivity(unchecked) var changes: UInt64 = 0
    /// Grows when members move: a walk may have missed them.
    var moves: UInt64 = 0
    /// The error that the commit will throw: that of the `onBegin` of a member that began late, or `savepointsInterleave`.
    var doom: (any Error)?
    /// I14: no member had an `onBegin` when the transaction began. So all have begun, and none has a mark.
    @exclusivity(unchecked) private var isUnmarked = false
    /// See I8.
    var isTangled = false
    /// Set while a commit or a rollback releases objects, whose `deinit` may be a user's and may write. In a commit such a write
    /// stays; in a rollback it is undone with the rest.
    @exclusivity(unchecked) private(set) var isReleasing = false
    private let instance = Instance(.runs)

    init() { cursors.reserveCapacity(4) }

    var isActive: Bool { transaction != .any }

    func forEachTree(_ body: (Tree) throws -> Void) rethrows {
        guard let first else { return }
        try body(first)
        for tree in others { try body(tree) }
    }

    func takesPart(_ context: TransactionContext) -> Bool {
        guard isActive else { return false }
        return context.begunIn == transaction.number
            ? context.part == .takesPart : isUnmarked && context.treeReference != nil
    }

    /// Whether the context joined the transaction after the savepoint was set.
    func began(_ context: TransactionContext, since scope: UInt64) -> Bool {
        context.begunIn == transaction.number && context.begunAfter >= scope
    }

    func hasEnded(_ context: TransactionContext) -> Bool {
        context.begunIn == transaction.number && isActive && context.part == .ended
    }

    /// Whether the members below it may begin: to them, a member that the rollback of a savepoint ended is a parent like any
    /// other.
    private func hasBegun(_ context: TransactionContext) -> Bool {
        takesPart(context) || hasEnded(context)
    }

    func during<Result>(_ phase: TransactionPhase, _ body: () throws -> Result) rethrows -> Result {
        let outer = self.phase
        self.phase = phase
        defer { self.phase = outer }
        return try body()
    }

    /// Called by operations that are allowed while members begin and validate, but not while they end.
    func requireChangeable() throws {
        if phase == .commit || phase == .rollback { throw TransactionFault.reentrant(phase) }
    }

    // MARK: Begin

    /// Called when the gates of all trees are open for the transaction.
    func begin(_ transaction: Transaction, of trees: Trees) throws {
        self.transaction = transaction
        first = trees.first
        others = trees.others
        isJoint = trees.isJoint
        scope = transaction.number
        lastScope = scope
        isUnmarked = true
        forEachTree { tree in
            tree.learn()
            if tree.root?.below.contains(.begin) == true { isUnmarked = false }
        }
        do {
            if !isUnmarked { try during(.begin) { try beginAll() } }
            if let doom { throw doom }
        } catch {
            rollback()
            throw error
        }
    }

    private func beginAll() throws {
        var seen: UInt64
        repeat {
            seen = moves
            try forEachTree { if let root = $0.root { try forEachParentsFirst(from: root, beginMember) } }
        } while seen != moves
    }

    private func mark(_ context: TransactionContext, after scope: UInt64) {
        context.begunIn = transaction.number
        context.begunAfter = scope
    }

    /// Begins each member once, even when walks overlap. A member whose parent has not begun begins after the parent.
    private func beginMember(_ context: TransactionContext) throws {
        let isMarked = context.begunIn == transaction.number
        guard isMarked ? context.part == .absent : !isUnmarked else { return }
        if let parent = context.parent, !hasBegun(parent) { return }
        mark(context, after: lastScope)
        context.part = .beginning
        if context.hooks.contains(.begin) {
            do { try context.owner?.onBegin(transaction: transaction) } catch {
                context.part = .failedToBegin
                throw error
            }
        }
        // Set only now, so members that the hook created below this one begin in their turn, without recursion.
        context.part = .takesPart
        if isMarked, !context.hooks.contains(.rollback) { log.began(context) }
    }

    /// Adds a member that was created during the transaction.
    func join(_ context: TransactionContext) {
        guard isActive, phase != .commit, phase != .rollback else { return }
        changes += 1
        log.joined(context)
        beginLate(context)
    }

    /// Marks a context that was not in the tree when the transaction began.
    func came(_ context: TransactionContext) {
        guard isActive else { return }
        mark(context, after: lastScope)
        context.part = .absent
    }

    /// Begins a member at once, unless its parent has yet to begin.
    func beginLate(_ context: TransactionContext) {
        guard let parent = context.parent, hasBegun(parent) else { return }
        let seen = moves
        do {
            try during(.begin) {
                try forEachParentsFirst(from: context, beginMember)
                // A member that a hook moved may be anywhere.
                if seen != moves { try beginAll() }
            }
        } catch {
            doom = doom ?? error
        }
    }

    /// Visits members from `top` downwards, parents first. `visit` may change the tree.
    ///
    /// - Parameter hooks: visits only members that have any of these hooks, and their ancestors; nil: all members.
    func forEachParentsFirst(
        from top: TransactionContext, with hooks: Hooks? = nil,
        _ visit: (TransactionContext) throws -> Void
    ) rethrows {
        let index = cursors.count
        cursors.append(Cursor(node: top, top: top, hooks: hooks))
        defer { cursors.removeLast() }
        var current: TransactionContext? = top
        while let node = current {
            cursors[index].node = node
            cursors[index].descends = true
            try visit(node)
            current = cursors[index].next
        }
    }

    // MARK: Commit

    /// Validates, then keeps the changes. When validation throws, the transaction remains active.
    func commit() throws {
        try forEachTree { try $0.requireRoot() }
        try during(.validate) { try validate() }
        keep()
    }

    private func validate() throws {
        forEachTree { if !$0.failures.isEmpty { $0.failures = [] } }
        for _ in 1...16 {
            if let doom { throw doom }
            let before = changes
            try validateOnce()
            if changes == before { return }
        }
        throw TransactionFault.validationDoesNotSettle
    }

    private func validateOnce() throws {
        var firstError: (any Error)?
        let pass = Serial.next()
        try forEachTree { tree in
            guard let root = tree.root, root.below.contains(.validate) else { return }
            try forEachParentsFirst(from: root, with: .validate) { context in
                guard context.hooks.contains(.validate), takesPart(context), context.visitedIn != pass,
                    let owner = context.owner
                else { return }
                context.visitedIn = pass
                do { try owner.onValidateCommit() } catch {
                    tree.failures.append(ValidationFailure(member: owner, error: error))
                    firstError = firstError ?? error
                    if tree.validation == .failFast { throw firstError ?? error }
                }
            }
        }
        if let firstError { throw firstError }
    }

    private func keep() {
        var events: [TransactionChanges] = []
        if isObserved {
            let record = CommitRecord(self)
            forEachTree { events.append(record.changes(of: $0)) }
        }
        phase = .commit
        let transaction = transaction
        end(.commit) { $0.onCommit(transaction: transaction) }
        releasing {
            var kept = log.takeValues()
            for state in kept { state.keep(transaction) }
            kept.removeAll(keepingCapacity: true)
            log.keepRoom(of: kept)
        }
        clear { tree in
            if !tree.views.isEmpty { tree.publish() }
        } post: { tree in
            if !events.isEmpty { tree.observers.post(.committed(events.removeFirst())) }
        }
    }

    private var isObserved: Bool {
        var isWanted = false
        forEachTree { isWanted = isWanted || $0.observers.wantCommits }
        return isWanted
    }

    // MARK: Rollback

    func rollback() {
        phase = .rollback
        let transaction = transaction
        takeBack(to: .start)
        end(.rollback) { $0.onRollback(transaction: transaction) }
        clear { _ in
        } post: { tree in
            tree.observers.post(.rolledBack(transaction))
        }
    }

    private func releasing(_ body: () -> Void) {
        isReleasing = true
        body()
        isReleasing = false
    }

    func takeBack(to mark: Log.Mark) {
        releasing { while let value = log.popValue(to: mark) { value.restore() } }
        while let context = log.popLate(to: mark) {
            if takesPart(context) { context.part = .ended }
        }
        while let (context, place) = log.popMembership(to: mark) {
            switch place {
            case .joined: break
            case .below(let parent, let previous): relocate(context, below: parent, after: previous)
            case .outside:
                if context.parent !== limbo { relocate(context, below: limbo, after: limbo.lastChild) }
            }
        }
    }

    // MARK: End

    private func end(_ hook: Hooks, _ tell: (any Transactable) -> Void) {
        forEachTree { $0.root?.forEachChildrenFirst(with: hook) { end($0, hook, tell) } }
        var departed = limbo.firstChild
        while let top = departed {
            top.forEachChildrenFirst(with: hook) { end($0, hook, tell) }
            departed = top.nextSibling
        }
    }

    func end(_ context: TransactionContext, _ hook: Hooks, _ tell: (any Transactable) -> Void) {
        guard context.hooks.contains(hook), takesPart(context) else { return }
        context.part = .ended
        if let owner = context.owner { tell(owner) }
    }

    /// The trees are idle before observers are notified, and all observers are notified before a waiter is woken.
    private func clear(publish: (Tree) -> Void, post: (Tree) -> Void) {
        detachDeparted()
        releasing {
            _ = log.takeMembers()
        }
        (doom, isTangled) = (nil, false)
        transaction = .any
        guard let first else { return }
        let others = others
        self.first = nil
        self.others = []
        phase = .body
        func forEach(_ body: (Tree) -> Void) {
            body(first)
            for tree in others { body(tree) }
        }
        forEach { $0.close() }
        forEach(publish)
        forEach(post)
        tell(first, others)
        forEach { $0.line.wakeFirst() }
    }

    /// Claims all trees before notifying the first observer. So events of transactions that an observer ends follow later, in the
    /// other trees too.
    private func tell(_ first: Tree, _ others: [Tree]) {
        let isFirst = first.observers.claim()
        let claimed = others.filter { $0.observers.claim() }
        if isFirst { first.observers.deliver() }
        for tree in claimed { tree.observers.deliver() }
    }

    private func detachDeparted() {
        while let top = limbo.firstChild {
            // The log still holds the context.
            top.unlink()
            top.detach()
        }
    }
}
