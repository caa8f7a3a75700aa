// Lane.swift - what an invoker lets run at once, and what waits for that.
//
// Invariants, all under one lock:
//   I1  running ≤ limit: the number of slots that are taken. A slot is taken with the job that serves it, and given back
//       when there is nothing left to start, or handed on by the run that ends to the next job.
//   I2  live = accepted and without an outcome: it grows when a run is accepted, and shrinks in `ended`, once a run.
//   I3  epochs: a flush ends an epoch; the runs accepted in an epoch count in its `live`. A flush returns when the epochs up
//       to its own have none left, and these go first to last.
//   I4  a batch: while `inBatch` > 0, nothing that waits in `gathering` starts. So batches do not overlap.
//
// A run that ends before its turn stays in the queue as a husk, without its command, until its turn; husks never outnumber
// the rest by more than a constant.

@_spi(Faces) internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs
internal import Scheduling

/// The part of an invoker that its runs refer to.
final class Lane: Sendable {
    let scheduler: Scheduler
    let limit: Int
    let capacity: Int?
    let batching: Batching?
    let deliveries = Deliveries()
    private let state = Guarded(State())
    private let instance = Instance(.lanes)

    fileprivate struct Entry {
        let member: CommandRun
        let number: Int
    }

    fileprivate struct Epoch {
        var live = 0
        var isClosed = false
        var waiting = WaitList()
    }

    fileprivate struct State {
        var ready = CommandPriority.allCases.map { _ in FIFO<Entry>() }
        var running = 0
        var live = LaneMembers()
        var husks = 0
        /// The runs that left the queues; see `change`.
        var released: [CommandRun] = []
        var lastNumber = 0
        var isShutDown = false
        var statistics = InvokerStatistics()
        var history = History()
        var epochs: [Epoch] = [Epoch()]
        var firstEpoch = 0
        // Batches.
        var gathering = FIFO<Entry>()
        var gatheringCount = 0
        var gatheringCost = 0
        /// All runs that were accepted up to this one are to run, however few they are.
        var forced = 0
        var inBatch = 0
        var timer: (number: Int, task: Task<Void, Never>)?
    }

    /// The effects of a change, outside of the lock.
    private struct Effects {
        var jobs = 0
        var woken: [WaitList.Woken] = []
        var obsoleteTimer: Task<Void, Never>?
    }

    init(limit: Int, capacity: Int?, on scheduler: Scheduler, batching: Batching? = nil) {
        if limit < 1 { fatalError("Invoker: the limit is \(limit), and must be at least 1") }
        if let capacity, capacity < 1 {
            fatalError("Invoker: the capacity is \(capacity), and must be at least 1")
        }
        self.limit = limit
        self.capacity = capacity
        self.scheduler = scheduler
        self.batching = batching
    }

    /// Whether a member that has not started does not, before what runs now has ended: of a batch that runs several at a time,
    /// the others may.
    func isBehindWhatRuns(_ member: CommandRun) -> Bool {
        limit == 1 || state.withLock { $0.live[member]?.isGathering == true }
    }

    var count: Int { state.withLock { $0.live.count } }
    var statistics: InvokerStatistics { state.withLock { $0.statistics } }

    /// The oldest first.
    var history: [CommandEnd] { state.withLock { $0.history.all } }

    /// Changes the state. An outcome, which a husk holds, may be a user's object: it is released after the lock.
    private func change<Value>(_ body: (inout State) -> Value) -> Value {
        let (value, released) = state.withLock { state in
            let value = body(&state)
            defer { state.released = [] }
            return (value, state.released)
        }
        withExtendedLifetime(released) {}
        return value
    }

    // MARK: In

    /// Accepts a run, or ends it as rejected.
    ///
    /// - Parameter accept: makes the run refer to this lane; whether it was free to.
    func submit(_ member: CommandRun, cost: Int, priority: CommandPriority, accept: () -> Bool) {
        let (rejection, effects) = change { state -> (CancelReason.Kind?, Effects) in
            if state.isShutDown { return (.shutDown, Effects()) }
            if let capacity, state.live.count >= capacity { return (.queueFull, Effects()) }
            // The member's lock is taken inside of the lane's, never the other way round.
            guard accept() else { return (nil, Effects()) }
            state.lastNumber += 1
            let entry = Entry(member: member, number: state.lastNumber)
            state.epochs[state.epochs.count - 1].live += 1
            state.live.add(
                LaneMember(
                    run: member, epoch: state.firstEpoch + state.epochs.count - 1, cost: cost,
                    isGathering: batching != nil))
            state.statistics.accepted += 1
            if batching == nil {
                state.ready[priority.rawValue].append(entry)
            } else {
                state.gathering.append(entry)
                state.gatheringCount += 1
                state.gatheringCost += cost
            }
            return (nil, follow(&state))
        }
        perform(effects)
        if let rejection, member.reject(rejection) {
            state.withLock { $0.note(member.transaction, .cancelled(CancelReason(ofRun: rejection))) }
        }
    }

