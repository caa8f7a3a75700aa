// Timers.swift - timeouts, deadlines and pauses: one timer of the shared scheduler for each that is running; a sleeping
// task instead for each that is on a user's clock.

@_spi(Faces) internal import Runs
internal import Scheduling

/// An event that happens to an operation after a while, unless it is disarmed.
final class OperationTimer: @unchecked Sendable {
    // Unchecked: `running` and `isDisarmed` are guarded by the lock of `state`.

    enum Kind: Equatable {
        case whole
        case deadline
        case attempt(Int32)
        case pause(Int32)
        /// The end of that attempt may have been forgotten.
        case forgotten(Int32)

        var isOfAttempt: Bool {
            switch self {
            case .attempt, .forgotten: true
            case .whole, .deadline, .pause: false
            }
        }
    }

    private enum Running {
        case scheduled(ScheduledOperation)
        case task(Task<Void, Never>)
    }

    let kind: Kind
    /// Its expiry is reported, and changes nothing.
    var isDiagnostic: Bool { if case .forgotten = kind { true } else { false } }
    private weak let operation: AnyOperation?
    private let duration: Duration
    private let clock: any Clock<Duration>
    private let state = Guarded<(running: Running?, isDisarmed: Bool)>((nil, false))

    init(_ kind: Kind, of operation: AnyOperation, after duration: Duration, clock: any Clock<Duration>) {
        self.kind = kind
        self.operation = operation
        // Clocks stop the process on durations that they cannot represent.
        self.duration = min(max(duration, .zero), .longest)
        self.clock = clock
    }

    /// Arming and disarming are effects, which may come in either order.
    func arm() {
        if state.withLock({ $0.isDisarmed }) { return }
        let running = start()
        if state.withLock({ state in
            state.running = running
            return state.isDisarmed
        }) {
            cancel(running)
        }
    }

    private func start() -> Running {
        // If there is no thread for timers, a task does it.
        if clock is ContinuousClock,
            let scheduled = try? Scheduler.shared.call(
                after: duration, job: self,
                { timer, isCancelled in
                    let timer = Unmanaged<OperationTimer>.fromOpaque(timer).takeRetainedValue()
                    // Not on the timers' thread, as user handlers follow. And not on a worker: all workers may be
                    // waiting for just this.
                    if !isCancelled { Task.detached { timer.fire() } }
                })
        {
            return .scheduled(scheduled)
        }
        return .task(
            Task.detached { [clock, duration] in
                do {
                    try await clock.sleep(for: duration)
                    self.fire()
                } catch {
                    // Otherwise it was disarmed.
                    if !Task.isCancelled { self.operation?.clockHasFailed(error, self) }
                }
            })
    }

    func disarm() {
        let running = state.withLock { state in
            state.isDisarmed = true
            return state.running
        }
        if let running { cancel(running) }
    }

    private func cancel(_ running: Running) {
        switch running {
        case .scheduled(let scheduled): scheduled.cancel()
        case .task(let task):
            // On a user's clock, ending a sleep runs user code.
            if clock is ContinuousClock { task.cancel() } else { task.cancelElsewhere() }
        }
    }

    private func fire() { operation?.timeIsOver(self) }
}

extension AnyOperation {
    /// Under the lock.
    final func arm(
        _ kind: OperationTimer.Kind, after duration: Duration, clock: any Clock<Duration>,
        _ effects: inout Effects
    ) {
        let timer = OperationTimer(kind, of: self, after: duration, clock: clock)
        ensureExtras().timers.append(timer)
        effects.add(.arm(timer))
    }

    /// Arms its deadline: called when it begins, and when it begins to wait for its composite. Under the lock.
    final func armDeadline(_ effects: inout Effects) {
        guard let extras, let deadline = extras.options?.deadline,
            !extras.timers.contains(where: { $0.kind == .deadline })
        else { return }
        arm(
            .deadline, after: ContinuousClock.now.duration(to: deadline), clock: ContinuousClock(), &effects)
    }

    /// Its turn has come: ends it if its deadline has passed. Under the lock.
    final func endIfTooLate(_ effects: inout Effects) {
        guard let deadline = extras?.options?.deadline, deadline <= .now else { return }
        timeIsOver(&effects)
    }

    /// Under the lock.
    private final func timeIsOver(_ effects: inout Effects) {
        guard canEnd(nil) else { return }
        composition?.postNotice(to: self, &effects)
        end(.cancelled, .cancelled(CancelReason(.timedOut)), &effects)
    }

    /// An attempt begins. Under the lock.
    final func armAttemptTimeout(_ effects: inout Effects) {
        guard let options = extras?.options, let timeout = options.attemptTimeout else { return }
        arm(.attempt(machine.attempt), after: timeout, clock: options.clock, &effects)
    }

    final func timeIsOver(_ timer: OperationTimer) {
        switch timer.kind {
        case .pause(let number):
            extrasForget(timer)
            pauseIsOver(number)
        case .forgotten(let number):
            extrasForget(timer)
            change { effects in
                guard machine.attempt == number, machine.awaitsItsEnd else { return }
                if gateIsOpen {
                    tell("its block returned 5 s ago, and finish() has not been called yet", &effects)
                } else {
                    watchForFinish(&effects)  // it may be waiting for the gate
                }
            }
        case .whole, .deadline:
            change { effects in
                // Not a timer that was disarmed too late, after the operation had begun again.
                if extras?.timers.contains(where: { $0 === timer }) == true { timeIsOver(&effects) }
            }
        case .attempt(let number):
            let reason = CancelReason(.timedOut)
            let cause = Cause(index: nil, child: nil, outcome: .cancelled(reason))
            change { effects in
                guard machine.attempt == number, machine.phase == .executing else { return }
                if let composition {
                    composition.attemptEnded(cause, of: self, &effects)
                } else if let resolver = extras?.options?.resolver {
                    if !resolve(resolver, cause, isOwnWish: false, &effects) { decideByCause(&effects) }
                } else {
                    end(.cancelled, .cancelled(reason), &effects)
                }
            }
        }
    }

    /// Its clock failed while measuring a time that still matters, so the operation fails. If that was the time of an
    /// attempt, a resolver may begin another one.
    final func clockHasFailed(_ error: any Error, _ timer: OperationTimer) {
        change { effects in
            guard extras?.timers.contains(where: { $0 === timer }) == true, canEnd(nil) else { return }
            if timer.kind.isOfAttempt, !isComposite {
                fail(error, &effects)
            } else {
                composition?.postNotice(to: self, &effects)
                end(.failed, .failed(error), &effects)
            }
        }
    }

    private final func extrasForget(_ timer: OperationTimer) {
        look { extras?.timers.removeAll { $0 === timer } }
    }
}
