// COSyncOperation.swift - an operation that its caller waits for.

internal import CompositeOperationsBasics
public import Runs
internal import Scheduling

/// An operation whose start waits for its end. Without a target its block runs on the waiting thread, in every attempt.
///
/// ```swift
/// syncOperation { sync in
///     load(url) { sync.finish() }
/// }  // goes on when `finish` has been called
/// ```
///
/// For tests and command-line tools: it blocks a thread. Asynchronous code uses `value`.
///
/// - SeeAlso: seed 004, COSyncOperation.
public final class COSyncOperation<Success: Sendable>: COOperation<Success>, @unchecked Sendable {
    // Unchecked: as in `COOperation`.

    private let waiter: WaitingThread

    /// Prepares a sync operation.
    ///
    /// - Parameter target: where the block runs; nil: on the waiting thread.
    public init(
        on target: (any ExecutionTarget)? = nil, options: OperationOptions = .standard, _ block: Block? = nil
    ) {
        let queue = COOperationQueue.admitting(to: target)
        // A queue without a target admits to the built-in scheduler.
        waiter = WaitingThread(for: queue.map { $0.target ?? Scheduler.shared } ?? target)
        var body = Body.none
        if let block { body = .token(block) }
        super.init(body: body, on: waiter, options: options, admission: queue)
    }

    /// The queue that it was aimed at or added to, if it runs within a slot that its caller already holds there.
    @exclusivity(unchecked) private var spared: COOperationQueue?

    /// Releases nothing: the waiter retains the target anyway, and work that began here may go on there.
    override func giveUpPlace() {}

    override func makeBlank(_ body: Body) -> COOperation<Success> {
        let copy = COSyncOperation(on: waiter.destination)
        copy.set(target: copy.target, isOwn: copy.hasOwnTarget, admission: look { admission ?? spared })
        copy.body = body
        return copy
    }

    /// Starts the operation and blocks the calling thread until its end.
    ///
    /// - Returns: as ``AnyOperation/start()``.
    @available(*, noasync, message: "Blocks the thread; use an operation and its `value`.")
    @discardableResult
    override public func start() -> Bool { startAndWait(until: nil) }

    @available(*, noasync)
    override func start(with prepare: () -> Void) -> Bool {
        startAndWait(until: nil, bringsBlock: true, prepare)
    }

    @available(*, noasync)
    override func start(addedTo queue: COOperationQueue) -> Bool {
        startAndWait(until: nil, addedTo: queue)
    }

    /// Starts the operation with a block, and blocks the calling thread until its end.
    ///
    /// - Parameters:
    ///   - timeout: after this time the operation is cancelled as ``CancelReason/Kind/timedOut``; nil: never.
    ///   - block: without a target it runs on the calling thread, and so need not be Sendable; it is not kept. With
    ///     a target the call does not return before the block has.
    /// - Returns: the outcome; nil when the operation was not ready.
    @available(*, noasync, message: "Blocks the thread; use an operation and its `value`.")
    @discardableResult
    public func run(
        timeout: Duration? = nil, _ block: (COOperation<Success>.Attempt) throws -> Void
    ) -> Outcome<Success>? {
        withoutActuallyEscaping(block) { block in
            let loan = Loan(block)
            defer { loan.end() }
            var former: [Any] = []
            // On this thread the block sees the values bound here even without a context, and is part of the waiting
            // task.
            let context = waiter.takesTurns ? nil : contextHere
            let hasStarted = startAndWait(until: timeout.map { ContinuousClock.now + $0 }, bringsBlock: true)
            {
                former = [body, setContext(context) as Any]
                body = .lent { try loan.run($0) }
            }
            withExtendedLifetime(former) {}
            guard hasStarted else { return nil }
            _ = waiter.serve(until: nil, for: self)
            return result
        }
    }

    /// A borrowed block: it runs while its owner waits, and is not kept.
    private final class Loan: @unchecked Sendable {
        // Unchecked: the block is called while `run` waits for the operation, and is cleared afterwards.
        private var block: ((Attempt) throws -> Void)?
        init(_ block: @escaping (Attempt) throws -> Void) { self.block = block }
        func run(_ attempt: Attempt) throws { try block?(attempt) }
        func end() { block = nil }
    }

    @available(*, noasync)
    final func startAndWait(
        until deadline: ContinuousClock.Instant?, bringsBlock: Bool = false,
        addedTo queue: COOperationQueue? = nil, _ prepare: () -> Void = {}
    ) -> Bool {
        if Diagnostics.areHeard, withUnsafeCurrentTask(body: { $0 != nil }), !SynchronousTask.isCurrent {
            change { effects in
                tell("a sync operation blocks a thread of a task", &effects)
            }
        }
        var slots = HeldSlots.here
        let takesTurns = waiter.takesTurns
        // No slot is needed if one is already held for the caller, or if none can be freed before this thread
        // continues.
        let (given, isFree) = look { (queue ?? admission, admission == nil || admission === queue) }
        let held = given.flatMap { given in
            slots.contains(given) || given.waitsForThisThread ? given : nil
        }
        let queue = held != nil && isFree ? nil : queue
        slots.waits()
        // Only the thread that starts it decides where its turns run: another thread may be waiting already.
        let hasStarted = startIfReady(bringsBlock: bringsBlock, addedTo: queue) {
            prepare()
            let extras = ensureExtras()
            _ = extras.waiters.append(Waiter { [waiter] _ in waiter.wake() })
            waiter.prepare(takingTurns: takesTurns)
            extras.callersSlots = slots
            if let held, queue == nil {
                spared = held
                place?.admission = nil
            }
        }
        guard hasStarted else { return false }
        let priority = Scheduler.callersPriority
        if look({ mayBeBelow(priority) }) { raise(to: priority) }
        let wait = keepWait(isTask: false, hasLimit: deadline != nil)
        defer { if wait != 0 { InspectedWaits.end(wait) } }
        if !waiter.serve(until: deadline, for: self) { cancel(CancelReason(.timedOut)) }
        return true
    }
}
