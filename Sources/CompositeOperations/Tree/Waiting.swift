// Waiting.swift - threads and tasks that wait for an outcome.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Scheduling
internal import Synchronization

/// A waiting thread: it waits for an outcome, and for turns that it has to run itself.
final class WaitingThread: ExecutionTarget, MainQueueSleeper {
    /// Where its turns are sent; nil: to the waiting thread.
    let destination: (any ExecutionTarget)?
    private let counter: CompletionCounter
    private let state = Guarded(State())

    private struct State {
        /// Whether the thread sleeps, or is about to: nothing has happened since it last checked. If the thread does
        /// not serve the main queue, the counter is then 1.
        var isArmed = false
        /// Whether the thread sleeps by serving the main queue; nil: it has not slept yet.
        var servesMainQueue: Bool?
        /// Something has happened, and a waiter that serves the main queue has not checked yet.
        var isUnseen = false
        var isOver = false
        var work: [ExecutionWork] = []
    }

    init(for destination: (any ExecutionTarget)? = nil) {
        self.destination = destination
        do { counter = try CompletionCounter() } catch {
            fatalError("CompositeOperations: memory is exhausted, so a thread cannot wait")
        }
    }

    /// The outcome is set.
    ///
    /// Turns that will not be taken any more are dropped: a turn holds the operation, which holds its waiter.
    func wake() {
        let rest = signal { state in
            state.isOver = true
            defer { state.work = [] }
            return state.work
        }
        for piece in rest { piece.run() }  // which does nothing
    }

    /// Submits a turn. A waiting thread that belongs to the destination would wait for itself, so it takes the turn
    /// itself.
    ///
    /// If no thread waits, as with a child, which its composite starts, the built-in scheduler takes the turn.
    func submit(_ work: ExecutionWork) {
        if isInline {
            let isTooLate = signal { state in
                if state.isOver { return true }
                state.work.append(work)
                return false
            }
            if isTooLate { work.run() }  // as in `wake`
        } else {
            (destination ?? Scheduler.shared).submit(work)
        }
    }

    private let inline = Atomic(false)

    /// Whether its turns are taken by the waiting thread.
    var isInline: Bool { inline.load(ordering: .relaxed) }

    /// Whether the calling thread has to take the turns, when it waits.
    var takesTurns: Bool { destination.map(Self.isHere) ?? true }

    /// Whether a target is serial, and can run nothing before the calling thread continues.
    static func isHere(_ target: any ExecutionTarget) -> Bool {
        // A lane is not left before the frames above it on the stack have returned, even if these are not of its
        // operations.
        (target as? SerialLane)?.isOnStack ?? target.isCurrent
    }

    /// The operation has been started by a thread that will wait. Called before its first turn is sent.
    func prepare(takingTurns: Bool) { inline.store(takingTurns, ordering: .relaxed) }

    var isCurrent: Bool { false }

    private func signal<Answer>(_ change: (inout State) -> Answer) -> Answer {
        let (answer, sleepsInMainQueue) = state.withLock { state -> (Answer, Bool?) in
            let answer = change(&state)
            guard state.isArmed else { return (answer, nil) }
            state.isArmed = false
            state.isUnseen = state.servesMainQueue == true
            return (answer, state.isUnseen)
        }
        if let sleepsInMainQueue {
            if sleepsInMainQueue { MainQueue.wake(self) } else { counter.leave() }
        }
        return answer
    }

    /// See ``MainQueue``.
    var isUnseen: Bool { state.withLock { $0.isUnseen } }

