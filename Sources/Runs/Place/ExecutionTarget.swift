// ExecutionTarget.swift - where blocks run, and what is sent there.

package import Scheduling
internal import Synchronization

/// Where blocks run. Adopted by `Scheduler`, `SerialLane`, `DispatchQueue`, ``ExecutorTarget`` and `COOperationQueue`; adopt
/// it for a queue of your own.
public protocol ExecutionTarget: AnyObject, Sendable {
    /// Enqueues a piece of work. Must not run it before it returns. A task that runs it should be detached: the work has
    /// nothing to do with task-local values of whoever submits it.
    ///
    /// Work that is released without having been run ends its operation as cancelled, because the target was shut down.
    func submit(_ work: ExecutionWork)

    /// Whether the calling code is this target's, so that a sync operation aimed at it runs in place; false when that is not
    /// known, and for a target that is no place, such as a pool.
    var isCurrent: Bool { get }
}

/// A piece of work for a target. It is done once, or given up when nobody refers to it any more.
public struct ExecutionWork: Sendable {
    private let piece: Piece

    /// - Parameters:
    ///   - body: called once at most.
    ///   - abandoned: called instead, when the work goes without having been run, on whatever thread that is.
    package init(_ body: @escaping @Sendable () -> Void, abandoned: @escaping @Sendable () -> Void) {
        piece = Piece(body, abandoned)
    }

    /// Does it. A second call does nothing.
    public func run() { piece.run() }

    private final class Piece: Sendable {
        private let isTaken = Atomic(false)
        private let body: @Sendable () -> Void
        private let abandoned: @Sendable () -> Void

        init(_ body: @escaping @Sendable () -> Void, _ abandoned: @escaping @Sendable () -> Void) {
            self.body = body
            self.abandoned = abandoned
        }

        func run() { if !isTaken.exchange(true, ordering: .acquiringAndReleasing) { body() } }

        deinit { if !isTaken.load(ordering: .acquiring) { abandoned() } }
    }
}

extension ExecutionWork {
    /// Has `body` run on a target; on the built-in scheduler without one, or when the target gives it up.
    ///
    /// - Parameter priority: on the built-in scheduler; nil: that of the running body.
    package static func run(
        on target: (any ExecutionTarget)?, priority: Scheduler.Priority? = nil,
        _ body: @escaping @Sendable () -> Void
    ) {
        guard let target else { return runOnShared(priority, body) }
        target.submit(ExecutionWork(body, abandoned: { runOnShared(priority, body) }))
    }

    private static func runOnShared(_ priority: Scheduler.Priority?, _ body: @escaping @Sendable () -> Void) {
        do {
            try Scheduler.shared.submit(priority: priority ?? Scheduler.currentPriority, body)
        } catch {
            fatalError("CompositeOperations: the built-in scheduler did not accept a handler: \(error)")
        }
    }
}
