// SchedulerTarget.swift - the scheduler, and a serial lane of one, as targets.

public import Scheduling

extension Scheduler: ExecutionTarget {
    /// Enqueues a piece of work; when it is refused, the work is released.
    public func submit(_ work: ExecutionWork) {
        // Refused: the closure is released, and with it the work.
        try? submit(context: .empty) { work.run() }
    }

    /// False: a scheduler runs many pieces at a time.
    public var isCurrent: Bool { false }
}

extension SerialLane: ExecutionTarget {
    /// Enqueues a piece of work; when it is refused, the work is released.
    public func submit(_ work: ExecutionWork) { try? submit(context: .empty) { work.run() } }
}
