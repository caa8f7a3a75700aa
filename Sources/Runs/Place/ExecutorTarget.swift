// ExecutorTarget.swift - a task executor, a serial executor, or an actor, as a target.

/// Runs blocks on a task executor, on a serial executor, or isolated to an actor. Each block is the job of one task, which
/// has the operation's priority if that is not the default.
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

    /// Enqueues a piece of work; if it is refused, the work is released.
    public func submit(_ work: ExecutionWork) { submit(work, nil) }

    /// Enqueues a piece of work as a task with the given priority.
    package func submit(_ work: ExecutionWork, _ priority: TaskPriority?) {
        // Detached: the work must not inherit anything from the submitter.
        switch kind {
        case .tasks(let executor):
            Task.detached(executorPreference: executor, priority: priority) { work.run() }
        case .serial(_, let resident):
            Task.detached(priority: priority) { await Self.run(work, on: resident) }
        case .actor(let actor): Task.detached(priority: priority) { await Self.run(work, on: actor) }
        }
    }

    private static func run(_ work: ExecutionWork, on actor: isolated any Actor) { work.run() }

    /// Whether the caller is running on the serial executor, as far as the executor can tell; false for the other kinds.
    public var isCurrent: Bool {
        guard case .serial(let executor, _) = kind else { return false }
        return executor.isIsolatingCurrentContext() ?? false
    }

    /// An actor on a given executor.
    private actor Resident {
        private let executor: any SerialExecutor
        init(_ executor: any SerialExecutor) { self.executor = executor }
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    }
}
