import BenchmarkCore
import Scheduling

/// Our services for a server, as W19, W26 and W27 use them.
struct OursServices {
    let scheduler: Scheduler

    static func announce<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        try Scheduler.blocking(body)
    }

    func submitUrgently(_ job: some Job) {
        accepted { () throws(SchedulerError) in try scheduler.submit(priority: .high) { job.run() } }
    }

    func submitWithoutHurry(_ job: some Job) {
        accepted { () throws(SchedulerError) in try scheduler.submit(priority: .background) { job.run() } }
    }

    func timers(count: Int) -> some TimerForm { OursTimers(scheduler: scheduler) }
}

private struct OursTimers: TimerForm {
    let scheduler: Scheduler

    func set(_ delay_ns: Int, _ job: some Job) -> ScheduledOperation {
        do {
            return try scheduler.submit(after: .nanoseconds(delay_ns)) { job.run() }
        } catch {
            fatalError("ours: \(error)")
        }
    }

    func cancel(_ timer: ScheduledOperation) { timer.cancel() }
}
