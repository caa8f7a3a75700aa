// LaneInvoker.swift - the invokers: serial, concurrent, in batches. All are built on a lane.

internal import CInspection
internal import CompositeOperationsBasics
public import Scheduling

/// The common base class of this module's invokers. Not to be instantiated directly.
public class LaneInvoker: Invoker, @unchecked Sendable {
    // Unchecked: a class with subclasses; all its properties are constant.
    let lane: Lane
    private let instance = Instance(.invokers)

    init(_ lane: Lane) {
        self.lane = lane
        if inspection_is_on() { Inspectables.keep(lane, .invokers, name: "\(type(of: self))") }
    }

    deinit { lane.abandon() }

    /// Submits a command and ignores its outcome. (``Diagnostics`` reports a failure.)
    public final func addCommand(command: any Command) { command.submit(to: self) }

    /// Submits a command as a new run.
    ///
    /// - Complexity: O(1), except when a batch is cut.
    @discardableResult
    @inlinable
    public final func submit<C: Command>(_ command: C, priority: CommandPriority) -> CommandHandle<C.Output> {
        // Inlinable: if the command's type is known, no metadata look-up is needed.
        let handle = CommandHandle<C.Output>()
        submit(handle, PlainBody(command), cost: countsCosts ? cost(command) : 0, priority)
        return handle
    }

    /// Submits a run. A run that was already submitted or executed is left unchanged.
    @discardableResult
    public final func submit<Output: Sendable>(
        _ command: TransactionCommand<Output>, priority: CommandPriority
    ) -> CommandHandle<Output> {
        submit(command.handle, command.body, cost: cost(command), priority)
        return command.handle
    }

    @usableFromInline
    final func submit(_ run: CommandRun, _ body: AnyBody, cost: Int, _ priority: CommandPriority) {
        if inspection_traces() {
            accept(run, run.tracing(body), cost: cost, priority)
        } else {
            accept(run, body, cost: cost, priority)  // no shared variable, which would cost another retain
        }
    }

    @inline(__always)
    private final func accept(_ run: CommandRun, _ body: AnyBody, cost: Int, _ priority: CommandPriority) {
        lane.submit(run, cost: cost, priority: priority) { run.accept(body, by: lane) }
    }

    @usableFromInline
    final var countsCosts: Bool { lane.batching?.cost != nil }

    @usableFromInline
    final func cost(_ command: any Command) -> Int {
        guard let cost = lane.batching?.cost?(command) else { return 0 }
        if cost < 0 { fatalError("BatchInvoker: the cost of a command is \(cost), and must not be negative") }
        return min(cost, 1 << 40)  // so that sums cannot overflow
    }

    /// The maximum number of runs that execute at a time.
    public final var limit: Int { lane.limit }
    /// The number of accepted runs without an outcome.
    public final var count: Int { lane.count }
    /// The number of runs so far, by how they ended.
    public final var statistics: InvokerStatistics { lane.statistics }
    /// How the last 64 runs ended, oldest first.
    public final var history: [CommandEnd] { lane.history }
    /// Waits until every run accepted before the call has its outcome.
    ///
    /// - Throws: ``CommandUsageError/reentrant`` in a command of this invoker; a `CancellationError` if the calling
    ///   task is cancelled first, which does not cancel the commands.
    public final func flush() async throws { try await lane.flush() }
    /// Cancels every accepted run.
    public final func cancelAll() { lane.cancelAll() }
    /// Accepts nothing more, and waits until every accepted run has its outcome.
    ///
    /// - Precondition: not called from a command of this invoker.
    public final func shutdown(_ pending: PendingAtShutdown) async { await lane.shutDown(pending) }
}

extension Command {
    fileprivate func submit(to invoker: LaneInvoker) {
        if let run = self as? any Submittable { run.submitted(to: invoker) } else { invoker.submit(self) }
    }
}

/// A command that is already a run.
private protocol Submittable { func submitted(to invoker: LaneInvoker) }

extension TransactionCommand: Submittable {
    func submitted(to invoker: LaneInvoker) { invoker.submit(self, priority: .normal) }
}

