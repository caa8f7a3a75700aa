import BenchmarkCore
import Dispatch

/// Dispatch: a separate concurrent queue and a `DispatchGroup`, as its documentation recommends. The number
/// of its threads is that of the CPUs and cannot be chosen.
final class DispatchPool: PausablePool {
    static let name = "dispatch"
    static let version = "of the toolchain"
    static let source = "Benchmarks/Peers/DispatchPool.swift"

    static func form(_ workload: String) -> String? {
        switch workload {
        case "R1", "R2", "R3": "DispatchQueue.concurrentPerform."
        case "W19-task": "The task runs on the default executor."
        case "W26": "The global queues of the QoS classes background and userInteractive."
        case _ where workload.hasPrefix("W27-"): "A strict DispatchSourceTimer per timer, on a serial queue."
        default: nil
        }
    }

    static func notApplicable(_ workload: String) -> String? {
        switch workload {
        case "W19", "W19-task", "W26": nil
        case "W25": withoutEnd
        case _ where workload.hasPrefix("W27-"): nil
        default: withoutGroups(workload)
        }
    }

    private let queue = DispatchQueue(label: "benchmark", attributes: .concurrent)
    let threads: Int

    init(threads: Int) { self.threads = threads }

    func run(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W19":
            return startsWhileBlocked(blockers: n) {
                submit($0)
            } start: {
                submit($0)
            }
        case "W19-task":
            return startsWhileBlocked(blockers: n) {
                submit($0)
            } start: {
                runAsTask($0)
            }
        case "W26":
            let background = DispatchQueue.global(qos: .background)
            let urgent = DispatchQueue.global(qos: .userInteractive)
            return startsUnderFlood(percent: n, threads: threads) { operation in
                background.async { operation.run() }
            } urgent: { mark in
                urgent.async { mark.run() }
            }
        case _ where workload.hasPrefix("W27-"): return timers(workload, n: n, DispatchTimers())
        default: return try runPausing(workload, n: n)
        }
    }

    func batch(of count: Int) -> DispatchGroup { DispatchGroup() }

    @inline(__always)
    func submit(_ job: some Job, in batch: DispatchGroup) {
        queue.async(group: batch) { job.run() }
    }

    func wait(for batch: DispatchGroup) { batch.wait() }

    @inline(__always)
    func submit(_ job: some Job) {
        queue.async { job.run() }
    }

    func loop(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
        DispatchQueue.concurrentPerform(iterations: count, execute: body)
    }

    func pause() { queue.suspend() }

    func unpause() { queue.resume() }

    func shutdown() {}

    func lanes(_ count: Int) -> [DispatchLane] { (0..<count).map { _ in DispatchLane() } }
}

struct DispatchLane: Lane {
    private let queue = DispatchQueue(label: "lane")

    @inline(__always)
    func submit(_ job: some Job) {
        queue.async { job.run() }
    }
}
