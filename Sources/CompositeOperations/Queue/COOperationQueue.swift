// COOperationQueue.swift - admits operations to a target: so many at a time, in an order.
//
// A queue looks at an operation, and never the other way round: whenever something about an operation changes that its
// queue may care for, the operation has `reconcile` called, after the change and under no lock. There the queue asks,
// under its own lock and then the tree's, what the operation needs now, and adapts. So it does not matter in which
// order those calls arrive, nor how many.
//
// Invariants:
//   I1  `running` is the number of tickets that hold a slot; it never exceeds the limit, except that a limit which
//       was lowered is reached by and by.
//   I2  after each call, while a slot is free and the queue is not suspended, no ticket in a line is due: those that
//       were found not to be are asleep, and the change that makes them due calls `reconcile`.
//   I3  a ticket is in a line, or asleep, exactly while its operation waits for its turn.
//   I4  who is taken out while it waits is ended in the same step, under both locks: so nothing that happens to it
//       brings it back, and what a limit lets in has room at once.
//   I5  in the list of all that are not outside, nobody before `firstPending` is pending.

internal import CInspection
internal import CompositeOperationsBasics
@_spi(Faces) public import Runs
public import Scheduling
internal import Synchronization

/// Decides when operations may run: so many at a time, in an order; where they run is its target's business.
///
/// Aim an operation at it with `on:`, or ``add(_:)`` one that is ready. The children of a composite go through the
/// queue of the composite, before all others of their priority. A composite holds a slot for its registration block only, and then
/// waits beside the queue: so composites may nest in a queue of one slot.
///
/// All members may be used from any thread, also inside operations.
///
/// - SeeAlso: `OperationQueue`.
public final class COOperationQueue: ExecutionTarget {
    /// In which order operations are admitted.
    public enum Order: Hashable, Sendable {
        /// The oldest first.
        case fifo
        /// The newest first.
        case lifo
        /// The newest first; when too many wait, the oldest is cancelled, ``CancelReason/Kind/displaced``.
        case aggressiveLIFO
    }

    /// How a suspended operation treats its slot.
    public enum SlotPolicy: Hashable, Sendable {
        /// Gives it back, once its block has returned.
        case releaseWhileSuspended
        /// Keeps it.
        case holdWhileSuspended
    }

    let target: (any ExecutionTarget)?
    private let order: Order
    private let slots: SlotPolicy
    private let state: Guarded<State>
    /// Read by operations, under their lock.
    private let suspended = Atomic(false)
    /// As `AnyOperation.priorityMark`. Read by operations, under their lock.
    private let priorityMark: Atomic<UInt8>
    private let instance = Instance(.queues)

    /// Creates an empty queue.
    ///
    /// - Parameters:
    ///   - runningLimit: how many hold a slot at most; nil: any number.
    ///   - pendingLimit: how many wait at most, children not counted; nil: any number, or, in the order
    ///     ``Order/aggressiveLIFO``, as many as run.
    ///   - slots: what a suspended operation does with its slot.
    ///   - priority: of operations that are added to it; see ``priority``.
    ///   - target: where they run; nil: the default queue in force here, now. Of a queue, its target: the limits of that
    ///     queue are not this one's.
    /// - Precondition: `runningLimit` is at least 1, `pendingLimit` at least 0; also when they are set later.
    public init(
        _ order: Order = .fifo, runningLimit: Int? = nil, pendingLimit: Int? = nil,
        slots: SlotPolicy = .releaseWhileSuspended, priority: Scheduler.Priority? = nil,
        on target: (any ExecutionTarget)? = nil
    ) {
        Self.check(runningLimit, atLeast: 1, "runningLimit")
        Self.check(pendingLimit, atLeast: 0, "pendingLimit")
        self.order = order
        self.slots = slots
        priorityMark = Atomic(priority.mark)
        let target = target ?? COQueues.inForce
        self.target = Self.admitting(to: target).map(\.target) ?? target
        state = Guarded(
            State(
                runningLimit: runningLimit, pendingLimit: pendingLimit,
                lines: Lines(newestFirst: order != .fifo)))
        COQueues.beginSurroundings()
        if inspection_is_on() { Inspectables.keep(self, .queues) }
    }

