// A value that a transaction can take back.
//
//   I7  what was saved of a value is a chain, the oldest last; it is empty while no transaction has written it.

import CompositeOperationsBasics

/// What happens when logged state is assigned outside of a transaction.
public enum OutsideWrite: Hashable, Sendable {
    /// The process stops, with a sentence.
    case trap
    /// The assignment is a transaction of its own. If that fails, the value is restored, and the process stops.
    case transact
}

/// A value that belongs to a member, and goes back when the member's transaction, or a savepoint, is rolled back.
///
/// ``Transacted`` makes it a property. The first write in a transaction or savepoint saves the value; later ones are free.
/// Writes from `onCommit` and `onRollback`, and to a member that had one of the two, stop the process.
public final class TransactionalState<Value> {
    fileprivate var current: Value
    fileprivate private(set) var context: TransactionContext?
    private let outside: OutsideWrite
    /// The transaction of the write that is under way. Not a variable of the accessor, whose frame would be allocated then.
    private var own: Transaction?
    fileprivate var last: Saved<Value>?
    /// Which change left the value as it is: a transaction that was kept and not taken back.
    fileprivate(set) var lastChange: UInt64 = 0
    /// What that will be, in a transaction that takes a change back or makes it again.
    fileprivate var nextChange: UInt64?
    private var boundProperty: AnyKeyPath?
    /// Made when somebody asks: to make a key path takes longer than to make the state.
    fileprivate var property: AnyKeyPath { boundProperty ?? \TransactionalState<Value>.value }
    private let instance = Instance(.states)

    /// Makes the state of the context's owner.
    public convenience init(_ value: Value, in context: TransactionContext) {
        self.init(value, outside: .trap)
        self.context = context
    }

    init(_ value: Value, outside: OutsideWrite) {
        current = value
        self.outside = outside
    }

    /// Until the owner has a context, assignments are its initialisation. One that left for good, or was replaced, may have
    /// another since.
    func bind(to owner: AnyObject, as property: @autoclosure () -> AnyKeyPath) {
        if let context, context.tree != nil, !context.isReplaced || last != nil { return }
        guard let found = Owners.context(of: owner), found !== context else { return }
        context = found
        boundProperty = property()
    }

    /// The value as it is now; changed in place.
    public var value: Value {
        get { current }
        _modify {
            prepare()
            var isWhole = false
            defer { finish(isWhole) }
            yield &current
            isWhole = true  // not after a throw
        }
    }

    /// The value from before the transaction.
    public var committed: Value {
        guard var oldest = last else { return current }
        while let older = oldest.previous { oldest = older }
        return oldest.old
    }

    /// Assigns; outside of a transaction, in one of its own.
    ///
    /// - Throws: what that transaction threw, and the value is as it was; or
    ///   ``TransactionError/anotherTransactionIsActive`` when the active one is another task's.
    public func set(_ value: Value) throws {
        guard let tree = context?.tree, tree.active == nil || tree.isOwnedByTask else {
            self.value = value
            return
        }
        guard try !tree.joins() else {
            self.value = value
            return
        }
        try context?.perform(.join) { self.value = value }
    }

    /// Makes the value what it was when `change` was its last change.
    fileprivate func put(back value: Value, of change: UInt64) {
        prepare()
        nextChange = change
        replace(by: value)
    }

    /// What was there is released outside of the access: its `deinit` may read the property.
    fileprivate func replace(by value: Value) {
        let gone = current
        current = value
        withExtendedLifetime(gone) {}
    }

    /// Saves what is about to be overwritten, and begins the transaction of its own that the write may need.
    private func prepare() {
        guard let context, let tree = context.tree else { return }
        if tree.active == nil {
            demand(outside == .transact, "a property was assigned outside of a transaction: \(property)")
            do { own = try tree.begin(.closure) } catch {
                fatalError("a property was assigned outside of a transaction, and none could begin: \(error)")
            }
        }
        demand(
            tree.isMine,
            "a property was assigned while a transaction of another task or thread is active, which could take that back: \(property)"
        )
        let run = tree.run
        if run.isReleasing {
            // Of what the commit has let go, `deinit` writes: that stays.
            if run.phase == .commit { return }
        } else {
            demandOpen(run, context)
        }
        run.changes += 1
        if last == nil || last!.scope < run.scope {
            let saved = Saved(self, scope: run.scope)
            last = saved
            run.log.saved(saved)
        }
    }

