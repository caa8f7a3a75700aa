import BenchmarkCore
import Foundation

/// Foundation's `OperationQueue`, given closures.
final class OperationQueuePool: PausablePool {
    static let name = "operationqueue"
    static let version = "of the toolchain"
    static let source = "Benchmarks/Peers/OperationQueuePool.swift"

    private let queue = OperationQueue()

    init(threads: Int) { queue.maxConcurrentOperationCount = threads }

    func batch(of count: Int) {}

    @inline(__always)
    func submit(_ job: some Job, in batch: Void) {
        queue.addOperation { job.run() }
    }

    func wait(for batch: Void) { queue.waitUntilAllOperationsAreFinished() }

    @inline(__always)
    func submit(_ job: some Job) {
        queue.addOperation { job.run() }
    }

    func pause() { queue.isSuspended = true }

    func unpause() { queue.isSuspended = false }

    func shutdown() { queue.waitUntilAllOperationsAreFinished() }

    func lanes(_ count: Int) -> [OperationQueueLane] { (0..<count).map { _ in OperationQueueLane() } }
}

struct OperationQueueLane: Lane {
    private let queue: OperationQueue

    fileprivate init() {
        queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
    }

    @inline(__always)
    func submit(_ job: some Job) {
        queue.addOperation { job.run() }
    }
}
