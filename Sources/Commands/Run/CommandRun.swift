// CommandRun.swift - one run of a command, independent of its output type: its state, its waiters and its observers.
//
// Not generic: the metadata of a generic type is looked up wherever the type is used, which takes longer than the use. All code that
// knows the output type is in CommandHandle, and does as little as it can.
//
// A run ends in this order: the work has ended; the outcome is latched; notices enter their queues; the lane's slot is free; waiters
// are woken; inline notices are delivered; `execute` returns.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Synchronization

/// One run of a command. A run has a name, and ends exactly once. Every run is a ``CommandHandle``, which holds the outcome.
///
/// All members may be used from any thread.
public class CommandRun: @unchecked Sendable {
    // Sendability and exclusivity are unchecked: `fields` and the value of a handle are accessed only under `lock`, which is not
    // recursive. The invariants are in `RunFields`.

    /// The name of the run.
    public let transaction: CommandTransaction

    private let cancelFlag = Atomic(false)
    private let lock = WordLock()
    @exclusivity(unchecked) private var fields = RunFields()
    /// The run's index in its lane. Guarded by the lane's lock.
    @exclusivity(unchecked) final var placeInLane = CommandRun.nowhere
    static let nowhere = -1
    private let instance = Instance(.runs)

    init() { transaction = CommandTransaction() }

    final func locked<Value, Failure>(_ body: (inout RunFields) throws(Failure) -> Value) throws(Failure)
        -> Value
    {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return try body(&fields)
    }

    // MARK: Cancelling

    /// Cancels the run. A run that has not started ends at once and never starts; the work of a running one is cancelled, and may
    /// take time to end. The run of a ``TransactionGroup`` cancels the runs in the group, and ends when they have ended.
    ///
    /// - Returns: false if the run has already ended.
    @discardableResult
    public final func cancel() -> Bool {
        let (isInTime, owed) = latchCancelled()
        owed.deliverInline()
        return isInTime
    }

    /// As ``cancel()``, but leaves the delivery of inline notices to the caller.
    final func latchCancelled() -> (isInTime: Bool, owed: [Deliveries]) {
        cancelFlag.store(true, ordering: .releasing)
        let (cancelMembers, isInTime) = locked { ($0.cancelMembers, !$0.machine.hasOutcome) }
        if let cancelMembers { return (isInTime, cancelMembers()) }
        if let owed = latch(.cancelled(CancelReason(ofRun: .requested)), from: .beforeStart) {
            return (true, owed)
        }
        let (task, isRunning) = locked { ($0.task, !$0.machine.hasOutcome) }
        task?.cancel()
        return (isRunning, [])
    }

    /// `cancel()` sets the flag, then looks for the task; this method stores the task, then checks the flag.
    final func adopt(_ task: any RunTask) {
        locked { fields in if !fields.machine.hasOutcome { fields.task = task } }
        if isCancelRequested { task.cancel() }
    }

    /// Releases the delegate without notifying it, even if the run has ended and the notice is already queued.
    public final func detach() {
        let delegate = takeDelegate()
        withExtendedLifetime(delegate) {}
    }

    private func takeDelegate() -> DelegateReference? {
        locked { fields in
            defer { fields.delegate = nil }
            return fields.delegate
        }
    }

    // MARK: Ends

    /// Latches the end of a run that did not finish, and notifies observers.
    ///
    /// - Parameter origin: nil for a claimed run; otherwise, the states from which the run may be ended.
    /// - Returns: whether this end became the outcome.
    @discardableResult
    final func end(_ badEnd: Outcome<Never>, from origin: RunMachine.Origin?) -> Bool {
        guard let owed = latch(badEnd, from: origin, tellsAtOnce: true) else { return false }
        owed.deliverInline()
        return true
    }

