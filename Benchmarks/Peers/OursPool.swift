import BenchmarkCore
import Scheduling

/// Ours: a `Scheduler` with a `CompletionCounter`. Operations, cascades and groups are in `OursLayer.swift`;
/// commands, model transactions and actions are in `OursLibraries.swift`.
final class OursPool: PausablePool {
    static let name = "ours"
    static let version = "this package"
    static let source = "Benchmarks/Peers/OursPool.swift"

    static func form(_ workload: String) -> String? {
        switch workload {
        case "R1", "R2", "R3": "Scheduler.forEach."
        case "W8-declared": "Operations with addDependency, on the built-in scheduler."
        default: OursTasks.runs(workload) ? OursTasks.form : OursLibraries.form(workload)
        }
    }

    static func notApplicable(_ workload: String) -> String? {
        workload.hasPrefix("R4") ? withoutServer : nil
    }

    private let scheduler: Scheduler
    let threads: Int

    init(threads: Int) throws {
        scheduler = try Scheduler(Scheduler.Configuration(workers: threads))
        self.threads = threads
    }

    func run(_ workload: String, n: Int) throws -> Sample {
        if Workload.isOfLibraries(workload) { return try OursLibraries.run(workload, n: n) }
        if Workload.isOfServers(workload) { return try runOfServers(workload, n: n) }
        return OursLayer.runs(workload)
            ? try OursLayer(threads: threads).run(workload, n: n) : try runPausing(workload, n: n)
    }

    private func runOfServers(_ workload: String, n: Int) throws -> Sample {
        let ours = OursServices(scheduler: scheduler)
        func task(_ mark: TimedMark) { Task.detached(executorPreference: scheduler) { mark.run() } }
        func announced(_ blocker: Blocker) {
            accepted { () throws(SchedulerError) in
                try scheduler.submit { OursServices.announce { blocker.run() } }
            }
        }
        return switch workload {
        case "W19":
            startsWhileBlocked(blockers: n) {
                submit($0)
            } start: {
                submit($0)
            }
        case "W19-task":
            startsWhileBlocked(blockers: n) {
                submit($0)
            } start: {
                task($0)
            }
        case "W19-announced":
            startsWhileBlocked(blockers: n) {
                announced($0)
            } start: {
                submit($0)
            }
        case "W19-announced-task":
            startsWhileBlocked(blockers: n) {
                announced($0)
            } start: {
                task($0)
            }
        case "W26":
            startsUnderFlood(percent: n, threads: threads) {
                ours.submitWithoutHurry($0)
            } urgent: {
                ours.submitUrgently($0)
            }
        case _ where workload.hasPrefix("W27-"): timers(workload, n: n, ours.timers(count: n))
        case _ where OursTasks.runs(workload):
            try OursTasks.run(workload, n: n, threads: threads, by: scheduler)
        default: throw PeerError("The peer 'ours' has no workload '\(workload)'.")
        }
    }

    var isReclaimed: Bool {
        [scheduler, .shared].allSatisfy { $0.statistics.retired == $0.statistics.reclaimed }
    }

    func batch(of count: Int) throws -> CompletionCounter { try CompletionCounter() }

    @inline(__always)
    func submit(_ job: some Job, in batch: CompletionCounter) {
        accepted { () throws(SchedulerError) in try scheduler.submit(in: batch) { job.run() } }
    }

    func wait(for batch: CompletionCounter) { batch.wait() }

    @inline(__always)
    func submit(_ job: some Job) {
        accepted { () throws(SchedulerError) in try scheduler.submit { job.run() } }
    }

    func loop(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
        accepted { () throws(SchedulerError) in try scheduler.forEach(0..<count, body) }
    }

    /// W9 by joins: waiting for a branch that another worker took runs operations that the branch has forked.
    func forkJoin(n: Int) throws -> Sample {
        let end = ChainEnd()
        let start = startClock()
        submit(Fibonacci(n: n, end: end))
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: Workload.spawnsOfFibonacci(n), checksum: end.value)
    }

    func pause() { scheduler.suspend() }

    func unpause() { scheduler.resume() }

    func shutdown() {
        accepted { () throws(SchedulerError) in try scheduler.shutdown() }
    }

    func lanes(_ count: Int) throws -> [OursLane] {
        try (0..<count).map { _ in OursLane(lane: try SerialLane(on: scheduler)) }
    }
}

/// The scheduler alone in the workloads of the layer above it: the difference is the cost of the layer.
final class OursBarePool: Peer {
    static let name = "ours-bare"
    static let version = "this package"
    static let source = "Benchmarks/Peers/OursPool.swift"

    static func form(_ workload: String) -> String? {
        switch workload {
        case "W5", "W5-range": "As W3: a completion counter, without handles."
        case "W8-declared": "As W8, without handles."
        default: nil
        }
    }

    static func notApplicable(_ workload: String) -> String? {
        OursLayer.runs(workload) || Workload.isOfLibraries(workload)
            ? withoutGroups(workload) : "It equals ours: no layer is measured here."
    }

    private let pool: OursPool

    init(threads: Int) throws { pool = try OursPool(threads: threads) }

    func run(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W5", "W5-range": try spawnFromInside(pool, count: n)
        case "W8-declared": try runGraph(pool, workload, n: n)
        default: try pool.runPausing(workload, n: n)
        }
    }

    func shutdown() { pool.shutdown() }
}

private struct Fibonacci: Job {
    let n: Int
    let end: ChainEnd

    func run() { end.reach(Self.number(n)) }

    private static func number(_ n: Int) -> UInt64 {
        guard n > 1 else { return UInt64(n) }
        let (first, second) = Scheduler.join({ number(n - 1) }, { number(n - 2) })
        return first + second
    }
}

struct OursLane: Lane {
    fileprivate let lane: SerialLane

    @inline(__always)
    func submit(_ job: some Job) {
        accepted { () throws(SchedulerError) in try lane.submit { job.run() } }
    }
}

/// Stops the child when a submission is refused: the coordinator then shows the error instead of a figure.
@inline(__always)
func accepted(_ submit: () throws(SchedulerError) -> Void) {
    do {
        try submit()
    } catch {
        fatalError("ours: \(error)")
    }
}