    private func demandOpen(_ run: Run, _ context: TransactionContext) {
        demand(
            run.phase != .commit && run.phase != .rollback,
            "a property was assigned while its transaction ended: \(property)")
        demand(
            !run.hasEnded(context),
            "a property was assigned of a member that was rolled back to a savepoint: \(property)")
    }

    /// - Parameter isWhole: false: whoever changes the value in place has thrown half-way.
    private func finish(_ isWhole: Bool) {
        guard let transaction = own else { return }
        own = nil
        guard let tree = context?.tree else { return }
        guard isWhole else { return tree.abandon(transaction) }
        do { try tree.close(transaction) } catch {
            fatalError("a property was assigned outside of a transaction, which was refused: \(error)")
        }
    }
}

/// A property of a member whose changes a rollback takes back.
///
/// Assigning it in the member's initialiser, before there is a context, is initialisation. `$name` is its
/// ``TransactionalState``.
@propertyWrapper public struct Transacted<Value> {
    private let state: TransactionalState<Value>

    /// A property with a value, and what a write outside of a transaction does.
    public init(wrappedValue: Value, outside: OutsideWrite = .trap) {
        state = TransactionalState(wrappedValue, outside: outside)
    }

    /// Properties of classes alone can be transacted.
    @available(*, unavailable, message: "only a property of a class can be @Transacted")
    public var wrappedValue: Value {
        get { fatalError("Transacted: only a property of a class can be transacted") }
        // swift-format-ignore
        set { fatalError("Transacted: only a property of a class can be transacted") }
    }

    /// The state behind the property.
    @available(*, unavailable, message: "only a property of a class can be @Transacted")
    public var projectedValue: TransactionalState<Value> { state }

    /// The property, as the class has it.
    public static subscript<Owner: Transactable>(
        _enclosingInstance owner: Owner, wrapped property: ReferenceWritableKeyPath<Owner, Value>,
        storage storage: ReferenceWritableKeyPath<Owner, Self>
    ) -> Value {
        get { owner[keyPath: storage].state.value }
        _modify {
            let state = owner[keyPath: storage].state
            state.bind(to: owner, as: property)
            yield &state.value
        }
    }

    /// The state behind the property, as the class has it.
    public static subscript<Owner: Transactable>(
        _enclosingInstance owner: Owner, projected property: KeyPath<Owner, TransactionalState<Value>>,
        storage storage: ReferenceWritableKeyPath<Owner, Self>
    ) -> TransactionalState<Value> {
        let state = owner[keyPath: storage].state
        state.bind(to: owner, as: property)
        return state
    }
}

/// What a property was before its first write in a scope.
private final class Saved<Value>: SavedValue {
    let state: TransactionalState<Value>
    let old: Value
    let previous: Saved?

    init(_ state: TransactionalState<Value>, scope: UInt64) {
        self.state = state
        old = state.current
        previous = state.last
        super.init(scope: scope)
    }

    override func restore() {
        state.last = previous
        if previous == nil { state.nextChange = nil }
        state.replace(by: old)
    }

    override func keep(_ transaction: Transaction) {
        state.last = nil
        guard previous == nil else { return }
        state.lastChange = lastChange(after: transaction)
        state.nextChange = nil
    }

    override func change(of transaction: Transaction) -> PropertyChange? {
        previous == nil ? StateChange(state, old: old, after: lastChange(after: transaction)) : nil
    }

    private func lastChange(after transaction: Transaction) -> UInt64 {
        state.nextChange ?? transaction.number
    }
}

/// A property that a transaction changed, and kept.
private final class StateChange<Value>: PropertyChange {
    private let state: TransactionalState<Value>
    private let oldValue: Value
    private let newValue: Value

    init(_ state: TransactionalState<Value>, old: Value, after: UInt64) {
        self.state = state
        oldValue = old
        newValue = state.current
        super.init(before: state.lastChange, after: after)
    }

    override var context: TransactionContext? { state.context }
    override var property: AnyKeyPath { state.property }
    override var old: Any { oldValue }
    override var new: Any { newValue }
    override var lastChange: UInt64 { state.lastChange }
    override func write(_ which: Version) {
        which == .old ? state.put(back: oldValue, of: before) : state.put(back: newValue, of: after)
    }
}
