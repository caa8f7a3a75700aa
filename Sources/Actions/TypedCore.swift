// TypedCore.swift - the triggers of an action: who is let in, who waits, how each ends.
//
// Invariants:
//   I1  each trigger is one of: refused, waiting, running; it is settled once, as the last thing that is told of it.
//   I2  `line` has as many as the word says wait, and `running` as many as it says run. What has a slot and waits for its
//       precondition to be read again is in `running`.
//   I3  the work of an execution is called at most once, after its `started` was told in place.
//   I4  what is given a slot that it has waited for begins as an item of the mailbox in place, appended with the slot: so
//       those that wait begin in their order, and what observers have to say afterwards does not hold them up.

import Commands
import CompositeOperations
import CompositeOperationsBasics

/// What a view can reach of an action: it does not know what the work results in.
class InputCore<Input: Sendable>: ActionCore, @unchecked Sendable {
    /// - Returns: cancels the execution.
    func fire(_ input: Input) -> any Cancellable { fatalError("ActionCore: has no work") }
}

/// An execution whose output is nobody's business.
protocol Cancellable: AnyObject, Sendable {
    var isOver: Bool { get }
    func cancel()
}

extension Execution: Cancellable {}

/// Work that knows the value that was tested.
enum BoundWork<Input: Sendable, Output: Sendable>: Sendable {
    case task(@Sendable (Input, ExecutionContext<Output>) async throws -> Output)
    case inline(@Sendable (Input) throws -> Output)
}