    /// Runs turns until the outcome is set, or the deadline has passed; on the main thread also the items of the main
    /// queue.
    ///
    /// - Parameter operation: the operation that the thread waits for.
    /// - Returns: whether the outcome is set.
    @available(*, noasync)
    func serve(until deadline: ContinuousClock.Instant?, for operation: AnyOperation) -> Bool {
        while true {
            let (work, isOver, servesMainQueue) = state.withLock { state in
                defer { state.work = [] }
                state.isUnseen = false
                if state.work.isEmpty, !state.isOver, !state.isArmed,
                    let servesMainQueue = state.servesMainQueue
                {
                    state.isArmed = true
                    if !servesMainQueue { counter.enter() }
                }
                return (state.work, state.isOver, state.servesMainQueue)
            }
            for piece in work { piece.run() }
            if !work.isEmpty { continue }
            if isOver { return true }
            guard let servesMainQueue else {
                // Finding out may have served an item that ended the wait: so check again.
                let canServe = canServeMainQueue(for: operation)
                state.withLock { $0.servesMainQueue = canServe }
                continue
            }
            if servesMainQueue {
                if COQueues.apart({ MainQueue.serve(until: deadline) }) { continue }
                return state.withLock { state in
                    state.isArmed = false
                    state.isUnseen = false
                    return state.isOver
                }
            }
            guard sleep(until: deadline, for: operation) else {
                let (isOver, isToLeave) = state.withLock { state in
                    defer { state.isArmed = false }
                    return (state.isOver, state.isArmed)
                }
                if isToLeave { counter.leave() }  // its memory is released with the last entry
                return isOver
            }
        }
    }

    private func canServeMainQueue(for operation: AnyOperation) -> Bool {
        switch COQueues.apart({ MainQueue.service() }) {
        case .isNotOurs: return false
        case .isServed: return true
        case .standsStill(let why):
            operation.change { effects in
                _ = operation.refuse("serving the main queue while its thread waits: \(why)", &effects)
            }
            return false
        }
    }

    /// - Returns: whether something has happened.
    @available(*, noasync)
    private func sleep(until deadline: ContinuousClock.Instant?, for operation: AnyOperation) -> Bool {
        guard let deadline else {
            counter.wait(runningTurnsOf: operation)
            return true
        }
        return counter.wait(timeout: ContinuousClock.now.duration(to: deadline)) == .completed
    }
}

extension AnyOperation {
    /// Blocks the calling thread until the outcome is set, or the timeout expires.
    @available(*, noasync)
    final func waitForEnd(timeout: Duration?) -> Bool {
        let deadline = timeout.map { ContinuousClock.now + $0 }
        let priority = Scheduler.callersPriority
        if isSeenEnded { return true }
        let thread = WaitingThread()
        let waiter = Waiter { _ in thread.wake() }
        let (registration, isToRaise) = look { (register(waiter), mayBeBelow(priority)) }
        guard case .waits = registration else { return true }
        if isToRaise { raise(to: priority) }
        tellOfOwnSlot()
        if timeout == nil { BlocksOnStack.check(waitFor: self) }
        let wait = keepWait(isTask: false, hasLimit: timeout != nil)
        defer { if wait != 0 { InspectedWaits.end(wait) } }
        guard !thread.serve(until: deadline, for: self) else { return true }
        return !look { extras?.waiters.remove(waiter) ?? false } || isEnded
    }

    /// Registers a waiter for the end. Under the lock.
    private final func register(_ waiter: Waiter) -> Waiter.Registration {
        seeFailure()
        if machine.isTerminal { return .isOver }
        let extras = ensureExtras()
        extras.isObserved = true
        return extras.waiters.append(waiter)
    }

    /// Whether it has ended; if so, the caller's wait is over, and the end counts as read.
    private final var isSeenEnded: Bool {
        look {
            seeFailure()
            return machine.isTerminal
        }
    }

    /// Waits, without blocking a thread, until the outcome is set.
    final func awaitEnd() async {
        if isSeenEnded { return }
        let priority = Scheduler.callersPriority
        let wait = keepWait(isTask: true, hasLimit: false)
        defer { if wait != 0 { InspectedWaits.end(wait) } }
        await Waiter.wait { waiter in
            let (registration, isToRaise) = look { (register(waiter), mayBeBelow(priority)) }
            if case .waits = registration {
                if isToRaise { raise(to: priority) }
                tellOfOwnSlot()
            }
            return registration
        }
    }

    /// Reports to the sink a wait that could not end: a block that holds the last slot of a queue waits for an
    /// operation that needs a slot there. Under no lock.
    private final func tellOfOwnSlot() {
        guard Diagnostics.areHeard, let queue = look({ admission }), queue.isClosed(to: self, by: .here)
        else { return }
        change { effects in
            tell(
                "a wait for it holds the slots of its queue: it does not begin before the wait has ended",
                &effects)
        }
    }
}
