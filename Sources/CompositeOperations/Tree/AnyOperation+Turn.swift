// AnyOperation+Turn.swift - from the start to the return of a block.
//
//   start -> becameDue -> (queue) -> sendTurn -> target -> turn -> execute -> returned
//
// A block begins in `turn` only, and at most once for each `post` (I4 of OperationMachine.swift). Code that makes an
// operation due, by a start, an open gate, a free slot, the end of a dependency or of a pause, calls `becameDue`.

internal import CInspection
internal import Runs
internal import Scheduling

extension AnyOperation {
    /// Starts it, unless that is refused. Under no lock.
    ///
    /// - Parameters:
    ///   - bringsBlock: `prepare` sets the block.
    ///   - queue: the queue that it is added to, which may refuse it.
    ///   - prepare: called under the lock if the operation is started, so that of two competing threads, the one that
    ///     starts the operation also sets its block.
    final func startIfReady(
        bringsBlock: Bool = false, addedTo queue: COOperationQueue? = nil, _ prepare: () -> Void = {}
    ) -> Bool {
        keepForDumps()
        guard let queue else {
            return change { effects in
                if let refusal = refusalOfStart(bringsBlock) { return refuse(refusal, &effects) }
                start(&effects, prepare)
                return true
            }
        }
        var former: (any ExecutionTarget)?  // released under no lock
        let hasStarted = queue.admit(self) { room, effects in
            look {
                if let refusal = refusalOfStart(bringsBlock) ?? refusalOfAdmission(by: queue, room) {
                    return refuse(refusal, &effects)
                }
                former = target
                set(target: hasOwnTarget ? target : queue.target, isOwn: hasOwnTarget, admission: queue)
                start(&effects, prepare)
                return true
            }
        }
        withExtendedLifetime(former) {}
        return hasStarted
    }

    /// Like ``startNew()``, with closures for its end.
    @usableFromInline
    final func startNew(
        completion: (@Sendable () -> Void)?, cancellation: (@Sendable () -> Void)?,
        failure: (@Sendable (any Error) -> Void)?
    ) {
        _ = set(completion: completion, cancellation: cancellation, failure: failure)
        startNew()
    }

    /// Sets the closures for its end that are not nil. Under the lock, or before the operation is published; it is
    /// ready.
    ///
    /// - Returns: the closures that are replaced.
    final func set(
        completion: (@Sendable () -> Void)?, cancellation: (@Sendable () -> Void)?,
        failure: (@Sendable (any Error) -> Void)?
    ) -> [Any] {
        guard completion != nil || cancellation != nil || failure != nil else { return [] }
        let extras = ensureExtras()
        let former = [extras.completion as Any, extras.cancellation as Any, extras.failure as Any]
        if let completion { extras.completion = completion }
        if let cancellation { extras.cancellation = cancellation }
        if let failure { extras.failure = failure }
        return former
    }

    /// Starts an unpublished operation that has a block. Only the caller can access it, so no lock is needed.
    final func startNew() {
        guard extras == nil else {
            start()
            return
        }
        let hasStarted = machine.start()
        precondition(hasStarted)
        keep()
        choosePriority()
        // `keepForDumps` publishes it.
        if let queue = admissionReference {
            keepForDumps()
            queue.takeUnretainedValue().reconcile(self)
        } else {
            machine.post()
            keepForDumps()
            Self.sendTurn(.passRetained(self), at: priorityMark == 0 ? .default : currentPriority)
        }
    }

    /// Under the lock.
    private final func refusalOfStart(_ bringsBlock: Bool) -> String? {
        if isChild { return "start() of a child: its composite starts it" }
        // If it is not ready, only the thread that executes it may read the block (I3).
        guard machine.phase == .ready else { return "start(), but it has been started, or has ended" }
        return bringsBlock || hasBlock ? nil : "start() without a block"
    }

    /// Under the queue's lock, and the tree's.
    private final func refusalOfAdmission(
        by queue: COOperationQueue, _ room: COOperationQueue.Room
    ) -> String? {
        if let admission, admission !== queue, hasOwnTarget {
            return "add() of an operation that belongs to another queue"
        }
        return switch room {
        case .forAll: nil
        case .forSlot where isUnhindered: nil
        case .forSlot, .forNobody: "add() to a queue that is full"
        }
    }

    /// Starts the operation, which is ready. Under the lock.
    @inline(__always)
    private final func start(_ effects: inout Effects, _ prepare: () -> Void) {
        let hasStarted = machine.start()
        precondition(hasStarted)
        prepare()
        keep()
        choosePriority()
        began(&effects)
        becameDue(&effects)
    }

    /// From now on the runtime holds it (I5). Under the lock.
    final func keep() { if !isHeld, !isChild { hold() } }

    /// Holds it until it is settled. Under the lock.
    final func hold() {
        isHeld = true
        _ = Unmanaged.passRetained(self)
    }

    /// Records that it has begun, by its start or through its composite: its time limits begin to run. Under the lock.
    @inline(__always)
    final func began(_ effects: inout Effects) { if extras != nil { beganTimed(&effects) } }

