// UndoStack+Removal.swift - forgetting steps and changes.

extension UndoStack {
    /// Forgets all steps, and repairs a broken stack. While a call is running, this takes effect when the call has ended.
    public func removeAll() {
        whenFree { stack in
            let left = stack.unfinished
            (stack.unfinished, stack.isBroken) = (nil, false)
            stack.change { $0.removeAll() }
            withExtendedLifetime(left) {}  // releasing it may run user code that reads the stack
        }
    }

    /// Forgets the changes with a target. While a call is running, this takes effect when the call has ended.
    ///
    /// A step of several changes, whether grouped or merged, keeps the changes with other targets, and is removed when none is left.
    /// Nothing is undone, so a clean mark beyond a forgotten change can no longer be reached.
    ///
    /// The target's `deinit` may call this.
    public func removeAll(target: AnyObject) {
        weak let living = target
        if let living {
            whenFree { $0.removeAll { $0.target === living } }
        } else {
            // The target is being deallocated, so it cannot be retained until the turn is over.
            let id = ObjectIdentifier(target)
            whenFree { $0.removeAll { $0.target == nil && $0.targetID == id } }
        }
    }

    private func removeAll(where isGone: @escaping (UndoAction) -> Bool) {
        let left = unfinished
        unfinished?.actions.removeAll(where: isGone)
        change { if $0.removeAll(where: isGone) { unfinished?.isOfStep = false } }
        // The changes that could not be undone are forgotten, so the step counts as undone, unless it was removed, too.
        if let unfinished, unfinished.actions.isEmpty { wasUndone(unfinished) }
        withExtendedLifetime(left) {}  // releasing it may run user code that reads the stack
    }

    private func whenFree(_ change: @escaping (UndoStack) -> Void) {
        guard isBusy else {
            change(self)
            onChange?()
            return
        }
        afterTurn.append { [unowned self] in change(self) }
    }
}
