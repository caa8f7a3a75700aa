// COOperation+Foundation.swift - an operation of Foundation's, for those who take ours.

public import CompositeOperations
internal import CompositeOperationsBasics
public import Foundation
@_spi(Faces) internal import Runs

extension COOperation where Success == Void {
    /// An operation that has one of Foundation's done: it finishes when that one is finished, and is cancelled when
    /// that one is finished as a cancelled one. To cancel it cancels that one, also before the start.
    ///
    /// An operation of Foundation's runs once: a rerun finds it finished, and so does a copy.
    ///
    /// - Parameters:
    ///   - operation: may be in `queue`, executing or finished already, but in no other queue, and in no other
    ///     operation made like this.
    ///   - queue: to which it is added at the start; nil: to one of its own.
    public convenience init(foundation operation: Foundation.Operation, in queue: OperationQueue? = nil) {
        self.init({
            await withTaskCancellationHandler {
                await operation.runToItsEnd(in: queue)
            } onCancel: {
                operation.cancel()
            }
            if operation.isCancelled { throw CancelReason() }
        })
        onOutcome { outcome in
            if case .cancelled = outcome { operation.cancel() }  // without a start, nobody else does
        }
    }
}

extension Foundation.Operation {
    /// Has it done, and waits until it is finished.
    fileprivate func runToItsEnd(in queue: OperationQueue?) async {
        let waiters = Guarded(WaitList())
        await Waiter.wait { waiter in
            let registration = waiters.withLock { $0.append(waiter) }
            // A dependent is told by every operation that can be in a queue; the completion block is the user's.
            let resume: @Sendable () -> Void = {
                if waiters.withLock({ $0.remove(waiter) }) { waiter.wake() }
            }
            let last = BlockOperation(block: resume)
            last.addDependency(self)
            let own = OperationQueue()
            if !isExecuting, !isFinished, queue?.operations.contains(self) != true {
                (queue ?? own).addOperation(self)
            }
            own.addOperation(last)
            // Foundation may lose a dependency that is added while the operation finishes.
            if isFinished {
                resume()
                last.cancel()  // or it would wait for ever
            }
            return registration
        }
    }
}
