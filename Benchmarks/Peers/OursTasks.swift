import BenchmarkCore
import Scheduling
import SchedulingDefaultExecutor

/// W24 in its two forms: the scheduler as the default executor of the process, for which the code of the tasks stays as it
/// is; and tasks that prefer it.
enum OursTasks {
    static let form = "The default executor of its process, by one line."

    static func run(_ workload: String, n: Int, by scheduler: Scheduler) -> Sample {
        if !isInstalled {
            scheduler.installAsDefaultExecutor()
            isInstalled = true
        }
        return swiftTasks(workload, n: n, on: nil)
    }

    /// Unsafe: of the one thread that asks a child.
    nonisolated(unsafe) private static var isInstalled = false
}

/// Tasks that prefer our scheduler, in a process with the runtime's own default executor.
final class OursPreferredPool: Peer {
    static let name = "ours-preferred"
    static let version = "this package"
    static let source = "Benchmarks/Peers/OursTasks.swift"

    static func form(_ workload: String) -> String? {
        workload.hasPrefix("W24-") ? "withTaskExecutorPreference(scheduler), around all of it." : nil
    }

    static func notApplicable(_ workload: String) -> String? {
        workload.hasPrefix("W24-") ? nil : "It is ours, in a second form for Swift tasks."
    }

    private let scheduler: Scheduler

    init(threads: Int) throws { scheduler = try Scheduler(Scheduler.Configuration(workers: threads)) }

    func run(_ workload: String, n: Int) -> Sample {
        workload == "W0" ? emptySample() : swiftTasks(workload, n: n, on: scheduler)
    }

    func shutdown() {
        accepted { () throws(SchedulerError) in try scheduler.shutdown() }
    }
}
