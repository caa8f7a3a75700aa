// Extras.swift - the cold fields of an operation: options, handlers, waiters, timers. Created when first needed, so
// that an operation without them is one object.

internal import CInspection
@_spi(Faces) internal import CompositeOperationsBasics
internal import Runs
internal import Scheduling
internal import Synchronization

/// The cold fields of an operation. Under the tree's lock.
final class Extras {
    @exclusivity(unchecked) var options: OperationOptions?
    /// The default queue in force where it was created.
    @exclusivity(unchecked) var scope: COQueues.Scope?
    /// The context of the block, and of the closures for its end.
    @exclusivity(unchecked) var context: OperationContext?
    /// The trace of a root, while tracing is on, until the root is settled.
    @exclusivity(unchecked) var trace: RunTrace?
    /// For a sync operation: the slots that are held for its waiting caller.
    @exclusivity(unchecked) var callersSlots = HeldSlots()
    /// See `AnyOperation.enter`.
    @exclusivity(unchecked) var formerDomains: [Domain] = []

    // Handlers, until the end.
    @exclusivity(unchecked) var completion: (@Sendable () -> Void)?
    @exclusivity(unchecked) var cancellation: (@Sendable () -> Void)?
    @exclusivity(unchecked) var failure: (@Sendable (any Error) -> Void)?
    @exclusivity(unchecked) var outcomeHandlers: [Notice] = []
    /// The outcome will be read: a failure is not reported.
    @exclusivity(unchecked) var isObserved = false
    @exclusivity(unchecked) var onCancel: [@Sendable (CancelReason) -> Void] = []

    // Notices on their way.
    @exclusivity(unchecked) var notices = Notices<Notice>()

    /// The number of turns on their way in addition to the last one, after its priority was raised.
    @exclusivity(unchecked) var turnsSentAgain = 0

    // The waiters.
    /// For the end.
    @exclusivity(unchecked) var waiters = WaitList()
    /// For an open gate.
    @exclusivity(unchecked) var gateWaiters = WaitList()
    @exclusivity(unchecked) var observers: [TransitionBuffer.Weak] = []
    @exclusivity(unchecked) var lastLabel: OperationState?

    // Dependencies.
    @exclusivity(unchecked) var unmetDependencies = 0
    @exclusivity(unchecked) var dependents = Dependents()
    /// Until all of them are met.
    @exclusivity(unchecked) var dependencies: [Dependency] = []

    // The attempt.
    @exclusivity(unchecked) var task: (number: Int32, task: Task<Void, Never>)?
    @exclusivity(unchecked) var isTaskCancelled = false
    @exclusivity(unchecked) var timers: [OperationTimer] = []
    /// For a leaf: the cause that a resolver was asked about, and whether the attempt itself requested that.
    @exclusivity(unchecked) var pendingCause: Cause?
    @exclusivity(unchecked) var isOwnWish = true
    /// The last attempt that was abandoned from outside, and why.
    @exclusivity(unchecked) var givenUp: (number: Int32, why: CancelReason.Kind)?
    /// The fallback of a resolver has been posted.
    @exclusivity(unchecked) var hasFallenBack = false

    /// A pending call of a handler.
    struct Notice {
        /// nil: where handlers of the operation run.
        let target: (any ExecutionTarget)?
        let handler: Handler
    }

    /// The closure, as it was passed.
    enum Handler {
        case ofEnd(@Sendable () -> Void)
        case ofOperation(@Sendable (AnyOperation) -> Void)

        func call(_ operation: AnyOperation) {
            switch self {
            case .ofEnd(let body): body()
            case .ofOperation(let body): body(operation)
            }
        }

        /// The handler, bound to a context.
        func bound(to context: OperationContext?) -> Handler {
            guard let context else { return self }
            return .ofOperation(context.binding { call($0) })
        }
    }

    /// The outcome is decided.
    func decided(_ operation: AnyOperation, _ effects: inout Effects) {
        for timer in timers { effects.add(.disarm(timer)) }
        timers = []
        if let reason = operation.badEnd?.reason { tellOfCancel(operation, reason, &effects) }
        endTokens(&effects)
        operation.observe(&effects)
        if inspection_traces(), trace == nil { operation.noteInTrace() }
    }

    private func tellOfCancel(_ operation: AnyOperation, _ reason: CancelReason, _ effects: inout Effects) {
        for handler in onCancel { operation.post(&effects, bound: .ofEnd { handler(reason) }) }
    }

