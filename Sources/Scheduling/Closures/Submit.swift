// Submit.swift - submission that cannot fail.

internal import CScheduler

extension Scheduler {
    /// Submits one operation to ``shared``, without `try`.
    ///
    /// ```swift
    /// Scheduler.submit { log.flush() }
    /// ```
    ///
    /// A submission can fail in three ways. The scheduler may be closed, but the shared one is never shut
    /// down. Its capacity may be reached, but the shared one has none. Memory may be exhausted; the process
    /// then stops, as it does when Swift cannot allocate an object or an array, or the closure itself. So
    /// there is no error for the caller to handle. Another scheduler's ``submit(_:)-method`` throws, because
    /// there the first two can happen.
    ///
    /// - Precondition: memory is available, and the process is not a forked child, where all schedulers are
    ///   closed.
    /// - Complexity: as ``submit(_:)-method``; the call never blocks.
    public static func submit(_ body: consuming @escaping @Sendable () -> Void) {
        unsafe surely(Body(body).operation(in: nil))
    }

    /// Submits one operation to ``shared``, counted in `counter` until it has returned, without `try`.
    ///
    /// ```swift
    /// Scheduler.submit(in: counter) { index(text) }
    /// ```
    ///
    /// - Precondition: as ``submit(_:)-method``.
    /// - Complexity: as ``submit(_:)-method``.
    public static func submit(
        in counter: CompletionCounter, _ body: consuming @escaping @Sendable () -> Void
    ) {
        unsafe surely(Body(body).operation(in: counter.handle))
    }

    @inline(__always)
    private static func surely(_ operation: csched_operation) {
        var operation = unsafe operation
        let status = unsafe csched_submit(shared.handle, &operation)
        guard status == .ok else {
            let reason = unsafe String(cString: csched_status_message(status))
            fatalError("Scheduler.submit: \(reason), so the shared scheduler did not accept the operation")
        }
    }
}
