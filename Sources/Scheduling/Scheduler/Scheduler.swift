internal import CScheduler

/// Worker threads that run operations: closures, ranges of indices, and the jobs of Swift tasks.
///
/// ```swift
/// let scheduler = try Scheduler()
/// let counter = try CompletionCounter()
/// for image in images { try scheduler.submit(in: counter) { resize(image) } }
/// counter.wait()
/// ```
///
/// Every accepted operation runs exactly once or is cancelled by a shutdown (see ``ShutdownPolicy``), which releases
/// its closure without calling it. Writes made before a submission are visible to the operation. Operations are
/// unordered, except those of a ``SerialLane``. All members may be used from any thread, including inside an
/// operation.
///
/// When the last reference to a scheduler is released, the scheduler is drained and its threads are joined (shortly
/// afterwards, if the release happens inside an operation). ``withScheduler(_:_:)-(_,(Scheduler)->R)`` makes this
/// moment explicit.
@safe
public final class Scheduler: Sendable {
    // Sendable: the C side synchronises every call, and the last use is `deinit`.
    nonisolated(unsafe) let handle: OpaquePointer

    /// Which task-local values an operation sees if its submission specifies no context.
    let context: Context

    /// Creates a scheduler and starts its workers.
    ///
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/invalidWorkers``,
    ///   ``SchedulerError/Code/invalidCapacity``, ``SchedulerError/Code/invalidSpareWorkers``,
    ///   ``SchedulerError/Code/threadCreationFailed`` or ``SchedulerError/Code/outOfMemory``.
    /// - Complexity: O(workers): one thread each, and one more that watches for blocked workers.
    public init(_ configuration: Configuration = Configuration()) throws(SchedulerError) {
        unsafe self.handle = try configuration.createScheduler()
        self.context = configuration.context
        unsafe csched_scheduler_set_owner(handle, Unmanaged.passRetained(Owner(self)).toOpaque()) { owner in
            unsafe Unmanaged<Owner>.fromOpaque(owner!).release()
        }
    }

    deinit {
        // An operation, or the timer thread, may release the last reference; neither may wait here.
        if unsafe csched_scheduler_current() != nil || csched_timer_is_own_thread() {
            unsafe csched_scheduler_destroy_later(handle)
        } else {
            unsafe csched_scheduler_destroy(handle)
        }
    }

    /// The process-wide scheduler, with one worker for every CPU the process may use. It is never shut down.
    ///
    /// - Precondition: threads can be created at the first use.
    public static let shared: Scheduler = {
        do {
            return try Scheduler(Configuration(name: "shared"))
        } catch {
            fatalError("Scheduler.shared: \(error)")
        }
    }()

    /// The scheduler whose worker the calling thread is; nil on any other thread.
    public static var current: Scheduler? {
        guard let current = unsafe csched_scheduler_current(),
            let owner = unsafe csched_scheduler_owner(current)
        else {
            return nil
        }
        return unsafe Unmanaged<Owner>.fromOpaque(owner).takeUnretainedValue().scheduler
    }

    /// Submits one operation.
    ///
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/closed``, ``SchedulerError/Code/full`` or
    ///   ``SchedulerError/Code/outOfMemory``; `body` is then released without being called.
    /// - Complexity: O(1), lock-free; allocates nothing besides the closure's own context, except a block per few
    ///   hundred waiting operations. With ``CapacityPolicy/suspend`` the call may block a thread that is not a
    ///   worker.
    public func submit(_ body: consuming @escaping @Sendable () -> Void) throws(SchedulerError) {
        if context == .inherited { return try submitInherited(body, in: nil) }
        unsafe try submit(Body(body), in: nil)
    }

    /// Submits one operation, counted in `counter` until it has returned.
    ///
    /// - Throws: as ``submit(_:)-method``; the counter is then unchanged.
    /// - Complexity: as ``submit(_:)-method``.
    public func submit(in counter: CompletionCounter, _ body: consuming @escaping @Sendable () -> Void)
        throws(SchedulerError)
    {
        if context == .inherited { return try submitInherited(body, in: counter) }
        unsafe try submit(Body(body), in: counter.handle)
    }

