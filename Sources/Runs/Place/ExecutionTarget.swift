// ExecutionTarget.swift - where blocks run, and the work that is submitted there.

package import Scheduling
internal import Synchronization

/// Where blocks run. Adopted by `Scheduler`, `SerialLane`, `DispatchQueue`, ``ExecutorTarget`` and `COOperationQueue`; adopt
/// it for your own queue.
public protocol ExecutionTarget: AnyObject, Sendable {
    /// Enqueues a piece of work. Must not run the work inline, before returning. A task that runs it should be detached: the
    /// work must not see the submitter's task-local values.
    ///
    /// Work that is released without being run ends its operation as cancelled, with the reason that the target was shut
    /// down.
    func submit(_ work: ExecutionWork)

    /// Whether the caller is running on this target, so that a sync operation aimed at it runs in place; false if that is
    /// unknown, and for a target that is not a single place, such as a pool.
    var isCurrent: Bool { get }
}

/// A piece of work for a target. Runs once, or is abandoned when the last reference is released.
public struct ExecutionWork: Sendable {
    private let piece: Piece

    /// - Parameters:
    ///   - body: called at most once.
    ///   - abandoned: called instead if the work is released without being run, on the releasing thread.
    package init(_ body: @escaping @Sendable () -> Void, abandoned: @escaping @Sendable () -> Void) {
        piece = Piece(body, abandoned)
    }

    /// Runs the work. A second call does nothing.
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
    /// Runs `body` on a target; on the built-in scheduler if there is none, or if the target drops the work.
    ///
    /// - Parameter priority: the priority on the built-in scheduler; nil for that of the running body.
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
