// The changes of a commit, for its observers, and for code that undoes it.

import CompositeOperationsBasics

/// The changes of a commit to a tree: to logged state, and to its membership.
public struct TransactionChanges {
    /// One property.
    public typealias Change = (member: any Transactable, property: AnyKeyPath, old: Any, new: Any)

    /// The transaction that was committed.
    public let transaction: Transaction
    /// Each property once, in the order of their first writes. Properties of members that no longer exist are
    /// left out.
    public let changes: [Change]
    /// Members that were registered during the transaction and still take part.
    public let added: [any Transactable]
    /// Members that left, with the members below them, and were registered before the transaction.
    public let removed: [any Transactable]

    let record: CommitRecord

    /// A step that undoes the commit in all of its trees; nil if a member with unlogged state took part.
    ///
    /// The step holds the old and new values.
    public func undoStep() -> TransactionUndoStep? { record.isLogged ? TransactionUndoStep(record) : nil }
}

/// A property that was changed; a subclass knows its type.
class PropertyChange {
    enum Version { case old, new }
    var context: TransactionContext? { nil }
    var property: AnyKeyPath { fatalError("PropertyChange.property: a subclass knows it") }
    var old: Any { fatalError("PropertyChange.old: a subclass knows it") }
    var new: Any { fatalError("PropertyChange.new: a subclass knows it") }
    /// The property's last change before the commit, and after it.
    let before: UInt64
    let after: UInt64
    init(before: UInt64, after: UInt64) { (self.before, self.after) = (before, after) }
    /// The change that left the property as it is: a transaction that was committed and not undone.
    var lastChange: UInt64 { fatalError("PropertyChange.lastChange: a subclass knows it") }
    /// Sets the property to its value before or after the commit, in a transaction that undoes or redoes the
    /// commit.
    func write(_ version: Version) { fatalError("PropertyChange.write: a subclass does it") }
}

/// The changes of a run, taken before its log is emptied.
final class CommitRecord {
    let transaction: Transaction
    let changes: [PropertyChange]
    /// A member whose parent has changed. A nil parent means: in no tree.
    typealias Placement = (
        context: TransactionContext, old: TransactionContext?, new: TransactionContext?, tree: Tree
    )
    /// In the order of their first change.
    let placements: [Placement]
    let isLogged: Bool
    private let instance = Instance(.records)
    private let added: [TransactionContext]
    private let removed: [TransactionContext]
    /// Members that joined and left again: treated as if they had never been there.
    private let passing: Set<ObjectIdentifier>

    init(_ run: Run) {
        transaction = run.transaction
        var isLogged = true
        run.forEachTree { isLogged = isLogged && ($0.unlogged == 0 || !run.hasUnlogged($0)) }
        self.isLogged = isLogged

        var left: [TransactionContext] = []
        run.limbo.forEachBelow { if $0 !== run.limbo, $0.owner != nil { left.append($0) } }
        let gone = Set(left.map { ObjectIdentifier($0) })

        var added: [TransactionContext] = []
        var placements: [Placement] = []
        var known: Set<ObjectIdentifier> = []
        var came: Set<ObjectIdentifier> = []
        for (context, place) in run.log.places where known.insert(ObjectIdentifier(context)).inserted {
            let old: TransactionContext?
            switch place {
            case .joined, .outside:
                old = nil
                came.insert(ObjectIdentifier(context))
            case .below(let parent, _): old = parent
            }
            let isGone = gone.contains(ObjectIdentifier(context))
            // For a member that left with its parent, the parent's placement suffices.
            let new = context.parent === run.limbo ? nil : context.parent
            guard old !== new, old != nil || !isGone, run.takesPart(context), context.owner != nil,
                let tree = context.tree
            else { continue }
            if old == nil { added.append(context) }
            placements.append((context, old, new, tree))
        }
        self.added = added
        removed = left.filter { !came.contains(ObjectIdentifier($0)) }
        let passing = came.intersection(gone)
        self.passing = passing
        self.placements = placements
        var seen: Set<ObjectIdentifier> = []
        changes = run.log.values.compactMap { state in
            // A state that a savepoint saved as well is in the log more than once.
            guard seen.insert(ObjectIdentifier(state)).inserted else { return nil }
            let passes = state.context.map { passing.contains(ObjectIdentifier($0)) } ?? false
            return passes ? nil : state.change(of: run.transaction)
        }
    }

    /// Whether a member is in no tree: it left on its own, or with a parent that joined and left again.
    func isOutside(_ context: TransactionContext) -> Bool {
        context.tree == nil && (context.parent.map(passes) ?? true)
    }

    /// Whether the context joined and left again.
    func passes(_ context: TransactionContext) -> Bool { passing.contains(ObjectIdentifier(context)) }

    /// Called while the run is active, when members that left still belong to the tree.
    func changes(of tree: Tree) -> TransactionChanges {
        func owners(_ contexts: [TransactionContext]) -> [any Transactable] {
            contexts.compactMap { $0.tree === tree ? $0.owner : nil }
        }
        return TransactionChanges(
            transaction: transaction,
            changes: changes.compactMap { change in
                guard let context = change.context, context.tree === tree else { return nil }
                return context.owner.map { ($0, change.property, change.old, change.new) }
            },
            added: owners(added), removed: owners(removed), record: self)
    }
}
