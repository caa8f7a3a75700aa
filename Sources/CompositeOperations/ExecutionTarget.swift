// ExecutionTarget.swift - where blocks run: the scheduler, a serial lane, a dispatch queue, an executor, an actor.

public import Dispatch
public import Scheduling
internal import Synchronization

/// Where blocks run. Adopted by `Scheduler`, `SerialLane`, `DispatchQueue`, ``ExecutorTarget`` and
/// ``COOperationQueue``; adopt it for a queue of your own.
public protocol ExecutionTarget: AnyObject, Sendable {
    /// Enqueues a piece of work. Must not run it before it returns. A task that runs it should be detached: the work has
    /// nothing to do with task-local values of whoever submits it.
    ///
    /// Work that is released without having been run ends its operation as cancelled, ``CancelReason/Kind/shutDown``.
    func submit(_ work: COQueues.Work)

    /// Whether the calling code is this target's, so that a sync operation aimed at it runs in place; false when that is not
    /// known, and for a target that is no place, such as a pool.
    var isCurrent: Bool { get }

    /// Sends the turn of an operation, which has a priority. Not for users: the default submits a piece of work.
    func _send(_ operation: AnyOperation, at priority: Scheduler.Priority)

    /// The queue that admits what is aimed at this target. Not for users: nil.
    var _admission: COOperationQueue? { get }
}

extension ExecutionTarget {
    /// Submits the turn as a piece of work, whatever its priority.
    public func _send(_ operation: AnyOperation, at priority: Scheduler.Priority) {
        submit(COQueues.Work(turnOf: operation))
    }

    /// nil: it only runs.
    public var _admission: COOperationQueue? { nil }
}

extension COQueues.Work {
    /// The turn of an operation.
    init(turnOf operation: AnyOperation) {
        self.init({ operation.turn() }, abandoned: { operation.turnIsRefused() })
    }
}

/// The turn of an operation, as a job of a scheduler's: no allocation.
let turnOfOperation: JobFunction = { object, isCancelled in
    let operation = Unmanaged<AnyOperation>.fromOpaque(object).takeRetainedValue()
    if isCancelled { operation.turnIsRefused() } else { operation.turn() }
}

extension CompletionCounter {
    /// Blocks, and runs meanwhile turns of `operation`, and of what is below it, that wait on the calling worker: the
    /// wait could not end without them.
    @available(*, noasync)
    func wait(runningTurnsOf operation: AnyOperation) {
        wait(running: turnOfOperation) { object in
            Unmanaged<AnyOperation>.fromOpaque(object)._withUnsafeGuaranteedRef { $0.isPart(of: operation) }
        }
    }
}

extension AnyOperation {
    /// To the built-in scheduler.
    @inline(__always)
    static func sendTurnToShared(_ operation: Unmanaged<AnyOperation>, at priority: Scheduler.Priority) {
        if !Scheduler.submitToShared(job: operation.toOpaque(), priority: priority, turnOfOperation) {
            operation.takeRetainedValue().turnIsRefused()
        }
    }
}

extension Scheduler: ExecutionTarget {
    /// Enqueues a piece of work; when it is refused, the work is released.
    public func submit(_ work: COQueues.Work) {
        // Refused: the closure is released, and with it the work.
        try? submit(context: .empty) { work.run() }
    }

    /// False: a scheduler runs many operations at a time.
    public var isCurrent: Bool { false }

    /// Sends the turn without an allocation.
    public func _send(_ operation: AnyOperation, at priority: Priority) {
        do { try submit(job: operation, priority: priority, turnOfOperation) } catch {
            operation.turnIsRefused()
        }
    }
}

extension SerialLane: ExecutionTarget {
    /// Enqueues a piece of work; when it is refused, the work is released.
    public func submit(_ work: COQueues.Work) { try? submit(context: .empty) { work.run() } }

    /// Sends the turn without a closure.
    public func _send(_ operation: AnyOperation, at priority: Scheduler.Priority) {
        do { try submit(job: operation, priority: priority, turnOfOperation) } catch {
            operation.turnIsRefused()
        }
    }
}

extension DispatchQueue: ExecutionTarget {
    /// Enqueues a piece of work; when it is refused, the work is released.
    public func submit(_ work: COQueues.Work) { async { work.run() } }

    /// Whether the calling code is a block of this queue; false for a global queue.
    public var isCurrent: Bool {
        if label.hasPrefix("com.apple.root.") { return false }
        return Self.getSpecific(key: mark.key) != nil
    }

    /// A key for each queue: one for all would be found at the innermost queue alone, and not below it.
    private final class Mark: Sendable {
        let key = DispatchSpecificKey<Void>()
    }

    private static let markOfQueue = DispatchSpecificKey<Mark>()
    private static let marking = Guarded(0)

    private var mark: Mark {
        Self.marking.withLock { _ in
            if let mark = getSpecific(key: Self.markOfQueue) { return mark }
            let mark = Mark()
            setSpecific(key: Self.markOfQueue, value: mark)
            // Set now, and found now, also by a block that has begun before.
            setSpecific(key: mark.key, value: ())
            return mark
        }
    }

    /// Sends the turn, whatever its priority.
    public func _send(_ operation: AnyOperation, at priority: Scheduler.Priority) {
        async { operation.turn() }
    }
}

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
    public func submit(_ work: COQueues.Work) { submit(work, nil) }

    /// Sends the turn, as a task of the priority.
    public func _send(_ operation: AnyOperation, at priority: Scheduler.Priority) {
        submit(COQueues.Work(turnOf: operation), priority.ofTasks)
    }

    private func submit(_ work: COQueues.Work, _ priority: TaskPriority?) {
        // Detached: the work knows nothing of who submits it.
        switch kind {
        case .tasks(let executor):
            Task.detached(executorPreference: executor, priority: priority) { work.run() }
        case .serial(_, let resident):
            Task.detached(priority: priority) { await Self.run(work, on: resident) }
        case .actor(let actor): Task.detached(priority: priority) { await Self.run(work, on: actor) }
        }
    }

    private static func run(_ work: COQueues.Work, on actor: isolated any Actor) { work.run() }

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
