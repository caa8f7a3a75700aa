// Trigger.swift - one trigger of an action: what its work is given, and what became of it.
//
// Invariants:
//   I1  `end` is latched once, in the section of the gate that decides it; those who wait are woken when it has been told.
//   I2  input and value belong to one thread at a time: to who fires, then to the gate's line or to the slot, then to the
//       work, then to who settles, and lets go of them under no lock.

import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// One trigger, whatever its types are. What decides about it is not generic: a generic type is looked up wherever it is used,
/// which takes longer than the use.
@usableFromInline class Trigger: @unchecked Sendable {
    // Unchecked, and so is its exclusivity: `state` is used under `lock` alone.

    let id = ExecutionID.next()
    let core: ActionCore

    private let lock = WordLock()
    @exclusivity(unchecked) private var state = State()
    private let instance = Instance(.executions)

    private struct State {
        var end: Outcome<any Sendable>?
        /// That it failed, if no observer was to be told.
        var unseen: UnseenFailure?
        /// Whether its end is; from then on nobody waits.
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

    // MARK: Its work

    /// Reads the precondition, and keeps the value that passed the test.
    ///
    /// - Returns: whether it holds.
    func bind() -> Bool { fatalError("Trigger: has no work") }
    /// - Returns: the value that ``bind()`` kept, if any did, to be let go of under no lock.
    func unbind() -> Any? { fatalError("Trigger: has no work") }
    /// Whether ``run()`` calls the work.
    var isInline: Bool { fatalError("Trigger: has no work") }
    /// Calls the work, or has a task do so.
    func run() { fatalError("Trigger: has no work") }
    /// Lets go of what the work is given.
    func release() { fatalError("Trigger: has no work") }

    /// The task of its work: cancelled already, when somebody asked for that before.
    final func begin(_ task: Task<Void, Never>) {
        let isCancelled = locked { state in
            // The execution may have ended already.
            if state.end == nil { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    // MARK: Its end

    /// How it ended; nil: it has not. Whoever asks has looked.
    final var end: Outcome<any Sendable>? {
        locked { state in
            state.unseen?.see()
            return state.end
        }
    }
    /// Whether it has ended; to ask is no look at how.
    final var isOver: Bool { locked { $0.end != nil } }
    /// Whether somebody asked it to end.
    final var isCancelled: Bool { locked { $0.isCancelled } }

    /// Latches its outcome, as soon as it is known: before it is told, and settled. Under the gate's lock.
    ///
    /// - Parameter unseen: is told when this goes, unless somebody looks.
    final func latch(_ end: Outcome<any Sendable>, _ unseen: UnseenFailure?) {
        locked { ($0.end, $0.unseen) = (end, unseen) }
    }

    /// Its end has been told.
    ///
    /// - Returns: those who wait for that.
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

    /// Returns when its end has been told.
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
        /// By a task that begins on the executor.
        case task(
            @Sendable (Input, Value, ExecutionContext<Output>) async throws -> Output, on: any TaskExecutor)
        /// In the trigger; or, when it has waited for its slot, by whoever delivers the notifications in place.
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
    // Unchecked: `input` and `value` belong to one thread at a time (I2).

    private let definition: Definition<Input, Value, Output>
    @exclusivity(unchecked) private var input: Input?
    @exclusivity(unchecked) private var value: Value?

    /// - Parameter value: what was read already, and passed the test.
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
            // Detached: who delivers is somebody else, as a rule, and what its task knows is not for this one.
            begin(
                Task.detached(executorPreference: executor) {
                    // An execution that is cancelled before it begins is so from its first statement on: `begin` may come
                    // later.
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

/// The inlet for controls, streams and callers, which do not know the type of the output.
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
