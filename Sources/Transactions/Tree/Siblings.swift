// The links of a tree: each context has its parent, and those of its children that exist, in order of registration.
//
//   I1  a context is in the list of its parent, and in no other; without a parent, in none.
//   I2  a context that goes takes itself out: no list has a link to what is gone.

extension TransactionContext {
    /// Puts a context without a parent behind a child of this one; without `previous`, before all.
    func insert(_ child: TransactionContext, after previous: TransactionContext?) {
        let following = previous == nil ? firstChild : previous!.nextSibling
        child.parent = self
        child.previousSibling = previous
        child.nextSibling = following
        if let previous { previous.nextSibling = child } else { firstChild = child }
        if let following { following.previousSibling = child } else { lastChild = child }
        raise(child.below)
    }

    /// Takes it out of its parent's list, and returns the parent.
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

    /// Its first child with any of the hooks, or above one with them; so for the next sibling.
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

    /// The first below it, or itself, in the order that has children first.
    private func firstLeaf(with hooks: Hooks) -> TransactionContext {
        var node = self
        while let child = node.firstChild(with: hooks) { node = child }
        return node
    }

    /// The next behind it and all below it, as long as that is below `top`.
    func following(below top: TransactionContext, with hooks: Hooks? = nil) -> TransactionContext? {
        var node = self
        while node !== top {
            if let sibling = node.nextSibling(with: hooks) { return sibling }
            guard let parent = node.parent else { return nil }
            node = parent
        }
        return nil
    }

    /// Itself and all below, parents first; `visit` must not change the tree.
    func forEachBelow(_ visit: (TransactionContext) -> Void) {
        var current: TransactionContext? = self
        while let node = current {
            visit(node)
            current = node.firstChild ?? node.following(below: self)
        }
    }

    /// Visits the nodes from it downwards with any of the hooks, and all nodes above them, children first. `visit` may add members and
    /// let members go, but move none.
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

/// Where a walk is that has parents first, and during which members may leave and move.
struct Cursor {
    var node: TransactionContext
    /// Whether what is below the node comes next; otherwise it has been visited, or has left.
    var descends = true
    let top: TransactionContext
    /// The hooks to look for: the walk passes by where none of them is; nil: it goes everywhere.
    let hooks: Hooks?

    var next: TransactionContext? {
        if descends, let child = node.firstChild(with: hooks) { return child }
        return node.following(below: top, with: hooks)
    }

    /// Steps out of what is about to be taken away.
    mutating func avoid(_ leaving: TransactionContext) {
        guard leaving !== top, let parent = leaving.parent else { return }
        var isInside = false
        leaving.forEachBelow { if $0 === node { isInside = true } }
        // Of what leaves together with the walk's own top, the walk goes on.
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
