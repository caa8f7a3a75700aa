// CommandHandle+Run.swift - how a run is claimed, executed and ended: the part that knows the output type.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Scheduling

extension CommandHandle {
    /// - Throws: ``CommandUsageError/alreadyExecuted`` and ``CommandUsageError/broken``.
    func claim() throws(CommandUsageError) -> RunClaim {
        try locked { fields throws(CommandUsageError) in try fields.machine.claim() }
    }

    /// Executes a claimed run and ends it.
    ///
    /// - Throws: the error with which the run ended.
    func perform(
        _ body: TransactionBody<Output>, _ context: CommandContext, _ claim: RunClaim
    ) async throws -> Output {
        if body.isSynchronous { return try performNow(body, context, claim) }
        // Cancelling the handle cancels only the first run, the one that it names.
        let inner = context.within(transaction, claim == .first ? self : nil)
        // A separate task, so that `cancel()` cancels the work and not its caller.
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
        if claim == .first { end(outcome, from: nil) } else { endAgain(outcome.isFinished, body) }
        return try outcome.get()
    }

    /// As ``perform(_:_:_:)``, on the calling thread.
    func performNow(
        _ body: TransactionBody<Output>, _ context: CommandContext, _ claim: RunClaim
    ) throws -> Output {
        let inner = context.within(transaction, claim == .first ? self : nil)
        let value: Output
        do { value = try body.runSynchronously(inner) } catch {
            let badEnd = body.end(of: error, inner)
            context.noteLeftovers(of: error, unlessIn: badEnd)
            if claim == .first { end(badEnd, from: nil) } else { endAgain(false, body) }
            throw badEnd.thrown!  // a bad end always has an error
        }
        if claim == .first { finish(value) } else { endAgain(true, body) }
        return value
    }

    /// See ``RunMachine/beginUndo(goesOn:)``.
    func beginUndo(goesOn: Bool) throws(CommandUsageError) {
        try locked { fields throws(CommandUsageError) in try fields.machine.beginUndo(goesOn: goesOn) }
    }

    private func endAgain(_ isFinished: Bool, _ body: TransactionBody<Output>) {
        let isRolledBack = body.isRolledBack
        locked { $0.machine.endAgain(finished: isFinished, isRolledBack: isRolledBack) }
    }

    /// - Parameter outer: the context of the enclosing run; records leftovers of this run that its error does not
    ///   report.
    private static func outcome(
        of body: TransactionBody<Output>, _ context: CommandContext, in outer: CommandContext
    ) async -> Outcome<Output> {
        do { return .finished(try await body.run(context)) } catch {
            let end = body.end(of: error, context)
            outer.noteLeftovers(of: error, unlessIn: end)
            return Outcome(end)
        }
    }
}

// MARK: Lanes

extension CommandHandle {
    func turn(on lane: Lane) -> Bool {
        guard let held = beginTurn() else { return false }
        let body = unsafeDowncast(held, to: TransactionBody<Output>.self)
        let context = CommandContext(of: self, looksAtTask: !body.isSynchronous)
        if body.isSynchronous {
            let value: Output
            do { value = try ReentrancyMark.onThread(of: lane) { try body.runSynchronously(context) } } catch
            {
                end(body.end(of: error, context), from: nil)
                return true
            }
            finish(value)
        } else {
            // Detached: the task current on this thread, if any, has nothing to do with this run.
            let task = Task.detached(executorPreference: lane.scheduler) {
                let outcome = await ReentrancyMark.inTask(of: ReentrancyMark.Holders(lane)) {
                    await Self.outcome(of: body, context, in: CommandContext())
                }
                self.end(outcome, from: nil)
            }
            adopt(task)
        }
        return true
    }
}
