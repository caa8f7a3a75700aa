// Run.swift - runs a closure on a worker, and returns its value.

internal import CScheduler

// The task itself moves to a worker and back: no continuation is needed, and the body has the task's
// priority, task-local values and cancellation.

extension Scheduler {
    /// Runs a closure on a worker, and returns its value.
    ///
    /// ```swift
    /// let digest = try await scheduler.run { sha256(of: file) }
    /// ```
    ///
    /// The calling task moves to a worker, so no thread is blocked, and the body sees the task's local values
    /// and `Task.isCancelled`. The body may block, as any operation may. Unlike an asynchronous body, it may
    /// use ``join(_:_:)``, the blocking `forEach(_:_:)`, and `wait()` of a counter.
    ///
    /// If the task is cancelled before the body has begun, the body does not begin. Once begun, it runs to
    /// its end unless it checks for cancellation itself. A cancelled task still waits for its turn: the call
    /// returns once a worker has picked up its job.
    ///
    /// - Parameter body: called once, or not at all. The closure is sent to the worker: its captures and its
    ///   result need not be `Sendable`, provided that no other code uses them.
    /// - Throws: what `body` throws; `CancellationError`; ``SchedulerError`` with code
    ///   ``SchedulerError/Code/closed`` when the scheduler is shut down. In the last two cases the body was
    ///   not called, unless it threw the error itself. Because there are three kinds of errors, the error
    ///   type is not that of `body`.
    /// - Complexity: O(1), lock-free; the capacity does not apply, as for any job of a task.
    public nonisolated(nonsending) func run<Value>(
        _ body: sending @escaping () throws -> sending Value
    ) async throws -> sending Value {
        // Safe: the body was sent to this call, and only this task calls it, at most once.
        nonisolated(unsafe) let body = body
        return try await onWorker { try unsafe body() }
    }

    /// Runs an asynchronous closure with this scheduler as its executor, and returns its value.
    ///
    /// ```swift
    /// let report = try await scheduler.run {
    ///     async let sales = load("sales")
    ///     async let costs = load("costs")
    ///     return try await Report(sales, costs)
    /// }
    /// ```
    ///
    /// The body, and the child tasks that it creates, run on the workers, as with
    /// `withTaskExecutorPreference(_:operation:)`; code isolated to an actor runs where the actor does.
    ///
    /// If the task is cancelled before the body has begun, the body does not begin; once begun, it observes
    /// cancellation like any asynchronous function.
    ///
    /// - Parameter body: called once, or not at all.
    /// - Throws: what `body` throws; `CancellationError`; ``SchedulerError`` with code
    ///   ``SchedulerError/Code/closed`` when the scheduler is shut down before the body begins. After a
    ///   shutdown, the rest of a body that has begun runs on ``shared``.
    public nonisolated(nonsending) func run<Value>(
        _ body: sending @escaping @concurrent () async throws -> sending Value
    ) async throws -> sending Value {
        nonisolated(unsafe) let body = body
        return try await onWorker { try await unsafe body() }
    }

    private nonisolated(nonsending) func onWorker<Value>(
        _ body: @escaping @concurrent () async throws -> sending Value
    ) async throws -> sending Value {
        try Task.checkCancellation()
        nonisolated(unsafe) let body = body
        let scheduler = self
        let begin: @concurrent @Sendable () async throws -> Kept<Value> = {
            // A job whose scheduler is shut down runs on the shared one. A job that is still queued when a
            // shutdown cancels operations runs, too.
            guard unsafe csched_scheduler_current() == scheduler.handle,
                unsafe !csched_scheduler_is_cancelling(scheduler.handle)
            else {
                throw SchedulerError(.closed)
            }
            try Task.checkCancellation()
            return unsafe Kept(value: try await body())
        }
        let kept = try await withTaskExecutorPreference(self) { try await begin() }
        return unsafe kept.value
    }
}

/// A value in transit from one isolation domain to another; no other code uses it.
private struct Kept<Value>: @unchecked Sendable {
    nonisolated(unsafe) let value: Value
}