    @inline(__always)
    func submit(_ body: consuming Body, in counter: OpaquePointer?) throws(SchedulerError) {
        var operation = unsafe body.operation(in: counter)
        let status = unsafe csched_submit(handle, &operation)
        if status != .ok {
            unsafe operation.run(operation.context, operation.extra, .cancel)
            try status.check()
        }
    }

    /// Submits many operations, all or none, with one publication and one wake-up.
    ///
    /// - Throws: as ``submit(_:)-method``; none of the bodies is then called. If there are more bodies than the
    ///   capacity, they are refused with ``SchedulerError/Code/full`` even if the policy is to suspend.
    /// - Complexity: O(n), lock-free, one temporary array.
    public func submit(
        contentsOf bodies: [@Sendable () -> Void], in counter: CompletionCounter? = nil
    ) throws(SchedulerError) {
        if context == .inherited {
            return try submitEach(bodies.map { context.bound(to: $0) }, in: counter)
        }
        try submitEach(bodies, in: counter)
    }

    /// Like ``submit(contentsOf:in:)``, for bodies that already carry their context.
    func submitEach(
        _ bodies: [@Sendable () -> Void], _ priority: Priority? = nil, in counter: CompletionCounter?
    ) throws(SchedulerError) {
        let priority = priority?.inQueue ?? .inherited
        let group = unsafe counter?.handle
        let operations = unsafe bodies.map { body in unsafe Body(body).operation(in: group) }
        let status = unsafe operations.withUnsafeBufferPointer { buffer in
            guard let first = buffer.baseAddress else {
                // No operation: only check whether the scheduler is open.
                var none = unsafe Body({}).operation(in: nil)
                defer { unsafe none.run(none.context, none.extra, .cancel) }
                return unsafe csched_submit_bulk_at(handle, &none, 0, priority)
            }
            return unsafe csched_submit_bulk_at(handle, first, buffer.count, priority)
        }
        if status != .ok {
            for index in unsafe operations.indices {
                let operation = unsafe operations[index]
                unsafe operation.run(operation.context, operation.extra, .cancel)
            }
            try status.check()
        }
    }

    /// Prevents further bodies from starting until ``resume()``. Calls nest.
    ///
    /// Bodies that have started continue, waiting operations stay queued, and submissions are accepted. Once the
    /// call has returned, a worker that is not counted in ``Statistics/running`` starts no body.
    ///
    /// - Complexity: O(1), wait-free.
    public func suspend() { unsafe csched_scheduler_suspend(handle) }

    /// Undoes one ``suspend()``.
    ///
    /// - Precondition: an earlier ``suspend()`` matches the call.
    /// - Complexity: O(workers), one wake-up for each sleeping worker.
    public func resume() { unsafe csched_scheduler_resume(handle) }

    /// The number of workers.
    public var workers: Int { Int(unsafe csched_scheduler_workers(handle)) }

    /// Changes the number of workers, now or as soon as the bodies of the retiring workers have returned.
    ///
    /// - Throws: ``SchedulerError`` with code ``SchedulerError/Code/invalidWorkers``,
    ///   ``SchedulerError/Code/closed``, ``SchedulerError/Code/threadCreationFailed`` or
    ///   ``SchedulerError/Code/outOfMemory``.
    public func setWorkers(_ count: Int) throws(SchedulerError) {
        guard let count = UInt32(exactly: count), count <= CSCHED_WORKERS_MAX else {
            throw SchedulerError(.invalidWorkers)
        }
        try unsafe csched_scheduler_resize(handle, count).check()
    }

    /// Counts since the scheduler was created.
    ///
    /// - Complexity: O(workers + submitting threads); takes a mutex, and blocks no operation.
    public var statistics: Statistics { unsafe Statistics(csched_scheduler_statistics(handle)) }
}

/// Links the C scheduler to the Swift object. The reference is weak, because an operation may run while the
/// `Scheduler` is being deallocated.
final class Owner: Sendable {
    // Sendable: written once, before any operation can be submitted; weak references are safe to read
    // anywhere.
    nonisolated(unsafe) weak var scheduler: Scheduler?

    init(_ scheduler: Scheduler) { unsafe self.scheduler = scheduler }
}
