// A value that a transaction can roll back.

import CompositeOperationsBasics

/// A value of a member. It is restored when the member's transaction or a savepoint is rolled back.
///
/// ``Transacted`` makes it a property. The first write in a transaction or savepoint saves the value; later writes cost nothing
/// extra. Writes from `onCommit` and `onRollback`, and to a member that has received one of the two, stop the process.
public final class TransactionalState<Value>: LoggedState {
    @usableFromInline var current: Value
    /// Storage for the value saved last, allocated separately at the first write: an optional value would need a lookup of its type
    /// at each access, and a uniquely referenced value must not be copied when it is changed in place.
    @exclusivity(unchecked) private var old: UnsafeMutablePointer<Value>?
    /// The values saved by the scopes around the innermost one.
    @exclusivity(unchecked) private var older: Saved<Value>?

    /// Creates state of the context's owner.
    public convenience init(_ value: Value, in context: TransactionContext) {
        self.init(value, outside: .trap)
        self.context = context
    }

    @usableFromInline
    init(_ value: Value, outside: OutsideWrite) {
        current = value
        super.init(outside: outside)
    }

    deinit {
        if savedIn != 0 { old?.deinitialize(count: 1) }
        old?.deallocate()
    }

    /// The current value; can be changed in place.
    public var value: Value {
        @inlinable get { current }
        @inlinable _modify {
            let own = prepare()
            var isWhole = false
            defer { if let own { finish(own, isWhole: isWhole) } }
            yield &current
            isWhole = true  // not after a throw
        }
    }

    /// The value from before the transaction.
    public var committed: Value {
        if savedIn == 0 { return current }
        guard var oldest = older else { return old!.pointee }
        while let next = oldest.older { oldest = next }
        return oldest.value
    }

    /// Assigns the value; outside a transaction, in a separate one.
    ///
    /// - Throws: the error of that transaction, and the value is unchanged; or ``TransactionError/anotherTransactionIsActive`` when
    ///   another task's transaction is active.
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

    /// Restores the value that `change` had left.
    fileprivate func put(back value: Value, of change: UInt64) {
        _ = prepare()
        nextChange = change
        replace(by: value)
    }

    /// The former value is released outside the access: its `deinit` may read the property.
    private func replace(by value: Value) {
        let gone = current
        current = value
        withExtendedLifetime(gone) {}
    }

    // MARK: The log

    override var ownProperty: AnyKeyPath { \TransactionalState<Value>.value }

    override func save() {
        let place = old ?? UnsafeMutablePointer.allocate(capacity: 1)
        old = place
        if savedIn != 0 { older = Saved(place.move(), in: savedIn, older) }
        place.initialize(to: current)
    }

    override func restore() {
        let place = old.unsafelyUnwrapped
        swap(&current, &place.pointee)
        // Released only when the state no longer holds any of it: `deinit` may read and write the property.
        let gone = place.move()
        if let outer = older {
            place.initialize(to: outer.value)
            savedIn = outer.scope
            older = outer.older
        } else {
            savedIn = 0
            nextChange = nil
        }
        withExtendedLifetime(gone) {}
    }

    // `savedIn` is 0 already, so the `deinit` of a saved value may read the property.
    override func forget() {
        old!.deinitialize(count: 1)
        if older != nil { forgetOlder() }
    }

    @inline(never)
    private func forgetOlder() {
        let gone = older
        older = nil
        withExtendedLifetime(gone) {}
    }

    override func change(of transaction: Transaction) -> PropertyChange {
        StateChange(self, old: committed, after: lastChange(after: transaction))
    }
}

/// A property of a member whose changes a rollback undoes.
///
/// Assigning it in the member's initialiser, before there is a context, is initialisation. `$name` is its
/// ``TransactionalState``.
@propertyWrapper public struct Transacted<Value> {
    @usableFromInline let state: TransactionalState<Value>

    /// Creates a property with a value, and the effect of a write outside a transaction.
    public init(wrappedValue: Value, outside: OutsideWrite = .trap) {
        state = TransactionalState(wrappedValue, outside: outside)
    }

    /// Only properties of classes can be transacted.
    @available(*, unavailable, message: "only a property of a class can be @Transacted")
    public var wrappedValue: Value {
        get { fatalError("Transacted: only a property of a class can be transacted") }
        // swift-format-ignore
        set { fatalError("Transacted: only a property of a class can be transacted") }
    }

    /// The state behind the property.
    @available(*, unavailable, message: "only a property of a class can be @Transacted")
    public var projectedValue: TransactionalState<Value> { state }

    /// The property of the enclosing object.
    @inlinable
    public static subscript<Owner: Transactable>(
        _enclosingInstance owner: Owner, wrapped property: ReferenceWritableKeyPath<Owner, Value>,
        storage storage: ReferenceWritableKeyPath<Owner, Self>
    ) -> Value {
        get { owner[keyPath: storage].state.current }
        _modify {
            let state = owner[keyPath: storage].state
            if !state.isBound { state.bind(to: owner, as: property) }
            yield &state.value
        }
    }

    /// The state behind the property of the enclosing object.
    @inlinable
    public static subscript<Owner: AnyObject>(
        _enclosingInstance owner: Owner, projected property: KeyPath<Owner, TransactionalState<Value>>,
        storage storage: ReferenceWritableKeyPath<Owner, Self>
    ) -> TransactionalState<Value> {
        let state = owner[keyPath: storage].state
        if !state.isBound { state.bind(to: owner, as: property) }
        return state
    }
}

/// A value that a scope saved, when a scope inside it has saved another value since.
private final class Saved<Value> {
    let value: Value
    let scope: UInt64
    let older: Saved?
    private let instance = Instance(.savedValues)

    init(_ value: Value, in scope: UInt64, _ older: Saved?) {
        self.value = value
        self.scope = scope
        self.older = older
    }
}

/// A change of a property by a committed transaction.
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
