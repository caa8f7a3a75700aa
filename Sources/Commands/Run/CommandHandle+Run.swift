// CommandHandle+Run.swift - how a run is claimed, executed and ended.
//
// The order of an end: the work has ended; the outcome is latched; notices enter their queues; the lane's slot is free;
// those who wait are woken; inline notices are delivered; `execute` returns.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Scheduling

extension CommandHandle {
    /// - Throws: ``CommandUsageError/alreadyExecuted`` and ``CommandUsageError/broken``.
    func claim() throws(CommandUsageError) -> RunClaim {
        try locked { fields throws(CommandUsageError) in try fields.machine.claim() }
    }

    /// Executes a run that was claimed, and ends it.
    func perform(
        _ body: TransactionBody<Output>, _ context: CommandContext, _ claim: RunClaim
    ) async -> Outcome<Output> {
        if body.isSynchronous { return performSynchronously(body, context, claim) }
        // Whoever cancels the handle means the run that it names.
        let inner = context.within(transaction, claim == .first ? self : nil)
        // A task of its own, so that `cancel()` reaches the work and not its caller.
        let lane = ReentrancyMark.innermost
        let task = Task {
            await ReentrancyMark.inTask(of: lane) { await Self.outcome(of: body, inner, in: context) }
        }
        if claim == .first { adopt(task) }
        let outcome = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        finish(outcome, claim, body)
        return outcome
    }

    /// As ``perform(_:_:_:)``, on the calling thread.
    func performSynchronously(
        _ body: TransactionBody<Output>, _ context: CommandContext, _ claim: RunClaim
    ) -> Outcome<Output> {
        let outcome = Self.outcomeNow(of: body, context.within(transaction, claim == .first ? self : nil))
        finish(outcome, claim, body)
        return outcome
    }

    /// See ``RunMachine/beginUndo(goesOn:)``.
    func beginUndo(goesOn: Bool) throws(CommandUsageError) {
        try locked { fields throws(CommandUsageError) in try fields.machine.beginUndo(goesOn: goesOn) }
    }

    private func finish(
        _ outcome: Outcome<Output>, _ claim: RunClaim, _ body: TransactionBody<Output>
    ) {
        switch claim {
        case .first: end(outcome, from: nil)
        case .again:
            locked { fields in
                fields.machine.endAgain(finished: outcome.isFinished, isRolledBack: body.isRolledBack)
            }
        }
    }

    /// `cancel()` looks for the task after it has set the flag; this looks at the flag after it has left the task.
    private func adopt(_ task: RunFields<Output>.Execution) {
        locked { fields in if fields.outcome == nil { fields.task = task } }
        if isCancelRequested { task.cancel() }
    }

    private static func outcomeNow(
        of body: TransactionBody<Output>, _ context: CommandContext
    ) -> Outcome<Output> {
        do { return .finished(try body.runSynchronously(context)) } catch {
            return Outcome(body.end(of: error, context))
        }
    }

    /// - Parameter outer: of the run around this one: is told what stays of this one, where its error does not say so.
    private static func outcome(
        of body: TransactionBody<Output>, _ context: CommandContext, in outer: CommandContext
    ) async -> Outcome<Output> {
        do { return .finished(try await body.run(context)) } catch {
            let end = body.end(of: error, context)
            switch end.error {
            case is TransactionFailure, is OutcomeUnknown: break
            default: outer.noteLeftovers(of: error)
            }
            return Outcome(end)
        }
    }

    /// Latches the outcome and tells it.
    ///
    /// - Parameter origin: where it was not claimed.
    /// - Returns: whether the outcome is this one.
    @discardableResult
    func end(_ outcome: Outcome<Output>, from origin: RunMachine.Origin?) -> Bool {
        guard let owed = latch(outcome, from: origin) else { return false }
        owed.deliverInline()
        return true
    }

