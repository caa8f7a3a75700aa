// Run.swift - a closure on a worker, and its value.

internal import CScheduler

// The task itself moves to a worker, and back: no continuation, and the body has the task's priority, its
// task-local values and its cancellation.

extension Scheduler {
    /// Runs a closure on a worker, and returns its value.
    ///
    /// ```swift
    /// let digest = try await scheduler.run { sha256(of: file) }
    /// ```
    ///
    /// The calling task moves to a worker, so no thread is blocked, and the body sees the task's local values
    /// and `Task.isCancelled`. It may block, as any operation may: ``join(_:_:)``, the blocking
    /// `forEach(_:_:)` and `wait()` of a counter are allowed inside, where an asynchronous body has
    /// to do without.
    ///
    /// When the task is cancelled before the body has begun, it does not begin. Once it has begun it runs to
    /// its end, unless it asks for the cancellation itself. A cancelled task still waits for its turn: the
    /// call returns when a worker has come by.
    ///
    /// - Parameter body: called once, or not at all. It is sent to the worker: what it captures, and what it
    ///   returns, need not be `Sendable` as long as nobody else uses it.
    /// - Throws: what `body` throws; `CancellationError`; ``SchedulerError`` with code
    ///   ``SchedulerError/Code/closed`` when the scheduler is shut down. The body was not called in the last
    ///   two cases, unless it threw them. That there are three kinds is why the type of the error is not
    ///   `body`'s.
    /// - Complexity: O(1), lock-free; the capacity does not apply, as to no job of a task.
    public nonisolated(nonsending) func run<Value>(
        _ body: sending @escaping () throws -> sending Value
    ) async throws -> sending Value {
        // Sent to this call, called once: in the task, wherever the task is then.
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
    /// The body, and the child tasks that it makes, run on the workers, as with
    /// `withTaskExecutorPreference(_:operation:)`; what is isolated to an actor runs where the actor does.
    ///
    /// When the task is cancelled before the body has begun, it does not begin; once it has begun, it learns
    /// of the cancellation as every asynchronous function does.
    ///
    /// - Parameter body: called once, or not at all.
    /// - Throws: what `body` throws; `CancellationError`; ``SchedulerError`` with code
    ///   ``SchedulerError/Code/closed`` when the scheduler is shut down before the body begins. What is left
    ///   of a body that has begun goes on on ``shared`` after a shutdown.
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
            // A job that finds its scheduler shut down runs on the shared one, and one that waits when a
            // shutdown cancels is run all the same.
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

/// A value on its way from one isolation to another, with nobody else to use it.
private struct Kept<Value>: @unchecked Sendable {
    nonisolated(unsafe) let value: Value
}
