// Effects.swift - the consequences of a state change, outside of the state itself.
//
// Collected under a tree's lock, carried out after the lock is released: targets, queues, executors and released
// closures run foreign code, which never runs under a lock.

internal import CompositeOperationsBasics
internal import Runs
internal import Scheduling

/// The work to be done after the lock is released.
///
/// The usual change starts one operation, settles one and its composite, and has the completion of that composite
/// called: this needs no allocation.
struct Effects: ~Copyable {
    // Each with a reference, which `perform` releases: so nothing has to be done for an empty one.
    /// This reference is passed to the target with the turn.
    private var start: Unmanaged<AnyOperation>?
    private var priority = Scheduler.Priority.default
    private var settled: Unmanaged<AnyOperation>?
    /// The second one that is settled: a composite, after its last child.
    private var settledAround: Unmanaged<AnyOperation>?
    /// The operation with notices to deliver: before `others`, because it was added before them.
    private var told: Unmanaged<AnyOperation>?
    /// The operation that a queue has to examine, and that queue: several reasons to examine it are merged.
    private var reconciled: (operation: Unmanaged<AnyOperation>, queue: Unmanaged<COOperationQueue>)?
    private var rest: Unmanaged<Rest>?

    private final class Rest {
        @exclusivity(unchecked) var starts: [(operation: AnyOperation, priority: Scheduler.Priority)] = []
        @exclusivity(unchecked) var moreSettled: [Unmanaged<AnyOperation>] = []
        /// Leaves that are settled with their composite, adjacent among its children.
        @exclusivity(unchecked) var leaves: ContiguousArray<AnyOperation> = []
        @exclusivity(unchecked) var settledLeaves = 0..<0
        /// Dropped by a composite that starts over.
        @exclusivity(unchecked) var children: ContiguousArray<AnyOperation> = []
        @exclusivity(unchecked) var store: PlainChildren?
        @exclusivity(unchecked) var causes: [Cause] = []
        @exclusivity(unchecked) var others: [Effect] = []
        /// Composites that still have to continue with their children, one after another.
        @exclusivity(unchecked) var awakened: [AnyOperation] = []
        @exclusivity(unchecked) var isGoingOn = false

        func performStarts() { for start in starts { start.operation.sendTurn(at: start.priority) } }
        func performOthers() {
            for effect in others { effect.perform() }
            store?.giveUpBlocks()
        }
    }

    @inline(never)
    private mutating func ensureRest() -> Rest {
        if let rest { return rest.takeUnretainedValue() }
        let made = Rest()
        rest = .passRetained(made)
        return made
    }

    /// The turn of an operation is to be sent to its target; the turn is already posted.
    @inline(__always)
    mutating func start(_ operation: AnyOperation) {
        if start == nil {
            start = .passRetained(operation)
            if operation.priorityMark != 0 { priority = operation.currentPriority }
        } else {
            ensureRest().starts.append((operation, operation.currentPriority))
        }
    }

    /// The operation is terminal: its holdings are to be released.
    @inline(__always)
    mutating func settled(_ operation: AnyOperation) {
        if settled == nil { settled = .passRetained(operation) } else { settledToo(operation) }
    }

    @inline(never)
    private mutating func settledToo(_ operation: AnyOperation) {
        if settledAround == nil {
            settledAround = .passRetained(operation)
        } else {
            let rest = rest ?? .passUnretained(ensureRest())
            rest._withUnsafeGuaranteedRef { $0.moreSettled.append(.passRetained(operation)) }
        }
    }

    /// A leaf is terminal, at a place among the children of its composite. Adjacent leaves need no allocation.
    @inline(__always)
    mutating func settled(_ leaf: AnyOperation, at place: Int, among children: ContiguousArray<AnyOperation>)
    {
        let isNext = rest?._withUnsafeGuaranteedRef { rest in
            guard rest.settledLeaves.upperBound == place, !rest.settledLeaves.isEmpty,
                rest.leaves.isSame(as: children)
            else { return false }
            rest.settledLeaves = rest.settledLeaves.lowerBound..<place + 1
            return true
        }
        if isNext != true { settledFirst(leaf, at: place, among: children) }
    }

    @inline(never)
    private mutating func settledFirst(
        _ leaf: AnyOperation, at place: Int, among children: ContiguousArray<AnyOperation>
    ) {
        let rest = ensureRest()
        if !rest.settledLeaves.isEmpty { return settled(leaf) }
        rest.leaves = children
        rest.settledLeaves = place..<place + 1
    }

    /// The operation has notices to deliver.
    mutating func deliver(_ operation: AnyOperation) {
        let isFirst = told == nil && rest?._withUnsafeGuaranteedRef { $0.others.isEmpty } ?? true
        if isFirst { told = .passRetained(operation) } else { add(.deliver(operation)) }
    }

    /// A queue may have to examine the operation.
    @inline(never)
    mutating func reconcile(_ operation: AnyOperation) {
        let reference = Unmanaged.passUnretained(operation)
        if let reconciled, reconciled.operation.toOpaque() == reference.toOpaque() { return }
        guard let queue = operation.admissionReference else { return }
        if reconciled == nil {
            reconciled = (reference.retain(), queue.retain())
        } else {
            add(.reconcile(operation, queue.takeUnretainedValue()))
        }
    }

    // Code that creates an `Effect` allocates stack space for it at run time, so it is kept out of functions that are
    // called for each operation.
    @inline(never)
    mutating func add(_ effect: Effect) {
        let rest = ensureRest()
        if rest.others.isEmpty { rest.others.reserveCapacity(4) }
        rest.others.append(effect)
    }

