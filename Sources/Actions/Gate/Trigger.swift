// Trigger.swift - one trigger of an action: the arguments of its work, and its outcome.
//
// Invariants:
//   I1  `end` is latched once, in the critical section of the gate that decides it; waiters are woken after observers have
//       been notified.
//   I2  input and value have one owner at a time: the firing thread, then the gate's line or the slot, then the work, then
//       the thread that settles the trigger and releases them under no lock.

import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// One trigger, independent of its types. The decision code is not generic: looking up the metadata of a generic type at
/// each use takes longer than the use itself.
@usableFromInline class Trigger: @unchecked Sendable {
    // Unchecked, also for exclusivity: `state` is accessed only under `lock`.

    let id = ExecutionID.next()
    let core: ActionCore

    private let lock = WordLock()
    @exclusivity(unchecked) private var state = State()
    private let instance = Instance(.executions)

    private struct State {
        var end: Outcome<any Sendable>?
        /// The failure, if there was no observer to notify.
        var unseen: UnseenFailure?
        /// Whether observers have been notified of the end; from then on there are no waiters.
        var isTold = false
        var waiters = WaitList()
        var task: Task<Void, Never>?
        var isCancelled = false
    }

    init(_ core: ActionCore) { self.core = core }

    private final func locked<Value>(_ body: (inout State) -> Value) -> Value {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return body(&state)
    }

    // MARK: Work

    /// Reads the precondition, and keeps the value if it holds.
    ///
    /// - Returns: whether the precondition holds.
    func bind() -> Bool { fatalError("Trigger: has no work") }
    /// - Returns: the value kept by ``bind()``, if any, to be released under no lock.
    func unbind() -> Any? { fatalError("Trigger: has no work") }
    /// Whether ``run()`` calls the work.
    var isInline: Bool { fatalError("Trigger: has no work") }
    /// Calls the work, or starts a task that does so.
    func run() { fatalError("Trigger: has no work") }
    /// Releases the arguments of the work.
    func release() { fatalError("Trigger: has no work") }

    /// Stores the task of the work, and cancels it if cancellation was already requested.
    final func begin(_ task: Task<Void, Never>) {
        let isCancelled = locked { state in
            // The execution may have ended already.
            if state.end == nil { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    // MARK: End

    /// How the trigger ended; nil before the end. Reading it counts as having seen a failure.
    final var end: Outcome<any Sendable>? {
        locked { state in
            state.unseen?.see()
            return state.end
        }
    }
    /// Whether the trigger has ended; reading this does not count as having seen a failure.
    final var isOver: Bool { locked { $0.end != nil } }
    /// Whether cancellation was requested.
    final var isCancelled: Bool { locked { $0.isCancelled } }

    /// Latches the outcome as soon as it is known: before observers are notified and the trigger is settled. Under the gate's
    /// lock.
    ///
    /// - Parameter unseen: reported when the trigger is deallocated, unless the outcome is read.
    final func latch(_ end: Outcome<any Sendable>, _ unseen: UnseenFailure?) {
        locked { ($0.end, $0.unseen) = (end, unseen) }
    }

    /// Records that observers have been notified of the end.
    ///
    /// - Returns: the waiters.
    final func settle() -> WaitList.Woken {
        release()
        let (waiters, task) = locked { state in
            defer { state.task = nil }
            state.isTold = true
            return (state.waiters.takeAll(), state.task)
        }
        withExtendedLifetime(task) {}  // released under no lock
        return waiters
    }

    /// Returns when observers have been notified of the end.
    final func untilTold() async {
        await Waiter.wait { waiter in
            locked { state in state.isTold ? .isOver : state.waiters.append(waiter) }
        }
    }

    /// See ``Execution/cancel()``.
    @discardableResult
    final func cancel() -> Bool {
        if core.leaveLine(self) { return true }
        let (task, isOver) = locked { state in
            state.isCancelled = true
            return (state.task, state.end != nil)
        }
        task?.cancel()
        return !isOver
    }
}

/// The work of an action, and its precondition.
@usableFromInline final class Definition<Input: Sendable, Value: Sendable, Output: Sendable>: Sendable {
    /// How the work is called.
    @usableFromInline enum Work: Sendable {
        /// Called by a task that begins on the executor.
        case task(
            @Sendable (Input, Value, ExecutionContext<Output>) async throws -> Output, on: any TaskExecutor)
        /// Called by the firing thread; or, if the trigger has waited for its slot, by the thread that delivers the inline
        /// notifications.
        case inline(@Sendable (Input, Value) throws -> Output)
    }

    let precondition: Precondition<Value>
    let work: Work

    @usableFromInline init(when precondition: Precondition<Value>, _ work: Work) {
        self.precondition = precondition
        self.work = work
    }
}

/// A trigger that knows its types.
final class TypedTrigger<Input: Sendable, Value: Sendable, Output: Sendable>: Trigger, @unchecked Sendable {
    // Unchecked: `input` and `value` have one owner at a time (I2).

    private let definition: Definition<Input, Value, Output>
    @exclusivity(unchecked) private var input: Input?
    @exclusivity(unchecked) private var value: Value?

    /// - Parameter value: the value already read from the precondition, which held.
    init(
        _ core: ActionCore, _ definition: Definition<Input, Value, Output>, _ input: Input,
        bound value: Value? = nil
    ) {
        self.definition = definition
        self.input = input
        self.value = value
        super.init(core)
    }

    override func bind() -> Bool {
        if value == nil { value = definition.precondition.read() }
        return value != nil
    }

    override func unbind() -> Any? { value.take() }

    override func release() {
        input = nil
        value = nil
    }

    override var isInline: Bool {
        if case .inline = definition.work { true } else { false }
    }

    override func run() {
        guard let input, let value else { fatalError("Trigger: has begun without its input, or its value") }
        switch definition.work {
        case .inline(let work): finish(Result { try work(input, value) })
        case .task(let work, let executor):
            // Detached: the delivering thread usually belongs to another caller, whose task-local values must not be
            // inherited.
            begin(
                Task.detached(executorPreference: executor) {
                    // If cancellation was requested before the work begins, the work must see it from its first statement on;
                    // `begin`, which would cancel the task, may not have been called yet.
                    if self.isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
                    let result: Result<Output, any Error>
                    do {
                        result = .success(try await work(input, value, ExecutionContext(trigger: self)))
                    } catch {
                        result = .failure(error)
                    }
                    self.finish(result)
                })
        }
    }

    private func finish(_ result: Result<Output, any Error>) {
        switch result {
        case .success(let output): core.end(self, .finished(output))
        case .failure(is CancellationError):
            core.end(self, .cancelled(CancelReason(ofRun: isCancelled ? .requested : .threwCancellation)))
        case .failure(let error): core.end(self, .failed(error))
        }
    }
}

/// The entry point for controls, streams and callers, which do not know the output type.
struct Inlet<Input: Sendable>: Sendable {
    let core: ActionCore
    private let makeTrigger: @Sendable (ActionCore, Input) -> Trigger

    init<Value, Output>(_ core: ActionCore, _ definition: Definition<Input, Value, Output>) {
        self.core = core
        makeTrigger = { TypedTrigger($0, definition, $1) }
    }

    func fire(_ input: Input) -> Trigger {
        let trigger = makeTrigger(core, input)
        core.fire(trigger)
        return trigger
    }
}
