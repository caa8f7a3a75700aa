// COOperation+Foundation.swift - a Foundation operation, wrapped as one of ours.

public import CompositeOperations
internal import CompositeOperationsBasics
public import Foundation
@_spi(Faces) internal import Runs

extension COOperation where Success == Void {
    /// An operation that runs a Foundation operation: it finishes when the Foundation operation finishes, and ends
    /// as cancelled if the Foundation operation was cancelled. Cancelling it cancels the Foundation operation,
    /// even before the start.
    ///
    /// A Foundation operation runs once: a rerun, or a copy, finds it finished.
    ///
    /// - Parameters:
    ///   - operation: may already be in `queue`, executing or finished, but must not be in another queue or
    ///     wrapped by another operation.
    ///   - queue: the queue that it is added to at the start; nil: a private one.
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
            if case .cancelled = outcome { operation.cancel() }  // without a start, no other code does
        }
    }
}

extension Foundation.Operation {
    /// Runs the operation, and waits until it is finished.
    fileprivate func runToItsEnd(in queue: OperationQueue?) async {
        let waiters = Guarded(WaitList())
        await Waiter.wait { waiter in
            let registration = waiters.withLock { $0.append(waiter) }
            // A dependent, not the completion block, which belongs to the user. Every operation that can be in a
            // queue notifies its dependents.
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
                last.cancel()  // otherwise it would wait forever
            }
            return registration
        }
    }
}
