// Decorators.swift - commands made from commands: retried, with a timeout, repeated, chained, intercepted, wrapped.

@_spi(Faces) internal import Runs
internal import Scheduling

extension Command {
    /// Retries until the command returns or the policy has no attempt left; then throws the last error.
    ///
    /// A cancellation ends the retries at once, with a `CancellationError`. ``CommandContext/attempt`` counts the attempts. A
    /// ``TransactionCommand`` that failed is retried as a copy made by ``TransactionCommand/again(delegate:)``: its delegate
    /// is notified of the first run only.
    public func retry(_ policy: RetryPolicy) -> ClosureCommand<Output> {
        ClosureCommand { context in
            var left: (any Error)?
            return try await policy.run { attempt in
                if attempt > 1 { try context.checkCancellation() }
                // A swallowed error cannot report its leftovers, so they are recorded here.
                if let left { context.noteLeftovers(of: left) }
                var inner = context
                inner.attempt = attempt
                let parts = FailureParts(context.parts?.policy ?? .continueOnFailure)
                if context.parts != nil { inner.parts = parts }
                do {
                    let output = try await renew(self).execute(inner)
                    for part in parts.take() { context.onFailure(part) }  // what comes after it may fail
                    return output
                } catch {
                    // Undone, so that each attempt starts from the same state as the first.
                    if let failure = await takeBack(parts, after: error, context) {
                        if failure.leavesIrreversible { context.onFailure { _ in throw LeftIrreversible() } }
                        for each in failure.compensationFailures {
                            context.onFailure { _ in throw FailedBefore(error: each.error) }
                        }
                    }
                    left = error
                    throw error
                }
            }
        }
    }

    /// Cancels the command when the timeout expires, and waits for it to end. An error that it throws after that becomes
    /// ``CancelReason/Kind/timedOut``; a value is still returned.
    public func timeout(_ duration: Duration, clock: any Clock<Duration> = ContinuousClock())
        -> ClosureCommand<Output>
    {
        ClosureCommand { context in
            var inner = context
            if clock is ContinuousClock {
                let deadline = ContinuousClock.now + duration
                inner.deadline = min(context.deadline ?? deadline, deadline)
            }
            return try await self.execute(inner, for: duration, clock)
        }
    }

    private func execute(
        _ context: CommandContext, for duration: Duration, _ clock: any Clock<Duration>
    ) async throws -> Output {
        let lane = ReentrancyMark.innermost
        return try await withThrowingTaskGroup(of: TimedEvent<Output>.self) { group in
            group.addTask {
                await ReentrancyMark.inTask(of: lane) {
                    do { return .ended(.success(try await execute(context))) } catch {
                        return .ended(.failure(error))
                    }
                }
            }
            group.addTask {
                do { try await sleep(for: duration, by: clock) } catch { return .timerWasCancelled }
                return .timeIsOver
            }
            var isOver = false
            while let event = try await group.next() {
                switch event {
                case .timerWasCancelled: break
                case .timeIsOver:
                    isOver = true
                    group.cancelAll()
                case .ended(.success(let output)):
                    group.cancelAll()
                    return output
                case .ended(.failure(let error)):
                    group.cancelAll()
                    throw isOver ? CancelReason(ofRun: .timedOut, underlying: error) : error
                }
            }
            fatalError("Command.timeout: the command did not end")
        }
    }

    /// Executes the command `count` times in sequence, and returns the outputs.
    ///
    /// - Precondition: `count` is not negative.
    public func repeated(_ count: Int) -> ClosureCommand<[Output]> {
        if count < 0 { fatalError("Command.repeated: the count is \(count), and must not be negative") }
        return ClosureCommand { context in
            var outputs: [Output] = []
            outputs.reserveCapacity(count)
            for _ in 0..<count {
                try context.checkCancellation()
                outputs.append(try await self.execute(context))
            }
            return outputs
        }
    }

    /// Executes the command that `next` makes from the output. A failure ends the chain.
    public func then<Next: Command>(_ next: @escaping @Sendable (Output) throws -> Next)
        -> ClosureCommand<Next.Output>
    {
        ClosureCommand { context in
            let output = try await self.execute(context)
            try context.checkCancellation()
            return try await next(output).execute(context)
        }
    }

    /// Reports that the command finished, before any observer is notified; changes nothing.
    public func intercept(success: @escaping @Sendable (Output) async -> Void) -> ClosureCommand<Output> {
        ClosureCommand { context in
            let output = try await self.execute(context)
            await success(output)
            return output
        }
    }

    /// Reports how the command ended, before any observer is notified; changes nothing.
    public func intercept(
        success: @escaping @Sendable (Output) async -> Void = { _ in },
        failure: @escaping @Sendable (any Error) async -> Void
    ) -> ClosureCommand<Output> {
        ClosureCommand { context in
            let output: Output
            do { output = try await self.execute(context) } catch {
                context.noteFailureIsHeard()
                await failure(error)
                throw error
            }
            await success(output)
            return output
        }
    }

    /// Calls `before`, executes the command, and then calls `after` once, however the command ended. If `before` throws,
    /// neither the command nor `after` runs.
    public func around(
        before: @escaping @Sendable (CommandContext) async throws -> Void,
        after: @escaping @Sendable (CommandContext) async -> Void
    ) -> ClosureCommand<Output> {
        ClosureCommand { context in
            try await before(context)
            do {
                let output = try await self.execute(context)
                await after(context)
                return output
            } catch {
                await after(context)
                throw error
            }
        }
    }
}

private enum TimedEvent<Output: Sendable>: Sendable {
    case ended(Result<Output, any Error>)
    case timeIsOver
    case timerWasCancelled
}
