// Action.swift - the owner's side of an action: what it does, when it may, and what becomes of it.

import CompositeOperationsBasics
public import Runs
public import Scheduling

/// A piece of work together with the condition under which it may run.
///
/// Any number of controls, streams and callers start it through one gate. A failed or refused trigger ends nothing.
/// Usable from any thread.
///
/// The action keeps the closure of its work: one that uses the action's owner must capture it weakly.
///
/// Source: seed 002; the name is the one that it proposes.
public final class Action<Input: Sendable, Output: Sendable>: Sendable {
    private let inlet: Inlet<Input>
    private var core: ActionCore { inlet.core }
    /// Of work that is called in its trigger, in no group: all of it at once, while nobody is told anything; nil: it was not done.
    /// No optional: a closure in an optional would be retained for each call.
    @usableFromInline let direct: @Sendable (Input) -> Execution<Output>?
    private let instance = Instance(.actions)

    @usableFromInline
    init<Value>(
        _ core: ActionCore, _ definition: Definition<Input, Value, Output>,
        direct: @escaping @Sendable (Input) -> Execution<Output>? = { _ in nil }
    ) {
        inlet = Inlet(core, definition)
        self.direct = direct
    }

    private convenience init<Value>(
        _ name: String, policy: ActionPolicy, limit: Int, group: ActionGroup?,
        describe: @escaping @Sendable (any Error) -> String, _ definition: Definition<Input, Value, Output>
    ) {
        self.init(
            ActionCore(
                name, when: definition.precondition, policy: policy, limit: limit, group: group,
                describe: describe),
            definition)
    }

    /// Creates an action.
    ///
    /// - Parameters:
    ///   - name: for logs and errors.
    ///   - precondition: kept as long as the action.
    ///   - policy: what becomes of a trigger that finds no room.
    ///   - limit: how many may run at once, 1 to 4095; 1 in a group, and where the policy keeps only the newest.
    ///   - group: lets only so many of its actions run at once.
    ///   - executor: where work begins that is not isolated.
    ///   - describe: the text of a failure that a view may show.
    ///   - work: called once for each execution, on the executor or where it is isolated, with the value that passed the
    ///     test. What it throws fails the execution; `CancellationError` cancels it. Its task inherits nothing.
    /// - Precondition: limits and policy fit: anything else stops the process with a sentence.
    public convenience init<Value>(
        _ name: String = "", when precondition: Precondition<Value>, policy: ActionPolicy = .reject,
        limit: Int = 1, group: ActionGroup? = nil, on executor: any TaskExecutor = Scheduler.shared,
        describe: @escaping @Sendable (any Error) -> String = plainDescription,
        work: @escaping @Sendable (Input, Value, ExecutionContext<Output>) async throws -> Output
    ) {
        self.init(
            name, policy: policy, limit: limit, group: group, describe: describe,
            Definition(when: precondition, .task(work, on: executor)))
    }

    /// Creates an action that may always run: see ``init(_:when:policy:limit:group:on:describe:work:)``.
    public convenience init(
        _ name: String = "", policy: ActionPolicy = .reject, limit: Int = 1, group: ActionGroup? = nil,
        on executor: any TaskExecutor = Scheduler.shared,
        describe: @escaping @Sendable (any Error) -> String = plainDescription,
        work: @escaping @Sendable (Input) async throws -> Output
    ) {
        self.init(
            name, policy: policy, limit: limit, group: group, describe: describe,
            Definition(when: .always, .task({ input, _, _ in try await work(input) }, on: executor)))
    }

    /// Creates an action whose work runs inside the trigger, on its thread: see
    /// ``init(_:when:policy:limit:group:on:describe:work:)``.
    ///
    /// Earlier notices come first, unless another thread is telling them: a trigger waits for nobody.
    ///
    /// - Parameter work: triggered from within a notification of this action, it runs after that, in the same loop; triggered from
    ///   within its own work, it may. Work that waits for room runs where that comes free.
    @inlinable
    public convenience init<Value>(
        _ name: String = "", when precondition: Precondition<Value>, policy: ActionPolicy = .reject,
        limit: Int = 1, group: ActionGroup? = nil,
        describe: @escaping @Sendable (any Error) -> String = plainDescription,
        inline work: @escaping @Sendable (Input, Value) throws -> Output
    ) {
        let core = ActionCore(
            name, when: precondition, policy: policy, limit: limit, group: group, describe: describe)
        let read = precondition.read
        let definition = Definition(when: precondition, .inline(work))
        if group != nil {
            self.init(core, definition)
            return
        }
        self.init(core, definition) { input in
            guard core.isDirect else { return nil }
            guard let value = read() else {
                guard core.isDirect else { return nil }  // whoever has come to watch is told of it
                return Execution(.refused(core.name, ActionCore.nextID(), .precondition))
            }
            switch core.enter() {
            case .isNotDirect: return Self.fire(core, definition, input, bound: value)
            case .refused(let why):
                return Execution(.refused(core.name, ActionCore.nextID(), why))
            case .isIn: break
            }
            let id = ActionCore.nextID()
            let outcome: Outcome<Output>
            do { outcome = .finished(try work(input, value)) } catch is CancellationError {
                outcome = .cancelled(CancelReason(ofRun: .threwCancellation))
            } catch {
                return Execution(
                    core.leave(failing: error, id).map { .failed($0) } ?? .ended(id, .failed(error)))
            }
            let isAsked = core.leave { (id, outcome.untyped) }
            if isAsked, case .cancelled = outcome {
                return Execution(.ended(id, .cancelled(CancelReason(ofRun: .requested))))
            }
            return Execution(.ended(id, outcome))
        }
    }