    private static func check(_ limit: Int?, atLeast least: Int, _ name: String) {
        if let limit, limit < least {
            fatalError("COOperationQueue: the \(name) is \(limit), and must be at least \(least)")
        }
    }

    // MARK: State

    private struct State {
        var runningLimit: Int?
        var pendingLimit: Int?
        var all = Tickets()
        var lines: Lines
        var idlers = WaitList()

        var hasFreeSlot: Bool { all.running < runningLimit ?? .max }

        mutating func enqueue(_ ticket: Ticket) {
            all.move(ticket, to: .inLine)
            lines.insert(ticket)
        }
    }

    // MARK: Admission

    /// An operation's need of its queue.
    enum Need {
        /// A slot, and then its turn.
        case turn
        /// A turn, later.
        case laterTurn
        /// The slot that it has, or should have.
        case slot
        /// Nothing now.
        case nothing
        /// Nothing any more.
        case over
    }

    /// That, and what else a queue is to know then.
    fileprivate struct Demand {
        let need: Need
        /// The operation holds it.
        let ticket: Unmanaged<Ticket>
        /// How many of its blocks have begun.
        let runs: Int32
        let priority: Scheduler.Priority
    }

    /// The work to be done when the lock has been let go.
    private struct Verdict: ~Copyable {
        // As in Effects: most have one turn at most, with a reference that goes to the target.
        private var turn: Unmanaged<AnyOperation>?
        private var priority = Scheduler.Priority.default
        private var rest: Unmanaged<Rest>?
        /// Of the ends of those that were taken out.
        var effects = Effects()

        private final class Rest {
            var turns: [(operation: AnyOperation, priority: Scheduler.Priority)] = []
            var idlers: WaitList.Woken?
        }

        @inline(never)
        private mutating func ensureRest() -> Rest {
            if let rest { return rest.takeUnretainedValue() }
            let made = Rest()
            rest = .passRetained(made)
            return made
        }

        mutating func send(_ operation: AnyOperation, _ priority: Scheduler.Priority) {
            if turn == nil {
                (turn, self.priority) = (.passRetained(operation), priority)
            } else {
                ensureRest().turns.append((operation, priority))
            }
        }

        mutating func wake(_ idlers: WaitList.Woken) { ensureRest().idlers = idlers }

        consuming func carryOut() {
            if let turn { AnyOperation.sendTurn(turn, at: priority) }
            let rest = rest?.takeRetainedValue()
            if let rest { for turn in rest.turns { turn.operation.sendTurn(at: turn.priority) } }
            effects.perform()
            rest?.idlers?.wake()
        }
    }

    /// Looks at an operation of the queue again. Under no lock.
    func reconcile(_ operation: AnyOperation) {
        change { state, verdict in look(at: operation, &state, &verdict) }
    }

    /// An operation of the queue, which the caller holds as well as its place there, has finished in one step. Under no lock.
    func hasFinished(_ ticket: Unmanaged<Ticket>) {
        change { state, _ in ticket._withUnsafeGuaranteedRef { state.all.move($0, to: .outside) } }
    }

    /// Changes something, fills the free slots, and does what follows. Under no lock.
    private func change<Answer>(_ body: (inout State, inout Verdict) -> Answer) -> Answer {
        var verdict = Verdict()
        let answer = state.withLock { state in
            let answer = body(&state, &verdict)
            pump(&state, &verdict)
            if state.all.count == 0, !state.idlers.isEmpty { verdict.wake(state.idlers.takeAll()) }
            return answer
        }
        verdict.carryOut()
        return answer
    }

    /// Whether a slot is held that was given to a ticket's operation after so many blocks of it.
    func isHeld(_ ticket: Ticket, since runs: Int32) -> Bool {
        state.withLock { _ in ticket.state == .running && ticket.runs == runs }
    }

    /// Whether an operation waits for a slot, all of which are among these. Under no lock.
    func isClosed(to operation: AnyOperation, by slots: HeldSlots) -> Bool {
        let held = (slots.onStack + slots.ofBlock).filter { $0.ticket.isOf(self) }
        if held.isEmpty { return false }
        return state.withLock { state in
            guard let limit = state.runningLimit,
                operation.look({ operation.ticket?._withUnsafeGuaranteedRef { $0.state } }) == .inLine
            else { return false }
            let own = held.filter { $0.ticket.state == .running && $0.ticket.runs == $0.runs }
            return Set(own.map { ObjectIdentifier($0.ticket) }).count >= limit
        }
    }

