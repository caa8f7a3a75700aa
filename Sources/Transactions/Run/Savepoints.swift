// Savepoints: marks in a transaction. A transaction can be rolled back to a mark instead of to its beginning.
//
//   I8  savepoints end in the reverse of the order in which they were set. If one does not, because two child tasks have set one
//       each, the changes of the two tasks cannot be separated. The run is then tangled: none of its savepoints can end any more,
//       and the run is rolled back as a whole.

import CompositeOperationsBasics

extension Run {
    struct SavepointMark {
        fileprivate let log: Log.Mark
        fileprivate let transaction: Transaction
        fileprivate let scope: UInt64
        fileprivate let outer: UInt64
        fileprivate let doom: (any Error)?
        fileprivate let changes: UInt64
        /// No enclosing closure will check how the transaction ended.
        fileprivate let isOutermost: Bool
    }

    /// - Complexity: O(1), unless members have savepoint hooks.
    func setSavepoint(in tree: Tree) throws -> SavepointMark {
        if isTangled { throw TransactionFault.savepointsInterleave }
        try forEachTree { tree in
            if tree.withoutSavepoints > 0, lacksSavepoints(tree) {
                throw TransactionFault.savepointUnsupported
            }
        }
        let mark = SavepointMark(
            log: log.mark, transaction: transaction, scope: Serial.next(), outer: scope, doom: doom,
            changes: changes,
            isOutermost: scope == transaction.number && tree.isOpenedByHand)
        scope = mark.scope
        lastScope = mark.scope
        if wantSavepoints {
            during(.begin) {
                func tell(_ context: TransactionContext) {
                    guard context.markedIn != mark.scope else { return }
                    context.markedIn = mark.scope
                    hooks(of: context, since: mark)?.onSavepoint(Savepoint(number: mark.scope))
                }
                forEachTree {
                    if let root = $0.root { forEachParentsFirst(from: root, with: .savepoints, tell) }
                }
                forEachParentsFirst(from: limbo, with: .savepoints, tell)
            }
        }
        return mark
    }

    private func lacksSavepoints(_ tree: Tree) -> Bool { hasMember(of: tree) { $0.isEmpty } }

    func hasUnlogged(_ tree: Tree) -> Bool { hasMember(of: tree) { !$0.contains(.logged) } }

    /// The counts of a tree are upper bounds: they do not change when an owner is deallocated while members below still need its
    /// context.
    private func hasMember(of tree: Tree, _ matches: (MemberKind) -> Bool) -> Bool {
        var hasOne = false
        func look(_ context: TransactionContext) {
            if context.tree === tree, matches(context.kind), context.owner != nil { hasOne = true }
        }
        tree.root?.forEachBelow(look)
        limbo.forEachBelow(look)
        return hasOne
    }

    private var wantSavepoints: Bool {
        var want = false
        forEachTree { want = want || $0.withSavepoints > 0 }
        return want
    }

    /// The hooks of a member that had begun when the savepoint was set.
    private func hooks(of context: TransactionContext, since mark: SavepointMark)
        -> (any SavepointTransactable)?
    {
        guard context.kind.contains(.savepoints), takesPart(context), !began(context, since: mark.scope)
        else {
            return nil
        }
        return context.owner as? any SavepointTransactable
    }

    private func forEachMember(with hooks: Hooks, _ visit: (TransactionContext) -> Void) {
        forEachTree { $0.root?.forEachChildrenFirst(with: hooks, visit) }
        limbo.forEachChildrenFirst(with: hooks, visit)
    }

    private enum End { case closes, isTangled, hasGone }

    /// Ends the savepoint if it is still there: a body may have ended the transaction by hand.
    private func end(_ mark: SavepointMark) -> End {
        guard transaction == mark.transaction else { return .hasGone }
        if scope != mark.scope, !isTangled {
            isTangled = true
            doom = doom ?? TransactionFault.savepointsInterleave
        }
        if isTangled { return .isTangled }
        scope = mark.outer
        return .closes
    }

    /// - Complexity: O(1), unless members have savepoint hooks.
    func release(_ mark: SavepointMark, in tree: Tree) throws {
        switch end(mark) {
        case .closes: break
        case .isTangled: throw TransactionFault.savepointsInterleave
        case .hasGone:
            if tree.wasRolledBackInsideBody(mark.transaction, forget: mark.isOutermost) {
                throw TransactionFault.rolledBackInsideBody
            }
            return
        }
        guard wantSavepoints else { return }
        during(.commit) {
            forEachMember(with: .savepoints) {
                hooks(of: $0, since: mark)?.onRelease(Savepoint(number: mark.scope))
            }
        }
    }

    /// Undoes all changes since the mark; members that have begun since then take no further part.
    func rollback(to mark: SavepointMark, in tree: Tree) {
        switch end(mark) {
        case .closes: break
        case .isTangled: return
        case .hasGone:
            _ = tree.wasRolledBackInsideBody(mark.transaction, forget: mark.isOutermost)
            return
        }
        doom = mark.doom
        during(.rollback) {
            takeBack(to: mark.log)
            // Changes that a validation makes and rolls back need no further pass.
            changes = mark.changes
            forEachMember(with: [.rollback, .savepoints]) { context in
                if takesPart(context), began(context, since: mark.scope) {
                    end(context, .rollback) { $0.onRollback(transaction: transaction) }
                } else {
                    hooks(of: context, since: mark)?.onRollback(to: Savepoint(number: mark.scope))
                }
            }
        }
    }
}