    /// The effects of a change: a batch that is due, slots for what can start, flushes that are over. Under the lock.
    private func follow(_ state: inout State) -> Effects {
        var effects = Effects()
        if let batching { cutBatch(batching, &state, &effects) }
        var waiting = 0
        for index in state.ready.indices { waiting += state.ready[index].count }
        effects.jobs = max(0, min(limit - state.running, waiting))
        state.running += effects.jobs
        while state.epochs[0].isClosed, state.epochs[0].live == 0 {
            effects.woken.append(state.epochs[0].waiting.takeAll())
            state.epochs.removeFirst()
            state.firstEpoch += 1
        }
        return effects
    }

    private func perform(_ effects: Effects) {
        effects.obsoleteTimer?.cancel()
        for waiters in effects.woken { waiters.wake() }
        for _ in 0..<effects.jobs {
            // Past the scheduler's capacity, which is for what comes from outside: what the lane accepted is to be run.
            do {
                try scheduler.submit(job: self) { lane, isCancelled in
                    let lane = Unmanaged<Lane>.fromOpaque(lane).takeRetainedValue()
                    if isCancelled { lane.refuseAll() } else { lane.serve() }
                }
            } catch { refuseAll() }
        }
    }

    /// The scheduler runs nothing any more. The slot of the job that it refused stays taken: nothing will start.
    private func refuseAll() {
        let members = state.withLock { state in
            state.isShutDown = true
            return state.live.all
        }
        end(members, .shutDown).deliverInline()
    }

    /// Ends those that have not started.
    ///
    /// - Returns: whose inline notices the caller has to deliver, now that all have ended: who is told of one may wait for
    ///   another one.
    private func end(_ members: [CommandRun], _ why: CancelReason.Kind) -> [Deliveries] {
        members.flatMap { $0.latch(unstarted: why) }
    }

    // MARK: Turns

    /// A slot's job: starts the next run, which hands the slot on when it ends.
    private func serve() {
        while let member = next() { if member.takeTurn(on: self) { return } }
    }

    private func next() -> (CommandRun)? {
        change { state in
            for index in state.ready.indices.reversed() {
                while let entry = state.ready[index].popFirst() {
                    if state.live.contains(entry.member) { return entry.member }
                    state.husks -= 1
                    state.released.append(entry.member)
                }
            }
            state.running -= 1
            return nil
        }
    }

    /// A run that was accepted has its outcome, and its notices are enqueued.
    ///
    /// - Returns: whose inline notices the caller has to deliver.
    func ended(_ member: CommandRun, _ badEnd: Outcome<Never>?, heldSlot: Bool) -> [Deliveries] {
        let (effects, stopped) = change { state -> (Effects, [CommandRun]) in
            guard let live = state.live.remove(member) else { return (Effects(), []) }
            state.note(member.transaction, badEnd)
            state.epochs[live.epoch - state.firstEpoch].live -= 1
            if heldSlot { state.running -= 1 } else { state.leftHusk() }
            var stopped: [CommandRun] = []
            if live.isGathering {
                state.gatheringCount -= 1
                state.gatheringCost -= live.cost
            } else if let batching {
                state.inBatch -= 1
                if heldSlot, badEnd != nil, batching.stopsOnFailure { stopped = state.takeReady() }
            }
            return (follow(&state), stopped)
        }
        perform(effects)
        return end(stopped, .batchStopped)
    }

    // MARK: Dumps

    /// The part that a dump shows.
    struct Sample {
        let running: Int
        let waiting: Int
        let gathering: Int
        let count: Int
        let isShutDown: Bool
        let hasFlushes: Bool
        /// Some of those that have no outcome.
        let members: [CommandRun]
    }

    /// The part that a dump shows.
    ///
    /// - Parameter most: so many of its members.
    func sample(_ most: Int) -> Sample {
        state.withLock { state in
            Sample(
                running: state.running, waiting: state.ready.reduce(0) { $0 + $1.count } - state.husks,
                gathering: state.gatheringCount, count: state.live.count, isShutDown: state.isShutDown,
                hasFlushes: state.epochs.contains { !$0.waiting.isEmpty }, members: state.live.some(most))
        }
    }

    // MARK: Waiting

