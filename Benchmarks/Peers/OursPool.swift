import BenchmarkCore
import Scheduling

/// Ours: a `Scheduler`, counted by a `CompletionCounter`.
final class OursPool: PausablePool {
    static let name = "ours"
    static let version = "this package"
    static let source = "Benchmarks/Peers/OursPool.swift"

    private let scheduler: Scheduler

    init(threads: Int) throws {
        scheduler = try Scheduler(Scheduler.Configuration(workers: threads))
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

    /// W9 by joins: the wait for a branch that was taken helps.
    func forkJoin(n: Int) throws -> Sample {
        let end = ChainEnd()
        let start = now_ns()
        submit(Fibonacci(n: n, end: end))
        end.wait()
        let stop = now_ns()
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

/// Stops the child when a submission is refused: the coordinator shows that instead of a figure.
@inline(__always)
private func accepted(_ submit: () throws(SchedulerError) -> Void) {
    do {
        try submit()
    } catch {
        fatalError("ours: \(error)")
    }
}
