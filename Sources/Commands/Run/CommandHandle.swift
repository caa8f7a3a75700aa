// CommandHandle.swift - one run, as those see it who wait for its end: the outcome, latched.

internal import CompositeOperationsBasics
@_spi(Faces) public import Runs
internal import Scheduling

/// One run of a command: its name, and its outcome, which is written once and can be read for ever.
///
/// All members may be used from any thread. A handle of a run that has ended keeps the outcome, and nothing of the command.
public final class CommandHandle<Output: Sendable>: CommandRun, @unchecked Sendable {
    // Unchecked: `kept` is used under the run's lock alone, and in `deinit`.

    /// The value that it gave: there, if it has finished.
    @exclusivity(unchecked) private var kept = ValueStorage()

    @usableFromInline override init() { super.init() }

    deinit { if hasFinished { kept.destroy(Output.self) } }

    override func takeTurn(on lane: Lane) -> Bool { turn(on: lane) }

    /// The outcome; nil before it is there.
    public var result: Outcome<Output>? {
        locked { fields in
            guard fields.machine.hasOutcome else { return nil }
            guard let badEnd = fields.badEnd else { return .finished(kept.load(Output.self)) }
            fields.unseen?.see()
            return Outcome(badEnd)
        }
    }

    /// The outcome; waits for it. To cancel the task that waits changes nothing.
    ///
    /// - Precondition: it is not awaited in a command for what is queued behind that command, or for that command.
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
    /// Throws what ``TransactionCommand/execute(_:)`` throws; or a `CancellationError` as soon as the task that waits is cancelled,
    /// which cancels nothing else.
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

    /// Blocks the calling thread until the outcome is there. On a worker of a scheduler, another one takes its
    /// place meanwhile.
    ///
    /// - Parameter timeout: nil: however long it takes.
    /// - Returns: nil when the time was over first.
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

    /// Calls `body` once with the outcome, also when that is there already; unless the subscription has ended before.
    ///
    /// Observers at the same place are told in the order of their registration, after the delegate.
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

    /// Latches the outcome and tells it.
    ///
    /// - Parameter origin: where it was not claimed.
    func end(_ outcome: Outcome<Output>, from origin: RunMachine.Origin?) {
        latch(outcome.badEnd, from: origin, tellsAtOnce: true) { keep(outcome) }?.deliverInline()
    }

    /// As ``end(_:from:)``, but inline notices are the caller's to deliver.
    ///
    /// - Returns: nil when the outcome is another.
    func latch(_ outcome: Outcome<Output>, from origin: RunMachine.Origin?) -> [Deliveries]? {
        latch(outcome.badEnd, from: origin) { keep(outcome) }
    }

    /// Under the lock.
    private func keep(_ outcome: Outcome<Output>) {
        if case .finished(let value) = outcome { kept.store(value) }
    }

    /// As ``end(_:from:)``, of one that was claimed, and finished.
    func finish(_ value: Output) {
        latch(nil, from: nil, tellsAtOnce: true) { kept.store(value) }?.deliverInline()
    }
}
