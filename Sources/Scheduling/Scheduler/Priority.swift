// Priority.swift - the order in which waiting operations begin.

internal import CScheduler

extension Scheduler {
    /// When a waiting operation begins, relative to others.
    ///
    /// Running operations are not interrupted. An operation has the priority it was submitted with, else that of the
    /// submitting operation, else ``default``. A job has that of its task.
    public enum Priority: Int, Comparable, Sendable, CaseIterable {
        /// When nothing else waits. While other operations wait, each worker still gives this class one turn in 61.
        case background
        /// In its normal turn.
        case `default`
        /// Next, ahead of all other classes. While many operations of this class wait, the others still get one turn in
        /// 30.
        case high

        /// The class of a task's priority: `.high`, `.userInitiated` and above are high, and `.background` is
        /// background; `.low`, `.utility`, `.medium` and unspecified priorities are default.
        public init(_ priority: TaskPriority) { self = Priority(raw: priority.rawValue) }

        init(raw: UInt8) {
            switch raw {  // every job passes here, so the runtime's constants are not loaded
            case 0, 0x11...0x15: self = .default  // unspecified, low to medium
            case 0x16...: self = .high
            default: self = .background
            }
        }

        init(_ priority: csched_priority) {
            switch priority {
            case .high: self = .high
            case .background: self = .background
            default: self = .default
            }
        }

        @inline(__always)
        var inQueue: csched_priority {
            switch self {
            case .background: .background
            case .default: .default
            case .high: .high
            }
        }

        /// A lower priority is less than a higher one.
        public static func < (left: Priority, right: Priority) -> Bool { left.rawValue < right.rawValue }
    }

    /// The priority of the operation or job that the calling worker runs; on any other thread, ``Priority/default``.
    public static var currentPriority: Priority { Priority(csched_priority_current()) }

    /// On a worker, ``currentPriority``; elsewhere, the class of the calling task's priority.
    package static var callersPriority: Priority {
        if unsafe csched_scheduler_current() != nil { return currentPriority }
        if !BoundValues.mayBeInTask { return .default }
        return unsafe withUnsafeCurrentTask { unsafe $0.map { unsafe Priority($0.priority) } ?? .default }
    }

    /// Submits one operation with a priority.
    ///
    /// ```swift
    /// try scheduler.submit(priority: .high) { answer(request) }
    /// try scheduler.submit(priority: .background) { compact(database) }
    /// ```
    ///
    /// - Parameters:
    ///   - context: for this operation, in place of ``Configuration/context``.
    ///   - counter: counts the operation until it has returned.
    /// - Throws: as ``submit(_:)-method``.
    /// - Complexity: as ``submit(_:)-method``. A worker finds an operation of a priority other than ``Priority/default``
    ///   in about 0.1 µs.
    public func submit(
        priority: Priority, context: Context? = nil, in counter: CompletionCounter? = nil,
        _ body: @escaping @Sendable () -> Void
    ) throws(SchedulerError) {
        var operation = unsafe Body((context ?? self.context).bound(to: body)).operation(in: counter?.handle)
        let status = unsafe csched_submit_at(handle, &operation, priority.inQueue)
        if status != .ok {
            unsafe operation.run(operation.context, operation.extra, .cancel)
            try status.check()
        }
    }

    /// Submits many operations of one priority, all or none, with one publication and one wake-up.
    ///
    /// - Throws: as ``submit(contentsOf:in:)``.
    /// - Complexity: as ``submit(contentsOf:in:)``.
    public func submit(
        contentsOf bodies: [@Sendable () -> Void], priority: Priority, in counter: CompletionCounter? = nil
    ) throws(SchedulerError) {
        try submitEach(
            context == .empty ? bodies : bodies.map { context.bound(to: $0) }, priority, in: counter)
    }
}

extension SerialLane {
    /// Appends one operation; the lane is scheduled like an operation of this priority.
    ///
    /// A lane's operations keep the order of their submission. Hence ``Scheduler/Priority/background`` counts as
    /// ``Scheduler/Priority/default`` here, and an operation of high priority also makes its predecessors begin sooner.
    ///
    /// - Throws: as ``submit(_:)``.
    /// - Complexity: as ``submit(_:)``.
    public func submit(
        priority: Scheduler.Priority, context: Scheduler.Context? = nil, in counter: CompletionCounter? = nil,
        _ body: @escaping @Sendable () -> Void
    ) throws(SchedulerError) {
        let body = (context ?? scheduler.context).bound(to: body)
        var operation = unsafe Body(body).operation(in: counter?.handle)
        let status = unsafe csched_lane_submit_at(handle, &operation, priority.inQueue)
        if status != .ok {
            unsafe operation.run(operation.context, operation.extra, .cancel)
            try status.check()
        }
    }
}

extension UnownedJob {
    /// The class of its task's priority.
    @inline(__always)
    var inQueue: csched_priority { Scheduler.Priority(raw: priority.rawValue).inQueue }
}
