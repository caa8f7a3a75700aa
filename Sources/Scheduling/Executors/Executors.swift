internal import CScheduler
internal import CompositeOperationsBasics

// A job is one word, and so is its executor, so an operation carries both without an allocation. Jobs run even when a
// shutdown cancels or refuses them, because a task that never runs to its end never notifies its parent.
//
// The runtime does not retain an executor that it refers to. A job can run, and release the last reference to its
// executor, before the call that enqueues the job returns. Hence each call retains its executor until it returns.

extension Scheduler: TaskExecutor {
    /// Runs a job of a task that prefers this scheduler.
    ///
    /// - Complexity: O(1), lock-free, allocates nothing. When this scheduler is shut down the job runs on
    ///   ``shared``.
    public func enqueue(_ job: consuming ExecutorJob) {
        let held = unsafe Unmanaged.passRetained(self)
        defer { unsafe held.release() }
        let job = UnownedJob(job)
        let priority = job.inQueue
        var operation = unsafe jobOperation(job, on: self, run: runTaskJob)
        var status = unsafe csched_submit_job(handle, &operation, priority)
        if status == .closed, self !== Scheduler.shared {
            status = unsafe csched_submit_exempt_at(Scheduler.shared.handle, &operation, priority)
        }
        demand(status == .ok, "Scheduler.enqueue: a job of a task could not be enqueued")
    }
}

extension SerialLane: SerialExecutor {
    /// Runs a job of an actor whose executor is this lane.
    ///
    /// - Complexity: O(1), lock-free, one allocation. When the scheduler is shut down the job runs on
    ///   ``Scheduler/shared``, still one at a time.
    public func enqueue(_ job: consuming ExecutorJob) {
        let held = unsafe Unmanaged.passRetained(self)
        defer { unsafe held.release() }
        let job = UnownedJob(job)
        let priority = job.inQueue
        var operation = unsafe jobOperation(job, on: self, run: runLaneJob)
        var status = unsafe csched_lane_submit_at(handle, &operation, priority)
        if status == .closed {
            status = unsafe csched_lane_submit_surely(handle, &operation, priority, Scheduler.shared.handle)
        }
        demand(status == .ok, "SerialLane.enqueue: a job of an actor could not be enqueued")
    }

    /// Stops the process unless the calling code runs on this lane.
    public func checkIsolated() {
        demand(isCurrent, "The code does not run on the expected serial lane")
    }

    /// Whether the calling code runs on this lane.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }
}

private func jobOperation(
    _ job: UnownedJob, on executor: AnyObject, run: @escaping csched_function
) -> csched_operation {
    // The task keeps its executor alive for as long as it has jobs there.
    unsafe csched_operation(
        run: run, context: unsafeBitCast(job, to: UnsafeMutableRawPointer.self),
        extra: Unmanaged.passUnretained(executor).toOpaque(), counter: nil)
}

private func runTaskJob(
    _ job: UnsafeMutableRawPointer?, _ executor: UnsafeMutableRawPointer?, _: csched_disposition
) {
    let scheduler = unsafe Unmanaged<Scheduler>.fromOpaque(executor!)
    unsafe scheduler._withUnsafeGuaranteedRef { scheduler in
        unsafe unsafeBitCast(job!, to: UnownedJob.self).runSynchronously(
            on: scheduler.asUnownedTaskExecutor())
    }
}

private func runLaneJob(
    _ job: UnsafeMutableRawPointer?, _ executor: UnsafeMutableRawPointer?, _: csched_disposition
) {
    let lane = unsafe Unmanaged<SerialLane>.fromOpaque(executor!)
    unsafe lane._withUnsafeGuaranteedRef { lane in
        unsafe unsafeBitCast(job!, to: UnownedJob.self).runSynchronously(on: lane.asUnownedSerialExecutor())
    }
}
