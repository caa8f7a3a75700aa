// Effects.swift - what a change of state has for consequence outside of it.
//
// Collected under a tree's lock, carried out when the lock has been let go: targets, queues, executors and released
// closures are others' code, and that never runs under a lock.

/// What is to be done once the lock is let go.
struct Effects: ~Copyable {
    // The usual change starts one operation and settles one: those need no array.
    private var start: AnyOperation?
    private var starts: [AnyOperation] = []
    private var settled: AnyOperation?
    private var moreSettled: [AnyOperation] = []
    private var others: [Effect] = []
    private var awakened: [AnyOperation] = []
    private var isGoingOn = false

    /// The turn of an operation is to be sent to its target; it is posted already.
    mutating func start(_ operation: AnyOperation) {
        if start == nil { start = operation } else { starts.append(operation) }
    }

    /// The operation is terminal: what it held is to be released.
    mutating func settled(_ operation: AnyOperation) {
        if settled == nil { settled = operation } else { moreSettled.append(operation) }
    }

    mutating func add(_ effect: Effect) { others.append(effect) }

    /// A composite goes on with its children: under the lock, at once, but those that this makes go on, after it. So
    /// their depth costs no stack.
    mutating func goOn(_ composite: AnyOperation) {
        awakened.append(composite)
        if isGoingOn { return }
        isGoingOn = true
        while let next = awakened.popLast() { next.composition?.goOn(next, &self) }
        isGoingOn = false
    }

    /// Carries everything out, on the calling thread, which holds no lock of ours.
    consuming func perform() {
        if let start {
            start.sendTurn()
            for operation in starts { operation.sendTurn() }
        }
        if !others.isEmpty { for effect in others { effect.perform() } }
        if let settled {
            settled.releaseHoldings()
            for operation in moreSettled { operation.releaseHoldings() }
        }
    }
}

/// The rarer consequences.
enum Effect {
    /// What a queue knows of the operation may be out of date.
    case reconcile(AnyOperation)
    /// The operation has notices to deliver.
    case deliver(AnyOperation)
    case wake(Waiter)
    case resume(CheckedContinuation<Void, Never>)
    case flush(TransitionBuffer)
    case cancel(Task<Void, Never>)
    case arm(OperationTimer)
    case disarm(OperationTimer)
    /// A dependency of the operation has ended.
    case dependencyEnded(AnyOperation)
    case tell(COQueues.Diagnostic)
    /// A failure that nobody looked at. The text of the error is the user's code.
    case tellOfFailure(AnyOperation, Int, OperationState, any Error)
    case release(AnyObject)
    /// Errors of the user's.
    case giveUp([Cause], AnyOperation.BadEnd?)
    /// Closures of the user's.
    case forget([(number: Int32, handler: @Sendable (CancelReason) -> Void)])

    func perform() {
        switch self {
        case .reconcile(let operation): operation.admission?.reconcile(operation)
        case .deliver(let operation): operation.deliverNotices()
        case .wake(let waiter): waiter.wake()
        case .resume(let continuation): continuation.resume()
        case .flush(let buffer): buffer.flush()
        case .cancel(let task): task.cancel()
        case .arm(let timer): timer.arm()
        case .disarm(let timer): timer.disarm()
        case .dependencyEnded(let operation): operation.dependencyEnded()
        case .tell(let diagnostic): COQueues.tell(diagnostic)
        case .tellOfFailure(let operation, let attempt, let state, let error):
            COQueues.tell(
                COQueues.Diagnostic(
                    operation: operation.id, attempt: attempt, state: state,
                    message: "failed, and nobody looked: \(error)"))
        case .release, .giveUp, .forget: break
        }
    }
}
