// Invoker.swift - what decides when commands run.

/// Decides when commands run, and knows neither what they do nor what they do it to.
///
/// Runs start in the order of their submission within a priority. Each submission of a plain command is a new run. Nothing
/// that an invoker accepted is lost: each run ends, is refused or is abandoned, and its handle and delegate are told once.
/// An invoker never undoes anything: only a ``TransactionCommand`` does.
///
/// Dropping an invoker abandons the runs that have not started.
public protocol Invoker: Sendable {
    /// Submits a command whose end is of no interest.
    func addCommand(command: any Command)

    /// Submits a command, as a run of its own.
    @discardableResult
    func submit<C: Command>(_ command: C, priority: CommandPriority) -> CommandHandle<C.Output>

    /// Submits a run. A run that was submitted before, or executed, is left as it is.
    ///
    /// - Returns: the run's handle.
    @discardableResult
    func submit<Output: Sendable>(_ command: TransactionCommand<Output>, priority: CommandPriority)
        -> CommandHandle<Output>

    /// How many runs execute at a time, at most.
    var limit: Int { get }
    /// How many runs were accepted and have no outcome yet.
    var count: Int { get }
    /// How many runs there were, by how they ended.
    var statistics: InvokerStatistics { get }
    /// The last 64 ends, the oldest first.
    var history: [CommandEnd] { get }

    /// Waits until everything that was accepted before the call has its outcome.
    ///
    /// - Throws: ``CommandUsageError/reentrant`` in a command of this invoker, which would wait for itself;
    ///   a `CancellationError` if the calling task is cancelled first; the commands go on.
    func flush() async throws

    /// Cancels everything that was accepted, as ``CommandRun/cancel()`` does.
    func cancelAll()

    /// Accepts nothing more, and waits until nothing is left.
    ///
    /// - Precondition: it is not called by a command of this invoker.
    func shutdown(_ pending: PendingAtShutdown) async
}

extension Invoker {
    /// Submits a command with normal priority.
    @discardableResult
    @inlinable
    public func submit<C: Command>(_ command: C) -> CommandHandle<C.Output> {
        submit(command, priority: .normal)
    }

    /// Submits a run with normal priority.
    @discardableResult
    public func submit<Output: Sendable>(_ command: TransactionCommand<Output>) -> CommandHandle<Output> {
        submit(command, priority: .normal)
    }
}

/// Which of the waiting commands start first.
public enum CommandPriority: Int, Hashable, Sendable, CaseIterable {
    /// After all others.
    case low
    /// The usual one.
    case normal
    /// Before all others.
    case high
}

/// How a shutdown treats commands that have not started.
public enum PendingAtShutdown: Hashable, Sendable {
    /// Runs them.
    case run
    /// Cancels them: ``CancelReason/Kind/shutDown``.
    case reject
}
