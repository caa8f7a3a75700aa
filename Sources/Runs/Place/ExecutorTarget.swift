// ExecutorTarget.swift - an executor of tasks, a serial executor, or an actor, as a target.

/// Runs blocks on an executor: of tasks, of an actor, or an actor itself. Each block is the job of one task, which has the
/// operation's priority when that is not the default.
public final class ExecutorTarget: ExecutionTarget {
    private enum Kind: Sendable {
        case tasks(any TaskExecutor)
        case serial(any SerialExecutor, Resident)
        case actor(any Actor)
    }

    private let kind: Kind

    /// Runs blocks on an executor that tasks can prefer.
    public init(_ executor: any TaskExecutor) { kind = .tasks(executor) }

    /// Runs blocks one at a time on a serial executor.
    public init(_ executor: any SerialExecutor) { kind = .serial(executor, Resident(executor)) }

    /// Runs blocks isolated to an actor.
    public init(_ actor: any Actor) { kind = .actor(actor) }

    /// Enqueues a piece of work; when it is refused, the work is released.
    public func submit(_ work: ExecutionWork) { submit(work, nil) }

    /// Enqueues a piece of work, as a task of the priority.
    package func submit(_ work: ExecutionWork, _ priority: TaskPriority?) {
        // Detached: the work knows nothing of who submits it.
        switch kind {
        case .tasks(let executor):
            Task.detached(executorPreference: executor, priority: priority) { work.run() }
        case .serial(_, let resident):
            Task.detached(priority: priority) { await Self.run(work, on: resident) }
        case .actor(let actor): Task.detached(priority: priority) { await Self.run(work, on: actor) }
        }
    }

    private static func run(_ work: ExecutionWork, on actor: isolated any Actor) { work.run() }

    /// Whether the calling code runs on the serial executor, as far as that one can tell; false for the others.
    public var isCurrent: Bool {
        guard case .serial(let executor, _) = kind else { return false }
        return executor.isIsolatingCurrentContext() ?? false
    }

    /// Lives on an executor.
    private actor Resident {
        private let executor: any SerialExecutor
        init(_ executor: any SerialExecutor) { self.executor = executor }
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    }
}