    /// Names it.
    public var id: ActionID { core.id }

    // MARK: Triggers

    /// Runs it, and waits for the end. To cancel the calling task cancels the execution; the end is waited for all the same.
    ///
    /// - Throws: that it was not let in, what the work threw, or that it was cancelled.
    public func callAsFunction(_ input: Input) async throws(ActionError) -> Output {
        let execution = trigger(input)
        _ = await withTaskCancellationHandler {
            await execution.outcome
        } onCancel: {
            execution.cancel()
        }
        return try await execution.value
    }

    /// Runs it, if it may. Never throws, and never waits.
    ///
    /// - Returns: what becomes of it. What is refused has its outcome when the call returns; ``Execution/outcome`` comes behind
    ///   the event all the same, which another thread, or a notification that calls this, may have to tell first.
    /// - Complexity: O(1), and what its observers in place take.
    @inlinable @discardableResult public func trigger(_ input: Input) -> Execution<Output> {
        if let execution = direct(input) { return execution }
        return Execution(.trigger(fire(input)))
    }

    @usableFromInline func fire(_ input: Input) -> Trigger { inlet.fire(input) }

    /// Has a trigger go the long way whose precondition held, and was read.
    @usableFromInline static func fire<Value>(
        _ core: ActionCore, _ definition: Definition<Input, Value, Output>, _ input: Input, bound value: Value
    ) -> Execution<Output> {
        let trigger = TypedTrigger(core, definition, input, bound: value)
        core.fire(trigger)
        return Execution(.trigger(trigger))
    }

    /// Triggers with each element, until the sequence ends or the subscription does. Results and errors are observed as
    /// events.
    public func triggers<S: AsyncSequence & Sendable>(from inputs: S) -> Subscription
    where S.Element == Input {
        let inlet = inlet
        let task = Task {
            do {
                for try await input in inputs {
                    // A sequence may have elements left for who is cancelled.
                    if Task.isCancelled { return }
                    _ = inlet.fire(input)
                }
            } catch {
                // The sequence has ended; what it threw is nothing that this action did.
            }
        }
        return Subscription { task.cancel() }
    }

    /// Cancels all that wait, and asks all that run to end.
    public func cancelAll() { core.cancelAll() }

    /// How many may run at once from now on. To raise it starts what waits; to lower it stops nobody.
    ///
    /// - Precondition: 1 to 4095, in no group, and 1 where the policy keeps only the newest: anything else stops the process.
    public func setLimit(_ limit: Int) { core.setLimit(limit) }

    // MARK: Observing

    /// The state now: all of it of one moment. Takes no lock.
    public var snapshot: ActionSnapshot { core.snapshot }

    /// Calls `body` with the snapshot now, and then with each later one, in order.
    public func observeSnapshots(
        on delivery: Delivery = .inline, _ body: @escaping @Sendable (ActionSnapshot) -> Void
    ) -> Subscription {
        core.observeSnapshots(on: delivery, body)
    }

    /// Calls `body` with each event from now on, also of executions that have begun before.
    public func observeEvents(
        on delivery: Delivery = .inline, _ body: @escaping @Sendable (ActionEvent<Output>) -> Void
    ) -> Subscription {
        core.observeEvents(on: delivery, body)
    }

    /// Each event from now on; ends when the action, its facades and bindings are gone, and the executions that ran elsewhere or
    /// waited. All are kept until they are read.
    public var events: AsyncStream<ActionEvent<Output>> {
        AsyncStream { continuation in
            let subscription = core.observeEvents(on: .inline, onEnd: { continuation.finish() }) {
                (event: ActionEvent<Output>) in
                continuation.yield(event)
            }
            continuation.onTermination = { _ in subscription.cancel() }
        }
    }

    /// The view's side.
    public var facade: ActionFacade<Input> { ActionFacade(inlet: inlet) }
}

extension Action where Input == Void {
    /// Runs it, and waits for the end: see ``callAsFunction(_:)``.
    public func callAsFunction() async throws(ActionError) -> Output { try await callAsFunction(()) }

    /// Runs it, if it may: see ``trigger(_:)``.
    @discardableResult public func trigger() -> Execution<Output> { trigger(()) }
}
