// AnyOperation+End.swift - how an end is decided, propagates up and down the tree, and is settled.
//
// A decision (one step under the lock):
//   1  the operation is decided; everything below it is marked, and starts nothing from then on;
//   2  the enclosing composite is notified: it continues, completes, or begins a round; if that decides it, step 2
//      repeats one level up;
//   3  the attempts that ended are released, inner before outer; operations that are quiescent and out of reach of a
//      redo settle, inner before outer.
// All three are loops: neither depth nor the number of children costs stack.

extension AnyOperation {
    /// Whether an end would be accepted. Under the lock.
    @inline(__always)
    final func canEnd(_ number: Int32?) -> Bool { machine.canEnd(number) }

    /// Decides its outcome. Under the lock.
    ///
    /// - Parameter number: the attempt that asks for it; nil: a holder of the handle.
    /// - Returns: false: refused.
    @discardableResult
    @inline(__always)
    final func end(
        _ end: OperationMachine.End, _ bad: BadEnd?, number: Int32? = nil, _ effects: inout Effects
    ) -> Bool {
        guard let freed = machine.decide(end, number: number) else { return false }
        badEnd = bad
        keep()
        decided(&effects)
        if isComposite, end != .finished {
            markDescendants(.cancelled(CancelReason(.parent, origin: id)), &effects)
        }
        carryUp(freed, &effects)
        return true
    }

    /// Fails it, or asks its resolver, if it has one. Under the lock.
    @discardableResult
    final func fail(_ error: any Error, number: Int32? = nil, _ effects: inout Effects) -> Bool {
        guard canEnd(number) else { return false }
        if !isComposite, let resolver = extras?.options?.resolver, machine.phase == .executing {
            let cause = Cause(index: nil, child: nil, outcome: .failed(error))
            if !resolve(resolver, cause, isOwnWish: number != nil, &effects) { decideByCause(&effects) }
            return true
        }
        return end(.failed, .failed(error), number: number, &effects)
    }

    /// Steps 2 and 3, after it has been decided. Under the lock.
    ///
    /// - Parameter freed: the units that its attempt held.
    @inline(__always)
    final func carryUp(_ freed: Int32, _ effects: inout Effects) {
        // Read before step 2: an operation above that starts over settles everything that it drops. That includes this
        // operation, which then has no parent any more, unless it holds a unit, as the operations in between do.
        let first = parentReference
        // Step 2.
        let top = Unmanaged.passUnretained(self).carryingUp(&effects)
        // Step 3. Each operation above has ended a live attempt.
        var isWithinReach = top._withUnsafeGuaranteedRef {
            $0.machine.end != .finished && $0.machine.phase == .ending && !$0.isOutOfReach
        }
        var operation = Unmanaged.passUnretained(self)
        var parent = first
        var units = freed
        while true {
            operation._withUnsafeGuaranteedRef { operation in
                if units > 0 {
                    operation.letGo(units, isWithinReach: isWithinReach, &effects)
                } else if operation.machine.isQuiescent {
                    _ = operation.quiesce(&isWithinReach, &effects)  // it never was counted
                }
            }
            if operation.toOpaque() == top.toOpaque() { break }
            operation = parent!
            parent = operation._withUnsafeGuaranteedRef { $0.parentReference }
            units = 1
        }
        top._withUnsafeGuaranteedRef { top in
            if top.machine.end != .finished, top.machine.phase == .ending, top.isComposite,
                top.isOutOfReach
            {
                top.settleSubtree(&effects)
            }
        }
    }

    /// Ends everything that was under way for this attempt. Under the lock.
    @inline(__always)
    final func decided(_ effects: inout Effects) {
        if isAdmitted { effects.reconcile(self) }
        if let extras { extras.decided(self, &effects) }
    }

    /// Marks everything below as cancelled. Under the lock.
    ///
    /// - Complexity: O(descendants).
    final func markDescendants(_ bad: @autoclosure () -> BadEnd, _ effects: inout Effects) {
        guard let composition, composition.childrenLeft.contains(where: { !$0.machine.isDecided }) else {
            return
        }
        let bad = bad()
        var walk = [composition]
        while let composition = walk.popLast() {
            let children = composition.childrenLeft
            children.forEachReference(in: children.indices) { child in
                guard let freed = child.machine.decide(.cancelled) else { return }
                child.badEnd = bad
                child.decided(&effects)
                if let below = child.composition { walk.append(below) }
                if freed > 0 { child.letGoWhileMarked(freed) }
            }
        }
    }

    /// Decrements `pending`, but settles nothing: the walk is still going on, and its caller settles afterwards.
    private final func letGoWhileMarked(_ count: Int32) {
        guard machine.letGo(count) else { return }
        var operation = parentReference
        while let one = operation {
            operation = one._withUnsafeGuaranteedRef { $0.machine.letGo() ? $0.parentReference : nil }
        }
    }

    /// Whether no enclosing composite can undo its end. Under the lock; the operation is decided.
    ///
    /// - Complexity: O(1) amortised: the result is kept.
    final var isOutOfReach: Bool {
        if isFinal || machine.end == .finished { return true }
        let own = Unmanaged.passUnretained(self)
        var next: Unmanaged<AnyOperation>? = own
        while let operation = next {
            next = operation._withUnsafeGuaranteedRef { $0.isFinal ? nil : $0.reachingParent }
            if let next, !next._withUnsafeGuaranteedRef({ $0.machine.isDecided }) { return false }
        }
        next = own
        while let operation = next {
            next = operation._withUnsafeGuaranteedRef { operation in
                if operation.isFinal { return nil }
                operation.isFinal = true
                return operation.reachingParent
            }
        }
        return true
    }

