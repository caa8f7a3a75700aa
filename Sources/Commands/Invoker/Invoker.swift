// Invoker.swift - the interface that decides when commands run.

/// Decides when commands run, and knows neither their work nor their receivers.
///
/// Within a priority, runs start in submission order. Each submission of a plain command is a new run. No accepted run is
/// lost: each one ends, is refused or is abandoned, and its handle and delegate are notified once. An invoker never undoes
/// anything: only a ``TransactionCommand`` does.
///
/// Releasing an invoker abandons the runs that have not started.
public protocol Invoker: Sendable {
    /// Submits a command and ignores its outcome.
    func addCommand(command: any Command)

    /// Submits a command as a new run.
    @discardableResult
    func submit<C: Command>(_ command: C, priority: CommandPriority) -> CommandHandle<C.Output>

    /// Submits a run. A run that was already submitted or executed is left unchanged.
    ///
    /// - Returns: the run's handle.
    @discardableResult
    func submit<Output: Sendable>(_ command: TransactionCommand<Output>, priority: CommandPriority)
        -> CommandHandle<Output>

    /// The maximum number of runs that execute at a time.
    var limit: Int { get }
    /// The number of accepted runs without an outcome.
    var count: Int { get }
    /// The number of runs so far, by how they ended.
    var statistics: InvokerStatistics { get }
    /// How the last 64 runs ended, oldest first.
    var history: [CommandEnd] { get }

    /// Waits until every run accepted before the call has its outcome.
    ///
    /// - Throws: ``CommandUsageError/reentrant`` if called from a command of this invoker, which would wait for
    ///   itself; `CancellationError` if the calling task is cancelled first, which does not cancel the commands.
    func flush() async throws

    /// Cancels every accepted run, as ``CommandRun/cancel()`` does.
    func cancelAll()

    /// Stops accepting commands, and waits until every accepted run has its outcome.
    ///
    /// - Precondition: not called from a command of this invoker.
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

/// The priority of a waiting command.
public enum CommandPriority: Int, Hashable, Sendable, CaseIterable {
    /// Starts after all others.
    case low
    /// The default.
    case normal
    /// Starts before all others.
    case high
}

/// How a shutdown treats commands that have not started.
public enum PendingAtShutdown: Hashable, Sendable {
    /// Runs them.
    case run
    /// Cancels them with ``CancelReason/Kind/shutDown``.
    case reject
}