    /// As ``end(_:from:)``, but inline notices are the caller's to deliver: who is told may block, or wait for what the
    /// caller ends next.
    ///
    /// - Returns: nil when the outcome is another.
    func latch(_ outcome: Outcome<Output>, from origin: RunMachine.Origin?) -> [Deliveries]? {
        let latched = locked { fields -> (RunFields<Output>, WaitList.Woken)? in
            guard fields.machine.end(finished: outcome.isFinished, from: origin) else { return nil }
            var after = RunFields<Output>()
            after.machine = fields.machine
            after.outcome = outcome
            if fields.delegate != nil || !fields.observers.isEmpty {
                after.isTelling = true
                after.deliveries = fields.lane?.deliveries ?? Deliveries()
                after.notified = fields.delegate.map { Guarded($0) }
            }
            let waiters = fields.waiters.takeAll()
            defer { fields = after }
            return (fields, waiters)
        }
        guard let (taken, waiters) = latched else { return nil }
        let badEnd = outcome.badEnd
        var owed = tell(outcome, taken)
        if let lane = taken.lane { owed += lane.ended(self, badEnd, heldSlot: taken.machine.holdsSlot) }
        waiters.wake()
        for dependent in taken.dependents { owed += dependent(badEnd) }
        return owed
    }

    /// Has the notices enter their queues: first those of `taken`, then those of who came meanwhile.
    ///
    /// - Returns: whose inline notices the caller has to deliver.
    private func tell(_ outcome: Outcome<Output>, _ taken: RunFields<Output>) -> [Deliveries] {
        if taken.delegate == nil && taken.observers.isEmpty { return [] }
        let (ways, notified) = locked { ($0.deliveries, $0.notified) }
        guard let deliveries = ways else { fatalError("CommandHandle: nowhere to tell") }
        var isInline = false
        if let delivery = taken.delegate?.delivery, let notified {
            isInline = deliveries.add(
                { [transaction] in notified.take()?.tell(transaction, outcome.thrown) }, to: delivery)
        }
        var next = taken.observers.all
        while true {
            for observer in next {
                let notice: Deliveries.Notice = { if observer.registration.isOpen { observer.body(outcome) } }
                if deliveries.add(notice, to: observer.delivery) { isInline = true }
            }
            next = locked { fields in
                defer { fields.observers = Registrations() }
                fields.isTelling = !fields.observers.isEmpty
                return fields.observers.all
            }
            if next.isEmpty { return isInline ? [deliveries] : [] }
        }
    }

    /// Calls `body` once when the outcome is there, before anybody is told; delivers what it gives.
    func whenEnded(_ body: @escaping @Sendable (Outcome<Never>?) -> [Deliveries]) {
        let outcome = locked { fields -> Outcome<Output>? in
            if fields.outcome == nil { fields.dependents.append(body) }
            return fields.outcome
        }
        if let outcome { body(outcome.badEnd).deliverInline() }
    }
}

// MARK: Lanes

extension CommandHandle: LaneMember {
    /// A lane has accepted it.
    ///
    /// - Returns: whether it was not accepted before, and nobody has run it.
    func accept(_ body: TransactionBody<Output>, by lane: Lane) -> Bool {
        locked { fields in
            guard fields.machine.accept() else { return false }
            fields.held = body
            fields.lane = lane
            return true
        }
    }

    func takeTurn(on lane: Lane) -> Bool {
        let body = locked { fields -> TransactionBody<Output>? in
            fields.machine.begin() ? fields.held : nil
        }
        guard let body else { return false }
        if body.isSynchronous {
            var context = CommandContext().within(transaction, self)
            context.looksAtTask = false
            let outcome = ReentrancyMark.onThread(of: lane) { Self.outcomeNow(of: body, context) }
            end(outcome, from: nil)
        } else {
            let context = CommandContext().within(transaction, self)
            // Detached: a task in which this thread is has nothing to do with this run.
            let task = Task.detached(executorPreference: lane.scheduler) {
                let outcome = await ReentrancyMark.inTask(of: ReentrancyMark.Holders(lane)) {
                    await Self.outcome(of: body, context, in: CommandContext())
                }
                self.end(outcome, from: nil)
                return outcome
            }
            adopt(task)
        }
        return true
    }

    func latch(unstarted why: CancelReason.Kind) -> [Deliveries] {
        latch(.cancelled(CancelReason(ofRun: why)), from: .beforeStart) ?? []
    }

    func reject(_ why: CancelReason.Kind) -> Bool { end(.cancelled(CancelReason(ofRun: why)), from: .ready) }
}
