import BenchmarkCore
import Scheduling
import SchedulingDefaultExecutor

/// W24 and R4 in their two forms: the scheduler as the default executor of the process, which needs no change to the
/// code of the tasks; and tasks that prefer the scheduler.
enum OursTasks {
    static let form = "The default executor of its process, installed by one line."

    static func runs(_ workload: String) -> Bool { workload.hasPrefix("W24-") || workload.hasPrefix("R4") }

    static func run(_ workload: String, n: Int, threads: Int, by scheduler: Scheduler) throws -> Sample {
        if !isInstalled {
            scheduler.installAsDefaultExecutor()
            isInstalled = true
        }
        return try run(workload, n: n, threads: threads, on: nil)
    }

    fileprivate static func run(
        _ workload: String, n: Int, threads: Int, on executor: (any TaskExecutor)?
    ) throws -> Sample {
        workload.hasPrefix("R4")
            ? try requests(
                connections: n, eventLoops: threads, on: executor, isMixed: workload == "R4-mixed")
            : swiftTasks(workload, n: n, on: executor)
    }

    /// Unsafe: used only by the one thread that sends requests to a child.
    nonisolated(unsafe) private static var isInstalled = false
}

/// Tasks that prefer our scheduler, in a process with the runtime's own default executor.
final class OursPreferredPool: Peer {
    static let name = "ours-preferred"
    static let version = "this package"
    static let source = "Benchmarks/Peers/OursTasks.swift"

    static func form(_ workload: String) -> String? {
        if workload.hasPrefix("W24-") { return "withTaskExecutorPreference(scheduler), around everything." }
        return workload.hasPrefix("R4") ? "The server is a task that prefers the scheduler." : nil
    }

    static func notApplicable(_ workload: String) -> String? {
        guard OursTasks.runs(workload) else { return "It is ours, in a second form for Swift tasks." }
        return workload.hasPrefix("R4") ? withoutServer : nil
    }

    private let scheduler: Scheduler
    private let threads: Int

    init(threads: Int) throws {
        scheduler = try Scheduler(Scheduler.Configuration(workers: threads))
        self.threads = threads
    }

    func run(_ workload: String, n: Int) throws -> Sample {
        workload == "W0"
            ? emptySample() : try OursTasks.run(workload, n: n, threads: threads, on: scheduler)
    }

    func shutdown() {
        accepted { () throws(SchedulerError) in try scheduler.shutdown() }
    }
}
