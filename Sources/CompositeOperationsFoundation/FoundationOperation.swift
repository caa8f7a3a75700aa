// FoundationOperation.swift - an operation of ours, for those who take Foundation's.

public import CompositeOperations
public import Foundation
internal import Synchronization

/// An operation of Foundation's that starts one of ours, and is finished when that one has ended: in whichever way.
///
/// ```swift
/// let sync = COCascadeOperation<Void> { cascade in … }
/// foundationQueue.addOperation(FoundationOperation(sync))
/// ```
///
/// Dependencies, priorities and `completionBlock` work as with every operation of Foundation's. To cancel either of
/// the two cancels the other. One that is in a queue becomes finished when the queue has started it, as all do there:
/// cancelled, it does not wait for its dependencies.
///
/// No call of it stops the program: a second `start()` does nothing, and an operation without a block is cancelled
/// when it is started.
public final class FoundationOperation<Success: Sendable>: Foundation.Operation, @unchecked Sendable {
    // Unchecked: what is not in Foundation's class, which locks, is constant or atomic.

    /// The operation that does the work.
    public let wrapped: OperationHandle<Success>

    private enum Phase: UInt8, AtomicRepresentable {
        case idle, executing, finished
    }

    private let phase = Atomic(Phase.idle)

    /// Wraps an operation: a single one, or a composite. Nothing is started.
    public init(_ wrapped: OperationHandle<Success>) {
        self.wrapped = wrapped
        super.init()
        name = wrapped.name
        // Weakly: before its start nobody but the user holds it.
        wrapped.onOutcome { [weak self] outcome in
            if case .cancelled = outcome { self?.cancelledElsewhere() }
        }
    }

    /// True: `start()` does not wait.
    override public var isAsynchronous: Bool { true }

    /// Whether it has been started, and the wrapped operation has not ended.
    override public var isExecuting: Bool { phase.load(ordering: .acquiring) == .executing }

    /// Whether it has been started, and the wrapped operation has ended.
    override public var isFinished: Bool { phase.load(ordering: .acquiring) == .finished }

    /// Whether this operation, or the wrapped one, has been cancelled.
    override public var isCancelled: Bool { super.isCancelled || wrapped.isCancelled }

    /// Starts the wrapped operation, unless that has been started or has ended. For queues, and for users whose
    /// operation is in no queue.
    override public func start() {
        guard
            phase.compareExchange(expected: .idle, desired: .executing, ordering: .acquiringAndReleasing)
                .exchanged
        else { return }
        if super.isCancelled { wrapped.cancel() }
        if wrapped.isEnded { return finish() }
        // Foundation's own state follows what it is told of: without this a cancellation would take the operation for
        // one that waits.
        willChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isExecuting")
        // Not a handler: those wait for each other, and for the target that they were given.
        Task { [self] in
            _ = await wrapped.outcome
            finish()
        }
        if wrapped.attempt == 0, !wrapped.start(), !wrapped.willBeStarted { wrapped.cancel() }
    }

    /// Cancels it and the wrapped operation.
    override public func cancel() {
        wrapped.cancel()
        super.cancel()
    }

    /// Lets a queue start it, so that it becomes finished, whatever it depends on.
    private func cancelledElsewhere() { super.cancel() }

    private func finish() {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        phase.store(.finished, ordering: .releasing)
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }
}
