import BenchmarkCore
import Scheduling

/// What ours has for a server, as W19, W26 and W27 use it.
///
/// PENDING: each member stands in for one that the scheduler is to have, and says which.
struct OursServices {
    let scheduler: Scheduler

    /// PENDING: `Scheduler.blocking(body)`.
    static func announce<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R { try body() }

    /// PENDING: `scheduler.submit(priority: .high) { job.run() }`.
    func submitUrgently(_ job: some Job) {
        accepted { () throws(SchedulerError) in try scheduler.submit { job.run() } }
    }

    /// PENDING: `scheduler.submit(priority: .background) { job.run() }`.
    func submitWithoutHurry(_ job: some Job) {
        accepted { () throws(SchedulerError) in try scheduler.submit { job.run() } }
    }

    /// PENDING: a form whose `set` is `scheduler.submit(after: .nanoseconds(delay_ns)) { job.run() }`.
    func timers(count: Int) -> some TimerForm { TaskTimers(count: count, on: scheduler) }
}
