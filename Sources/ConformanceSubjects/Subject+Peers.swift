// Subject+Peers.swift - the schedulers that come with Swift, as subjects: Dispatch, Foundation's queue, and
// the runtime's executor.

public import ConformanceTesting
import Dispatch
import Foundation
import PropertyTesting

extension Subject {
    /// A concurrent `DispatchQueue`, and its `DispatchWorkItem`s.
    public static let dispatchQueue = dispatch("DispatchQueue", isSerial: false)
    /// A serial `DispatchQueue`, and its `DispatchWorkItem`s.
    public static let serialDispatchQueue = dispatch("DispatchQueue, serial", isSerial: true)

    private static func dispatch(_ name: String, isSerial: Bool) -> Subject {
        Subject(name) {
            let queue = DispatchQueue(label: "law", attributes: isSerial ? [] : .concurrent)
            let (group, suspensions) = (DispatchGroup(), Locked(0))
            var instance = Instance(claims: [
                .asynchronous, .nestedSuspension, .cancellation, .lateHandlers, .fair,
            ]) {
                queue.async(group: group, execute: $0)
            } end: {
                // Releasing a suspended queue stops the process.
                for _ in 0..<suspensions.withLock({ $0 }) { queue.resume() }
            }
            if isSerial {
                instance.width = 1
                instance.claims.insert(.fifo)
            } else {
                instance.claims.formUnion([.nestedLoops])
                // The group is entered and left by hand: with its group parameter, `async` would create a
                // work item, whose flags ThreadSanitizer loses.
                instance.barrier = { body in
                    group.enter()
                    queue.async(flags: .barrier) {
                        body()
                        group.leave()
                    }
                }
                instance.forEach = { count, body in
                    DispatchQueue.concurrentPerform(iterations: count, execute: body)
                }
            }
            instance.drain = { group.wait() }
            instance.suspension = Suspension {
                suspensions.withLock { $0 += 1 }
                queue.suspend()
            } resume: {
                suspensions.withLock { $0 -= 1 }
                queue.resume()
            }
            instance.submitAfter = { time, body in
                queue.asyncAfter(deadline: .now() + .nanoseconds(Int(time / .nanoseconds(1))), execute: body)
            }
            instance.operation = { _, body in
                let item = Item()
                item.set(
                    DispatchWorkItem { [weak item] in try? body { [weak item] in item?.isCancelled ?? false }
                    })
                queue.async(group: group, execute: item.work)
                // The item must live until its block has ended.
                item.work.notify(queue: .global()) { withExtendedLifetime(item) {} }
                return TestedOperation(base: item) {
                    item.work.cancel()
                } whenEnded: { handler in
                    item.work.notify(queue: .global()) { handler(item.isCancelled ? .cancelled : .finished) }
                }
            }
            return instance
        }
    }

    /// Foundation's `OperationQueue`, which runs three operations at a time.
    public static let operationQueue = foundation("OperationQueue", width: 3)
    /// Foundation's `OperationQueue`, which runs one operation at a time.
    public static let serialOperationQueue = foundation("OperationQueue, serial", width: 1)

    private static func foundation(_ name: String, width: Int) -> Subject {
        Subject(name) {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = width
            var instance = Instance(claims: [.asynchronous, .cancellation, .dependencies, .fair]) { body in
                queue.addOperation(body)
            } end: {
                queue.isSuspended = false
            }
            instance.width = width
            if width == 1 { instance.claims.insert(.fifo) }
            instance.drain = { queue.waitUntilAllOperationsAreFinished() }
            instance.barrier = { queue.addBarrierBlock($0) }
            instance.suspension = Suspension {
                queue.isSuspended = true
            } resume: {
                queue.isSuspended = false
            }
            instance.operation = { after, body in
                let (one, handlers) = (BlockOperation(), EndHandlers())
                let hasFinished = Locked(false)
                one.addExecutionBlock { [weak one] in
                    guard let one else { return }
                    try? body { [one] in one.isCancelled }
                    hasFinished.withLock { $0 = !one.isCancelled }
                }
                one.completionBlock = { handlers.tell(hasFinished.withLock { $0 } ? .finished : .cancelled) }
                for other in after { one.addDependency(other.base as! BlockOperation) }
                queue.addOperation(one)
                return TestedOperation(base: one) {
                    one.cancel()
                } whenEnded: { handler in
                    handlers.add(handler)
                }
            }
            return instance
        }
    }

    /// The tasks of a discarding group.
    public static let taskGroup = Subject("TaskGroup") {
        let (bodies, continuation) = AsyncStream<Instance.Body>.makeStream()
        let task = Task.detached {
            await withDiscardingTaskGroup { group in
                for await body in bodies { group.addTask { body() } }
            }
        }
        var instance = Instance(claims: [.asynchronous, .fair]) {
            continuation.yield($0)
        } end: {
            continuation.finish()
        }
        instance.shutDown = {
            continuation.finish()
            waitForTask { await task.value }
        }
        instance.claims.insert(.runsAllAtShutdown)
        return instance
    }

    /// The executor on which Swift runs tasks by default.
    public static let defaultExecutor = Subject("default executor") {
        var instance = Instance(claims: [.asynchronous]) { body in Task.detached { body() } }
        instance.taskExecutor = globalConcurrentExecutor
        return instance
    }
}

/// A work item to which its own block refers.
private final class Item: @unchecked Sendable {
    // Unchecked: `work` is set before the item is shared.
    private(set) var work: DispatchWorkItem!
    var isCancelled: Bool { work.isCancelled }
    func set(_ work: DispatchWorkItem) { self.work = work }
}