    /// Returns when everything that was accepted before has its outcome.
    ///
    /// - Throws: a `CancellationError` when it was cancelled first: the commands go on.
    func flush() async throws {
        if ReentrancyMark.isInside(self) { throw CommandUsageError.reentrant }
        let wakening = await Waiter.wait { waiter in
            register(waiter)
        } orCancelledBy: { [self] waiter in
            state.withLock { state in
                for index in state.epochs.indices where state.epochs[index].waiting.remove(waiter) {
                    return true
                }
                return false
            }
        }
        if wakening == .cancelled { throw CancellationError() }
    }

    /// A waiter for all that was accepted so far, which is cut off here; batches of it are let go.
    private func register(_ waiter: Waiter) -> Waiter.Registration {
        let (registration, effects) = change { state in
            state.forced = state.lastNumber
            let registration = state.epochs[state.epochs.count - 1].waiting.append(waiter)
            state.epochs[state.epochs.count - 1].isClosed = true
            state.epochs.append(Epoch())
            return (registration, follow(&state))
        }
        perform(effects)
        return registration
    }

    func cancelAll() {
        let members = state.withLock { state in state.live.all }
        // First those that wait: what runs makes room for the next one when it ends.
        let owed = end(members, .requested)
        (owed + members.flatMap { $0.latchCancelled().owed }).deliverInline()
    }

    func shutDown(_ pending: PendingAtShutdown) async {
        if ReentrancyMark.isInside(self) {
            fatalError(
                "Invoker.shutdown: a command of the invoker calls it, and would be waited for; call it from elsewhere"
            )
        }
        let waiting = state.withLock { state in
            state.isShutDown = true
            return pending == .reject ? state.live.all : []
        }
        end(waiting, .shutDown).deliverInline()
        await Waiter.wait { register($0) }
    }

    /// Nobody refers to the invoker any more.
    func abandon() {
        let (members, timer) = state.withLock { state in
            state.isShutDown = true
            return (state.live.all, state.timer?.task)
        }
        timer?.cancel()
        end(members, .abandoned).deliverInline()
    }

    // MARK: Batches

    /// Moves the next batch to what can start, if one is due and none runs. Under the lock.
    private func cutBatch(_ batching: Batching, _ state: inout State, _ effects: inout Effects) {
        while let first = state.gathering.first, !state.live.contains(first.member) {
            state.released.append(first.member)
            _ = state.gathering.popFirst()
        }
        let maxCost = batching.maxCost ?? .max
        if state.inBatch == 0, let first = state.gathering.first,
            state.gatheringCount >= batching.size || state.gatheringCost >= maxCost
                || first.number <= state.forced
        {
            var cost = 0
            while state.inBatch < batching.size, let entry = state.gathering.first {
                if let live = state.live[entry.member] {
                    if state.inBatch > 0, cost + live.cost > maxCost { break }
                    cost += live.cost
                    state.live.hasGathered(entry.member)
                    state.gatheringCount -= 1
                    state.gatheringCost -= live.cost
                    state.inBatch += 1
                    state.ready[CommandPriority.normal.rawValue].append(entry)
                } else {
                    state.released.append(entry.member)
                }
                _ = state.gathering.popFirst()
            }
        }
        setTimer(batching, &state, &effects)
    }

    /// Lets the time of the first that gathers run.
    private func setTimer(_ batching: Batching, _ state: inout State, _ effects: inout Effects) {
        guard let delay = batching.maxDelay else { return }
        let number = state.gathering.first?.number
        if state.timer?.number == number { return }
        effects.obsoleteTimer = state.timer?.task
        state.timer = number.map { number in
            let task = Task { [weak self, clock = batching.clock] in
                do { try await sleep(for: delay, by: clock) } catch { return }
                self?.timeIsOver(number)
            }
            return (number, task)
        }
    }

    private func timeIsOver(_ number: Int) {
        perform(
            change { state in
                state.forced = max(state.forced, number)
                return follow(&state)
            })
    }
}

extension Lane.State {
    fileprivate mutating func note(_ transaction: CommandTransaction, _ badEnd: Outcome<Never>?) {
        let end = CommandEnd(transaction: transaction, badEnd)
        statistics.add(end.kind)
        history.add(end)
    }

    /// A run that ended before its turn is still in a queue.
    fileprivate mutating func leftHusk() {
        husks += 1
        if husks <= 32 + live.count { return }
        husks = 0
        for index in ready.indices {
            released += ready[index].removeAll { !live.contains($0.member) }.map(\.member)
        }
        released += gathering.removeAll { !live.contains($0.member) }.map(\.member)
    }

    /// The runs of a batch that have not started.
    fileprivate mutating func takeReady() -> [CommandRun] {
        ready.indices.flatMap { index in
            defer { ready[index] = FIFO() }
            return ready[index].all.map(\.member)
        }
    }
}