    /// Latches an end and enqueues the notices. Inline notices are left to the caller, because an observer may block, or wait for a
    /// run that the caller ends next.
    ///
    /// - Parameters:
    ///   - badEnd: nil if the run finished.
    ///   - tellsAtOnce: whether the caller delivers at once, so that a notice that needs no queue is not queued.
    ///   - keep: stores the value of the run. Called under the lock.
    /// - Returns: nil if this end did not become the outcome; otherwise, the deliveries whose inline notices the caller must deliver.
    final func latch(
        _ badEnd: Outcome<Never>?, from origin: RunMachine.Origin?, tellsAtOnce: Bool = false,
        keep: () -> Void = {}
    ) -> [Deliveries]? {
        var told: RunFields?
        var (needsQueue, holdsSlot) = (false, false)
        var (held, lane, task): (AnyBody?, Lane?, (any RunTask)?) = (nil, nil, nil)
        let isEnd = locked { fields in
            holdsSlot = fields.machine.holdsSlot
            guard fields.machine.end(finished: badEnd == nil, from: origin) else { return false }
            keep()
            if let badEnd { fields.unseen = unseen(badEnd, fields, ranOnLane: holdsSlot) }
            if fields.isQuiet {
                fields.badEnd = badEnd
                swap(&held, &fields.held)
                swap(&lane, &fields.lane)
                swap(&task, &fields.task)
                return true
            }
            var taken = RunFields()
            swap(&fields, &taken)
            fields.machine = taken.machine
            fields.badEnd = badEnd
            swap(&fields.unseen, &taken.unseen)
            if taken.isListened {
                needsQueue = !tellsAtOnce || !taken.isDelegateAlone
                fields.isTelling = true
                fields.isTellingInPlace = !needsQueue
                fields.delegate = taken.delegate
                if needsQueue { fields.deliveries = taken.lane?.deliveries ?? Deliveries() }
            }
            told = consume taken
            return true
        }
        if !isEnd { return nil }
        guard var taken = told.take() else { return lane?.ended(self, badEnd, heldSlot: holdsSlot) ?? [] }
        var owed: [Deliveries] = []
        if needsQueue { owed = tell(taken.delegate?.delivery, taken.observers) }
        if let lane = taken.lane { owed += lane.ended(self, badEnd, heldSlot: holdsSlot) }
        taken.waiters.takeAll().wake()
        for dependent in taken.dependents { owed += dependent(badEnd) }
        if taken.isListened, !needsQueue {
            tellDelegate()
            owed += tell([], isInline: false)
        }
        return owed
    }

    /// Records the failure of a run that a lane executed, or of a group. Unless the failure is read, it is reported when the run is
    /// deallocated. Under the lock.
    ///
    /// - Parameter fields: the fields before the end.
    private func unseen(_ badEnd: Outcome<Never>, _ fields: borrowing RunFields, ranOnLane: Bool)
        -> UnseenFailure?
    {
        guard let error = badEnd.error, Diagnostics.areHeard, !isCancellation(error),
            ranOnLane || fields.cancelMembers != nil, fields.isUnheard
        else { return nil }
        return UnseenFailure(error) { [transaction] in "command \(transaction.name)" }
    }

    /// Records that code inside the run has observed a failure that it rethrows.
    final func noteFailureIsHeard() { locked { $0.isFailureHeard = true } }

    /// Enqueues the notices: first the delegate's, then those of the observers, then those of observers that registered in the
    /// meantime.
    ///
    /// - Returns: the deliveries whose inline notices the caller must deliver.
    private func tell(_ delegate: Delivery?, _ observers: Registrations<RunObserver>) -> [Deliveries] {
        var isInline = false
        if let delegate { isInline = deliveries.add({ self.tellDelegate() }, to: delegate) }
        return tell(observers.all, isInline: isInline)
    }

    private func tell(_ observers: [RunObserver], isInline: Bool) -> [Deliveries] {
        var (isInline, next) = (isInline, observers)
        while true {
            for observer in next {
                let notice: Deliveries.Notice = { if observer.registration.isOpen { observer.body(self) } }
                if deliveries.add(notice, to: observer.delivery) { isInline = true }
            }
            next = locked { fields in
                fields.isTelling = !fields.observers.isEmpty
                if !fields.isTelling { return [] }
                defer { fields.observers = Registrations() }
                return fields.observers.all
            }
            if next.isEmpty { return isInline ? [deliveries] : [] }
        }
    }