    private final func beganTimed(_ effects: inout Effects) {
        guard let extras else { return }
        observe(&effects)
        if extras.unmetDependencies > 0 { raiseDependencies(&effects) }
        guard let options = extras.options else { return }
        if let timeout = options.timeout { arm(.whole, after: timeout, clock: options.clock, &effects) }
        armDeadline(&effects)
    }

    /// Sends its turn, or asks its queue for one, if it has become due. Under the lock.
    @inline(__always)
    final func becameDue(_ effects: inout Effects) {
        if isAdmitted {
            effects.reconcile(self)
        } else if isDue {
            machine.post()
            effects.start(self)
        }
        if extras != nil { observe(&effects) }
    }

    /// Sends its turn to the target. Under no lock.
    ///
    /// - Parameter priority: its priority when the turn was posted.
    final func sendTurn(at priority: Scheduler.Priority) { Self.sendTurn(.passRetained(self), at: priority) }

    /// - Parameter operation: with a reference, which is passed on.
    @inline(__always)
    static func sendTurn(_ operation: Unmanaged<AnyOperation>, at priority: Scheduler.Priority) {
        let target = operation._withUnsafeGuaranteedRef { $0.targetOfTurn }
        if let target {
            operation.takeRetainedValue().sendTurn(to: target, at: priority)
        } else {
            sendTurnToShared(operation, at: priority)
        }
    }

    /// The target will not run it, because the target was shut down.
    ///
    /// Done in a separate piece of work: operations that become due as a result of this end may be refused in turn, and
    /// so on, all nested on one stack.
    final func turnIsRefused() {
        ExecutionWork.run(on: nil) { [self] in
            change { effects in
                if !oneOfMoreTurnsIsOver(), machine.turnIsRefused() {
                    end(.cancelled, .cancelled(CancelReason(.shutDown)), &effects)
                }
            }
        }
    }

    /// Its turn has come: on the target's thread, as a separate piece of work.
    final func turn() {
        let bits = lock()
        guard extras == nil, gateIsOpen, queueIsOpen else { return turn(holding: bits) }
        let wasQuiescent = machine.isQuiescent
        let turn = machine.turn(gateIsOpen: true)
        if turn == .begins {
            if wasQuiescent { holdParent() }
            withComposition { $0.isRegistering = true }
        }
        let number = machine.attempt
        let slot = slotOfBlock
        unlock(bits)
        guard turn == .begins else { return Scheduler.turnWasVoid() }
        if let slot {
            COQueues.calling(slot, of: self) { call(number) }
        } else if COQueues.haveSurroundings {
            executeApart(number)
        } else {
            call(number)
        }
    }

    /// Like ``turn()``, for any operation.
    ///
    /// - Parameter bits: the result of ``lock()``.
    @inline(never)
    private final func turn(holding bits: UInt) {
        var effects = Effects()
        _ = oneOfMoreTurnsIsOver()
        endIfTooLate(&effects)  // its turn may have been quicker than the timer
        let wasQuiescent = machine.isQuiescent
        let turn = machine.turn(gateIsOpen: gateIsOpen && queueIsOpen)
        switch turn {
        case .begins:
            if wasQuiescent { holdParent() }
            withComposition { $0.isRegistering = true }
            if let extras {
                extras.isTaskCancelled = false  // the flag was the previous attempt's
                armAttemptTimeout(&effects)
                if let cause = extras.pendingCause {
                    effects.add(.giveUp([cause], nil))
                    extras.pendingCause = nil
                }
                observe(&effects)
            }
        case .waits: if isAdmitted { effects.reconcile(self) }
        case .isVoid: break
        }
        let number = machine.attempt
        let (scope, callers) = (extras?.scope, extras?.callersSlots ?? HeldSlots())
        let (context, slot) = (extras?.contextOfBlock, slotOfBlock)
        unlock(bits)
        effects.perform()
        guard turn == .begins else { return Scheduler.turnWasVoid() }
        COQueues.calling(in: scope, callers, slot, context, of: self) { call(number) }
    }

    /// The slot that it holds for its block, which is about to begin. Under the lock.
    @inline(__always)
    private final var slotOfBlock: HeldSlot.Reference? {
        guard let ticket else { return nil }
        return HeldSlot.Reference(ticket: ticket, runs: machine.runs - 1)
    }

    /// Like `call`, but hides the surroundings of a waiter that may be below this call on the stack.
    @inline(never)
    private final func executeApart(_ number: Int32) {
        COQueues.apart(of: .passUnretained(self)) { call(number) }
    }

    @inline(__always)
    private final func call(_ number: Int32) {
        if inspection_records() { return callRecorded(number) }
        BlocksOnStack.with(self) { execute(number) }
    }

    @inline(never)
    private final func callRecorded(_ number: Int32) {
        let span = RecordedSpan(name ?? "\(Self.self)", number: id.number)
        defer { span?.end() }
        BlocksOnStack.with(self) { execute(number) }
    }

    /// A block has returned. That does not end its attempt, which ends by a call.
    @inline(__always)
    final func returned() { change { effects in left(&effects) } }

