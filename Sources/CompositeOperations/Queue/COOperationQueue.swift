// COOperationQueue.swift - admits operations to a target: a limited number at a time, in a given order.
//
// A queue inspects operations; an operation never pushes its state to the queue. Whenever a change of an operation may
// concern its queue, `reconcile` is called for the operation, after the change and under no lock. There the queue
// determines, under its own lock and then the tree's, what the operation needs now, and adapts. So neither the order
// nor the number of these calls matters.
//
// Invariants:
//   I1  `running` is the number of tickets that hold a slot; it never exceeds the limit, except after the limit was
//       lowered: a lowered limit takes effect as running operations finish.
//   I2  after each call, if a slot is free and the queue is not suspended, no ticket in a line is due: tickets that
//       were found not to be due are asleep, and the change that makes one due calls `reconcile`.
//   I3  a ticket is in a line, or asleep, exactly while its operation waits for its turn.
//   I4  an operation that is taken out while it waits is ended in the same step, under both locks: so no event can
//       bring it back, and a newcomer that a limit lets in has room at once.
//   I5  in the list of all tickets that are not outside, none before `firstPending` is pending.

internal import CInspection
internal import CompositeOperationsBasics
@_spi(Faces) public import Runs
public import Scheduling
internal import Synchronization

/// Decides when operations may run: a limited number at a time, in a given order. Its target decides where they run.
///
/// Aim an operation at it with `on:`, or ``add(_:)`` one that is ready. The children of a composite go through the
/// queue of the composite, before all others of their priority. A composite holds a slot for its registration block
/// only, and then waits without one: so composites may nest in a queue with one slot.
///
/// All members may be used from any thread, including from operations.
///
/// - SeeAlso: `OperationQueue`.
public final class COOperationQueue: ExecutionTarget {
    /// The order in which operations are admitted.
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
    /// Encoded like `AnyOperation.priorityMark`. Read by operations, under their lock.
    private let priorityMark: Atomic<UInt8>
    private let instance = Instance(.queues)

    /// Creates an empty queue.
    ///
    /// - Parameters:
    ///   - runningLimit: how many operations may hold a slot; nil: any number.
    ///   - pendingLimit: how many operations may wait, children not counted; nil: any number, or, in the order
    ///     ``Order/aggressiveLIFO``, as many as may run.
    ///   - slots: what a suspended operation does with its slot.
    ///   - priority: the priority of operations that are added to it; see ``priority``.
    ///   - target: where operations run; nil: the default queue in force at this call. If this is a queue, its target
    ///     is used, without its limits.
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

    /// The service that an operation needs from its queue.
    enum Need {
        /// A slot, and then its turn.
        case turn
        /// A turn, but the operation is not due yet.
        case laterTurn
        /// The slot that it has, or should have.
        case slot
        /// Nothing now.
        case nothing
        /// Nothing any more.
        case over
    }

    /// A need, and the other facts that the queue has to know.
    fileprivate struct Demand {
        let need: Need
        /// Held by the operation.
        let ticket: Unmanaged<Ticket>
        /// How many of its blocks have begun.
        let runs: Int32
        let priority: Scheduler.Priority
    }

    /// The work to be done after the lock is released.
    private struct Verdict: ~Copyable {
        // As in Effects: usually one turn at most, with a reference that is passed to the target.
        private var turn: Unmanaged<AnyOperation>?
        private var priority = Scheduler.Priority.default
        private var rest: Unmanaged<Rest>?
        /// The effects of ending the operations that were taken out.
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

    /// Examines an operation of the queue again. Under no lock.
    func reconcile(_ operation: AnyOperation) {
        change { state, verdict in look(at: operation, &state, &verdict) }
    }

    /// An operation of the queue has finished in one step (`leaveFinished`). The caller holds the operation and its
    /// ticket. Under no lock.
    func hasFinished(_ ticket: Unmanaged<Ticket>) {
        change { state, _ in ticket._withUnsafeGuaranteedRef { state.all.move($0, to: .outside) } }
    }

    /// Changes something, fills the free slots, and carries out the consequences. Under no lock.
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

    /// Whether a ticket still holds the slot that it was given after `runs` blocks of its operation had begun.
    func isHeld(_ ticket: Ticket, since runs: Int32) -> Bool {
        state.withLock { _ in ticket.state == .running && ticket.runs == runs }
    }

    /// Whether an operation waits for a slot while all slots of the queue are among `slots`. Under no lock.
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

    /// Whether every slot is held by an operation whose turn is on its way to a lane that the calling thread is in: so
    /// none of them can begin before that thread continues. False for a dispatch queue, as there is no way to know
    /// whether it is serial. Under no lock.
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

    /// The room that a queue has for a newcomer.
    enum Room {
        case forAll
        /// For an operation that can take the free slot at once.
        case forSlot
        case forNobody
    }

    /// Starts an operation that is being added.
    ///
    /// - Parameter start: called under the lock; starts it, unless there is no room for it.
    /// - Returns: the result of `start`: whether it is started.
    func admit(_ operation: AnyOperation, _ start: (Room, inout Effects) -> Bool) -> Bool {
        change { state, verdict in
            pump(&state, &verdict)  // slots that are free after this are free for this operation
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

    /// - Parameter isInvited: the operation is a newcomer for which room was found: it must not be refused any more.
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
            ticket.isListed = false  // it belongs in another line
        }
        let (isNew, hasWaited) = (ticket.number == 0, ticket.waits)
        // An operation whose turn met a closed gate keeps its place. Another attempt goes last.
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
            // A resumed operation whose block has returned takes a slot only if one is free.
            if ticket.state != .running, state.hasFreeSlot { state.all.move(ticket, to: .running) }
        case .nothing: state.all.move(ticket, to: .aside)
        case .over: state.all.move(ticket, to: .outside)
        }
    }