final class TypedCore<Input: Sendable, Output: Sendable>: InputCore<Input>, ExecutionOwner,
    @unchecked Sendable
{
    // Unchecked: as in ActionCore.

    private struct Pending {
        let execution: Execution<Output>
        let input: Input
    }

    /// Reads the precondition: nil, when it does not hold.
    private let bind: @Sendable () -> BoundWork<Input, Output>?
    private let holds: @Sendable () -> Bool
    private let executor: any TaskExecutor
    private var line = Line<Pending>()
    private var running: [ExecutionID: Execution<Output>] = [:]
    private var eventObservers: [Observer<ActionEvent<Output>>] = []

    init<Value>(
        _ name: String, precondition: Precondition<Value>, policy: ActionPolicy, limit: Int,
        group: ActionGroup?,
        executor: any TaskExecutor, describe: @escaping @Sendable (any Error) -> String,
        work: @escaping @Sendable (Value) -> BoundWork<Input, Output>
    ) {
        bind = { precondition.read().map(work) }
        holds = { precondition.read() != nil }
        self.executor = executor
        super.init(name, policy: policy, limit: limit, group: group, describe: describe)
        precondition.follow(self)
        follow(holds)
    }

    override func endEvents() {
        for observer in eventObservers { observer.mailbox.append { observer.end() } }
    }

    // MARK: Triggers

    override func fire(_ input: Input) -> any Cancellable { trigger(input) }

    func trigger(_ input: Input) -> Execution<Output> {
        let pending = Pending(execution: Execution(self), input: input)
        let execution = pending.execution
        let work = bind()
        let (refusal, superseded, cancelled) = gate.transition(of: self) { bits in
            work == nil ? .refuse(.precondition) : admit(&bits)
        } then: { admission -> (DisabledReason?, Pending?, Execution<Output>?) in
            switch admission {
            case .start:
                running[execution.id] = execution
                if let work { appendStart(pending, work) }
                return (nil, nil, nil)
            case .wait:
                line.append(pending)
                return (nil, nil, nil)
            case .replace:
                let superseded = line.popFirst()
                if let superseded { appendEnd(superseded.execution, .rejected(.superseded)) }
                line.append(pending)
                return (nil, superseded, policy == .switchToLatest ? running.values.first : nil)
            case .refuse(let reason):
                appendEnd(execution, .rejected(reason))
                return (reason, nil, nil)
            }
        }
        if let refusal { execution.refuse(refusal) }
        withExtendedLifetime(superseded) {}  // an input is released under no lock
        cancelled?.cancel()
        deliver()
        return execution
    }

    /// Under the gate's lock.
    private func appendStart(_ pending: Pending, _ work: BoundWork<Input, Output>) {
        append(.started(pending.execution.id))
        inline.append { self.start(pending, work) }
    }

    private func start(_ pending: Pending, _ work: BoundWork<Input, Output>) {
        let execution = pending.execution
        switch work {
        case .inline(let work): end(execution, Result { try work(pending.input) })
        case .task(let work):
            // Detached: who delivers is somebody else, as a rule, and what its task knows is not for this one.
            execution.begin(
                Task.detached(executorPreference: executor) {
                    let result: Result<Output, any Error>
                    do {
                        let context = ExecutionContext(execution: execution, core: self)
                        result = .success(try await work(pending.input, context))
                    } catch {
                        result = .failure(error)
                    }
                    self.end(execution, result)
                })
        }
    }

    private func end(_ execution: Execution<Output>, _ result: Result<Output, any Error>) {
        gate.transition(of: self) {
            end(&$0)
        } then: { handsOver in
            running[execution.id] = nil
            switch result {
            case .success(let output):
                append(.value(execution.id, output))
                appendEnd(execution, .completed(output))
            case .failure(let error):
                appendEnd(execution, error is CancellationError ? .cancelled : .failed(error))
            }
            if handsOver { appendNext() }
        }
        deliver()
    }

    /// Under the gate's lock: the first that waits has a slot now. It begins in the mailbox (I4).
    private func appendNext() {
        guard let next = takeNext() else { return }
        inline.append { self.begin(next) }
    }

    /// Under the gate's lock.
    private func takeNext() -> Pending? {
        guard let next = line.popFirst() else { return nil }
        running[next.execution.id] = next.execution
        return next
    }

    /// Begins what has waited, unless its precondition does not hold any more: then the slot is the next one's.
    private func begin(_ first: Pending) {
        var next: Pending? = first
        while let pending = next {
            if let work = bind() {
                gate.withLock { _ in appendStart(pending, work) }
                next = nil
            } else {
                next = gate.transition(of: self) {
                    end(&$0)
                } then: { handsOver in
                    running[pending.execution.id] = nil
                    appendEnd(pending.execution, .rejected(.precondition))
                    return handsOver ? takeNext() : nil
                }
            }
            deliver()
        }
    }

    // MARK: Cancelling, limits, values

    func leaveLine(_ execution: Execution<Output>) -> Bool {
        let removed = gate.transition(of: self) { bits -> Pending? in
            guard let pending = line.remove(where: { $0.execution === execution }) else { return nil }
            var word = GateWord(bits: bits)
            word.leaveLine()
            bits = word.bits
            return pending
        } then: { removed in
            if removed != nil { appendEnd(execution, .cancelled) }
            return removed
        }
        deliver()
        return removed != nil
    }

    func cancelAll() {
        let all = gate.withLock { _ in line.all.map(\.execution) + Array(running.values) }
        for execution in all { execution.cancel() }
    }

    func setLimit(_ limit: Int) {
        demand(
            index == nil, "Action.setLimit: \(id) is in a group, and runs once at a time")
        demand(
            (1...GateWord.mostOfAKind).contains(limit),
            "Action.setLimit: the limit is \(limit), and must be 1 to \(GateWord.mostOfAKind)")
        switch policy {
        case .switchToLatest, .coalesce:
            demand(limit == 1, "Action.setLimit: with the policy \(policy) the limit is 1, and not \(limit)")
        case .reject, .queue: break
        }
        gate.transition(of: self) { bits in
            var word = GateWord(bits: bits)
            defer { bits = word.bits }
            return word.setLimit(limit)
        } then: { count in
            for _ in 0..<count { appendNext() }
        }
        deliver()
    }

    func yield(_ value: Output, of execution: Execution<Output>) {
        gate.withLock { _ in
            if running[execution.id] != nil { append(.value(execution.id, value)) }
        }
        deliver()
    }

    // MARK: Events

    /// Under the gate's lock.
    private func append(_ event: ActionEvent<Output>) {
        for observer in eventObservers { observer.mailbox.append { observer.tell(event) } }
    }

    /// The last that is told of an execution, and then its outcome. Under the gate's lock.
    private func appendEnd(_ execution: Execution<Output>, _ outcome: ExecutionOutcome<Output>) {
        switch outcome {
        case .completed: append(.completed(execution.id))
        case .cancelled: append(.cancelled(execution.id))
        case .rejected(let reason):
            append(.rejected(execution.id, reason))
            appendRejection(reason)
        case .failed(let error):
            append(.failed(execution.id, error))
            appendFailure(execution.id, error)
        }
        inline.append { execution.settle(outcome) }
    }

    func observeEvents(
        on delivery: Delivery, onEnd: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable (ActionEvent<Output>) -> Void
    ) -> Subscription {
        observe(\.eventObservers, of: self, on: delivery, onEnd: onEnd, body)
    }
}

extension TypedCore: Dependent {
    func sourceHasChanged() { follow(holds) }
}

/// Those who wait, first come first served.
private struct Line<Element> {
    private var elements: [Element?] = []
    private var taken = 0

    var all: [Element] { elements[taken...].compactMap { $0 } }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        while taken < elements.count {
            let element = elements[taken]
            elements[taken] = nil
            taken += 1
            if taken * 2 > elements.count {
                elements.removeFirst(taken)
                taken = 0
            }
            if let element { return element }
        }
        return nil
    }

    mutating func remove(where matches: (Element) -> Bool) -> Element? {
        for index in elements.indices.dropFirst(taken) {
            guard let element = elements[index], matches(element) else { continue }
            elements.remove(at: index)
            return element
        }
        return nil
    }
}
