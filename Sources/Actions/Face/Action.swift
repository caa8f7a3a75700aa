// Action.swift - the owner's side of an action: its work, its precondition, and its results.

import CompositeOperationsBasics
public import Runs
public import Scheduling

/// A piece of work with the condition under which it may run.
///
/// Any number of controls, streams and callers trigger it through one gate. A failed or refused trigger ends no stream or
/// observation. Usable from any thread.
///
/// The action retains the closure of its work, so a closure that uses the action's owner must capture the owner weakly.
///
/// Source: seed 002, which also proposes the name.
public final class Action<Input: Sendable, Output: Sendable>: Sendable {
    private let inlet: Inlet<Input>
    private var core: ActionCore { inlet.core }
    /// For inline work in no group: performs a whole execution at once, if there are no observers; returns nil if that was not
    /// possible. Not an optional closure, which would be retained for each call.
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
    ///   - precondition: retained as long as the action.
    ///   - policy: how a trigger that finds no free slot is treated.
    ///   - limit: how many executions may run at once, 1 to 4095; 1 in a group, and if the policy keeps only the newest trigger.
    ///   - group: limits how many of its actions run at once.
    ///   - executor: where work that is not isolated begins.
    ///   - describe: returns the text that a view shows for a failure.
    ///   - work: called once for each execution, on the executor or in its isolation, with the value that passed the test. An
    ///     error that it throws fails the execution; `CancellationError` cancels it. Its task inherits nothing.
    /// - Precondition: limits and policy are compatible: otherwise the process stops with a message.
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
    /// Earlier notices are delivered first, unless another thread is delivering them: a trigger does not wait for other threads.
    ///
    /// - Parameter work: if triggered from within a notification of this action, it runs after that notification, in the same
    ///   loop. A trigger from within the work itself may be deferred in the same way. Work that waits for a slot runs on the
    ///   thread that delivers the inline notices, usually the one that frees the slot.
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

    /// The identity of the action.
    public var id: ActionID { core.id }

    // MARK: Triggers

    /// Runs the action and waits for the end. Cancelling the calling task cancels the execution; the call still waits for its end.
    ///
    /// - Throws: an ``ActionError``: the trigger was not admitted, the work threw, or the execution was cancelled.
    public func callAsFunction(_ input: Input) async throws(ActionError) -> Output {
        let execution = trigger(input)
        _ = await withTaskCancellationHandler {
            await execution.outcome
        } onCancel: {
            execution.cancel()
        }
        return try await execution.value
    }

    /// Runs the action if it may run. Never throws, and never waits.
    ///
    /// - Returns: the execution. A refused trigger has its outcome when the call returns. Awaiting ``Execution/outcome`` still
    ///   waits until its event is delivered: perhaps by another thread, or only after the notification from which this call is
    ///   made.
    /// - Complexity: O(1), plus the time of inline observers.
    @inlinable @discardableResult public func trigger(_ input: Input) -> Execution<Output> {
        if let execution = direct(input) { return execution }
        return Execution(.trigger(fire(input)))
    }

    @usableFromInline func fire(_ input: Input) -> Trigger { inlet.fire(input) }

    /// Fires a trigger on the slow path, with the value of the precondition that was already read.
    @usableFromInline static func fire<Value>(
        _ core: ActionCore, _ definition: Definition<Input, Value, Output>, _ input: Input, bound value: Value
    ) -> Execution<Output> {
        let trigger = TypedTrigger(core, definition, input, bound: value)
        core.fire(trigger)
        return Execution(.trigger(trigger))
    }

    /// Triggers the action with each element, until the sequence or the subscription ends. Results and errors are observed as
    /// events.
    public func triggers<S: AsyncSequence & Sendable>(from inputs: S) -> Subscription
    where S.Element == Input {
        let inlet = inlet
        let task = Task {
            do {
                for try await input in inputs {
                    // A sequence may still deliver elements after cancellation.
                    if Task.isCancelled { return }
                    _ = inlet.fire(input)
                }
            } catch {
                // The sequence has ended; its error does not concern this action.
            }
        }
        return Subscription { task.cancel() }
    }

    /// Cancels all waiting executions, and requests cancellation of all running ones.
    public func cancelAll() { core.cancelAll() }

    /// Sets how many executions may run at once. Raising the limit starts waiting executions; a lowered limit takes effect as
    /// running executions end.
    ///
    /// - Precondition: the limit is 1 to 4095, and 1 if the policy keeps only the newest trigger; the action is in no group.
    ///   Otherwise the process stops.
    public func setLimit(_ limit: Int) { core.setLimit(limit) }

    // MARK: Observing

    /// The current state, a consistent snapshot. Takes no lock.
    public var snapshot: ActionSnapshot { core.snapshot }

    /// Calls `body` with the current snapshot, and then with each later one, in order.
    public func observeSnapshots(
        on delivery: Delivery = .inline, _ body: @escaping @Sendable (ActionSnapshot) -> Void
    ) -> Subscription {
        core.observeSnapshots(on: delivery, body)
    }

    /// Calls `body` with each event from now on, including those of executions that have already begun.
    public func observeEvents(
        on delivery: Delivery = .inline, _ body: @escaping @Sendable (ActionEvent<Output>) -> Void
    ) -> Subscription {
        core.observeEvents(on: delivery, body)
    }

    /// Each event from now on. The stream ends when the action, its facades and bindings, and its executions are deallocated, not
    /// counting executions that ended inline while there were no observers. All events are buffered until they are read.
    public var events: AsyncStream<ActionEvent<Output>> {
        AsyncStream { continuation in
            let subscription = core.observeEvents(on: .inline, onEnd: { continuation.finish() }) {
                (event: ActionEvent<Output>) in
                continuation.yield(event)
            }
            continuation.onTermination = { _ in subscription.cancel() }
        }
    }

    /// The view's side of the action.
    public var facade: ActionFacade<Input> { ActionFacade(inlet: inlet) }
}

extension Action where Input == Void {
    /// Runs the action and waits for the end: see ``callAsFunction(_:)``.
    public func callAsFunction() async throws(ActionError) -> Output { try await callAsFunction(()) }

    /// Runs the action if it may run: see ``trigger(_:)``.
    @discardableResult public func trigger() -> Execution<Output> { trigger(()) }
}