    /// The newcomer may be one too many: then the operations that have waited longest are cancelled.
    private func displace(_ state: inout State, _ verdict: inout Verdict) {
        guard let limit = state.pendingLimit ?? state.runningLimit else { return }
        pump(&state, &verdict)
        while state.all.pending > limit, let oldest = state.all.oldestPending() {
            _ = takeOut(oldest, .displaced, &state, &verdict)
        }
    }

    /// The newcomer may be one too many: then it is cancelled.
    private func refuse(_ newcomer: Ticket, _ state: inout State, _ verdict: inout Verdict) {
        guard let limit = state.pendingLimit else { return }
        pump(&state, &verdict)
        // If the limit was lowered, a newcomer that need not wait may find too many operations waiting.
        if state.all.pending > limit, newcomer.waits { _ = takeOut(newcomer, .queueFull, &state, &verdict) }
    }

    /// Ends a waiting operation (I4).
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
                guard let operation = next.operation else { return }  // a waiting ticket always has one
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

    /// How many operations may hold a slot. A lowered limit takes effect as operations leave.
    public var runningLimit: Int? {
        get { state.withLock { $0.runningLimit } }
        set {
            Self.check(newValue, atLeast: 1, "runningLimit")
            change { state, _ in state.runningLimit = newValue }
        }
    }

    /// How many operations may wait. If it is lowered, operations that already wait stay.
    public var pendingLimit: Int? {
        get { state.withLock { $0.pendingLimit } }
        set {
            Self.check(newValue, atLeast: 0, "pendingLimit")
            change { state, _ in state.pendingLimit = newValue }
        }
    }

    /// The priority of operations that are started in it from now on, unless their options name another one; nil: they
    /// have the priority of their composite, or inherit one.
    ///
    /// Operations of a higher priority are admitted before those of a lower one; within a priority children go first,
    /// and then the queue's order applies. Of 61 admissions, one goes to the lowest waiting priority, so that no
    /// priority waits for ever.
    public var priority: Scheduler.Priority? {
        get { Scheduler.Priority(mark: priorityMark.load(ordering: .relaxed)) }
        set { priorityMark.store(newValue.mark, ordering: .relaxed) }
    }

    /// Adds an operation that is ready, and starts it.
    ///
    /// For a sync operation, the call returns when it has ended.
    ///
    /// - Returns: false, with no effect, when it is not ready, has no block, is a child, was aimed at another
    ///   queue (a default queue does not count), or when the queue is full, in an order that displaces nothing.
    /// - Complexity: O(1) amortised.
    @discardableResult
    public func add(_ operation: AnyOperation) -> Bool { operation.start(addedTo: self) }

    /// Stops starting the operations that wait in it. Running operations go on, and its target is not affected.
    public func suspend() { state.withLock { _ in suspended.store(true, ordering: .sequentiallyConsistent) } }

    /// Resumes the queue: starts as many waiting operations as there are free slots, in its order.
    public func resume() {
        change { state, verdict in
            suspended.store(false, ordering: .sequentiallyConsistent)
            // Examine all sleeping tickets before the first one takes its turn: the first to be admitted need not be
            // the first that arrived. This walk has already passed a ticket that moves or leaves. Such a ticket
            // displaces none, as it has waited before.
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

    /// The number of operations in it: those that wait, those that hold a slot, and those that need none at present.
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

    /// Cancels all operations in it, in one step: those that wait for their turn never begin.
    ///
    /// - Complexity: O(operations in it, and their registered descendants).
    public func cancelAll(_ reason: CancelReason? = nil) {
        change { state, verdict in
            for operation in state.all.operations(where: { _ in true }) {
                operation.look { _ = operation.cancelIfNotDecided(reason, &verdict.effects) }
            }
        }
    }

    /// Cancels all operations that wait for their turn, except children: ``CancelReason/Kind/removed``.
    ///
    /// - Returns: the number of cancelled operations.
    @discardableResult
    public func removeAllPending() -> Int {
        change { state, verdict in
            state.all.tickets { $0.waits && !$0.isChild }
                .count(where: { takeOut($0, .removed, &state, &verdict) })
        }
    }

    /// Waits until the queue is empty.
    public func idle() async {
        await Waiter.wait { waiter in
            state.withLock { state in state.all.count == 0 ? .isOver : state.idlers.append(waiter) }
        }
    }

    /// The state that a dump shows.
    ///
    /// - Parameter most: the maximum number of tickets.
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

    /// Runs work on its target, bypassing the limits, which apply to operations only.
    public func submit(_ work: ExecutionWork) {
        if let target { target.submit(work) } else { ExecutionWork.run(on: nil) { work.run() } }
    }

    /// Whether the calling code runs on its target.
    public var isCurrent: Bool { target?.isCurrent ?? false }
}

extension AnyOperation {
    /// Its demand on its queue; nil: it has not been started, or does not belong to the queue any more. Under the
    /// queue's lock.
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

    /// Cancels it while it waits for its turn. Under the queue's lock.
    fileprivate final func endUnbegun(_ reason: CancelReason, _ effects: inout Effects) -> Bool {
        look { end(.cancelled, .cancelled(reason), &effects) }
    }
}
