// CommandHandle.swift - one run, as its waiters see it: the latched outcome.

internal import CompositeOperationsBasics
@_spi(Faces) public import Runs
internal import Scheduling

/// One run of a command: its name, and its outcome, which is written once and can be read any number of times.
///
/// All members may be used from any thread. The handle of a run that has ended keeps the outcome but not the command.
public final class CommandHandle<Output: Sendable>: CommandRun, @unchecked Sendable {
    // Unchecked: `kept` is accessed only under the run's lock, and in `deinit`.

    /// The value of the run; present if the run has finished.
    @exclusivity(unchecked) private var kept = ValueStorage()

    @usableFromInline override init() { super.init() }

    deinit { if hasFinished { kept.destroy(Output.self) } }

    override func takeTurn(on lane: Lane) -> Bool { turn(on: lane) }

    /// The outcome; nil before the end.
    public var result: Outcome<Output>? {
        locked { fields in
            guard fields.machine.hasOutcome else { return nil }
            guard let badEnd = fields.badEnd else { return .finished(kept.load(Output.self)) }
            fields.unseen?.see()
            return Outcome(badEnd)
        }
    }

    /// The outcome; waits for it. Cancelling the waiting task has no effect.
    ///
    /// - Precondition: a command awaits neither its own outcome nor that of a run queued behind it.
    public var outcome: Outcome<Output> {
        get async {
            demandNoDeadlock()
            if !isOver {
                await Waiter.wait { waiter in register(waiter) }
            }
            return latchedOutcome
        }
    }

    /// The value; waits for it.
    ///
    /// Throws what ``TransactionCommand/execute(_:)`` throws; or a `CancellationError` as soon as the waiting task is cancelled,
    /// which does not cancel the run.
    ///
    /// - Precondition: as for ``outcome``.
    public var value: Output {
        get async throws {
            demandNoDeadlock()
            if let outcome = result { return try outcome.get() }
            let wakening = await Waiter.wait { waiter in
                register(waiter)
            } orCancelledBy: { [self] waiter in
                remove(waiter)
            }
            if wakening == .cancelled { throw CancellationError() }
            return try latchedOutcome.get()
        }
    }

    /// Blocks the calling thread until the outcome is set. On a scheduler's worker, another worker takes its place in the meantime.
    ///
    /// - Parameter timeout: nil waits without limit.
    /// - Returns: nil if the timeout expired first.
    /// - Precondition: as for ``outcome``.
    @available(*, noasync, message: "Blocks the thread; await the outcome.")
    public func wait(timeout: Duration? = nil) -> Outcome<Output>? {
        if let outcome = result { return outcome }
        demandNoDeadlock()
        let isOver = Waiter.block(timeout: timeout) { waiter in
            register(waiter)
        } remove: { waiter in
            remove(waiter)
        }
        return isOver ? latchedOutcome : result
    }

    /// Calls `body` once with the outcome, even if the run has already ended, unless the subscription ends first.
    ///
    /// Observers at the same place are notified in registration order, after the delegate.
    public func onOutcome(
        _ delivery: Delivery = .inline, _ body: @escaping @Sendable (Outcome<Output>) -> Void
    ) -> Subscription {
        let registration = Registration()
        let isOver = locked { fields in
            if fields.machine.hasOutcome, !fields.isBehind(delivery) { return true }
            let observer = RunObserver(registration: registration, delivery: delivery) { run in
                body(unsafeDowncast(run, to: CommandHandle.self).latchedOutcome)
            }
            fields.observers.append(observer, registration)
            return false
        }
        guard isOver else {
            return Subscription { [weak self, registration] in
                registration.end()
                let observer = self?.locked { $0.observers.remove(registration) }
                withExtendedLifetime(observer) {}
            }
        }
        let outcome = latchedOutcome
        let deliveries = deliveries
        let isInline = deliveries.add({ if registration.isOpen { body(outcome) } }, to: delivery)
        if isInline { deliveries.deliverInline() }
        return Subscription { registration.end() }
    }

    private var latchedOutcome: Outcome<Output> {
        guard let outcome = result else { fatalError("CommandHandle: it has not ended") }
        return outcome
    }

    /// Latches the outcome and notifies observers.
    ///
    /// - Parameter origin: nil for a claimed run; otherwise, the states from which the run may be ended.
    func end(_ outcome: Outcome<Output>, from origin: RunMachine.Origin?) {
        latch(outcome.badEnd, from: origin, tellsAtOnce: true) { keep(outcome) }?.deliverInline()
    }

    /// As ``end(_:from:)``, but leaves the delivery of inline notices to the caller.
    ///
    /// - Returns: nil if this end did not become the outcome.
    func latch(_ outcome: Outcome<Output>, from origin: RunMachine.Origin?) -> [Deliveries]? {
        latch(outcome.badEnd, from: origin) { keep(outcome) }
    }

    /// Stores the value, if there is one. Under the lock.
    private func keep(_ outcome: Outcome<Output>) {
        if case .finished(let value) = outcome { kept.store(value) }
    }

    /// As ``end(_:from:)``, for a claimed run that finished.
    func finish(_ value: Output) {
        latch(nil, from: nil, tellsAtOnce: true) { kept.store(value) }?.deliverInline()
    }
}
