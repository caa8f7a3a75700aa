// FoundationOperation.swift - one of our operations, wrapped as a Foundation operation.

public import CompositeOperations
public import Foundation
internal import Synchronization

/// A Foundation operation that starts one of our operations and is finished once that has ended, in whatever way.
///
/// ```swift
/// let sync = COCascadeOperation<Void> { cascade in … }
/// foundationQueue.addOperation(FoundationOperation(sync))
/// ```
///
/// Dependencies, priorities and `completionBlock` work as with every Foundation operation. Cancelling either of the
/// two cancels the other. In a queue, the Foundation operation becomes finished only once the queue has started it,
/// like all queued operations; if cancelled, it does not wait for its dependencies.
///
/// None of its methods traps: a second `start()` does nothing, and an operation without a block is
/// cancelled when it is started.
public final class FoundationOperation<Success: Sendable>: Foundation.Operation, @unchecked Sendable {
    // Unchecked: Foundation's class protects its state with locks; all other state is constant or atomic.

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
        // Weak: the handler must not keep this operation alive; until it is started, only the user holds it.
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

    /// Starts the wrapped operation, unless it has been started or has ended. Called by queues, and by users whose
    /// operation is in no queue.
    override public func start() {
        guard
            phase.compareExchange(expected: .idle, desired: .executing, ordering: .acquiringAndReleasing)
                .exchanged
        else { return }
        if super.isCancelled { wrapped.cancel() }
        if wrapped.isEnded { return finish() }
        // Foundation updates its own state on these notifications. Without them, its `cancel()` would treat the
        // operation as still waiting.
        willChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isExecuting")
        // A task, not a handler: handlers run one at a time, and only when their target is free.
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

    /// Marks this operation cancelled too, so that a queue starts and finishes it regardless of its dependencies.
    private func cancelledElsewhere() { super.cancel() }

    private func finish() {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        phase.store(.finished, ordering: .releasing)
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }
}