    /// Whether every slot is held by an operation whose turn is on its way to a lane that the calling thread is in: so none
    /// of them can begin before that goes on. Of a dispatch queue nobody knows whether it is serial. Under no lock.
    var waitsForThisThread: Bool {
        guard let lane = target as? SerialLane, lane.isOnStack else { return false }
        return state.withLock { state in
            !state.hasFreeSlot
                && state.all.tickets { $0.state == .running }.allSatisfy { ticket in
                    guard let operation = ticket.operation else { return false }
                    return operation.look { operation.machine.isPosted && operation.target === lane }
                }
        }
    }

    /// For whom there is room in a queue.
    enum Room {
        case forAll
        /// For who needs nothing but the slot that is free.
        case forSlot
        case forNobody
    }

    /// Starts an operation that is added.
    ///
    /// - Parameter start: called under the lock; starts it, unless there is no room for it.
    /// - Returns: as `start`: whether it is started.
    func admit(_ operation: AnyOperation, _ start: (Room, inout Effects) -> Bool) -> Bool {
        change { state, verdict in
            pump(&state, &verdict)  // what is free then is free for this one
            let room: Room =
                if order == .aggressiveLIFO || state.all.pending < state.pendingLimit ?? .max {
                    .forAll
                } else {
                    state.hasFreeSlot && !isSuspended ? .forSlot : .forNobody
                }
            guard start(room, &verdict.effects) else { return false }
            look(at: operation, isInvited: true, &state, &verdict)
            return true
        }
    }

    /// - Parameter isInvited: a newcomer for which there was room, and which is not refused any more.
    private func look(
        at operation: AnyOperation, isInvited: Bool = false, _ state: inout State, _ verdict: inout Verdict
    ) {
        guard let demand = operation.demand(on: self, keepsSlot: slots == .holdWhileSuspended) else { return }
        demand.ticket._withUnsafeGuaranteedRef { ticket in
            if ticket.state == .outside {
                if demand.need == .over { return }
                ticket.operation = operation
            }
            look(at: ticket, demand, isInvited: isInvited, &state, &verdict)
        }
    }

    @inline(__always)
    private func look(
        at ticket: Ticket, _ demand: Demand, isInvited: Bool, _ state: inout State, _ verdict: inout Verdict
    ) {
        if ticket.priority != demand.priority {
            ticket.priority = demand.priority
            ticket.isListed = false  // in another line
        }
        let (isNew, hasWaited) = (ticket.number == 0, ticket.waits)
        // One whose turn met a closed gate has the place that it had. Another attempt goes last.
        if demand.need == .turn || demand.need == .laterTurn,
            ticket.state == .outside || ticket.runs != demand.runs
        {
            state.all.number(ticket, runs: demand.runs)
        }
        adapt(ticket, to: demand.need, &state)
        guard ticket.waits, !hasWaited, !ticket.isChild else { return }
        if order == .aggressiveLIFO {
            displace(&state, &verdict)
        } else if isNew && !isInvited {
            refuse(ticket, &state, &verdict)
        }
    }

    private func adapt(_ ticket: Ticket, to need: Need, _ state: inout State) {
        switch need {
        case .turn: if ticket.state != .inLine || !ticket.isListed { state.enqueue(ticket) }
        case .laterTurn: state.all.move(ticket, to: .asleep)
        case .slot:
            // One that is resumed, and whose block has left, takes a slot only if one is free.
            if ticket.state != .running, state.hasFreeSlot { state.all.move(ticket, to: .running) }
        case .nothing: state.all.move(ticket, to: .aside)
        case .over: state.all.move(ticket, to: .outside)
        }
    }

    /// The newcomer may be one too many: the operations that have waited longest go.
    private func displace(_ state: inout State, _ verdict: inout Verdict) {
        guard let limit = state.pendingLimit ?? state.runningLimit else { return }
        pump(&state, &verdict)
        while state.all.pending > limit, let oldest = state.all.oldestPending() {
            _ = takeOut(oldest, .displaced, &state, &verdict)
        }
    }

