// ActionCore+Triggers.swift - the triggers of an action: which are admitted, which wait, how each ends.
//
// Invariants:
//   I1  each trigger is one of: refused, waiting, running; it is settled once, after its last notice.
//   I2  the sizes of `line` and `running` equal the counts of waiting and running in the word, except that a direct execution
//       counts as running. A trigger that has a slot and waits for its precondition to be read again is in `running`.
//   I3  the work of a trigger is called at most once, and, with the exception in I5, after its `started` was delivered inline.
//   I4  a waiting trigger that gets a slot begins as an item of the inline mailbox, appended in the critical section that passes
//       the slot. So waiting triggers begin in order, and later notices do not delay them.
//   I5  inline work that is admitted at once is called in its trigger: after earlier notices, if the trigger can deliver them,
//       and immediately, if another thread is delivering, or is about to. A trigger neither waits for other threads nor leaves its
//       work to them.
//       Only a trigger from within a notification or the work of this action, on the delivering thread, leaves its work to the
//       enclosing loop.

@_spi(Faces) import CompositeOperationsBasics
internal import Runs

extension ActionCore {
    /// Admits the trigger if it may run.
    func fire(_ trigger: Trigger) {
        let holds = trigger.bind()
        var deliverer: Mailbox.Deliverer?
        let (superseded, cancelled, unused) = gate.transition(of: self) { bits in
            holds ? admit(&bits) : .refuse(.precondition)
        } then: { admission -> (Trigger?, Trigger?, Any?) in
            switch admission {
            case .start:
                running[trigger.id] = trigger
                appendStarted(trigger)
                deliverer = trigger.isInline ? inline.claim() : .callerAlready
                if case .callerAlready? = deliverer { inline.append(Start(trigger: trigger)) }
                return (nil, nil, nil)
            case .wait:
                line.append(trigger)
                return (nil, nil, trigger.unbind())
            case .replace:
                let superseded = line.popFirst()
                if let superseded { appendEnd(superseded, .cancelled(CancelReason(ofRun: .displaced))) }
                line.append(trigger)
                let cancelled = policy == .switchToLatest ? running.values.first : nil
                if policy == .switchToLatest, isInDirectly { isAskedToEnd = true }
                return (superseded, cancelled, trigger.unbind())
            case .refuse(let reason):
                appendEnd(trigger, .cancelled(CancelReason(ofRun: reason.kind)))
                return (nil, nil, nil)
            }
        }
        withExtendedLifetime((superseded, unused)) {}  // released under no lock
        cancelled?.cancel()
        switch deliverer {
        case .caller(let items)?:
            let holds = inline.deliver(items)  // `started` is the last of them
            trigger.run()
            if holds { inline.giveBack() }
            deliver()
        case .another?:
            deliver()
            trigger.run()  // I5
        case .callerAlready?, nil: deliver()
        }
    }

    /// Under the gate's lock.
    private func appendStarted(_ trigger: Trigger) {
        flips.reset()
        append(.started(trigger.id))
    }

    /// Ends a trigger whose work has ended, or whose precondition no longer held at its turn.
    func end(_ trigger: Trigger, _ outcome: Outcome<any Sendable>) {
        gate.transition(of: self) {
            end(&$0)
        } then: { handsOver in
            running[trigger.id] = nil
            appendEnd(trigger, outcome)
            if handsOver { appendNext() }
        }
        deliver()
    }

    /// Gives the slot to the first waiting trigger, which begins in the mailbox (I4). Under the gate's lock.
    func appendNext() {
        guard let next = line.popFirst() else { return }
        running[next.id] = next
        inline.append(Turn(trigger: next))
    }

    /// Begins a trigger that has waited. If its precondition no longer holds, the slot passes to the next one.
    fileprivate func begin(_ trigger: Trigger) {
        if trigger.bind() {
            gate.withLock { _ in
                appendStarted(trigger)
                inline.append(Start(trigger: trigger))
            }
            deliver()
        } else {
            end(trigger, .cancelled(CancelReason(ofRun: .precondition)))
        }
    }

