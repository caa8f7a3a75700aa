// TurnTarget.swift - how an operation's turn is sent to its target: as a job where that is possible, which allocates
// nothing, else as a piece of work.

internal import Dispatch
internal import Runs
internal import Scheduling

extension ExecutionWork {
    /// The turn of an operation.
    init(turnOf operation: AnyOperation) {
        self.init({ operation.turn() }, abandoned: { operation.turnIsRefused() })
    }
}

/// The turn of an operation, as a job of a scheduler: no allocation.
let turnOfOperation: JobFunction = { object, isCancelled in
    let operation = Unmanaged<AnyOperation>.fromOpaque(object).takeRetainedValue()
    if isCancelled { operation.turnIsRefused() } else { operation.turn() }
}

/// The first notice of an operation, likewise; on the built-in scheduler, which is never shut down.
private let noticeOfOperation: JobFunction = { object, _ in
    Unmanaged<AnyOperation>.fromOpaque(object).takeRetainedValue().deliverNotice()
}

extension CompletionCounter {
    /// Blocks, and meanwhile runs turns of `operation` and its descendants that are queued on the calling worker: the
    /// wait could not end without them.
    @available(*, noasync)
    func wait(runningTurnsOf operation: AnyOperation) {
        wait(running: turnOfOperation) { object in
            Unmanaged<AnyOperation>.fromOpaque(object)._withUnsafeGuaranteedRef { $0.isPart(of: operation) }
        } orChildrenWhere: { children, child in
            PlainChildren.composite(of: children)._withUnsafeGuaranteedRef { composite in
                // The awaited operation may be the child itself, which the wait has turned into an operation.
                let isIt = child.map { node in
                    composite.look { PlainNode(address: node).object === operation }
                }
                return isIt == true || composite.isPart(of: operation)
            }
        }
    }
}

extension AnyOperation {
    /// Sends a turn to the built-in scheduler.
    @inline(__always)
    static func sendTurnToShared(_ operation: Unmanaged<AnyOperation>, at priority: Scheduler.Priority) {
        if !Scheduler.submitToShared(job: operation.toOpaque(), priority: priority, turnOfOperation) {
            operation.takeRetainedValue().turnIsRefused()
        }
    }

    /// Sends the first notice to the built-in scheduler. Under no lock.
    final func sendNoticeToShared(at priority: Scheduler.Priority) {
        let object = Unmanaged.passRetained(self).toOpaque()
        if !Scheduler.submitToShared(job: object, priority: priority, noticeOfOperation) {
            fatalError("CompositeOperations: the built-in scheduler did not accept a handler")
        }
    }

    /// Sends a turn to a target, with its priority if the target supports priorities. Under no lock.
    final func sendTurn(to target: any ExecutionTarget, at priority: Scheduler.Priority) {
        switch target {
        case let lane as SerialLane:
            do {
                try lane.submit(job: self, priority: priority, turnOfOperation)
            } catch { turnIsRefused() }
        case let scheduler as Scheduler:
            do {
                try scheduler.submit(job: self, priority: priority, turnOfOperation)
            } catch { turnIsRefused() }
        case let queue as DispatchQueue: queue.async { self.turn() }
        case let executor as ExecutorTarget:
            executor.submit(ExecutionWork(turnOf: self), priority.ofTasks)
        case let waiter as WaitingThread where !waiter.isInline:
            // Sent as a turn, so that the waiting thread can find it in its own worker's deque.
            sendTurn(to: waiter.destination ?? Scheduler.shared, at: priority)
        default: target.submit(ExecutionWork(turnOf: self))
        }
    }
}

extension COOperationQueue {
    /// The queue that admits operations aimed at a target; nil: the target only runs them.
    static func admitting(to target: (any ExecutionTarget)?) -> COOperationQueue? {
        target as? COOperationQueue
    }
}