    /// The newcomer may be one too many: then it goes.
    private func refuse(_ newcomer: Ticket, _ state: inout State, _ verdict: inout Verdict) {
        guard let limit = state.pendingLimit else { return }
        pump(&state, &verdict)
        // One that need not wait may find too many that do: the limit was lowered.
        if state.all.pending > limit, newcomer.waits { _ = takeOut(newcomer, .queueFull, &state, &verdict) }
    }

    /// Ends one that waits (I4).
    ///
    /// - Returns: false: it had ended already.
    private func takeOut(
        _ ticket: Ticket, _ reason: CancelReason.Kind, _ state: inout State, _ verdict: inout Verdict
    ) -> Bool {
        let operation = ticket.operation
        state.all.move(ticket, to: .outside)
        return operation?.endUnbegun(CancelReason(reason), &verdict.effects) ?? false
    }

    /// Fills the free slots (I2).
    @inline(never)
    private func pump(_ state: inout State, _ verdict: inout Verdict) {
        while state.hasFreeSlot {
            guard let next = state.lines.take() else { return }
            next._withUnsafeGuaranteedRef { next in
                guard let operation = next.operation else { return }  // it waits: so it is there
                if let priority = operation.claimTurn() {
                    state.all.move(next, to: .running)
                    state.lines.hasAdmitted()
                    verdict.send(operation, priority)
                } else {
                    state.all.move(next, to: .asleep)
                }
            }
            next.release()
        }
    }

    // MARK: Public

    /// How many hold a slot at most. A lower limit is reached as they leave.
    public var runningLimit: Int? {
        get { state.withLock { $0.runningLimit } }
        set {
            Self.check(newValue, atLeast: 1, "runningLimit")
            change { state, _ in state.runningLimit = newValue }
        }
    }

    /// How many wait at most. Those that wait already stay.
    public var pendingLimit: Int? {
        get { state.withLock { $0.pendingLimit } }
        set {
            Self.check(newValue, atLeast: 0, "pendingLimit")
            change { state, _ in state.pendingLimit = newValue }
        }
    }

    /// The priority of operations that are started in it from now on, unless their options name another one; nil: they
    /// have that of their composite, or inherit one.
    ///
    /// Operations of a higher priority are admitted before those of a lower one; within a priority children go first, and then
    /// the queue's order counts. Of 61 admissions one is of the lowest priority that waits, so that no priority waits for ever.
    public var priority: Scheduler.Priority? {
        get { Scheduler.Priority(mark: priorityMark.load(ordering: .relaxed)) }
        set { priorityMark.store(newValue.mark, ordering: .relaxed) }
    }

    /// Adds an operation that is ready, and starts it.
    ///
    /// A sync operation is waited for: the call returns when it has ended.
    ///
    /// - Returns: false, and nothing was done, when it is not ready, has no block, is a child, was aimed at another
    ///   queue (a default queue does not count), or when the queue is full, in an order that displaces nothing.
    /// - Complexity: O(1) amortised.
    @discardableResult
    public func add(_ operation: AnyOperation) -> Bool { operation.start(addedTo: self) }

    /// Lets no operation start that waits in it; operations that run go on, and its target is not touched.
    public func suspend() { state.withLock { _ in suspended.store(true, ordering: .sequentiallyConsistent) } }

    /// Starts all that fit, in its order.
    public func resume() {
        change { state, verdict in
            suspended.store(false, ordering: .sequentiallyConsistent)
            // All of them, before the first one takes its turn: who goes first is not who came first. One that goes on, or
            // leaves, is behind this walk, and displaces nobody, as it has waited before.
            var next = state.all.first
            while let ticket = next?.takeUnretainedValue() {
                next = ticket.next
                if ticket.state == .asleep, let operation = ticket.operation {
                    look(at: operation, &state, &verdict)
                }
            }
        }
    }

    /// Whether it is suspended.
    public var isSuspended: Bool { suspended.load(ordering: .sequentiallyConsistent) }

    /// How many it has: pending, running, or aside.
    public var operationCount: Int { state.withLock { $0.all.count } }

    /// The operations that wait for their turn, the oldest first.
    public var pendingOperations: [AnyOperation] { state.withLock { $0.all.operations { $0.waits } } }

