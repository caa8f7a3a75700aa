// AnyOperation+Priority.swift - when the turns of an operation come, relative to others: where a priority comes from, and
// how it is raised.
//
// Invariants:
//   I1  from its start, or its registration as a child, a priority only rises.
//   I2  a turn is sent with the priority that its operation has when the turn is posted. If the priority is raised while
//       the turn is on its way, another turn is sent: the first one to come takes the post, and the other one is void (I4
//       of OperationMachine.swift). Only the refusal of the last turn counts.
//   I3  below an awaited composite nothing has a lower priority than its waiters, even if it is registered later.

internal import Runs
public import Scheduling

extension AnyOperation {
    /// How early its turns come, relative to those of other waiting operations. Its options decide, else the queue that it
    /// is added to, else its composite, else the code that starts it.
    ///
    /// On a worker of a scheduler, code has the priority of the turn that runs, which is that of its operation or job,
    /// except on lanes and in raised operations; elsewhere it has the priority of its task. Before its start an operation
    /// has the priority of its options, else the default.
    ///
    /// A waiter of a higher priority raises it, together with its children, its dependencies and the steps before it, when
    /// the wait begins. Waiters are threads, tasks, the callers of sync operations, and operations that depend on this
    /// one and have been started.
    ///
    /// Schedulers, serial lanes and ``COOperationQueue`` support priorities; ``ExecutorTarget`` passes them to its tasks,
    /// and raises none. Dispatch queues and targets of your own ignore them. No running block is interrupted.
    ///
    /// - Complexity: O(1). A wait that raises something is O(the operations that it visits).
    public final var priority: Scheduler.Priority {
        look {
            if machine.phase == .ready, let wanted = extras?.options?.priority {
                return max(wanted, Scheduler.Priority(mark: priorityMark) ?? wanted)
            }
            return currentPriority
        }
    }

    /// Under the lock.
    @inline(__always)
    final var currentPriority: Scheduler.Priority { Scheduler.Priority(mark: priorityMark) ?? .default }

    /// The lowest priority that it may have: before the start of a root nothing is decided. Under the lock.
    @inline(__always)
    private final var leastPriority: Scheduler.Priority {
        let undecided: Scheduler.Priority = machine.phase == .ready && !isChild ? .background : .default
        return Scheduler.Priority(mark: priorityMark) ?? undecided
    }

    // MARK: Inheritance

    /// Chooses its priority when it is started. Under the lock.
    @inline(__always)
    final func choosePriority() {
        let priority = isBare ? Scheduler.callersPriority : priorityOfStart
        if priority != .default || priorityMark != 0 { begin(with: priority) }
    }

    @inline(never)
    private final var priorityOfStart: Scheduler.Priority {
        if let priority = extras?.options?.priority { return priority }
        let ofQueue = admissionReference.flatMap { $0._withUnsafeGuaranteedRef { $0.priority } }
        return ofQueue ?? Scheduler.callersPriority
    }

    /// - Parameter priority: used unless the operation has been raised already.
    private final func begin(with priority: Scheduler.Priority) {
        priorityMark = max(priority, Scheduler.Priority(mark: priorityMark) ?? priority).mark
    }

    /// Chooses its priority when it becomes a child. Under the lock.
    @inline(__always)
    final func inheritPriority(of composite: AnyOperation) {
        if composite.priorityMark != 0 || priorityMark != 0 || !isBare {
            choosePriority(within: composite)
        }
    }

    @inline(never)
    private final func choosePriority(within composite: AnyOperation) {
        // The composite's own queue has already decided for the composite.
        let queue = admission === composite.admission ? nil : admission
        let inherited = composite.currentPriority
        var priority = extras?.options?.priority ?? queue?.priority ?? inherited
        if priority < inherited {
            priority = max(priority, composite.awaitedPriority ?? priority)
            if priority < inherited, let domain { domain._withUnsafeGuaranteedRef { $0.hasLower = true } }
        }
        if priority != .default || priorityMark != 0 { begin(with: priority) }
    }

    /// The highest priority of the waiters for it, or for an enclosing composite. Under the lock.
    private final var awaitedPriority: Scheduler.Priority? {
        var found: Scheduler.Priority?
        var operation: AnyOperation? = self
        while let one = operation {
            if let awaited = one.composition?.awaited { found = max(found ?? awaited, awaited) }
            operation = one.isDropped ? nil : one.parent
        }
        return found
    }

    // MARK: Waiters

    /// Whether it, or something that it waits for, may have a lower priority. Under the lock.
    @inline(__always)
    final func mayBeBelow(_ priority: Scheduler.Priority) -> Bool {
        leastPriority < priority || isComposite || (isChild && machine.phase == .ready)
    }

    /// A waiter of this priority has arrived. Under no lock.
    final func raise(to priority: Scheduler.Priority) { Self.raise([self], to: priority) }

    /// - Complexity: O(raised operations); in trees where some operations have a lower priority than their composites,
    ///   O(registered descendants).
    static func raise(_ operations: [AnyOperation], to priority: Scheduler.Priority) {
        var next = operations  // and their dependencies: a chain of any length costs no stack
        while let operation = next.popLast() {
            operation.change { effects in operation.raise(to: priority, &next, &effects) }
        }
    }