    /// The attempt is abandoned for another one.
    ///
    /// - Parameter reason: reported to code that is still working on the attempt; nil: the attempt itself asked for it.
    func attemptEnded(_ operation: AnyOperation, _ reason: CancelReason?, _ effects: inout Effects) {
        if let reason {
            tellOfCancel(operation, reason, &effects)
            givenUp = (operation.machine.attempt - 1, reason.kind)
        }
        for timer in timers where timer.kind.isOfAttempt { effects.add(.disarm(timer)) }
        timers.removeAll { $0.kind.isOfAttempt }
        endTokens(&effects)
    }

    private func endTokens(_ effects: inout Effects) {
        if !onCancel.isEmpty {
            effects.add(.forget(onCancel))
            onCancel = []
        }
        if let task {
            isTaskCancelled = true
            effects.add(.cancel(task.task))
        }
        effects.wake(&gateWaiters)
    }

    func gateHasMoved(_ operation: AnyOperation, _ effects: inout Effects) {
        // Checked only if there are waiters: `gateIsOpen` visits all gates above, and this is called for everything
        // below.
        if !gateWaiters.isEmpty, operation.gateIsOpen { effects.wake(&gateWaiters) }
    }

    /// The outcome is set.
    func settled(_ operation: AnyOperation, _ effects: inout Effects) {
        operation.observe(&effects)
        if let trace {
            effects.add(.endTrace(trace, operation.badEnd))
            self.trace = nil  // the effect has it
        }
        switch operation.badEnd?.outcome {
        case nil:
            if let completion {
                operation.post(&effects, .ofEnd(completion))
                if options?.keepsBlock != true { self.completion = nil }  // the notice holds it
            }
        case .cancelled?:
            if let composition = operation.composition {
                composition.postNotice(to: operation, &effects)
            } else if let cancellation {
                operation.post(&effects, .ofEnd(cancellation))
            }
        case .failed(let error)?:
            if let composition = operation.composition {
                composition.postNotice(to: operation, &effects)
                if composition.decisionHandler == nil { operation.noteUnobservedFailure() }
            } else if let failure {
                operation.post(&effects, .ofEnd { failure(error) })
            } else if let cancellation {
                operation.post(&effects, .ofEnd(cancellation))
            } else {
                operation.noteUnobservedFailure()
            }
        }
        for notice in outcomeHandlers { operation.post(&effects, notice) }
        outcomeHandlers = []
        effects.wake(&waiters)
        for dependent in dependents.take() { effects.add(.dependencyEnded(dependent)) }
        endDependencies()
        giveUp(&effects)
    }

    /// Drops what is not needed after the end, to be released under no lock. The handlers that are still to be called
    /// are in `notices`.
    private func giveUp(_ effects: inout Effects) {
        task = nil
        if let cause = pendingCause {
            effects.add(.giveUp([cause], nil))
            pendingCause = nil
        }
        if !callersSlots.isEmpty {
            callersSlots.end()
            effects.add(.giveUpSlots(callersSlots))
            callersSlots = HeldSlots()
        }
        if options?.keepsBlock == true { return }  // copies need it
        if completion == nil, cancellation == nil, failure == nil, options == nil, scope == nil,
            context == nil
        {
            return
        }
        effects.add(.release(Leftovers(self)))
        completion = nil
        cancellation = nil
        failure = nil
        scope = nil
        context = nil
        options = options?.afterTheEnd
    }

    /// Closures and options that are no longer needed.
    private final class Leftovers {
        let completion: (@Sendable () -> Void)?
        let cancellation: (@Sendable () -> Void)?
        let failure: (@Sendable (any Error) -> Void)?
        let options: OperationOptions?
        let scope: COQueues.Scope?
        let context: OperationContext?

        init(_ extras: Extras) {
            completion = extras.completion
            cancellation = extras.cancellation
            failure = extras.failure
            options = extras.options
            scope = extras.scope
            context = extras.context
        }
    }

    /// Ends its dependencies: it waits for no operation any more.
    private func endDependencies() {
        for edge in dependencies { edge.end() }
        dependencies = []
    }

    /// The operation is being deallocated. If it has not ended, it was never started: its dependents no longer wait for
    /// it.
    func operationGoes() {
        endDependencies()
        for dependent in dependents.take() { dependent.dependencyHasGone() }
    }
}

// MARK: Notices

extension AnyOperation {
    /// Posts a handler that was passed with the block: it is called on its target, after those that were posted before.
    /// Under the lock.
    final func post(_ effects: inout Effects, _ handler: Extras.Handler) {
        post(&effects, bound: handler.bound(to: extras?.context))
    }

    /// Same as above, for a handler that has its context already.
    final func post(_ effects: inout Effects, bound handler: Extras.Handler) {
        post(&effects, Extras.Notice(target: nil, handler: handler))
    }