    /// The operations that hold a slot.
    public var runningOperations: [AnyOperation] {
        state.withLock { $0.all.operations { $0.state == .running } }
    }

    /// Composites whose children are under way.
    public var waitingComposites: [AnyOperation] {
        state.withLock { $0.all.operations { $0.state == .aside && $0.operation?.composition != nil } }
    }

    /// Cancels all that are in it, in one step: what waits for its turn does not begin any more.
    ///
    /// - Complexity: O(operations in it, and what is registered below them).
    public func cancelAll(_ reason: CancelReason? = nil) {
        change { state, verdict in
            for operation in state.all.operations(where: { _ in true }) {
                operation.look { _ = operation.cancelIfNotDecided(reason, &verdict.effects) }
            }
        }
    }

    /// Cancels all that wait for their turn, children not counted: ``CancelReason/Kind/removed``.
    ///
    /// - Returns: how many these were.
    @discardableResult
    public func removeAllPending() -> Int {
        change { state, verdict in
            state.all.tickets { $0.waits && !$0.isChild }
                .count(where: { takeOut($0, .removed, &state, &verdict) })
        }
    }

    /// Waits until nothing is in it.
    public func idle() async {
        await Waiter.wait { waiter in
            state.withLock { state in state.all.count == 0 ? .isOver : state.idlers.append(waiter) }
        }
    }

    /// The part that a dump shows.
    ///
    /// - Parameter most: so many of its tickets.
    func sample(_ most: Int) -> Sample {
        state.withLock { state in
            var tickets: [(operation: AnyOperation, state: Ticket.State)] = []
            var next = state.all.first
            while let ticket = next?.takeUnretainedValue(), tickets.count < most {
                next = ticket.next
                if let operation = ticket.operation { tickets.append((operation, ticket.state)) }
            }
            return Sample(
                runningLimit: state.runningLimit, pendingLimit: state.pendingLimit,
                running: state.all.running, pending: state.all.pending, count: state.all.count,
                tickets: tickets)
        }
    }

    // MARK: ExecutionTarget

    /// Runs work on its target, past the limits: these concern operations.
    public func submit(_ work: ExecutionWork) {
        if let target { target.submit(work) } else { ExecutionWork.run(on: nil) { work.run() } }
    }

    /// Whether the calling code is its target's.
    public var isCurrent: Bool { target?.isCurrent ?? false }
}

extension AnyOperation {
    /// Its need of its queue; nil: it has not been started, or is not the queue's any more. Under the queue's lock.
    fileprivate final func demand(on queue: COOperationQueue, keepsSlot: Bool) -> COOperationQueue.Demand? {
        look {
            guard isAdmitted(by: queue) else { return nil }
            let ticket = ensureTicket()
            if ticket._withUnsafeGuaranteedRef({ $0.number == 0 }) {
                if machine.phase == .ready { return nil }
                ticket._withUnsafeGuaranteedRef { $0.isChild = isChild }
            }
            return COOperationQueue.Demand(
                need: need(keepsSlot), ticket: ticket, runs: machine.runs, priority: currentPriority)
        }
    }

    private final func need(_ keepsSlot: Bool) -> COOperationQueue.Need {
        if machine.isDecided { return machine.isOut ? .slot : .over }
        switch machine.phase {
        case .ready: return .over
        case .queued:
            if machine.isPosted { return .slot }
            return isDue ? .turn : .laterTurn
        case .executing:
            if machine.isOut { return .slot }
            if isComposite { return .nothing }
            return keepsSlot || gateIsOpen ? .slot : .nothing
        default: return machine.isOut ? .slot : .nothing
        }
    }

    /// Takes its turn, if it is due. Under the queue's lock.
    ///
    /// - Returns: its priority.
    fileprivate final func claimTurn() -> Scheduler.Priority? {
        look {
            guard isDue else { return nil }
            machine.post()
            return currentPriority
        }
    }

    /// Cancels it, which waits for its turn. Under the queue's lock.
    fileprivate final func endUnbegun(_ reason: CancelReason, _ effects: inout Effects) -> Bool {
        look { end(.cancelled, .cancelled(reason), &effects) }
    }
}
