import BenchmarkCore
import Dispatch

/// Dispatch: a concurrent queue of its own and a `DispatchGroup`, as its documents recommend. The number of
/// its threads is that of the CPUs; nobody can choose it.
final class DispatchPool: PausablePool {
    static let name = "dispatch"
    static let version = "of the toolchain"
    static let source = "Benchmarks/Peers/DispatchPool.swift"

    private let queue = DispatchQueue(label: "benchmark", attributes: .concurrent)

    init(threads: Int) {}

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
