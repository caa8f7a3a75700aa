// The links of a tree: from each context to its parent, and to its living children, in order of registration.
//
//   I1  a context is in the list of its parent, and in no other; without a parent, in none.
//   I2  a context unlinks itself when it is deallocated: no list has a dangling link.

extension TransactionContext {
    /// Inserts a context without a parent after a child of this one; without `previous`, before all children.
    func insert(_ child: TransactionContext, after previous: TransactionContext?) {
        let following = previous == nil ? firstChild : previous!.nextSibling
        child.parent = self
        child.previousSibling = previous
        child.nextSibling = following
        if let previous { previous.nextSibling = child } else { firstChild = child }
        if let following { following.previousSibling = child } else { lastChild = child }
        raise(child.below)
    }

    /// Removes the context from its parent's list, and returns the parent.
    @discardableResult func unlink() -> TransactionContext? {
        guard let parent else { return nil }
        if let previousSibling {
            previousSibling.nextSibling = nextSibling
        } else {
            parent.firstChild = nextSibling
        }
        if let nextSibling {
            nextSibling.previousSibling = previousSibling
        } else {
            parent.lastChild = previousSibling
        }
        previousSibling = nil
        nextSibling = nil
        self.parent = nil
        return parent
    }

    /// The first child that has any of the hooks, or has a descendant with one; `nextSibling(with:)` likewise.
    func firstChild(with hooks: Hooks?) -> TransactionContext? {
        TransactionContext.first(firstChild, with: hooks)
    }

    func nextSibling(with hooks: Hooks?) -> TransactionContext? {
        TransactionContext.first(nextSibling, with: hooks)
    }

    private static func first(_ start: TransactionContext?, with hooks: Hooks?) -> TransactionContext? {
        guard let hooks else { return start }
        var node = start
        while let context = node, context.below.isDisjoint(with: hooks) { node = context.nextSibling }
        return node
    }

    /// The first node in children-first order: a node below this one, or this one.
    private func firstLeaf(with hooks: Hooks) -> TransactionContext {
        var node = self
        while let child = node.firstChild(with: hooks) { node = child }
        return node
    }

    /// The next node after this node's whole subtree, parents first, if that node is below `top`.
    func following(below top: TransactionContext, with hooks: Hooks? = nil) -> TransactionContext? {
        var node = self
        while node !== top {
            if let sibling = node.nextSibling(with: hooks) { return sibling }
            guard let parent = node.parent else { return nil }
            node = parent
        }
        return nil
    }

    /// Visits this node and all below it, parents first; `visit` must not change the tree.
    func forEachBelow(_ visit: (TransactionContext) -> Void) {
        var current: TransactionContext? = self
        while let node = current {
            visit(node)
            current = node.firstChild ?? node.following(below: self)
        }
    }

    /// Visits, children first, the nodes from this one downwards that have any of the hooks, and their ancestors. `visit` may add and
    /// release members, but move none.
    func forEachChildrenFirst(with hooks: Hooks, _ visit: (TransactionContext) -> Void) {
        if below.isDisjoint(with: hooks) { return }
        var node = firstLeaf(with: hooks)
        while true {
            visit(node)
            if node === self { return }
            if let sibling = node.nextSibling(with: hooks) {
                node = sibling.firstLeaf(with: hooks)
            } else if let parent = node.parent {
                node = parent
            } else {
                return
            }
        }
    }
}

/// The position of a parents-first walk, during which members may leave and move.
struct Cursor {
    var node: TransactionContext
    /// Whether the members below the node come next; otherwise they have been visited, or have left.
    var descends = true
    let top: TransactionContext
    /// The hooks to look for: the walk skips subtrees that have none of them; nil: it visits all members.
    let hooks: Hooks?

    var next: TransactionContext? {
        if descends, let child = node.firstChild(with: hooks) { return child }
        return node.following(below: top, with: hooks)
    }

    /// Moves the cursor out of a subtree that is about to be removed.
    mutating func avoid(_ leaving: TransactionContext) {
        guard leaving !== top, let parent = leaving.parent else { return }
        var isInside = false
        leaving.forEachBelow { if $0 === node { isInside = true } }
        // When the walk's own top leaves with the subtree, the walk continues inside it.
        var topIsInside = false
        leaving.forEachBelow { if $0 === top { topIsInside = true } }
        guard isInside, !topIsInside else { return }
        if let previous = leaving.previousSibling {
            self.node = previous
            descends = false
        } else {
            self.node = parent
            descends = true
        }
    }
}
