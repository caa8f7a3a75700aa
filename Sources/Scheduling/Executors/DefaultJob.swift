internal import CScheduler
internal import CompositeOperationsBasics

extension Scheduler {
    /// Runs a job of the default executor, exempt from the capacity; on ``shared`` if this scheduler is shut
    /// down.
    ///
    /// Unlike a job enqueued by preference, such a job runs on the generic executor, as it would on the
    /// runtime's own default executor: a task without a preference then proceeds from job to job, and into
    /// actors, without being enqueued again.
    package func enqueueDefault(_ job: UnownedJob) {
        var operation = unsafe csched_operation(
            run: runDefaultJob, context: unsafeBitCast(job, to: UnsafeMutableRawPointer.self), extra: nil,
            counter: nil)
        let priority = job.inQueue
        var status = unsafe csched_submit_job(handle, &operation, priority)
        if status == .closed, self !== Scheduler.shared {
            status = unsafe csched_submit_exempt_at(Scheduler.shared.handle, &operation, priority)
        }
        demand(status == .ok, "Scheduler.installAsDefaultExecutor: a job of a task could not be enqueued")
    }
}

/// The executor of nonisolated code: two zero words, as returned by `swift_executor_generic` in the
/// toolchain's ExecutorImpl.h. The standard library has no public name for it.
private let generic = unsafe unsafeBitCast((UInt(0), UInt(0)), to: UnownedSerialExecutor.self)

private func runDefaultJob(
    _ job: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?, _: csched_disposition
) {
    unsafe unsafeBitCast(job!, to: UnownedJob.self).runSynchronously(on: generic)
}
