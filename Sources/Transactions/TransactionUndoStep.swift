// A commit that can be taken back, and made again.

/// Takes back what a commit did, and does it again: each a transaction of its own, with validation.
///
/// Members that the commit added leave, and those that left are put back; they count as newly registered.
public final class TransactionUndoStep {
    private let record: CommitRecord
    private var lastTransaction: UInt64
    private var isUndone = false

    init(_ record: CommitRecord) {
        self.record = record
        lastTransaction = record.transaction.number
    }

    /// Takes the changes back.
    ///
    /// - Throws: ``TransactionFault/outOfOrder`` when they are taken back already, or when something later changed one of
    ///   the properties, or moved one of the members; what a transaction of these trees throws, and nothing is changed.
    public func undo() throws { try apply(.old) }

    /// Makes the changes that were taken back.
    ///
    /// - Throws: as ``undo()``.
    public func redo() throws { try apply(.new) }

    private func apply(_ version: PropertyChange.Version) throws {
        guard isUndone == (version == .new),
            record.changes.allSatisfy({ $0.lastChange == lastTransaction }),
            record.placements.allSatisfy({ isAsLeft($0.context, $0.old, $0.new) })
        else { throw TransactionFault.outOfOrder }
        guard let trees else { return }
        var own: UInt64 = 0
        try trees.perform {
            own = trees.first.run.transaction.number
            let placements = record.placements
            switch version {
            case .old: for (context, old, _) in placements.reversed() { try place(context, below: old) }
            case .new: for (context, _, new) in placements { try place(context, below: new) }
            }
            for change in record.changes { change.write(version) }
        }
        lastTransaction = own
        isUndone.toggle()
    }

    private var trees: Trees? {
        var trees: [UInt64: Tree] = [:]
        func add(_ context: TransactionContext?) {
            if let tree = context?.tree { trees[tree.serial] = tree }
        }
        for change in record.changes { add(change.context) }
        for (context, old, new) in record.placements {
            add(context)
            add(old)
            add(new)
        }
        return Trees(trees.values)
    }

    /// Whether the member is where the commit, or the last undo, put it. One that left with its parent is below it still.
    private func isAsLeft(
        _ context: TransactionContext, _ old: TransactionContext?, _ new: TransactionContext?
    ) -> Bool {
        context.owner == nil || context.parent === (isUndone ? old : new)
    }

    private func place(_ context: TransactionContext, below parent: TransactionContext?) throws {
        guard context.owner != nil else { return }
        if let parent {
            var isBelow = false
            context.forEachBelow { if $0 === parent { isBelow = true } }
            guard let tree = parent.tree, !isBelow, context.tree == nil || context.tree === tree else {
                throw TransactionFault.outOfOrder
            }
            if context.tree == nil {
                tree.run.putBack(context, below: parent, in: tree)
            } else {
                tree.run.place(context, below: parent)
            }
        } else if let run = context.tree?.run {
            run.place(context, below: run.limbo)
        }
    }
}
