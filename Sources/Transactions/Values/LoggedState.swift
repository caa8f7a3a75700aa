// State that a transaction can take back, without the type of its value: what may be written when, and what the log does with it.
//
//   I7  a state is in the log once for each scope that has saved its value. What the innermost of them saved is in the state
//       itself, what the others saved is a chain, the innermost first.
//
// None of these fields can be reached by anyone's code while it is accessed, and the gate says whose they are (I6): so exclusivity
// is not checked at run time.

import CompositeOperationsBasics

/// How logged state treats an assignment outside of a transaction.
public enum OutsideWrite: Hashable, Sendable {
    /// The process stops, with a sentence.
    case trap
    /// The assignment is a transaction of its own. If that fails, the value is restored, and the process stops.
    case transact
}

/// State of a member, of whatever type: see ``TransactionalState``.
public class LoggedState {
    /// With a reference.
    @exclusivity(unchecked) private final var contextReference: Unmanaged<TransactionContext>?
    /// The innermost scope that has saved the value; 0: no transaction that is active has written it.
    @exclusivity(unchecked) final var savedIn: UInt64 = 0
    /// Which change left the value as it is: a transaction that was kept and not taken back.
    @exclusivity(unchecked) final var lastChange: UInt64 = 0
    /// The next `lastChange`, in a transaction that takes a change back or makes it again.
    @exclusivity(unchecked) final var nextChange: UInt64?
    @exclusivity(unchecked) private final var boundProperty: AnyKeyPath?
    private let outside: OutsideWrite
    private let instance = Instance(.states)

    @usableFromInline
    init(outside: OutsideWrite) { self.outside = outside }

    deinit { contextReference?.release() }

    /// Nil as long as its member has none.
    final var context: TransactionContext? {
        get { contextReference?.takeUnretainedValue() }
        set {
            let former = contextReference
            contextReference = newValue.map { .passRetained($0) }
            former?.release()
        }
    }

    /// Made when somebody asks: to make a key path takes longer than to make the state.
    final var property: AnyKeyPath { boundProperty ?? ownProperty }

    // MARK: What the subclass knows of the value

    var ownProperty: AnyKeyPath { fatalError("LoggedState.ownProperty: a subclass knows it") }
    /// Saves the value, beside what was saved of it.
    func save() { fatalError("LoggedState.save: a subclass does it") }
    /// Makes the value what was saved last.
    func restore() { fatalError("LoggedState.restore: a subclass does it") }
    /// Forgets what was saved.
    func forget() { fatalError("LoggedState.forget: a subclass does it") }
    /// Its fate in a transaction.
    func change(of transaction: Transaction) -> PropertyChange {
        fatalError("LoggedState.change: a subclass knows it")
    }

    // MARK: The member

    /// Whether it has a member that is in a tree, and no other one since.
    @usableFromInline
    final var isBound: Bool {
        contextReference?._withUnsafeGuaranteedRef {
            $0.treeReference != nil && (!$0.isReplaced || savedIn != 0)
        } ?? false
    }

    /// Until the owner has a context, assignments are its initialisation. One that left for good, or was replaced, may have
    /// another since.
    @usableFromInline
    final func bind(to owner: AnyObject, as property: @autoclosure () -> AnyKeyPath) {
        guard let found = Owners.context(of: owner), found !== context else { return }
        context = found
        boundProperty = property()
    }

    // MARK: Writes

    /// Saves what is about to be overwritten, and begins the transaction of its own that the write may need.
    ///
    /// - Returns: that one.
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

    /// No transaction is active, or one of another task or thread.
    @inline(never)
    private final func prepareOutside(_ context: TransactionContext, _ tree: Tree) -> Transaction? {
        demand(
            tree.active == nil,
            "a property was assigned while a transaction of another task or thread is active, which could take that back: \(property)"
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

    /// - Returns: false: what is written stays.
    @inline(never)
    private final func saveAtAnEnd(_ context: TransactionContext, _ run: Run) -> Bool {
        // Of what the end lets go, `deinit` writes.
        if run.isReleasing { return run.phase != .commit }
        demand(
            run.phase != .commit && run.phase != .rollback,
            "a property was assigned while its transaction ended: \(property)")
        demand(
            !run.hasEnded(context),
            "a property was assigned of a member that was rolled back to a savepoint: \(property)")
        return true
    }

    /// Ends the transaction that the write had of its own.
    ///
    /// - Parameter isWhole: false: whoever changes the value in place has thrown half-way.
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

    /// The transaction is kept. It may have been in the log before, and forgotten.
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