    final func post(_ effects: inout Effects, _ notice: Extras.Notice) {
        let extras = ensureExtras()
        extras.notices.append(notice)
        // Otherwise the caller of the completion delivers it afterwards.
        if !isCompletionOut, extras.notices.claim() { effects.deliver(self) }
    }

    /// Sends the first notice to its target. The notices of one operation run one at a time. Under no lock.
    final func deliverNotices() {
        var target: (any ExecutionTarget)?
        let priority = look {
            if !isCompletionOut, let extras {
                target = extras.notices.first.flatMap { $0.target ?? extras.options?.handlerTarget }
            }
            return currentPriority
        }
        if target == nil {
            sendNoticeToShared(at: priority)
        } else {
            ExecutionWork.run(on: target, priority: priority) { [self] in deliverNotice() }
        }
    }

    final func deliverNotice() {
        if isCompletionOut {
            withComposition { callCompletion($0) }
            return
        }
        let notice = look { extras?.notices.next() }
        COQueues.apart { notice?.handler.call(self) }
        if look({ extras?.notices.isOver() == false }) { deliverNotices() }
    }

    /// A composite's completion comes before all notices. Read under the lock, or by the delivering thread, which alone
    /// changes it.
    @inline(__always)
    private final var isCompletionOut: Bool { withComposition { $0.isCompletionOut } ?? false }

    /// Calls the completion. No notice was posted before it.
    private final func callCompletion(_ composition: Composition) {
        var completion: (@Sendable () -> Void)?  // returned by `look`, it would be wrapped
        look { swap(&completion, &composition.completion) }
        COQueues.apart { completion?() }
        completion = nil
        let areMore = look {
            composition.isCompletionOut = false
            return extras?.notices.claim() == true
        }
        if areMore { deliverNotices() }
    }

    /// Adds a handler of the outcome: called once, even if the outcome is already set.
    final func addOutcomeHandler(
        on target: (any ExecutionTarget)?, _ body: @escaping @Sendable (AnyOperation) -> Void
    ) {
        let handler = Extras.Handler.ofOperation(body).bound(to: contextHere)
        change { effects in
            let extras = ensureExtras()
            extras.isObserved = true
            let notice = Extras.Notice(target: target, handler: handler)
            seeFailure()
            if machine.isTerminal { post(&effects, notice) } else { extras.outcomeHandlers.append(notice) }
        }
    }

    // MARK: Diagnostics

    /// Reports to the sink a call that changes nothing. Under the lock.
    ///
    /// - Returns: false.
    final func refuse(_ what: String, _ effects: inout Effects) -> Bool {
        tell("refused: \(what)", &effects)
        return false
    }

    /// Reports to the sink an end that comes too late. An attempt that was cancelled or abandoned from outside may not
    /// know that: then nothing is reported. Under the lock.
    ///
    /// - Returns: false.
    final func refuseEnd(_ what: String, _ number: Int32?, _ effects: inout Effects) -> Bool {
        if let number, machine.attempt != number || (machine.isDecided && machine.end == .cancelled) {
            return false
        }
        return refuse("\(what), but it has ended", &effects)
    }

    /// Reports a message to the sink. Under the lock.
    @inline(__always)
    final func tell(_ message: @autoclosure () -> String, _ effects: inout Effects) {
        guard Diagnostics.areHeard else { return }
        effects.add(
            .tell(
                Diagnostic(
                    operation: id, attempt: Int(machine.attempt), state: "\(label)", message())))
    }

    /// Reports to the sink an error that is not propagated. Under the lock.
    final func tell(_ what: String, _ error: any Error, _ effects: inout Effects) {
        guard Diagnostics.areHeard else { return }
        effects.add(.tellOfError(self, Int(machine.attempt), label, what, error))
    }

    /// A failure that no handler receives: unless it is read later, it is reported when the operation is released.
    /// Under the lock; the operation is terminal.
    final func noteUnobservedFailure() {
        guard let badEnd, badEnd.isFailure, Diagnostics.areHeard, !isChild, extras?.isObserved != true,
            extras?.hasFallenBack != true
        else { return }
        badEnd.noteUnseen(by: id, attempt: Int(machine.attempt))
    }

    /// The block of a leaf has returned without ending it, so the end has to come from elsewhere. If none comes within
    /// 5 s, and there is no time limit, that is reported. Under the lock.
    @inline(never)
    final func watchForFinish(_ effects: inout Effects) {
        let options = extras?.options
        guard machine.awaitsItsEnd, !isComposite, options?.timeout == nil, options?.attemptTimeout == nil,
            options?.deadline == nil
        else { return }
        arm(.forgotten(machine.attempt), after: .seconds(5), clock: ContinuousClock(), &effects)
    }
}
