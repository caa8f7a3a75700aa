// SchedulerTarget.swift - a scheduler, and a serial lane on one, as targets.

public import Scheduling

extension Scheduler: ExecutionTarget {
    /// Enqueues a piece of work; if it is refused, the work is released.
    public func submit(_ work: ExecutionWork) {
        // If refused, the closure is released, and the work with it.
        try? submit(context: .empty) { work.run() }
    }

    /// False: a scheduler runs many pieces of work at a time.
    public var isCurrent: Bool { false }
}

extension SerialLane: ExecutionTarget {
    /// Enqueues a piece of work; if it is refused, the work is released.
    public func submit(_ work: ExecutionWork) { try? submit(context: .empty) { work.run() } }
}
