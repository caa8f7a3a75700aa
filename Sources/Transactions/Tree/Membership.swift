// Members that leave their tree, move within it, or move to another one.

import CompositeOperationsBasics

extension TransactionContext {
    /// Whether the member has left its tree for good.
    public var isDetached: Bool { tree == nil }

    /// Removes the member from its tree, with all below it.
    ///
    /// During a transaction it is no longer validated, and gets its `onCommit` after the others; a rollback puts it back
    /// where it was. Outside a transaction it leaves at once.
    ///
    /// - Throws: ``TransactionFault/detached`` when it has already left, ``TransactionFault/reentrant(_:)`` from a hook of
    ///   a commit or rollback, ``TransactionFault/ownedByAnotherTask``.
    /// - Precondition: the member is not the root.
    /// - Complexity: O(members below it).
    public func leave() throws {
        let tree = try attachedTree()
        demand(parent != nil, "TransactionContext.leave: a root cannot leave its tree")
        if tree.active == nil {
            unlink()
            detach()
        } else {
            try tree.requireChangeable()
            if parent !== tree.run.limbo { tree.run.place(self, below: tree.run.limbo) }
        }
    }

    /// Moves the member, with all below it, under another parent; it counts as newly registered there.
    ///
    /// A rollback puts it back where it was. It can move to another tree only while neither is active.
    ///
    /// - Throws: ``TransactionFault/cycle`` if the parent is the member itself or below it, ``TransactionFault/otherTree``
    ///   if the parent is in another tree and either tree is active, or if the member is a root; otherwise as ``leave()``.
    /// - Complexity: O(members below it).
    public func move(to parent: any Transactable) throws {
        let tree = try attachedTree()
        let above = parent.transactionContext
        let target = try above.attachedTree()
        var isBelow = false
        forEachBelow { if $0 === above { isBelow = true } }
        if isBelow { throw TransactionFault.cycle }
        guard self.parent != nil else { throw TransactionFault.otherTree }
        if target !== tree {
            guard tree.active == nil, target.active == nil else { throw TransactionFault.otherTree }
            unlink()
            detach()
            attach(to: target)
            above.insert(self, after: above.lastChild)
        } else if tree.active == nil {
            unlink()
            above.insert(self, after: above.lastChild)
        } else {
            try tree.requireChangeable()
            tree.run.place(self, below: above)
            // While members begin, the walk in progress begins the members that it has not reached yet.
            if tree.run.phase != .begin { tree.run.beginLate(self) }
        }
    }

    /// Detaches the member and all below it: afterwards they belong to no tree.
    func detach() {
        forEachBelow { context in
            context.tree?.forget(context)
            context.tree = nil
        }
    }

    func attach(to tree: Tree) {
        forEachBelow { context in
            context.tree = tree
            tree.count(context)
            tree.run.came(context)
        }
        learn()
    }
}

extension Tree {
    fileprivate func requireChangeable() throws {
        try run.requireChangeable()
        if isOwnedByTask, !isMine { throw TransactionFault.ownedByAnotherTask }
    }
}

extension Run {
    /// Moves a member to the end of a parent's children, and logs its former place for a rollback.
    func place(_ context: TransactionContext, below parent: TransactionContext) {
        let place = context.parent.map { Log.Place.below($0, after: context.previousSibling) } ?? .outside
        log.placed(context, from: place)
        relocate(
            context, below: parent,
            after: parent.lastChild === context ? context.previousSibling : parent.lastChild)
    }

    func relocate(
        _ context: TransactionContext, below parent: TransactionContext, after previous: TransactionContext?
    ) {
        for index in cursors.indices { cursors[index].avoid(context) }
        context.unlink()
        parent.insert(context, after: previous)
        changes += 1
        moves += 1
    }
}
