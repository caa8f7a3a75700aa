internal import CScheduler

/// Counts the operations of a group that have not completed, and signals when none are left.
///
/// ```swift
/// let counter = try CompletionCounter()
/// try scheduler.submit(in: counter) { resize(image) }
/// try scheduler.submit(in: counter) { index(text) }
/// guard counter.wait(timeout: .milliseconds(250)) == .completed else { throw Timeout() }
/// ```
///
/// When the count falls to zero, a *generation* is complete: its waiters are released, even if the next generation has
/// begun by then. Writes by the generation's operations are visible to the released waiters.
///
/// A counter may be released while operations are outstanding: its memory is freed when the last of them completes.
///
/// - SeeAlso: `DispatchGroup`, with the same enter, leave, wait and notify.
@safe
public final class CompletionCounter: Sendable {
    // Sendable: the C side synchronises every call, and the last use is `deinit`.
    nonisolated(unsafe) let handle: OpaquePointer

    /// Creates a counter at zero.
    ///
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/outOfMemory``.
    /// - Complexity: O(1), two allocations.
    public init() throws(SchedulerError) {
        guard let handle = unsafe csched_completion_create() else { throw SchedulerError(.outOfMemory) }
        unsafe self.handle = handle
    }

    deinit { unsafe csched_completion_release(handle) }

    /// Adds operations to the current generation.
    ///
    /// - Parameter count: how many; at least 0.
    /// - Precondition: no more than 2²⁹ − 1 operations are outstanding.
    /// - Complexity: O(1), lock-free, allocates nothing.
    public func enter(_ count: Int = 1) {
        guard let count = UInt32(exactly: count) else {
            fatalError("CompletionCounter.enter: \(count) is not a count from 0 to 2^29 - 1")
        }
        unsafe csched_completion_enter(handle, count)
    }

    /// Removes one operation.
    ///
    /// - Returns: whether it was the last of its generation; exactly one call per generation returns true.
    /// - Precondition: an earlier ``enter(_:)`` matches the call.
    /// - Complexity: O(1), lock-free, allocates nothing; the call that completes a generation also runs the bodies passed
    ///   to ``notify(_:)``.
    @discardableResult
    public func leave() -> Bool { unsafe csched_completion_leave(handle, 1) }

    /// The number of operations outstanding at some moment during the call.
    ///
    /// Above 0, the value may be too high by up to 1,024 for each worker that runs operations of the counter, because
    /// workers leave in batches and enter in advance. 0 is exact.
    public var outstanding: Int { Int(unsafe csched_completion_outstanding(handle)) }

    /// How a wait ended.
    public enum WaitOutcome: Hashable, Sendable {
        /// The generation is complete.
        case completed
        /// The timeout expired first; the operations continue.
        case timedOut
    }

    /// Blocks the calling thread until the current generation is complete, or a timeout expires.
    ///
    /// The call runs no operations on the caller's stack. If the caller is a worker of a scheduler, another worker takes
    /// its place meanwhile.
    ///
    /// - Parameter timeout: how long to wait, on the monotonic clock; zero polls without waiting.
    /// - Returns: ``WaitOutcome/completed`` immediately if nothing is outstanding.
    @available(*, noasync, message: "Blocks the thread; use `await completed()`.")
    public func wait(timeout: Duration) -> WaitOutcome {
        switch unsafe csched_completion_wait(handle, timeout.wholeNanoseconds) {
        case .completed: .completed
        case .timedOut: .timedOut
        }
    }

    /// Which operations a wait on a worker runs meanwhile, nested on the worker's stack.
    public enum Help: Hashable, Sendable, CaseIterable {
        /// None.
        case nobody
        /// Operations of the counter, without which the wait could not end.
        case own
        /// Any operation of the scheduler. For code that holds no lock, and no queue slot, that such an operation might
        /// need.
        case anybody
    }

    /// Blocks the calling thread until the current generation is complete, however long that takes.
    ///
    /// On a worker of a scheduler, the call runs operations of this counter meanwhile, nested on the worker's stack, but
    /// without the task-local values of the waiting code. When there are none to run, the thread sleeps and another
    /// worker takes its place; see ``Scheduler/Configuration/spareWorkers``.
    ///
    /// A body must not wait for a counter that counts it, or that counts a body below it on the stack: the wait would
    /// never end. In debug builds such a wait stops the process.
    ///
    /// - Parameter help: which operations the wait may run, if any.
    @available(*, noasync, message: "Blocks the thread; use `await completed()`.")
    public func wait(helping help: Help = .own) {
        let helping: csched_helping =
            switch help {
            case .nobody: .nobody
            case .own: .own
            case .anybody: .anybody
            }
        _ = unsafe csched_completion_wait_helping(handle, UInt64.max, helping)
    }

    /// Calls `body` once when the current generation is complete; immediately if nothing is outstanding.
    ///
    /// - Parameter body: must be short; runs on the thread of the last ``leave()``, or on the caller's.
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/outOfMemory``; `body` is then not called.
    /// - Complexity: O(1), lock-free, one allocation.
    public func notify(_ body: consuming @escaping @Sendable () -> Void) throws(SchedulerError) {
        let box = unsafe Unmanaged.passRetained(BodyBox(body))
        let notification = unsafe csched_completion_notify(
            handle, { unsafe Unmanaged<BodyBox>.fromOpaque($0!).takeRetainedValue().body.run() },
            box.toOpaque())
        guard let notification = unsafe notification else {
            unsafe box.release()
            throw SchedulerError(.outOfMemory)
        }
        unsafe csched_notification_release(notification)
    }

    /// Waits until the current generation is complete, without blocking a thread: the asynchronous `wait()` under another
    /// name.
    ///
    /// ```swift
    /// let counter = try CompletionCounter()
    /// Scheduler.submit(in: counter) { resize(image) }
    /// try await counter.completed()
    /// ```
    ///
    /// Code at the top level of `main.swift` may await, but the compiler resolves overloads there as if it could not:
    /// `try await counter.wait()` selects the blocking `wait()`, which is an error. This name is unambiguous everywhere.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first; the operations continue.
    public nonisolated(nonsending) func completed() async throws(CancellationError) { try await wait() }

    /// Waits until the current generation is complete, without blocking a thread.
    ///
    /// At the top level of `main.swift` write ``completed()``.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first; the operations continue.
    public nonisolated(nonsending) func wait() async throws(CancellationError) {
        let waiter = CompletionWaiter()
        let completed = await waiter.end(on: self)
        waiter.withdraw()
        if !completed { throw CancellationError() }
    }
}

/// A closure boxed in an object, to be passed through C as one word.
private final class BodyBox: Sendable {
    let body: Body
    init(_ run: consuming @escaping @Sendable () -> Void) { body = Body(run) }
}
