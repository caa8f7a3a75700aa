// LaneInvoker.swift - the invokers: one at a time, some at a time, in batches. What they share is a lane.

internal import CInspection
internal import CompositeOperationsBasics
public import Scheduling

/// The common base of this module's invokers. Not to be made by itself.
public class LaneInvoker: Invoker, @unchecked Sendable {
    // Unchecked: a class with subclasses; all that it has is constant.
    let lane: Lane
    private let instance = Instance(.invokers)

    init(_ lane: Lane) {
        self.lane = lane
        if inspection_is_on() { Inspectables.keep(lane, .invokers, name: "\(type(of: self))") }
    }

    deinit { lane.abandon() }

    /// Submits a command whose end is of no interest. (``Diagnostics`` tells of its failure.)
    public final func addCommand(command: any Command) { command.submit(to: self) }

    /// Submits a command, as a run of its own.
    ///
    /// - Complexity: O(1), but for a batch that is cut.
    @discardableResult
    @inlinable
    public final func submit<C: Command>(_ command: C, priority: CommandPriority) -> CommandHandle<C.Output> {
        // Inlinable: where the command is known, its types need not be looked up.
        let handle = CommandHandle<C.Output>()
        submit(handle, PlainBody(command), cost: cost(command), priority)
        return handle
    }

    /// Submits a run. A run that was submitted before, or executed, is left as it is.
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
            accept(run, body, cost: cost, priority)  // not in one variable: that would be retained once more
        }
    }

    @inline(__always)
    private final func accept(_ run: CommandRun, _ body: AnyBody, cost: Int, _ priority: CommandPriority) {
        lane.submit(run, cost: cost, priority: priority) { run.accept(body, by: lane) }
    }

    @usableFromInline
    final func cost(_ command: any Command) -> Int {
        guard let cost = lane.batching?.cost?(command) else { return 0 }
        if cost < 0 { fatalError("BatchInvoker: the cost of a command is \(cost), and must not be negative") }
        return min(cost, 1 << 40)  // so that sums of them are numbers
    }

    /// How many run at a time, at most.
    public final var limit: Int { lane.limit }
    /// How many were accepted and have no outcome yet.
    public final var count: Int { lane.count }
    /// How many there were, by their ends.
    public final var statistics: InvokerStatistics { lane.statistics }
    /// The last 64 ends, the oldest first.
    public final var history: [CommandEnd] { lane.history }
    /// Waits until everything that was accepted before the call has its outcome.
    ///
    /// - Throws: ``CommandUsageError/reentrant`` in a command of this invoker; a `CancellationError` when the calling
    ///   task is cancelled first: the commands go on.
    public final func flush() async throws { try await lane.flush() }
    /// Cancels everything that was accepted.
    public final func cancelAll() { lane.cancelAll() }
    /// Accepts nothing more, and waits until nothing is left.
    ///
    /// - Precondition: it is not called by a command of this invoker.
    public final func shutdown(_ pending: PendingAtShutdown) async { await lane.shutDown(pending) }
}

extension Command {
    fileprivate func submit(to invoker: LaneInvoker) {
        if let run = self as? any Submittable { run.submitted(to: invoker) } else { invoker.submit(self) }
    }
}

/// A command that is one run already.
private protocol Submittable { func submitted(to invoker: LaneInvoker) }

extension TransactionCommand: Submittable {
    func submitted(to invoker: LaneInvoker) { invoker.submit(self, priority: .normal) }
}

/// Runs one command at a time, in the order of submission within a priority.
///
/// - SeeAlso: `SerialLane`, which this is for commands that await, too.
public final class SerialInvoker: LaneInvoker, @unchecked Sendable {
    /// Creates an invoker.
    ///
    /// - Parameters:
    ///   - capacity: how many it accepts that have no outcome; nil: any number. Beyond, commands are refused.
    ///   - scheduler: whose workers run the commands.
    /// - Precondition: `capacity` is greater than 0.
    public init(capacity: Int? = nil, on scheduler: Scheduler = .shared) {
        super.init(Lane(limit: 1, capacity: capacity, on: scheduler))
    }
}

/// Runs some commands at a time, and starts them in the order of submission within a priority.
public final class ConcurrentInvoker: LaneInvoker, @unchecked Sendable {
    /// Creates an invoker.
    ///
    /// - Parameters:
    ///   - limit: how many run at a time.
    ///   - capacity: how many it accepts that have no outcome; nil: any number. Beyond, commands are refused.
    ///   - scheduler: whose workers run the commands.
    /// - Precondition: `limit` and `capacity` are greater than 0.
    public init(limit: Int, capacity: Int? = nil, on scheduler: Scheduler = .shared) {
        super.init(Lane(limit: limit, capacity: capacity, on: scheduler))
    }
}

/// Gathers commands and runs them in batches, in the order of submission; priorities do not matter.
///
/// A batch starts when enough has gathered, by number or by cost; when the first of what gathers has been the first for
/// long enough; and by ``LaneInvoker/flush()`` and a shutdown that runs what is pending. Batches never overlap: what is
/// submitted while one runs goes to a later one.
public final class BatchInvoker: LaneInvoker, @unchecked Sendable {
    /// Creates an invoker.
    ///
    /// - Parameters:
    ///   - size: how many a batch holds at most, and starts with.
    ///   - maxDelay: after which time a smaller batch starts; nil: never.
    ///   - maxCost: with which cost a smaller batch starts, and what a batch of several costs at most; nil: any.
    ///   - cost: what a command costs, at least 0; nil: nothing. Called in the submission.
    ///   - order: how the commands of a batch run.
    ///   - stopsOnFailure: whether a failure keeps the rest of its batch from being started; that is refused then.
    ///   - capacity: how many it accepts that have no outcome; nil: any number. Beyond, commands are refused.
    ///   - scheduler: whose workers run the commands.
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

/// How batches are cut. An object, so that to look at it copies none of it.
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
