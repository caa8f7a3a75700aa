// CommandHandle.swift - one run, as those see it who wait for its end: the outcome, latched.

internal import CompositeOperationsBasics
@_spi(Faces) public import Runs
internal import Scheduling
internal import Synchronization

/// One run of a command: its name, and its outcome, which is written once and can be read for ever.
///
/// All members may be used from any thread. A handle of a run that has ended keeps the outcome, and nothing of the command.
public final class CommandHandle<Output: Sendable>: @unchecked Sendable {
    // Unchecked: `fields` are used under `lock` alone; the invariants are in `RunFields`.

    /// The name of the run.
    public let transaction: CommandTransaction

    private let cancelFlag = Atomic(false)
    private let lock = WordLock()
    private var fields = RunFields<Output>()
    private let instance = Instance(.runs)

    init() { transaction = CommandTransaction() }

    func locked<Value, Failure>(_ body: (inout RunFields<Output>) throws(Failure) -> Value) throws(Failure)
        -> Value
    {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return try body(&fields)
    }

    /// The outcome; nil before it is there.
    public var result: Outcome<Output>? { locked { $0.outcome } }

    /// The outcome; waits for it. To cancel the task that waits changes nothing.
    ///
    /// - Precondition: it is not awaited in a command for what is queued behind that command, or for that command.
    public var outcome: Outcome<Output> {
        get async {
            demandNoDeadlock()
            if result == nil {
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
                locked { $0.waiters.remove(waiter) }
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
            locked { $0.waiters.remove(waiter) }
        }
        return isOver ? latchedOutcome : result
    }

    private func register(_ waiter: Waiter) -> Waiter.Registration {
        locked { fields in fields.outcome != nil ? .isOver : fields.waiters.append(waiter) }
    }

    /// Calls `body` once with the outcome, also when that is there already; unless the subscription has ended before.
    ///
    /// Those who are told at the same place are told in the order of their registration, after the delegate.
    public func onOutcome(
        _ delivery: Delivery = .inline, _ body: @escaping @Sendable (Outcome<Output>) -> Void
    ) -> Subscription {
        let registration = Registration()
        let end = locked { fields -> (Outcome<Output>, Deliveries)? in
            guard let outcome = fields.outcome, !fields.isTelling else {
                fields.observers.append(
                    RunObserver(registration: registration, delivery: delivery, body: body), registration)
                return nil
            }
            let deliveries = fields.deliveries ?? Deliveries()
            fields.deliveries = deliveries
            return (outcome, deliveries)
        }
        guard let (outcome, deliveries) = end else {
            return Subscription { [weak self, registration] in
                registration.end()
                let observer = self?.locked { $0.observers.remove(registration) }
                withExtendedLifetime(observer) {}
            }
        }
        let isInline = deliveries.add({ if registration.isOpen { body(outcome) } }, to: delivery)
        if isInline { deliveries.deliverInline() }
        return Subscription { registration.end() }
    }

    /// Cancels the run: one that has not started ends at once, and never will; one that runs is asked to end. That of a
    /// ``TransactionGroup`` cancels the runs in it, and ends when they have.
    ///
    /// - Returns: false when it has ended already.
    @discardableResult
    public func cancel() -> Bool {
        let (isInTime, owed) = latchCancelled()
        owed.deliverInline()
        return isInTime
    }

    /// As ``cancel()``, but inline notices are the caller's to deliver.
    func latchCancelled() -> (isInTime: Bool, owed: [Deliveries]) {
        cancelFlag.store(true, ordering: .releasing)
        let (cancelMembers, isInTime) = locked { ($0.cancelMembers, $0.outcome == nil) }
        if let cancelMembers { return (isInTime, cancelMembers()) }
        if let owed = latch(.cancelled(CancelReason(ofRun: .requested)), from: .beforeStart) {
            return (true, owed)
        }
        let (task, isRunning) = locked { ($0.task, $0.outcome == nil) }
        task?.cancel()
        return (isRunning, [])
    }

    /// The delegate will not be told, and is let go; also when the run has ended, and its notice is on its way.
    public func detach() {
        let (delegate, notified) = locked { fields in
            defer { fields.delegate = nil }
            return (fields.delegate, fields.notified)
        }
        let other = notified?.take()
        withExtendedLifetime((delegate, other)) {}
    }

    private var latchedOutcome: Outcome<Output> {
        guard let outcome = result else { fatalError("CommandHandle: it has not ended") }
        return outcome
    }

    private func demandNoDeadlock() {
        let (lane, isWaiting, isRunning) = locked { fields in
            let machine = fields.machine
            return (fields.lane, machine.state == .accepted, machine.state == .executing && machine.holdsSlot)
        }
        // Where one runs at a time, what runs is the code that calls.
        guard let lane, ReentrancyMark.isInside(lane),
            isWaiting && lane.isBehindWhatRuns(self) || isRunning && lane.limit == 1
        else { return }
        fatalError(
            isRunning
                ? "CommandHandle: a command waits for its own end"
                : "CommandHandle: it waits inside an invoker for what is queued behind itself")
    }
}

extension CommandHandle: Cancellable {
    var isCancelRequested: Bool { cancelFlag.load(ordering: .acquiring) }
}