/// Runs one command at a time; within a priority, in submission order.
///
/// - SeeAlso: `SerialLane`, the equivalent for code that never awaits.
public final class SerialInvoker: LaneInvoker, @unchecked Sendable {
    /// Creates an invoker.
    ///
    /// - Parameters:
    ///   - capacity: the maximum number of accepted runs without an outcome, beyond which commands are refused; nil for
    ///     no limit.
    ///   - scheduler: the scheduler whose workers run the commands.
    /// - Precondition: `capacity` is greater than 0.
    public init(capacity: Int? = nil, on scheduler: Scheduler = .shared) {
        super.init(Lane(limit: 1, capacity: capacity, on: scheduler))
    }
}

/// Runs several commands at a time; within a priority, starts them in submission order.
public final class ConcurrentInvoker: LaneInvoker, @unchecked Sendable {
    /// Creates an invoker.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of commands that run at a time.
    ///   - capacity: the maximum number of accepted runs without an outcome, beyond which commands are refused; nil for
    ///     no limit.
    ///   - scheduler: the scheduler whose workers run the commands.
    /// - Precondition: `limit` and `capacity` are greater than 0.
    public init(limit: Int, capacity: Int? = nil, on scheduler: Scheduler = .shared) {
        super.init(Lane(limit: limit, capacity: capacity, on: scheduler))
    }
}

/// Gathers commands and runs them in batches, in submission order; priorities are ignored.
///
/// A batch starts when enough commands have gathered, by number or by cost; when a command has been first in line for
/// `maxDelay`; on ``LaneInvoker/flush()``; and on a shutdown that runs pending commands. Batches never overlap:
/// commands submitted while a batch runs go to a later one.
public final class BatchInvoker: LaneInvoker, @unchecked Sendable {
    /// Creates an invoker.
    ///
    /// - Parameters:
    ///   - size: the number of gathered commands at which a batch starts; also the maximum size of a batch.
    ///   - maxDelay: the delay after which a smaller batch starts; nil for never.
    ///   - maxCost: the total cost at which a smaller batch starts, and the maximum cost of a batch of several
    ///     commands; nil for no limit.
    ///   - cost: the cost of a command, at least 0; nil means 0. Called during submission.
    ///   - order: the order in which the commands of a batch run.
    ///   - stopsOnFailure: whether, after a failure, the commands of the batch that have not started are refused.
    ///   - capacity: the maximum number of accepted runs without an outcome, beyond which commands are refused; nil for
    ///     no limit.
    ///   - scheduler: the scheduler whose workers run the commands.
    ///   - clock: the clock of `maxDelay`.
    /// - Precondition: `size` and `capacity` are greater than 0, and so is the limit of a parallel `order`.
    public init(
        size: Int = 5, maxDelay: Duration? = nil, maxCost: Int? = nil,
        cost: (@Sendable (any Command) -> Int)? = nil, order: TransactionOptions.Order = .sequential,
        stopsOnFailure: Bool = false, capacity: Int? = nil, on scheduler: Scheduler = .shared,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        if size < 1 { fatalError("BatchInvoker: the size is \(size), and must be at least 1") }
        let limit = if case .parallel(let limit) = order { limit } else { 1 }
        let batching = Batching(
            size: size, maxDelay: maxDelay, maxCost: maxCost, cost: cost, stopsOnFailure: stopsOnFailure,
            clock: clock)
        super.init(Lane(limit: limit, capacity: capacity, on: scheduler, batching: batching))
    }
}

/// How batches are cut. A class, so that reading it copies nothing.
final class Batching: Sendable {
    let size: Int
    let maxDelay: Duration?
    let maxCost: Int?
    let cost: (@Sendable (any Command) -> Int)?
    let stopsOnFailure: Bool
    let clock: any Clock<Duration>

    init(
        size: Int, maxDelay: Duration?, maxCost: Int?, cost: (@Sendable (any Command) -> Int)?,
        stopsOnFailure: Bool, clock: any Clock<Duration>
    ) {
        self.size = size
        self.maxDelay = maxDelay
        self.maxCost = maxCost
        self.cost = cost
        self.stopsOnFailure = stopsOnFailure
        self.clock = clock
    }
}