    /// Raises the operations for which it begins to wait. Under the lock.
    final func raiseDependencies(_ effects: inout Effects) {
        let others = extras?.dependencies.compactMap(\.other) ?? []
        effects.add(.raise(others, currentPriority))
    }

    /// Under the lock.
    ///
    /// - Parameter next: receives the operations of other trees that are to be raised, too.
    private final func raise(
        to priority: Scheduler.Priority, _ next: inout [AnyOperation], _ effects: inout Effects
    ) {
        if machine.isTerminal { return }
        var mayHaveLower = false
        if let composition, composition.awaited ?? .background < priority {
            composition.awaited = priority
            mayHaveLower = treeHasLower
        }
        let former = goingBefore(priority)
        guard leastPriority < priority || mayHaveLower || !former.isEmpty else { return }
        var walk = former + [self]
        while let operation = walk.popLast() {
            if operation.machine.isTerminal { continue }
            let isRaised = operation.leastPriority < priority
            if isRaised { operation.hasRisen(to: priority, &next, &effects) }
            if isRaised || treeHasLower, let composition = operation.composition {
                walk += composition.childrenLeft
            }
        }
    }

    private final var treeHasLower: Bool { domain?._withUnsafeGuaranteedRef { $0.hasLower } ?? false }

    /// Siblings that have to end before it begins, and have not been raised so far. Under the lock.
    ///
    /// An enclosing composite has begun, and no longer waits for its own siblings.
    private final func goingBefore(_ priority: Scheduler.Priority) -> [AnyOperation] {
        guard machine.phase == .ready, priority != .background, let parent,
            let composition = parent.composition, treeHasLower || parent.currentPriority < priority
        else { return [] }
        return composition.takeNotRaised(before: Int(index), to: priority)
    }

    private final func hasRisen(
        to priority: Scheduler.Priority, _ next: inout [AnyOperation], _ effects: inout Effects
    ) {
        priorityMark = priority.mark
        if machine.isPosted {
            ensureExtras().turnsSentAgain += 1
            effects.add(.sendAgain(self, priority))
        } else if isAdmitted {
            effects.reconcile(self)
        }
        guard let extras else { return }
        next += extras.dependencies.compactMap(\.other)
        if let task = extras.task { effects.add(.escalate(task.task, priority)) }
    }

    /// Sends an additional turn (I2). Under no lock.
    final func sendTurnAgain(at priority: Scheduler.Priority) {
        sendTurnAgain(to: targetOfTurn, at: priority)
    }

    private final func sendTurnAgain(to target: (any ExecutionTarget)?, at priority: Scheduler.Priority) {
        switch target {
        case nil: sendTurn(to: Scheduler.shared, at: priority)
        case let target? where target is Scheduler || target is SerialLane: sendTurn(to: target, at: priority)
        case let waiter as WaitingThread where !waiter.isInline:
            sendTurnAgain(to: waiter.destination, at: priority)
        default: change { _ in _ = oneOfMoreTurnsIsOver() }
        }
    }

    /// One of several turns that are on their way (I2) has come or was refused. Under the lock.
    ///
    /// - Returns: false: it is the only one.
    final func oneOfMoreTurnsIsOver() -> Bool {
        guard let extras, extras.turnsSentAgain > 0 else { return false }
        extras.turnsSentAgain -= 1
        return true
    }
}

extension Composition {
    /// The children before an index that the child at that index waits for, each only once for each priority.
    ///
    /// - Complexity: O(children between the index of this call and those of earlier calls).
    func takeNotRaised(before place: Int, to priority: Scheduler.Priority) -> [AnyOperation] {
        if order.width == .max { return [] }
        let first = max(raisedToHigh, priority == .high ? 0 : raisedToDefault)
        guard first < place else { return [] }
        if priority == .high { raisedToHigh = place } else { raisedToDefault = place }
        return unfinishedOnes(in: first..<place)
    }

    private func unfinishedOnes(in places: Range<Int>) -> [AnyOperation] {
        var found: [AnyOperation] = []
        let children = children  // first of all: plain ones become operations, which changes the values below
        // This many have begun and not finished.
        var inFlight = order.inFlight
        for index in places.reversed() {
            let hasBegun = index < order.current
            if hasBegun, inFlight == 0 { break }
            if children[index].isFinishedForGood { continue }
            if hasBegun { inFlight -= 1 }
            found.append(children[index])
        }
        return found
    }
}

extension Scheduler.Priority {
    /// Decodes `AnyOperation.priorityMark`; nil for 0.
    @inline(__always)
    init?(mark: UInt8) {
        switch mark {
        case 1: self = .background
        case 2: self = .default
        case 3: self = .high
        default: return nil
        }
    }

    @inline(__always)
    var mark: UInt8 {
        switch self {
        case .background: 1
        case .default: 2
        case .high: 3
        }
    }

    /// The priority for a new task; nil: as without a priority.
    var ofTasks: TaskPriority? {
        switch self {
        case .background: .background
        case .default: nil
        case .high: .high
        }
    }
}

extension Scheduler.Priority? {
    var mark: UInt8 { self?.mark ?? 0 }
}

extension Task<Void, Never> {
    /// Raises its priority, in a separate piece of work: raising it calls user handlers.
    func escalateElsewhere(to priority: Scheduler.Priority) {
        let priority = priority.ofTasks ?? .medium
        ExecutionWork.run(on: nil) { escalatePriority(to: priority) }
    }
}
