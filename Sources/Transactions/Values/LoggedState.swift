// State that a transaction can roll back, whatever the type of its value: when it may be written, and how the log treats it.
//
//   I7  a state is in the log once for each scope that has saved its value. The value saved by the innermost scope is in the
//       state itself, the values saved by the other scopes are in a chain, innermost first.
//
// No user code can reach one of these fields while it is being accessed, and the gate decides which code may access them (I6).
// So exclusivity is not checked at run time.

import CompositeOperationsBasics

/// How logged state treats an assignment outside a transaction.
public enum OutsideWrite: Hashable, Sendable {
    /// The process stops, with a message.
    case trap
    /// The assignment is a separate transaction. If that fails, the value is restored, and the process stops.
    case transact
}

/// State of a member, whatever its type: see ``TransactionalState``.
public class LoggedState {
    /// Retained.
    @exclusivity(unchecked) private final var contextReference: Unmanaged<TransactionContext>?
    /// The innermost scope that has saved the value; 0: no active transaction has written it.
    @exclusivity(unchecked) final var savedIn: UInt64 = 0
    /// The change that left the value as it is, made by a transaction that was committed and not undone.
    @exclusivity(unchecked) final var lastChange: UInt64 = 0
    /// The next `lastChange`, in a transaction that undoes or redoes a change.
    @exclusivity(unchecked) final var nextChange: UInt64?
    @exclusivity(unchecked) private final var boundProperty: AnyKeyPath?
    private let outside: OutsideWrite
    private let instance = Instance(.states)

    @usableFromInline
    init(outside: OutsideWrite) { self.outside = outside }

    deinit { contextReference?.release() }

    /// Nil until the member has a context.
    final var context: TransactionContext? {
        get { contextReference?.takeUnretainedValue() }
        set {
            let former = contextReference
            contextReference = newValue.map { .passRetained($0) }
            former?.release()
        }
    }

    /// Created on demand: creating a key path takes longer than creating the state.
    final var property: AnyKeyPath { boundProperty ?? ownProperty }

    // MARK: Overridden by subclasses

    var ownProperty: AnyKeyPath { fatalError("LoggedState.ownProperty: a subclass knows it") }
    /// Saves the value, in addition to values saved before.
    func save() { fatalError("LoggedState.save: a subclass does it") }
    /// Restores the value that was saved last.
    func restore() { fatalError("LoggedState.restore: a subclass does it") }
    /// Discards the saved values.
    func forget() { fatalError("LoggedState.forget: a subclass does it") }
    /// A transaction's change to the value.
    func change(of transaction: Transaction) -> PropertyChange {
        fatalError("LoggedState.change: a subclass knows it")
    }

    // MARK: The member

    /// Whether its member's context is in a tree, and has not been replaced.
    @usableFromInline
    final var isBound: Bool {
        contextReference?._withUnsafeGuaranteedRef {
            $0.treeReference != nil && (!$0.isReplaced || savedIn != 0)
        } ?? false
    }

    /// Binds the state to the owner's context, if there is one: until then, assignments are initialisation. An owner whose
    /// context left its tree for good, or was replaced, may have another one.
    @usableFromInline
    final func bind(to owner: AnyObject, as property: @autoclosure () -> AnyKeyPath) {
        guard let found = Owners.context(of: owner), found !== context else { return }
        context = found
        boundProperty = property()
    }

    // MARK: Writes

    /// Saves the value that is about to be overwritten, and begins a transaction just for the write if one is needed.
    ///
    /// - Returns: that transaction.
    @usableFromInline
    final func prepare() -> Transaction? {
        contextReference?._withUnsafeGuaranteedRef { context in
            context.treeReference?._withUnsafeGuaranteedRef { tree in
                guard tree.isActiveHere else { return prepareOutside(context, tree) }
                tree.runReference._withUnsafeGuaranteedRef { save(context, $0) }
                return nil
            }
        } ?? nil
    }

    /// Called while no transaction is active, or one of another task or thread is.
    @inline(never)
    private final func prepareOutside(_ context: TransactionContext, _ tree: Tree) -> Transaction? {
        demand(
            tree.active == nil,
            "a property was assigned while a transaction of another task or thread is active, which could undo the write: \(property)"
        )
        demand(outside == .transact, "a property was assigned outside of a transaction: \(property)")
        do {
            let own = try tree.begin(.closure)
            save(context, tree.run)
            return own
        } catch {
            fatalError("a property was assigned outside of a transaction, and none could begin: \(error)")
        }
    }

    @inline(__always)
    private final func save(_ context: TransactionContext, _ run: Run) {
        if run.phase == .commit || run.phase == .rollback || run.hasEnded(context) {
            guard saveAtAnEnd(context, run) else { return }
        }
        run.changes += 1
        if savedIn < run.scope {
            save()
            savedIn = run.scope
            run.log.saved(self)
        }
    }

    /// - Returns: false if the write is to stay.
    @inline(never)
    private final func saveAtAnEnd(_ context: TransactionContext, _ run: Run) -> Bool {
        // The `deinit` of an object that the end of the transaction releases may write.
        if run.isReleasing { return run.phase != .commit }
        demand(
            run.phase != .commit && run.phase != .rollback,
            "a property was assigned while its transaction ended: \(property)")
        demand(
            !run.hasEnded(context),
            "a member was rolled back to a savepoint, then its property was assigned: \(property)")
        return true
    }

    /// Ends the transaction that was begun just for the write.
    ///
    /// - Parameter isWhole: false if the code that changes the value in place threw half-way.
    @usableFromInline
    @inline(never)
    final func finish(_ own: Transaction, isWhole: Bool) {
        guard let tree = context?.tree else { return }
        guard isWhole else { return tree.abandon(own) }
        do { try tree.close(own) } catch {
            fatalError("a property was assigned outside of a transaction, which was refused: \(error)")
        }
    }

    // MARK: Ends

    /// The transaction is committed. A state that the log lists more than once then has nothing left to discard.
    @inline(__always)
    final func keep(_ transaction: Transaction) {
        guard savedIn != 0 else { return }
        savedIn = 0
        lastChange = lastChange(after: transaction)
        nextChange = nil
        forget()
    }

    final func lastChange(after transaction: Transaction) -> UInt64 { nextChange ?? transaction.number }
}
