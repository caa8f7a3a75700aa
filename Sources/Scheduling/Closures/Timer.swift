internal import CScheduler
internal import CompositeOperationsBasics

/// An operation submitted to run later, once or repeatedly.
///
/// ```swift
/// let reminder = try scheduler.submit(after: .seconds(30)) { remind() }
/// if reminder.cancel() { print("nobody is reminded") }
/// ```
///
/// This object need not be kept: the operation stays scheduled when the last reference is released. The object
/// keeps its scheduler alive.
///
/// - SeeAlso: `ScheduledFuture` of Java, `Scheduled` of SwiftNIO.
@safe
public final class ScheduledOperation: Sendable {
    // Sendable: the C side synchronises every call, and the last use is `deinit`.
    nonisolated(unsafe) private let timer: OpaquePointer
    // Outlives the timer.
    private let scheduler: Scheduler

    fileprivate init(_ timer: OpaquePointer, of scheduler: Scheduler) {
        unsafe self.timer = timer
        self.scheduler = scheduler
    }

    deinit { unsafe csched_timer_release(timer) }

    /// Cancels the operation: its closure is released without being called, or called again.
    ///
    /// If a repeating operation is running, that run completes; no other run begins.
    ///
    /// - Returns: whether the call was in time; false if the operation was already submitted or cancelled.
    /// - Complexity: O(1), lock-free.
    @discardableResult
    public func cancel() -> Bool { unsafe csched_timer_cancel(timer) }
}

extension Scheduler {
    /// Submits one operation after a delay.
    ///
    /// The scheduler keeps its timers on one dedicated thread, which wakes up when a timer is due, so a timer
    /// needs no task or thread of its own. The operation is never submitted early; on an idle machine it is
    /// about 0.1 ms late. The capacity does not apply to it. Every shutdown, even one that drains, cancels
    /// pending timers.
    ///
    /// ```swift
    /// try scheduler.submit(after: .milliseconds(250)) { refresh() }
    /// ```
    ///
    /// - Parameters:
    ///   - delay: submits immediately if not positive, and in effect never if beyond 584 years. Measured on the
    ///     monotonic clock, which stops while the machine is suspended.
    ///   - counter: counts the operation from now on, until it has returned or is cancelled.
    /// - Returns: an object that cancels the operation.
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/closed``,
    ///   ``SchedulerError/Code/outOfMemory``, or, at the first timer of a scheduler,
    ///   ``SchedulerError/Code/threadCreationFailed``; `body` is then released without being called.
    /// - Complexity: O(1), lock-free except for the first timer; two allocations besides the closure's own
    ///   context.
    @discardableResult
    public func submit(
        after delay: Duration, in counter: CompletionCounter? = nil,
        _ body: consuming @escaping @Sendable () -> Void
    ) throws(SchedulerError) -> ScheduledOperation {
        var operation = unsafe Body(body).operation(in: counter?.handle)
        var timer: OpaquePointer?
        let status = unsafe csched_submit_after(handle, &operation, delay.wholeNanoseconds, &timer)
        return unsafe try scheduled(timer, operation, status)
    }

    /// Submits one operation at an instant.
    ///
    /// - Parameter instant: submits immediately if it has passed. The instant is converted to a delay now, so
    ///   time during which the machine is suspended does not count.
    /// - Returns: an object that cancels the operation.
    /// - Throws: as ``submit(after:in:_:)``.
    /// - Complexity: as ``submit(after:in:_:)``.
    @discardableResult
    public func submit(
        at instant: ContinuousClock.Instant, in counter: CompletionCounter? = nil,
        _ body: consuming @escaping @Sendable () -> Void
    ) throws(SchedulerError) -> ScheduledOperation {
        try submit(after: ContinuousClock.now.duration(to: instant), in: counter, body)
    }

    /// Submits an operation repeatedly, at a fixed rate.
    ///
    /// Due times are computed from the first one, so the rate does not drift. Runs never overlap: when a run
    /// takes longer than the interval, the due times that pass meanwhile are skipped. A run's writes are visible
    /// to the next run.
    ///
    /// ```swift
    /// let heartbeat = try scheduler.submit(every: .seconds(1)) { sendHeartbeat() }
    /// ```
    ///
    /// - Parameters:
    ///   - interval: the time between the starts of two runs.
    ///   - delay: the time until the first run; one interval if nil.
    ///   - counter: counts the operation as one, from now on, until it is cancelled and its last run has
    ///     returned.
    /// - Returns: an object that cancels the operation. A shutdown of any kind cancels it, too.
    /// - Throws: as ``submit(after:in:_:)``.
    /// - Precondition: `interval` is positive.
    /// - Complexity: as ``submit(after:in:_:)``; nothing is allocated per run.
    @discardableResult
    public func submit(
        every interval: Duration, startingAfter delay: Duration? = nil, in counter: CompletionCounter? = nil,
        _ body: consuming @escaping @Sendable () -> Void
    ) throws(SchedulerError) -> ScheduledOperation {
        demand(interval > .zero, "Scheduler.submit(every:): the interval must be positive")
        var operation = unsafe Body(body).operation(in: counter?.handle)
        unsafe operation.run = runRepeatingBody
        var timer: OpaquePointer?
        let status = unsafe csched_submit_every(
            handle, &operation, (delay ?? interval).wholeNanoseconds, max(1, interval.wholeNanoseconds),
            &timer)
        return unsafe try scheduled(timer, operation, status)
    }

    /// Calls a function with an object on the timer thread, after a delay. The function must be short and must
    /// not block.
    ///
    /// - Returns: an object that cancels the call; the cancelling thread then calls the function with
    ///   `isCancelled` set.
    /// - Throws: as ``submit(after:in:_:)``; `function` is then not called.
    package func call(after delay: Duration, job object: AnyObject, _ function: JobFunction)
        throws(SchedulerError) -> ScheduledOperation
    {
        var operation = unsafe jobOperation(object, function)
        var timer: OpaquePointer?
        let status = unsafe csched_call_after(handle, &operation, delay.wholeNanoseconds, &timer)
        if status != .ok { unsafe Unmanaged.passUnretained(object).release() }
        try status.check()
        return unsafe ScheduledOperation(timer!, of: self)
    }

    private func scheduled(_ timer: OpaquePointer?, _ operation: csched_operation, _ status: csched_status)
        throws(SchedulerError) -> ScheduledOperation
    {
        if status != .ok {
            unsafe operation.run(operation.context, operation.extra, .cancel)
            try status.check()
        }
        return unsafe ScheduledOperation(timer!, of: self)
    }
}

/// The C function of a repeating closure. Consumes the closure only when it will not be called again.
private func runRepeatingBody(
    _ code: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?, _ disposition: csched_disposition
) {
    let body = unsafe Body(taking: (code, context))
    if disposition == .run {
        body.run()
        _ = unsafe body.words()
    }
}