    /// A composite drops children, plain ones among them.
    mutating func giveUp(
        _ children: consuming ContiguousArray<AnyOperation>, _ store: consuming PlainChildren?
    ) {
        if children.isEmpty, store == nil { return }
        let rest = ensureRest()
        if rest.children.isEmpty, rest.store == nil {
            (rest.children, rest.store) = (children, store)
        } else {
            add(.giveUpChildren(children))
            if let store { add(.giveUpPlain([store])) }
        }
    }

    /// The errors in these causes are the user's.
    mutating func giveUp(_ causes: consuming [Cause]) {
        if causes.isEmpty { return }
        let rest = ensureRest()
        if rest.causes.isEmpty { rest.causes = causes } else { add(.giveUp(causes, nil)) }
    }

    /// Schedules the waiters to be woken.
    mutating func wake(_ waiters: inout WaitList) {
        if !waiters.isEmpty { add(.wake(waiters.takeAll())) }
    }

    /// A composite continues with its children, under the lock: at once, unless this is called within such a call; then
    /// after it. So depth costs no stack.
    mutating func goOn(_ composite: AnyOperation) {
        let rest = ensureRest()
        rest.awakened.append(composite)
        if rest.isGoingOn { return }
        rest.isGoingOn = true
        while let next = rest.awakened.popLast() { next.composition?.goOn(next, &self) }
        rest.isGoingOn = false
    }

    /// Carries everything out, on the calling thread, which holds no lock of ours.
    @inline(__always)
    consuming func perform() {
        if let start { AnyOperation.sendTurn(start, at: priority) }
        performRest()
    }

    @inline(__always)
    private consuming func performRest() {
        if rest == nil && settled == nil && reconciled == nil && told == nil { return }
        performAll()
    }

    @inline(never)
    private consuming func performAll() {
        if let (operation, queue) = reconciled {
            operation._withUnsafeGuaranteedRef { operation in
                queue._withUnsafeGuaranteedRef { $0.reconcile(operation) }
            }
            operation.release()
            queue.release()
        }
        let rest = rest?.takeRetainedValue()
        rest?.performStarts()
        told?.takeRetainedValue().deliverNotices()
        rest?.performOthers()
        if let rest { rest.leaves.forEachReference(in: rest.settledLeaves) { $0.releaseHoldings() } }
        settled?.takeRetainedValue().releaseHoldings()
        settledAround?.takeRetainedValue().releaseHoldings()
        guard let rest else { return }
        for operation in rest.moreSettled {
            operation._withUnsafeGuaranteedRef { $0.releaseHoldings() }
            operation.release()
        }
    }
}

/// The rarer consequences.
enum Effect {
    /// The queue's record of the operation may be out of date.
    case reconcile(AnyOperation, COOperationQueue)
    /// The operation has notices to deliver.
    case deliver(AnyOperation)
    case wake(WaitList.Woken)
    case flush(TransitionBuffer)
    case cancel(Task<Void, Never>)
    /// Its priority was raised while its turn was on its way.
    case sendAgain(AnyOperation, Scheduler.Priority)
    /// The priority of its operation was raised.
    case escalate(Task<Void, Never>, Scheduler.Priority)
    /// A waiter of this priority has begun to wait for these operations.
    case raise([AnyOperation], Scheduler.Priority)
    case arm(OperationTimer)
    case disarm(OperationTimer)
    /// A dependency of the operation has ended.
    case dependencyEnded(AnyOperation)
    case tell(Diagnostic)
    /// An error that is not propagated, with a message. Describing the error runs user code.
    case tellOfError(AnyOperation, Int, OperationState, String, any Error)
    /// A root has ended: ending its span calls the tracer.
    case endTrace(RunTrace, AnyOperation.BadEnd?)
    case release(AnyObject)
    case giveUpChildren(ContiguousArray<AnyOperation>)
    /// A user's handler.
    case giveUpCompletion(@Sendable () -> Void)
    /// Nodes of children, and what their blocks share.
    case giveUpPlain([PlainChildren])
    /// References to queues, and so to users' targets.
    case giveUpSlots(HeldSlots)
    /// Users' errors.
    case giveUp([Cause], AnyOperation.BadEnd?)
    /// Users' closures.
    case forget([@Sendable (CancelReason) -> Void])

    func perform() {
        switch self {
        case .reconcile(let operation, let queue): queue.reconcile(operation)
        case .deliver(let operation): operation.deliverNotices()
        case .wake(let waiters): waiters.wake()
        case .flush(let buffer): buffer.flush()
        case .cancel(let task): task.cancelElsewhere()
        case .sendAgain(let operation, let priority): operation.sendTurnAgain(at: priority)
        case .escalate(let task, let priority): task.escalateElsewhere(to: priority)
        case .raise(let operations, let priority): AnyOperation.raise(operations, to: priority)
        case .arm(let timer): timer.arm()
        case .disarm(let timer): timer.disarm()
        case .dependencyEnded(let operation): operation.dependencyEnded()
        case .tell(let diagnostic): Diagnostics.report(diagnostic)
        case .tellOfError(let operation, let attempt, let state, let what, let error):
            Diagnostics.report(
                Diagnostic(
                    operation: operation.id, attempt: attempt, state: "\(state)", "\(what): \(error)"))
        case .endTrace(let trace, let bad): trace.end(bad?.outcome)
        case .giveUpPlain(let taken): taken.giveUpBlocks()
        case .release, .giveUpChildren, .giveUpCompletion, .giveUpSlots, .giveUp, .forget: break
        }
    }
}

extension Task<Void, Never> {
    /// Cancels it, in a separate task: cancelling calls users' cancellation handlers, which must not run on the stack
    /// of code that ends an operation. Not in a piece of work: an exploration sees tasks, but not the workers of the
    /// scheduler.
    func cancelElsewhere() { Task.detached { cancel() } }
}