    /// A block has thrown. Not inlined: its stack space is allocated at run time.
    @inline(never)
    final func threw(_ error: any Error, _ number: Int32) {
        change { effects in
            if error is CancellationError {
                let kind: CancelReason.Kind =
                    extras?.isTaskCancelled == true ? .taskCancelled : .threwCancellation
                end(
                    .cancelled, .cancelled(CancelReason(kind, underlying: error)), number: number,
                    &effects)
            } else if let reason = error as? CancelReason, reason.isOfOperation {
                end(.cancelled, .cancelled(reason), number: number, &effects)
            } else if !fail(error, number: number, &effects), machine.isDecided,
                machine.attempt == number, machine.end != .cancelled
            {
                // A block that was cancelled, or whose attempt was abandoned, may well throw.
                tell("threw, but it had ended", error, &effects)
            }
            left(&effects)
        }
    }

    /// The block of a leaf without extras has returned, and that finishes the leaf: end, propagation upwards and
    /// settling in one step, unless it completes its composite. Under the lock; the caller notifies its queue, and
    /// calls `releaseHoldings`.
    ///
    /// - Parameter store: stores the value, before it can be read.
    /// - Returns: false: nothing was done.
    @inline(__always)
    final func leaveFinished(_ number: Int32, _ effects: inout Effects, _ store: () -> Void) -> Bool {
        guard extras == nil, !isComposite else { return false }
        guard let parentReference else {
            guard isHeld, machine.leaveFinished(number: number) else { return false }
            store()
            return true
        }
        return parentReference._withUnsafeGuaranteedRef { parent in
            guard !isDropped, let siblings = parent.compositionReference else { return false }
            let goesOn = siblings._withUnsafeGuaranteedRef { siblings in
                guard siblings.unfinished > 1, machine.leaveFinished(number: number) else { return false }
                store()
                siblings.childFinished(self, of: parent, &effects)
                return true
            }
            guard goesOn else { return false }
            self.parentReference = nil
            if parent.machine.letGo() { parent.compositeBecameQuiescent(isWithinReach: false, &effects) }
            return true
        }
    }

    /// A block is no longer running. Under the lock.
    @inline(__always)
    final func left(_ effects: inout Effects) {
        machine.leave()
        if machine.phase == .executing, Diagnostics.areOnStandardError { watchForFinish(&effects) }
        if isAdmitted { effects.reconcile(self) }
        letGo(1, &effects)
    }
}

// MARK: Pending

extension AnyOperation {
    /// Holds the enclosing composite: neither of the two is quiescent any more. Under the lock.
    @inline(__always)
    final func holdParent() {
        var operation = parentReference
        while let one = operation {
            operation = one._withUnsafeGuaranteedRef { $0.machine.hold() ? $0.parentReference : nil }
        }
    }

    /// Releases units of `pending`, and does what was waiting for quiescence, here and above. Under the lock.
    @inline(__always)
    final func letGo(_ count: Int32, isWithinReach: Bool = false, _ effects: inout Effects) {
        if machine.letGo(count) { becameQuiescent(isWithinReach: isWithinReach, &effects) }
    }

    /// Handles the quiescence of an operation that its parent has counted.
    ///
    /// - Parameter isWithinReach: an enclosing composite is known to be able to undo its end.
    @inline(__always)
    final func becameQuiescent(isWithinReach: Bool, _ effects: inout Effects) {
        if !isComposite, machine.phase == .ending, machine.end == .finished {  // the common case
            let parent = parentReference
            settle(&effects)
            parent?._withUnsafeGuaranteedRef { parent in
                if parent.machine.letGo() {
                    parent.compositeBecameQuiescent(isWithinReach: false, &effects)
                }
            }
        } else {
            compositeBecameQuiescent(isWithinReach: isWithinReach, &effects)
        }
    }

    @inline(never)
    private final func compositeBecameQuiescent(isWithinReach: Bool, _ effects: inout Effects) {
        var operation = Unmanaged.passUnretained(self)
        var isWithinReach = isWithinReach
        while true {
            let parent = operation._withUnsafeGuaranteedRef { $0.parentReference }
            if operation._withUnsafeGuaranteedRef({ $0.quiesce(&isWithinReach, &effects) }) { return }
            guard let parent, parent._withUnsafeGuaranteedRef({ $0.machine.letGo() }) else { return }
            operation = parent
        }
    }

    /// Does what waited for its quiescence. Under the lock.
    ///
    /// - Parameter isWithinReach: in and out: a composite above can undo the end of this operation, or of one below.
    ///   Then it can also undo the ends in between, so one search is enough on the way up.
    /// - Returns: whether a new attempt has begun, which now owns its parent's unit.
    final func quiesce(_ isWithinReach: inout Bool, _ effects: inout Effects) -> Bool {
        switch machine.phase {
        case .ending:
            if machine.end == .finished {
                settle(&effects)
            } else if !isWithinReach {
                if isOutOfReach { settleSubtree(&effects) } else { isWithinReach = true }
            }
            return false
        case .delayed: return proceed(isCounted: true, &effects)
        default: return false
        }
    }
}
