import BenchmarkCore
import Foundation

/// Foundation's `OperationQueue`, given closures.
final class OperationQueuePool: PausablePool {
    static let name = "operationqueue"
    static let version = "of the toolchain"
    static let source = "Benchmarks/Peers/OperationQueuePool.swift"

    static func form(_ workload: String) -> String? {
        switch workload {
        case "W8-declared": "Operations with dependencies, added together."
        case "W19": "A queue of the default width."
        case "W19-task": "A queue of the default width; the task runs on the default executor."
        case "W26": "Operations with the queue priorities veryLow and veryHigh."
        default: nil
        }
    }

    static func notApplicable(_ workload: String) -> String? {
        if workload == "W25" { return withoutEnd }
        return ["W19", "W19-task", "W26"].contains(workload) ? nil : withoutGroups(workload)
    }

    private let queue = OperationQueue()
    let threads: Int

    init(threads: Int) {
        queue.maxConcurrentOperationCount = threads
        self.threads = threads
    }

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

    static func largest(_ workload: String) -> Int? {
        // Waiting for a chain of dependencies takes quadratic time.
        workload == "W6-cascade" ? 5_000 : nil
    }

    func run(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W19", "W19-task": blocked(workload, blockers: n)
        case "W26": flooded(percent: n)
        case "W5", "W5-range": group(count: n)
        case "W6-cascade": cascade(steps: n)
        case "W7": stages(width: n)
        case "W8-declared": declaredGraph(workload, n: n)
        case "W14-0": cancellation(count: n)
        default: try runPausing(workload, n: n)
        }
    }

    private func blocked(_ workload: String, blockers: Int) -> Sample {
        let wide = OperationQueue()
        return startsWhileBlocked(blockers: blockers) { blocker in
            wide.addOperation { blocker.run() }
        } start: { mark in
            if workload == "W19" { wide.addOperation { mark.run() } } else { runAsTask(mark) }
        }
    }

    private func flooded(percent: Int) -> Sample {
        func add(_ job: some Job, _ priority: Operation.QueuePriority) {
            let operation = BlockOperation { job.run() }
            operation.queuePriority = priority
            queue.addOperation(operation)
        }
        return startsUnderFlood(percent: percent, threads: threads) {
            add($0, .veryLow)
        } urgent: {
            add($0, .veryHigh)
        }
    }

    /// W5 with dependencies: one operation, which finishes the group, depends on all others.
    private func group(count: Int) -> Sample {
        let slots = Slots(count: count)
        let end = ChainEnd()
        let start = startClock()
        let finishing = BlockOperation { end.reach(0) }
        let children = (0..<count).map { index in
            let mark = Mark(slots: slots, index: index)
            return BlockOperation { mark.run() }
        }
        for child in children { finishing.addDependency(child) }
        queue.addOperations(children + [finishing], waitUntilFinished: false)
        end.wait()
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
    }

    /// W6 with dependencies: every operation depends on its predecessor.
    private func cascade(steps: Int) -> Sample {
        let end = ChainEnd()
        let state = Slots(count: 2)
        let start = startClock()
        var operations: [Operation] = []
        operations.reserveCapacity(steps)
        for step in 0..<steps {
            let job = SerialStep(state: state, step: step, steps: steps, end: end)
            let operation = BlockOperation { job.run() }
            if let last = operations.last { operation.addDependency(last) }
            operations.append(operation)
        }
        queue.addOperations(operations, waitUntilFinished: false)
        end.wait()
        let stop = stopClock()
        queue.waitUntilAllOperationsAreFinished()
        return Sample(from: start, to: stop, operations: steps, checksum: end.value)
    }

    /// W7: the operation that finishes a stage adds the next.
    private func stages(width: Int) -> Sample {
        let slots = Slots(count: width * Workload.stages(ofWidth: width))
        let end = ChainEnd()
        let start = startClock()
        add(stage: 0, of: Workload.stages(ofWidth: width), width: width, slots, end)
        end.wait()
        let stop = stopClock()
        queue.waitUntilAllOperationsAreFinished()
        return Sample(from: start, to: stop, operations: slots.count, checksum: slots.checksum)
    }

    private func add(stage: Int, of stages: Int, width: Int, _ slots: Slots, _ end: ChainEnd) {
        let finishing = BlockOperation { [self] in
            if stage + 1 == stages { return end.reach(0) }
            add(stage: stage + 1, of: stages, width: width, slots, end)
        }
        let children = (0..<width).map { index in
            let mark = StageMark(slots: slots, width: width, stage: stage, index: index)
            return BlockOperation { mark.run() }
        }
        for child in children { finishing.addDependency(child) }
        queue.addOperations(children + [finishing], waitUntilFinished: false)
    }

    private func declaredGraph(_ workload: String, n: Int) -> Sample {
        let run = GraphRun(workload, n: n)
        let start = startClock()
        var operations: [Operation] = []
        operations.reserveCapacity(run.count)
        for (node, others) in run.graph.predecessors.enumerated() {
            let work = NodeWork(nodes: run, node: node)
            let operation = BlockOperation { work.run() }
            for other in others { operation.addDependency(operations[other]) }
            operations.append(operation)
        }
        queue.addOperations(operations, waitUntilFinished: true)
        let stop = stopClock()
        return run.sample(from: start, to: stop)
    }

    /// W14 with the queue's own cancellation, before any operation has begun.
    private func cancellation(count: Int) -> Sample {
        let slots = Slots(count: count)
        pause()
        for index in 0..<count {
            let mark = Mark(slots: slots, index: index)
            queue.addOperation { mark.run() }
        }
        let start = startClock()
        queue.cancelAllOperations()
        let cancelled = now_ns()
        unpause()
        queue.waitUntilAllOperationsAreFinished()
        let stop = stopClock()
        return storm(from: start, cancelled: cancelled, to: stop, slots, begun: 0)
    }

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
