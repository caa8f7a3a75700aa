// A commit that can be undone and redone.

import CompositeOperationsBasics

/// Undoes and redoes a commit, each time in a separate transaction with validation.
///
/// An undo removes members that the commit added, and puts back members that left; these count as newly registered.
public final class TransactionUndoStep {
    private let record: CommitRecord
    private var isUndone = false
    private let instance = Instance(.undoSteps)

    init(_ record: CommitRecord) { self.record = record }

    /// Undoes the changes.
    ///
    /// - Throws: ``TransactionFault/outOfOrder`` if they are already undone, or if a later change that is not itself undone
    ///   affected one of the properties, moved one of the members, or gave it another context; or the error of a transaction
    ///   of these trees. Nothing is changed then.
    public func undo() throws { try apply(.old) }

    /// Redoes the changes that were undone.
    ///
    /// - Throws: as ``undo()``.
    public func redo() throws { try apply(.new) }

    private func apply(_ version: PropertyChange.Version) throws {
        guard isUndone == (version == .new),
            record.changes.allSatisfy(isAsLeft),
            record.placements.allSatisfy(isAsLeft)
        else { throw TransactionFault.outOfOrder }
        guard let trees else {
            try requireMembers()
            isUndone.toggle()
            return
        }
        try trees.perform {
            try place(version, in: trees.first.run)
            try requireMembers()
            for change in record.changes { change.write(version) }
        }
        isUndone.toggle()
    }

    private var trees: Trees? {
        var trees: [UInt64: Tree] = [:]
        func add(_ context: TransactionContext?) {
            if let tree = context?.tree { trees[tree.serial] = tree }
        }
        for change in record.changes { add(change.context) }
        for placement in record.placements {
            let tree = placement.context.tree ?? placement.tree
            trees[tree.serial] = tree
            add(placement.old)
            add(placement.new)
        }
        return Trees(trees.values)
    }

    /// Whether the property is unchanged since, except by changes that were undone.
    private func isAsLeft(_ change: PropertyChange) -> Bool {
        change.context?.owner == nil || change.lastChange == (isUndone ? change.before : change.after)
    }

    /// Whether the member is where the commit, or the last undo, put it. A member that left with its parent is still below
    /// it.
    private func isAsLeft(_ placement: CommitRecord.Placement) -> Bool {
        guard placement.context.owner != nil else { return true }
        let parent = isUndone ? placement.old : placement.new
        if let parent, record.passes(parent) { return record.isOutside(placement.context) }
        return placement.context.parent === parent
    }

    /// Throws if an object has left its tree: a write to it could not be rolled back.
    private func requireMembers() throws {
        let areThere = record.changes.allSatisfy { $0.context?.owner == nil || $0.context?.tree != nil }
        guard areThere else { throw TransactionFault.outOfOrder }
    }

    /// First puts all members into the limbo: one may belong below another that is not yet in its place.
    private func place(_ version: PropertyChange.Version, in run: Run) throws {
        var moved = record.placements.filter { $0.context.owner != nil }
        if version == .old { moved.reverse() }
        for (context, _, _, tree) in moved where record.isOutside(context) {
            try requireNoOther(context)
            context.attach(to: tree)
            run.place(context, below: run.limbo)
        }
        for (context, _, _, _) in moved where context.parent !== run.limbo {
            guard context.tree != nil else { throw TransactionFault.outOfOrder }
            run.place(context, below: run.limbo)
        }
        for placement in moved {
            guard let parent = version == .old ? placement.old : placement.new, !record.passes(parent) else {
                continue
            }
            try place(placement.context, below: parent, in: run)
        }
    }

    /// Since the member left, its owner may have been given another context that is in a tree. An owner may have only one of
    /// these.
    private func requireNoOther(_ context: TransactionContext) throws {
        var areAlone = true
        context.forEachBelow { each in
            guard let owner = each.owner, let known = Owners.context(of: owner), known !== each else {
                return
            }
            if known.tree != nil { areAlone = false }
        }
        if !areAlone { throw TransactionFault.outOfOrder }
    }

    private func place(_ context: TransactionContext, below parent: TransactionContext, in run: Run) throws {
        var isBelow = false
        context.forEachBelow { if $0 === parent { isBelow = true } }
        guard let tree = parent.tree, context.tree === tree, !isBelow else {
            throw TransactionFault.outOfOrder
        }
        run.place(context, below: parent)
        if !run.takesPart(context) { run.beginLate(context) }
    }
}