    /// The enclosing composite, unless this operation was dropped.
    @inline(__always)
    fileprivate final var reachingParent: Unmanaged<AnyOperation>? { isDropped ? nil : parentReference }

    /// Settles the quiescent operations, here and below, inner before outer. Under the lock; this operation is out of
    /// reach.
    ///
    /// - Complexity: O(registered descendants).
    final func settleSubtree(_ effects: inout Effects) {
        guard isComposite, machine.end != .finished else {
            if machine.isQuiescent { settle(&effects) }
            return
        }
        var path: [(operation: AnyOperation, next: Int)] = [(self, 0)]
        while let (operation, next) = path.last {
            if let (place, composite) = operation.settleLeaves(from: next, &effects) {
                path[path.count - 1].next = place + 1
                path.append((composite, 0))
            } else {
                path.removeLast()
                operation.settleIfQuiescent(&effects)
            }
        }
    }

    /// Settles its children that are not composites.
    ///
    /// - Returns: the first composite from there on that has to be settled before the other children; nil: there is
    ///   none.
    private final func settleLeaves(
        from first: Int, _ effects: inout Effects
    ) -> (place: Int, operation: AnyOperation)? {
        // The composite ended badly: so plain children were taken, or are over.
        guard let composition, machine.end != .finished else { return nil }
        let children = composition.operations
        return children.firstReference(from: first) { child, place in
            if child.machine.isTerminal { return false }
            if child.isComposite, child.machine.end != .finished { return true }
            child.settleIfQuiescent(&effects, (place, children))
            return false
        }
    }

    /// - Parameter among: for a child, its place and its siblings.
    @inline(__always)
    private final func settleIfQuiescent(
        _ effects: inout Effects, _ among: (place: Int, siblings: ContiguousArray<AnyOperation>)? = nil
    ) {
        isFinal = true
        guard machine.isQuiescent, machine.phase == .ending else { return }
        guard let among, isPlain else { return settle(&effects) }
        settled(&effects)
        effects.settled(self, at: among.place, among: among.siblings)
    }

    /// Delivers its outcome. Under the lock.
    final func settle(_ effects: inout Effects) {
        if !isPlain { return settleThrough(&effects) }
        settled(&effects)
        effects.settled(self)
    }

    @inline(__always)
    private final func settled(_ effects: inout Effects) {
        machine.settle()
        parentReference = nil
        if machine.openAtEnd(), let domain { domain._withUnsafeGuaranteedRef { $0.closedGates -= 1 } }
        if extras == nil, Diagnostics.areHeard { noteUnobservedFailure() }
    }

    private final func settleThrough(_ effects: inout Effects) {
        settled(&effects)
        if isAdmitted { effects.reconcile(self) }
        keepsBlock = extras?.options?.keepsBlock == true
        if badEnd == nil {
            withComposition { $0.postCompletion(of: self, keepingIt: keepsBlock, &effects) }
        }
        extras?.settled(self, &effects)
        withComposition { $0.giveUp(keepingHandler: keepsBlock, &effects) }
        effects.settled(self)
    }

    /// Releases its holdings (I2, I3). On the settling thread, under no lock, and after its queue has examined it.
    final func releaseHoldings() {
        releaseBlock()
        if !keepsBlock, hasPlace { giveUpPlace() }
        if let compositionReference {
            compositionReference._withUnsafeGuaranteedRef { $0.releaseHoldings(keepingHandler: keepsBlock) }
        }
        if isHeld {
            isHeld = false
            Unmanaged.passUnretained(self).release()
        }
    }
}

extension Unmanaged<AnyOperation> {
    /// Notifies the enclosing composites that an operation is decided, going up as long as that decides them, too.
    /// Under the lock, which keeps all of them alive.
    ///
    /// - Returns: the topmost operation that is decided.
    fileprivate func carryingUp(_ effects: inout Effects) -> Self {
        var top = self
        while let parent = top._withUnsafeGuaranteedRef({ $0.reachingParent }),
            parent._withUnsafeGuaranteedRef({ parent in
                top._withUnsafeGuaranteedRef { parent.childDecided($0, &effects) }
            })
        {
            top = parent
        }
        return top
    }
}

// MARK: Cancel

extension AnyOperation {
    /// Cancels it: before its start, or while it runs, is suspended, awaits a decision or pauses.
    ///
    /// When the call returns, the operation and everything below it read as cancelled, and no block of theirs starts
    /// any more. Running blocks are awaited. The task of an asynchronous block is cancelled and awaited, even if it has
    /// not begun. Handlers are posted, not called.
    ///
    /// - Parameter reason: nil: that it was requested; while a decision is open, the cause of the decision, so that the
    ///   outcome is a failure if there was one.
    /// - Returns: false, with no effect, when its outcome is decided already.
    /// - Complexity: O(registered descendants).
    @discardableResult
    public final func cancel(_ reason: CancelReason? = nil) -> Bool { cancel(reason, number: nil) }

    final func cancel(_ reason: CancelReason?, number: Int32?, epoch: Int32? = nil) -> Bool {
        change { effects in
            guard isCurrent(number, epoch), cancelIfNotDecided(reason, number: number, &effects) else {
                return refuseEnd("cancel()", number, &effects)
            }
            return true
        }
    }

    /// Under the lock.
    ///
    /// - Returns: false: its outcome is decided.
    final func cancelIfNotDecided(
        _ reason: CancelReason?, number: Int32? = nil, _ effects: inout Effects
    ) -> Bool {
        guard canEnd(number) else { return false }
        // Before the end: an enclosing composite may begin another attempt at once.
        withComposition { $0.postNotice(to: self, &effects) }
        if reason == nil, machine.phase == .deciding {
            decideByCause(&effects)
        } else {
            end(.cancelled, .cancelled(reason ?? CancelReason()), &effects)
        }
        return true
    }
}
