// Subject+Ours.swift - this package's schedulers, as subjects.

public import ConformanceTesting
import CompositeOperations
import PropertyTesting
import Scheduling

extension Subject {
    /// A `Scheduler` with four workers.
    public static let scheduler = Subject("Scheduler") {
        let scheduler = try Scheduler(.init(workers: 4, name: "law"))
        let pending = try CompletionCounter()
        var instance = Instance(claims: [
            .asynchronous, .outlastsBlocking, .fair, .nestedSuspension, .runsAllAtShutdown, .nestedLoops,
        ]) { body in
            try! scheduler.submit(in: pending, body)
        } end: {
            try! scheduler.shutdown()
        }
        instance.width = 4
        instance.drain = { pending.wait() }
        instance.suspension = Suspension(suspend: { scheduler.suspend() }, resume: { scheduler.resume() })
        instance.submitAfter = { time, body in _ = try! scheduler.submit(after: time, body) }
        instance.forEach = { count, body in try! scheduler.forEach(0..<count, body) }
        instance.taskExecutor = scheduler
        instance.isHere = { Scheduler.current === scheduler }
        instance.shutDown = { try! scheduler.shutdown() }
        return instance
    }

    /// A `SerialLane`.
    public static let serialLane = Subject("SerialLane") {
        let lane = try SerialLane()
        var instance = Instance(claims: [.asynchronous, .fifo, .fair]) { try! lane.submit($0) }
        instance.width = 1
        instance.drain = { try! lane.drain() }
        return instance
    }

    /// A `COOperationQueue` that runs three operations at a time.
    public static let operationQueueOfOurs = ours("COOperationQueue", width: 3)
    /// A `COOperationQueue` that runs one operation at a time.
    public static let serialOperationQueueOfOurs = ours("COOperationQueue, serial", width: 1)

    private static func ours(_ name: String, width: Int) -> Subject {
        Subject(name) {
            let queue = COOperationQueue(.fifo, runningLimit: width)
            var instance = Instance(
                claims: [.asynchronous, .fair, .failures, .cancellation, .dependencies, .lateHandlers]
            ) { body in
                operation(on: queue, { body() })
            }
            instance.width = width
            if width == 1 { instance.claims.insert(.fifo) }
            instance.drain = { waitForTask { await queue.idle() } }
            instance.suspension = Suspension(suspend: { queue.suspend() }, resume: { queue.resume() })
            instance.operation = { after, body in
                let one = COOperation<Void>(on: queue) { attempt in
                    do {
                        try body { attempt.isCancelled }
                        attempt.finish()
                    } catch {
                        attempt.fail(error)
                    }
                }
                for other in after { _ = one.addDependency(other.base as! COOperation<Void>) }
                one.start()
                return TestedOperation(base: one) {
                    one.cancel()
                } whenEnded: { handler in
                    one.onOutcome { outcome in
                        handler(outcome.isFinished ? .finished : outcome.isFailed ? .failed : .cancelled)
                    }
                }
            }
            return instance
        }
    }
}

/// Blocks the thread until a task has run `body`.
func waitForTask(_ body: @escaping @Sendable () async -> Void) {
    let gate = Gate()
    Task.detached {
        await body()
        gate.open()
    }
    gate.wait()
}
