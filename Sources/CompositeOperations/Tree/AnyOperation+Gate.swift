// AnyOperation+Gate.swift - suspend and resume: a gate before each start, and before a composite's completion.

extension AnyOperation {
    /// Closes its gate: no block of it or below it starts, and no composite below completes, until ``resume(_:)``.
    ///
    /// Running blocks continue, and so does an asynchronous block whose task exists but has not begun. Their tokens
    /// report the closed gate, and they may end.
    ///
    /// - Returns: false, with no effect, when its gate is closed already, or its outcome is decided.
    /// - Complexity: O(registered descendants).
    @discardableResult
    public final func suspend() -> Bool { suspend(number: nil) }

    final func suspend(number: Int32?, epoch: Int32? = nil) -> Bool {
        change { effects in
            guard isCurrent(number, epoch), machine.suspend() else {
                return refuse("suspend(), but its gate is closed, or it has ended", &effects)
            }
            if let domain { domain._withUnsafeGuaranteedRef { $0.closedGates += 1 } }
            forEachBelow { operation in operation.gateHasMoved(&effects) }
            return true
        }
    }

    /// Opens its gate: everything that became due behind it happens now, once.
    ///
    /// - Returns: false, with no effect, unless its own gate is closed.
    /// - Complexity: O(registered descendants).
    @discardableResult
    public final func resume(_ mode: ResumeMode = .continue) -> Bool { resume(mode, number: nil) }

    final func resume(_ mode: ResumeMode, number: Int32?, epoch: Int32? = nil) -> Bool {
        change { effects in
            guard isCurrent(number, epoch), machine.resume() else {
                return refuse("resume(), but its gate is open, or it has ended", &effects)
            }
            if let domain { domain._withUnsafeGuaranteedRef { $0.closedGates -= 1 } }
            if mode == .restart {
                forEachBelow { operation in
                    if !operation.isComposite, operation.machine.phase == .executing {
                        _ = operation.redo(.rerun, after: .zero, telling: CancelReason(), &effects)
                    }
                }
            }
            guard gateIsOpen else { return true }
            var composites: [AnyOperation] = []
            forEachBelow { operation in
                operation.gateHasMoved(&effects)
                operation.gateHasOpened(&effects)
                if operation.isComposite { composites.append(operation) }
            }
            // Inner before outer.
            while let composite = composites.popLast() {
                composite.composition?.gateHasOpened(composite, &effects)
            }
            return true
        }
    }

    /// Whether the caller's token is still current: a token by its attempt, a scope by its epoch, a handle always.
    /// Under the same lock as the change: otherwise a stale call could hit an attempt that began between check and
    /// change.
    final func isCurrent(_ number: Int32?, _ epoch: Int32?) -> Bool {
        (number == nil || number == machine.attempt) && (epoch == nil || epoch == composition?.epoch)
    }

    /// Does what became due behind the gate. Under the lock.
    private final func gateHasOpened(_ effects: inout Effects) {
        switch machine.phase {
        case .queued: becameDue(&effects)
        case .delayed: proceed(isCounted: false, &effects)
        default: break
        }
    }

    /// Notifies queue, waiters and observers. Under the lock.
    private final func gateHasMoved(_ effects: inout Effects) {
        if isAdmitted { effects.reconcile(self) }
        if let extras {
            extras.gateHasMoved(self, &effects)
            observe(&effects)
        }
    }

    /// Calls `body` with the operation and with everything below it that is not behind another closed gate, outer
    /// before inner. Under the lock.
    private final func forEachBelow(_ body: (AnyOperation) -> Void) {
        body(self)
        guard isComposite else { return }
        var walk = [self]
        while let operation = walk.popLast() {
            for child in operation.composition?.childrenLeft ?? [] where !child.machine.isDecided {
                if child.machine.isGateClosed { continue }
                body(child)
                if child.isComposite { walk.append(child) }
            }
        }
    }
}
