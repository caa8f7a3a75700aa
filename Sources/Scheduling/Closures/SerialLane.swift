internal import CScheduler

/// Runs operations one at a time, in the order of their submission, on a scheduler's workers.
///
/// An operation's writes are visible to the next operation. A lane is also a serial executor: an actor whose
/// `unownedExecutor` is a lane's runs on that lane.
///
/// - SeeAlso: a serial `DispatchQueue`.
@safe
public final class SerialLane: Sendable {
    // Sendable: the C side synchronises every call, and the last use is `deinit`.
    nonisolated(unsafe) let handle: OpaquePointer

    /// The scheduler whose workers run the operations.
    public let scheduler: Scheduler

    /// The lane's name, for descriptions; empty if it has none.
    public let label: String

    /// Creates an empty lane.
    ///
    /// - Parameters:
    ///   - scheduler: the scheduler whose workers run the operations.
    ///   - label: the lane's name, for descriptions.
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/outOfMemory``.
    public init(on scheduler: Scheduler = .shared, label: String = "") throws(SchedulerError) {
        guard let handle = unsafe csched_lane_create(scheduler.handle) else {
            throw SchedulerError(.outOfMemory)
        }
        unsafe self.handle = handle
        self.scheduler = scheduler
        self.label = label
    }

    deinit { unsafe csched_lane_release(handle) }

    /// Appends one operation.
    ///
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/closed`` or ``SchedulerError/Code/outOfMemory``;
    ///   `body` is then released without being called. The scheduler's capacity does not apply.
    /// - Complexity: O(1), lock-free, one allocation besides the closure's own context.
    public func submit(_ body: consuming @escaping @Sendable () -> Void) throws(SchedulerError) {
        if scheduler.context == .inherited { return try submitInherited(body, in: nil) }
        unsafe try submit(Body(body), in: nil)
    }

    /// Appends one operation, counted in `counter` until it has returned.
    ///
    /// - Throws: as ``submit(_:)``.
    public func submit(in counter: CompletionCounter, _ body: consuming @escaping @Sendable () -> Void)
        throws(SchedulerError)
    {
        if scheduler.context == .inherited { return try submitInherited(body, in: counter) }
        unsafe try submit(Body(body), in: counter.handle)
    }

    // Inlined because Swift 6.3.1 otherwise crashes in the optimizer where it inlines the method above, as with
    // `-enable-testing`.
    @inline(__always)
    func submit(_ body: consuming Body, in counter: OpaquePointer?) throws(SchedulerError) {
        var operation = unsafe body.operation(in: counter)
        let status = unsafe csched_lane_submit(handle, &operation)
        if status != .ok {
            unsafe operation.run(operation.context, operation.extra, .cancel)
            try status.check()
        }
    }

    /// Whether the caller is an operation of this lane.
    public var isCurrent: Bool { unsafe csched_lane_is_current(handle) }

    /// Whether an operation of this lane is on the stack of the calling thread, possibly below bodies that run nested in
    /// its wait.
    package var isOnStack: Bool { unsafe csched_lane_is_on_stack(handle) }

    /// Blocks until everything that was submitted before the call has run.
    ///
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/wouldDeadlock`` inside an operation of this lane, even
    ///   if another operation runs nested on top of it; else as ``submit(_:)``.
    @available(*, noasync, message: "Blocks the thread; submit a closure that resumes a continuation.")
    public func drain() throws(SchedulerError) {
        if isOnStack { throw SchedulerError(.wouldDeadlock) }
        let counter = try CompletionCounter()
        try submit(in: counter) {}
        counter.wait()
    }
}

extension SerialLane: CustomStringConvertible {
    /// As in `serial lane "log"`.
    public var description: String { label.isEmpty ? "serial lane" : "serial lane \"\(label)\"" }
}
