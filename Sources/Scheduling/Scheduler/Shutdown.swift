internal import CScheduler
internal import CompositeOperationsBasics

extension Scheduler {
    /// How a shutdown treats operations that have not started.
    public enum ShutdownPolicy: Hashable, Sendable {
        /// Run them, and whatever running operations still submit.
        case drain
        /// Release their closures without calling them. Jobs of Swift tasks are still run, because a task
        /// must end.
        case cancelPending
        /// Run operations that start within the duration; cancel the rest.
        case deadline(Duration)

        var timeout_ns: UInt64 {
            switch self {
            case .drain: .max
            case .cancelPending: 0
            case .deadline(let duration): max(1, duration.wholeNanoseconds)
            }
        }
    }

    /// Refuses further submissions from outside, runs or cancels waiting operations as `policy` specifies,
    /// and joins the threads.
    ///
    /// Ends every suspension. The call waits for running bodies in any case. A second call waits for the
    /// first.
    ///
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/wouldDeadlock`` on a worker of this
    ///   scheduler.
    /// - Precondition: this is not ``shared``.
    @available(
        *, noasync,
        message: "Blocks the thread; use the asynchronous shutdown(_:) (in top-level code: in a function)."
    )
    public func shutdown(_ policy: ShutdownPolicy = .drain) throws(SchedulerError) {
        demand(self !== Scheduler.shared, "Scheduler.shutdown: the shared scheduler is never shut down")
        try unsafe csched_scheduler_shutdown(handle, policy.timeout_ns).check()
    }

    /// Like the blocking `shutdown(_:)`, but waits on a temporary thread, so no pool thread is blocked.
    ///
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/wouldDeadlock`` in a task that runs on
    ///   this scheduler (the scheduler is then unchanged), or ``SchedulerError/Code/threadCreationFailed``.
    public func shutdown(_ policy: ShutdownPolicy = .drain) async throws(SchedulerError) {
        demand(self !== Scheduler.shared, "Scheduler.shutdown: the shared scheduler is never shut down")
        if Scheduler.current === self { throw SchedulerError(.wouldDeadlock) }
        let status = await withCheckedContinuation { continuation in
            let call = ShutdownCall(
                scheduler: self, timeout_ns: policy.timeout_ns, continuation: continuation)
            let context = unsafe Unmanaged.passRetained(call)
            let started = unsafe csched_call_on_thread(
                { unsafe Unmanaged<ShutdownCall>.fromOpaque($0!).takeRetainedValue().run() },
                context.toOpaque())
            if started != .ok {
                unsafe context.release()
                continuation.resume(returning: started)
            }
        }
        try status.check()
    }
}

private final class ShutdownCall: Sendable {
    let scheduler: Scheduler
    let timeout_ns: UInt64
    let continuation: CheckedContinuation<csched_status, Never>

    init(scheduler: Scheduler, timeout_ns: UInt64, continuation: CheckedContinuation<csched_status, Never>) {
        self.scheduler = scheduler
        self.timeout_ns = timeout_ns
        self.continuation = continuation
    }

    func run() {
        continuation.resume(returning: unsafe csched_scheduler_shutdown(scheduler.handle, timeout_ns))
    }
}

/// Runs `body` with a scheduler that is drained, and whose threads are joined, when the call returns.
///
/// - Parameter body: may shut the scheduler down itself.
/// - Throws: ``SchedulerError`` when the scheduler cannot be created, and what `body` throws, after the
///   drain.
@available(
    *, noasync,
    message: "Blocks the thread; use the asynchronous withScheduler(_:_:) (in top-level code: in a function)."
)
public func withScheduler<R>(
    _ configuration: Scheduler.Configuration = Scheduler.Configuration(), _ body: (Scheduler) throws -> R
) throws -> R {
    let scheduler = try Scheduler(configuration)
    let result = Result { try body(scheduler) }
    try scheduler.shutdown()
    return try result.get()
}

/// Runs `body` with a scheduler that is drained, and whose threads are joined, when the call returns.
///
/// - Parameter body: may shut the scheduler down itself.
/// - Throws: ``SchedulerError`` when the scheduler cannot be created, and what `body` throws, after the
///   drain.
public func withScheduler<R>(
    _ configuration: Scheduler.Configuration = Scheduler.Configuration(),
    isolation: isolated (any Actor)? = #isolation,
    _ body: (Scheduler) async throws -> sending R
) async throws -> sending R {
    let scheduler = try Scheduler(configuration)
    do {
        let result = try await body(scheduler)
        try await scheduler.shutdown()
        return result
    } catch {
        try await scheduler.shutdown()
        throw error
    }
}
