// Lane.swift - the runs that an invoker executes concurrently, and the runs that wait.
//
// Invariants, all under one lock:
//   I1  running ≤ limit, where `running` counts the slots taken. A slot is taken together with the job that serves it. The slot
//       is released when nothing is left to start; a run that ends passes its slot to the next job.
//   I2  live = accepted and without an outcome: it grows when a run is accepted, and shrinks in `ended`, once for each run.
//   I3  epochs: a flush closes an epoch; the runs accepted in an epoch count in its `live`. A flush returns when no epoch up
//       to its own has live runs; epochs are removed first to last.
//   I4  a batch: while `inBatch` > 0, nothing in `gathering` starts. So batches do not overlap.
//
// A run that ends before its turn stays in the queue as a husk (a tombstone without its command) until its turn. Husks never
// outnumber the live runs by more than a constant.

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
        /// The runs removed from the queues; see `change`.
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
        /// All runs accepted up to this number must run, even if they do not fill a batch.
        var forced = 0
        var inBatch = 0
        var timer: (number: Int, task: Task<Void, Never>)?
    }

    /// The effects of a change, performed outside the lock.
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

    /// Whether a member that has not started can start only after the running members have ended. In a batch that runs several
    /// at a time, other members of the batch may start earlier.
    func isBehindWhatRuns(_ member: CommandRun) -> Bool {
        limit == 1 || state.withLock { $0.live[member]?.isGathering == true }
    }

    var count: Int { state.withLock { $0.live.count } }
    var statistics: InvokerStatistics { state.withLock { $0.statistics } }

    /// Oldest first.
    var history: [CommandEnd] { state.withLock { $0.history.all } }

    /// Changes the state. A husk holds an outcome, which may be a user's object, so it is released after unlocking.
    private func change<Value>(_ body: (inout State) -> Value) -> Value {
        let (value, released) = state.withLock { state in
            let value = body(&state)
            defer { state.released = [] }
            return (value, state.released)
        }
        withExtendedLifetime(released) {}
        return value
    }

    // MARK: Admission

    /// Accepts a run, or rejects it.
    ///
    /// - Parameter accept: makes the run refer to this lane; returns false if the run is no longer ready.
    func submit(_ member: CommandRun, cost: Int, priority: CommandPriority, accept: () -> Bool) {
        let (rejection, effects) = change { state -> (CancelReason.Kind?, Effects) in
            if state.isShutDown { return (.shutDown, Effects()) }
            if let capacity, state.live.count >= capacity { return (.queueFull, Effects()) }
            // Lock order: the lane's lock, then the member's; never the reverse.
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

    /// The effects of a change: a batch that is due, slots for runs that can start, flushes that are complete. Under the lock.
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
            // Bypasses the scheduler's capacity, which limits outside submissions: an accepted run must run.
            do {
                try scheduler.submit(job: self) { lane, isCancelled in
                    let lane = Unmanaged<Lane>.fromOpaque(lane).takeRetainedValue()
                    if isCancelled { lane.refuseAll() } else { lane.serve() }
                }
            } catch { refuseAll() }
        }
    }

    /// The scheduler no longer runs anything. The slot of the refused job stays taken: nothing will start.
    private func refuseAll() {
        let members = state.withLock { state in
            state.isShutDown = true
            return state.live.all
        }
        end(members, .shutDown).deliverInline()
    }

    /// Ends the members that have not started.
    ///
    /// - Returns: the deliveries whose inline notices the caller must deliver after all members have ended: an observer of one
    ///   member may wait for another.
    private func end(_ members: [CommandRun], _ why: CancelReason.Kind) -> [Deliveries] {
        members.flatMap { $0.latch(unstarted: why) }
    }

    // MARK: Turns

    /// A slot's job: starts the next run, which passes the slot on when it ends.
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

    /// Records the end of an accepted run, after its outcome is latched and its queued notices are enqueued.
    ///
    /// - Returns: the deliveries whose inline notices the caller must deliver.
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

    /// The data for a dump.
    struct Sample {
        let running: Int
        let waiting: Int
        let gathering: Int
        let count: Int
        let isShutDown: Bool
        let hasFlushes: Bool
        /// Some of the runs without an outcome.
        let members: [CommandRun]
    }

    /// The data for a dump.
    ///
    /// - Parameter most: the maximum number of members to include.
    func sample(_ most: Int) -> Sample {
        state.withLock { state in
            Sample(
                running: state.running, waiting: state.ready.reduce(0) { $0 + $1.count } - state.husks,
                gathering: state.gatheringCount, count: state.live.count, isShutDown: state.isShutDown,
                hasFlushes: state.epochs.contains { !$0.waiting.isEmpty }, members: state.live.some(most))
        }
    }

    // MARK: Waiting

    /// Returns when every run accepted before the call has its outcome.
    ///
    /// - Throws: a `CancellationError` if the caller is cancelled first; the commands continue.
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

    /// Registers a waiter for all runs accepted so far: closes the current epoch, and lets gathering runs start even if they do
    /// not fill a batch.
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
        // The waiting runs first: otherwise a running one that ends would make room for the next.
        let owed = end(members, .requested)
        (owed + members.flatMap { $0.latchCancelled().owed }).deliverInline()
    }

    func shutDown(_ pending: PendingAtShutdown) async {
        if ReentrancyMark.isInside(self) {
            fatalError(
                "Invoker.shutdown: called by a command of the invoker, it would wait for itself; call it elsewhere"
            )
        }
        let waiting = state.withLock { state in
            state.isShutDown = true
            return pending == .reject ? state.live.all : []
        }
        end(waiting, .shutDown).deliverInline()
        await Waiter.wait { register($0) }
    }

    /// Called when the invoker is deallocated.
    func abandon() {
        let (members, timer) = state.withLock { state in
            state.isShutDown = true
            return (state.live.all, state.timer?.task)
        }
        timer?.cancel()
        end(members, .abandoned).deliverInline()
    }

    // MARK: Batches

    /// Moves the next batch to `ready`, if one is due and none is running. Under the lock.
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

    /// Starts the timer for the first gathering run.
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

    /// Records that a run that ended before its turn is still in a queue.
    fileprivate mutating func leftHusk() {
        husks += 1
        if husks <= 32 + live.count { return }
        husks = 0
        for index in ready.indices {
            released += ready[index].removeAll { !live.contains($0.member) }.map(\.member)
        }
        released += gathering.removeAll { !live.contains($0.member) }.map(\.member)
    }

    /// Removes and returns the runs of a batch that have not started.
    fileprivate mutating func takeReady() -> [CommandRun] {
        ready.indices.flatMap { index in
            defer { ready[index] = FIFO() }
            return ready[index].all.map(\.member)
        }
    }
}