    /// The queues of this run's notices.
    final var deliveries: Deliveries {
        locked { fields in
            if let deliveries = fields.deliveries { return deliveries }
            let deliveries = Deliveries()
            fields.deliveries = deliveries
            return deliveries
        }
    }

    /// Notifies the delegate at most once: only the thread that takes it out of the fields does so.
    private func tellDelegate() {
        let badEnd = locked { $0.badEnd }
        takeDelegate()?.tell(transaction, badEnd?.thrown)
    }

    /// Calls `body` once when the outcome is latched, before observers are notified, and delivers the returned notices.
    ///
    /// - Parameter isSpan: whether `body` only informs a tracer.
    final func whenEnded(isSpan: Bool = false, _ body: @escaping @Sendable (Outcome<Never>?) -> [Deliveries])
    {
        let (isOver, badEnd) = locked { fields in
            if !fields.machine.hasOutcome {
                fields.dependents.append(body)
                fields.hasSpan = fields.hasSpan || isSpan
            }
            fields.unseen?.see()
            return (fields.machine.hasOutcome, fields.badEnd)
        }
        if isOver { body(badEnd).deliverInline() }
    }

    // MARK: Waiting

    final var isOver: Bool { locked { $0.machine.hasOutcome } }

    /// Whether the run has a value.
    final var hasFinished: Bool { locked { $0.machine.hasOutcome && $0.badEnd == nil } }

    final func register(_ waiter: Waiter) -> Waiter.Registration {
        locked { fields in fields.machine.hasOutcome ? .isOver : fields.waiters.append(waiter) }
    }

    final func remove(_ waiter: Waiter) -> Bool { locked { $0.waiters.remove(waiter) } }

    final func demandNoDeadlock() {
        let (lane, isWaiting, isRunning) = locked { fields in
            let machine = fields.machine
            return (fields.lane, machine.state == .accepted, machine.state == .executing && machine.holdsSlot)
        }
        // If the lane runs one at a time, the running command is the caller.
        guard let lane, ReentrancyMark.isInside(lane),
            isWaiting && lane.isBehindWhatRuns(self) || isRunning && lane.limit == 1
        else { return }
        fatalError(
            isRunning
                ? "CommandHandle: a command waits for its own end"
                : "CommandHandle: a command waits for one queued behind it in the same invoker")
    }

    // MARK: Turns

    /// Accepts the run for a lane.
    ///
    /// - Parameter body: a body with the output type of this run.
    /// - Returns: false if the run was accepted before, or has run.
    final func accept(_ body: AnyBody, by lane: Lane) -> Bool {
        locked { fields in
            guard fields.machine.accept() else { return false }
            fields.held = body
            fields.lane = lane
            return true
        }
    }

    /// Begins the run's turn.
    ///
    /// - Returns: the body to run; nil if nothing is left to run.
    final func beginTurn() -> AnyBody? { locked { $0.machine.begin() ? $0.held : nil } }

    /// Executes the run in its turn.
    ///
    /// - Returns: false if nothing is left to run.
    func takeTurn(on lane: Lane) -> Bool { fatalError("CommandRun: a handle knows what it runs") }

    /// Ends the run if it has not started.
    ///
    /// - Returns: the deliveries whose inline notices the caller must deliver.
    final func latch(unstarted why: CancelReason.Kind) -> [Deliveries] {
        latch(.cancelled(CancelReason(ofRun: why)), from: .beforeStart) ?? []
    }

    /// Rejects the run if no lane has accepted it and it has not run.
    final func reject(_ why: CancelReason.Kind) -> Bool {
        if locked({ $0.machine.state != .ready }) { return false }
        return end(.cancelled(CancelReason(ofRun: why)), from: .ready)
    }
}

extension CommandRun: Cancellable {
    final var isCancelRequested: Bool { cancelFlag.load(ordering: .acquiring) }
}