    // MARK: Cancelling, limits, values

    /// - Returns: whether the trigger was in the line and has been removed.
    func leaveLine(_ trigger: Trigger) -> Bool {
        let hasLeft = gate.transition(of: self) { bits in
            guard line.remove(where: { $0 === trigger }) != nil else { return false }
            var word = GateWord(bits: bits)
            word.leaveLine()
            bits = word.bits
            return true
        } then: { hasLeft in
            if hasLeft { appendEnd(trigger, .cancelled(CancelReason(ofRun: .requested))) }
            return hasLeft
        }
        deliver()
        return hasLeft
    }

    func cancelAll() {
        let all = gate.withLock { _ in
            isAskedToEnd = isInDirectly
            return line.all + Array(running.values)
        }
        for trigger in all { trigger.cancel() }
    }

    func setLimit(_ limit: Int) {
        demand(
            index == nil, "Action.setLimit: \(id) is in a group, so its limit must be 1")
        demand(
            (1...GateWord.mostOfAKind).contains(limit),
            "Action.setLimit: the limit is \(limit), and must be 1 to \(GateWord.mostOfAKind)")
        switch policy {
        case .switchToLatest, .coalesce:
            demand(limit == 1, "Action.setLimit: with the policy \(policy) the limit must be 1, not \(limit)")
        case .reject, .queue: break
        }
        gate.transition(of: self) { bits in
            var word = GateWord(bits: bits)
            defer { bits = word.bits }
            return word.setLimit(limit)
        } then: { count in
            for _ in 0..<count { appendNext() }
        }
        deliver()
    }

    func yield(_ value: any Sendable, of trigger: Trigger) {
        gate.withLock { _ in
            if running[trigger.id] != nil { append(.value(trigger.id, value)) }
        }
        deliver()
    }

    // MARK: Events

    /// Latches the outcome of a trigger, and appends its last notices and its settlement. Under the gate's lock.
    private func appendEnd(_ trigger: Trigger, _ outcome: Outcome<any Sendable>) {
        trigger.latch(outcome, unseen(outcome, of: trigger.id))
        appendEnd(trigger.id, outcome)
        inline.append(Settlement(trigger: trigger))
    }

    /// - Returns: the report of a failure that has no observer. Under the gate's lock.
    private func unseen(_ outcome: Outcome<any Sendable>, of id: ExecutionID) -> UnseenFailure? {
        guard outcome.isFailed, Diagnostics.areHeard, !tellsFailures, let error = outcome.error else {
            return nil
        }
        return unseen(error, of: id)
    }

    func unseen(_ error: any Error, of id: ExecutionID) -> UnseenFailure {
        UnseenFailure(error) { [name] in "execution \(id) of \(name.id)" }
    }

    /// Appends the notices of an execution's end. Under the gate's lock.
    func appendEnd(_ id: ExecutionID, _ outcome: Outcome<any Sendable>) {
        if isUnwatched { return }
        switch outcome {
        case .finished(let output):
            append(.value(id, output))
            append(.finished(id))
        case .cancelled(let reason):
            if let why = DisabledReason(reason.kind) {
                append(.rejected(id, why))
                appendRejection(why)
            } else {
                append(.cancelled(id))
            }
        case .failed(let error):
            append(.failed(id, error))
            appendFailure(id, error)
        }
    }
}

extension ActionCore: Dependent {
    func sourceHasChanged() { follow() }
}

// MARK: Delivery in place

/// Runs the work of an admitted trigger.
private struct Start: MailboxItem {
    let trigger: Trigger
    func deliver() -> WaitList.Woken? {
        trigger.run()
        return nil
    }
}

/// Begins a trigger that has waited and now has a slot.
private struct Turn: MailboxItem {
    let trigger: Trigger
    func deliver() -> WaitList.Woken? {
        trigger.core.begin(trigger)
        return nil
    }
}

/// Settles a trigger after all its notices.
private struct Settlement: MailboxItem {
    let trigger: Trigger
    func deliver() -> WaitList.Woken? { trigger.settle() }
}
