// CommandRun.swift - one run of a command, whatever it gives: where it is on its way, who waits, and who is told of its end.
//
// Not generic: a generic type is looked up wherever it is used, which takes longer than the use. All that knows the type of the
// output is in CommandHandle, and does as little as it can.
//
// The order of an end: the work has ended; the outcome is latched; notices enter their queues; the lane's slot is free;
// those who wait are woken; inline notices are delivered; `execute` returns.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Synchronization

/// One run of a command: its name, and its end, which comes once. Its outcome is in the ``CommandHandle`` that it is.
///
/// All members may be used from any thread.
public class CommandRun: @unchecked Sendable {
    // Unchecked, and so is its exclusivity: `fields`, and the value of a handle, are used under `lock` alone, which is not
    // recursive; the invariants are in `RunFields`.

    /// The name of the run.
    public let transaction: CommandTransaction

    private let cancelFlag = Atomic(false)
    private let lock = WordLock()
    @exclusivity(unchecked) private var fields = RunFields()
    /// Where its lane has it: under that lane's lock.
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

    /// Cancels the run: one that has not started ends at once, and never will; one that runs is asked to end. That of a
    /// ``TransactionGroup`` cancels the runs in it, and ends when they have.
    ///
    /// - Returns: false when it has ended already.
    @discardableResult
    public final func cancel() -> Bool {
        let (isInTime, owed) = latchCancelled()
        owed.deliverInline()
        return isInTime
    }

    /// As ``cancel()``, but inline notices are the caller's to deliver.
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

    /// `cancel()` looks for the task after it has set the flag; this looks at the flag after it has left the task.
    final func adopt(_ task: any RunTask) {
        locked { fields in if !fields.machine.hasOutcome { fields.task = task } }
        if isCancelRequested { task.cancel() }
    }

    /// The delegate will not be told, and is let go; also when the run has ended, and its notice is on its way.
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

    /// Latches the end of what did not finish, and tells it.
    ///
    /// - Parameter origin: where it was not claimed.
    /// - Returns: whether the end is this one.
    @discardableResult
    final func end(_ badEnd: Outcome<Never>, from origin: RunMachine.Origin?) -> Bool {
        guard let owed = latch(badEnd, from: origin, tellsAtOnce: true) else { return false }
        owed.deliverInline()
        return true
    }

    /// Latches an end, and tells it; inline notices are the caller's to deliver: an observer may block, or wait for what the
    /// caller ends next.
    ///
    /// - Parameters:
    ///   - badEnd: nil: it finished.
    ///   - tellsAtOnce: the caller delivers at once: so what needs no queue, gets none.
    ///   - keep: keeps the value that it gave. Under the lock.
    /// - Returns: nil when the end is another.
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

    /// Notes the failure of a run on a lane, or of a group: unless somebody looks later, it is told when the run goes. Under the lock.
    ///
    /// - Parameter fields: as they were before the end.
    private func unseen(_ badEnd: Outcome<Never>, _ fields: borrowing RunFields, ranOnLane: Bool)
        -> UnseenFailure?
    {
        guard let error = badEnd.error, Diagnostics.areHeard, !isCancellation(error),
            ranOnLane || fields.cancelMembers != nil, fields.isUnheard
        else { return nil }
        return UnseenFailure(error) { [transaction] in "command \(transaction.name)" }
    }

    /// Code inside of it is told of a failure that it passes on.
    final func noteFailureIsHeard() { locked { $0.isFailureHeard = true } }

    /// Has the notices enter their queues: first that of the delegate, then those of the observers, then of who came meanwhile.
    ///
    /// - Returns: whose inline notices the caller has to deliver.
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

    /// The queues of its notices.
    final var deliveries: Deliveries {
        locked { fields in
            if let deliveries = fields.deliveries { return deliveries }
            let deliveries = Deliveries()
            fields.deliveries = deliveries
            return deliveries
        }
    }

    /// Once: whoever takes it out tells it, or does not.
    private func tellDelegate() {
        let badEnd = locked { $0.badEnd }
        takeDelegate()?.tell(transaction, badEnd?.thrown)
    }

    /// Calls `body` once when the outcome is there, before anybody is told; delivers what it gives.
    ///
    /// - Parameter isSpan: it tells a tracer alone.
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

    /// Whether there is a value.
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
        // Where one runs at a time, what runs is the code that calls.
        guard let lane, ReentrancyMark.isInside(lane),
            isWaiting && lane.isBehindWhatRuns(self) || isRunning && lane.limit == 1
        else { return }
        fatalError(
            isRunning
                ? "CommandHandle: a command waits for its own end"
                : "CommandHandle: it waits inside an invoker for what is queued behind itself")
    }

    // MARK: Turns

    /// A lane has accepted it.
    ///
    /// - Parameter body: of its output.
    /// - Returns: whether it was not accepted before, and nobody has run it.
    final func accept(_ body: AnyBody, by lane: Lane) -> Bool {
        locked { fields in
            guard fields.machine.accept() else { return false }
            fields.held = body
            fields.lane = lane
            return true
        }
    }

    /// Its turn has come.
    ///
    /// - Returns: what is to be run; nil when there is nothing any more.
    final func beginTurn() -> AnyBody? { locked { $0.machine.begin() ? $0.held : nil } }

    /// Runs it in its turn.
    ///
    /// - Returns: false when there is nothing to run any more.
    func takeTurn(on lane: Lane) -> Bool { fatalError("CommandRun: a handle knows what it runs") }

    /// Ends it if it has not started.
    ///
    /// - Returns: whose inline notices the caller has to deliver.
    final func latch(unstarted why: CancelReason.Kind) -> [Deliveries] {
        latch(.cancelled(CancelReason(ofRun: why)), from: .beforeStart) ?? []
    }

    /// Ends it if no lane has it, and nobody ran it.
    final func reject(_ why: CancelReason.Kind) -> Bool {
        if locked({ $0.machine.state != .ready }) { return false }
        return end(.cancelled(CancelReason(ofRun: why)), from: .ready)
    }
}

extension CommandRun: Cancellable {
    final var isCancelRequested: Bool { cancelFlag.load(ordering: .acquiring) }
}
