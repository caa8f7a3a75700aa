internal import CScheduler
internal import CompositeOperationsBasics

/// An operation that was submitted for later, once or again and again.
///
/// ```swift
/// let reminder = try scheduler.submit(after: .seconds(30)) { remind() }
/// if reminder.cancel() { print("nobody is reminded") }
/// ```
///
/// Nobody has to keep it: when the last reference goes, the operation stays set. It keeps its scheduler.
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
    /// A repeating operation that runs now ends its run; no other run begins.
    ///
    /// - Returns: whether it was in time. False: the operation was submitted already, or cancelled before.
    /// - Complexity: O(1), lock-free.
    @discardableResult
    public func cancel() -> Bool { unsafe csched_timer_cancel(timer) }
}

extension Scheduler {
    /// Submits one operation when a time has passed.
    ///
    /// The scheduler keeps its timers on one thread of their own, which wakes up when one is due: a million of
    /// them cost no task and no thread each. The operation is submitted no earlier, and some 0.1 ms later on
    /// an idle machine; the capacity does not apply then. Every shutdown, also one that drains, cancels what is
    /// still to come.
    ///
    /// ```swift
    /// try scheduler.submit(after: .milliseconds(250)) { refresh() }
    /// ```
    ///
    /// - Parameters:
    ///   - delay: at once when it is not positive, and never, as far as anybody can tell, beyond 584 years. On
    ///     the monotonic clock, which stands still while the machine is suspended.
    ///   - counter: counts the operation from now on, until it has returned or was cancelled.
    /// - Returns: what cancels it.
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/closed``,
    ///   ``SchedulerError/Code/outOfMemory``, or at the first timer of a scheduler
    ///   ``SchedulerError/Code/threadCreationFailed``; `body` is released without being called then.
    /// - Complexity: O(1), lock-free but for the first, two allocations beside the closure's own context.
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
    /// - Parameter instant: at once when it has passed. It is turned into a delay now: time in which the machine
    ///   is suspended does not count.
    /// - Returns: what cancels it.
    /// - Throws: as ``submit(after:in:_:)``.
    /// - Complexity: as ``submit(after:in:_:)``.
    @discardableResult
    public func submit(
        at instant: ContinuousClock.Instant, in counter: CompletionCounter? = nil,
        _ body: consuming @escaping @Sendable () -> Void
    ) throws(SchedulerError) -> ScheduledOperation {
        try submit(after: ContinuousClock.now.duration(to: instant), in: counter, body)
    }

    /// Submits an operation again and again, at a fixed rate.
    ///
    /// Its times are counted from the first one, so that it does not drift. It never runs beside itself: when a
    /// run is longer than the interval, the times that pass meanwhile are left out. What a run wrote is visible
    /// to the next.
    ///
    /// ```swift
    /// let heartbeat = try scheduler.submit(every: .seconds(1)) { sendHeartbeat() }
    /// ```
    ///
    /// - Parameters:
    ///   - interval: the time between two beginnings.
    ///   - delay: the time until the first one; nil: one interval.
    ///   - counter: counts the operation as one, from now on until it was cancelled and its last run has
    ///     returned.
    /// - Returns: what ends it. So does a shutdown, of any kind.
    /// - Throws: as ``submit(after:in:_:)``.
    /// - Precondition: `interval` is positive.
    /// - Complexity: as ``submit(after:in:_:)``; nothing is allocated for a run.
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

    /// Calls a function with an object on the timers' own thread, after a while: something short that blocks
    /// nowhere.
    ///
    /// - Returns: what cancels it: then the function is told so, by the one who cancels.
    /// - Throws: as ``submit(after:in:_:)``; `function` is not called then.
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

/// The C function of a closure that repeats: it is taken over when it is called no more.
private func runRepeatingBody(
    _ code: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?, _ disposition: csched_disposition
) {
    let body = unsafe Body(taking: (code, context))
    if disposition == .run {
        body.run()
        _ = unsafe body.words()
    }
}
