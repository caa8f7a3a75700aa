// Execution.swift - one trigger, what became of it, and what its work is given.

import Basics
import CompositeOperations
import Synchronization

/// One attempt to run an action.
///
/// To drop it changes nothing.
public final class Execution<Output: Sendable>: Sendable {
    /// Names it.
    public let id: ExecutionID

    private struct State {
        var outcome: ExecutionOutcome<Output>?
        var waiting: [CheckedContinuation<ExecutionOutcome<Output>, Never>] = []
        var task: Task<Void, Never>?
        var isCancelled = false
    }

    private let state = Guarded(State())
    private let core: any ExecutionOwner<Output>
    private let instance = Instance(.executions)

    init(_ core: any ExecutionOwner<Output>) {
        id = .next()
        self.core = core
    }

    /// How it ended; nil: it has not.
    public var outcomeIfFinished: ExecutionOutcome<Output>? { state.withLock { $0.outcome } }

    /// How it ends. To cancel the task that waits changes nothing: see ``cancel()``.
    public var outcome: ExecutionOutcome<Output> {
        get async {
            await withCheckedContinuation { continuation in
                let outcome = state.withLock { state in
                    if state.outcome == nil { state.waiting.append(continuation) }
                    return state.outcome
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        }
    }

    /// Takes it out of the line, when it waits: its work never runs. Asks it to end, when it runs: its slot is free when it
    /// has really ended.
    public func cancel() {
        if core.leaveLine(self) { return }
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// The task of its work: cancelled already, when somebody asked for that before.
    func begin(_ task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            // It may have ended already.
            if state.outcome == nil { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// Latches its outcome, and tells those who wait.
    func settle(_ outcome: ExecutionOutcome<Output>) {
        let (waiting, task) = state.withLock { state in
            state.outcome = outcome
            defer {
                state.waiting = []
                state.task = nil
            }
            return (state.waiting, state.task)
        }
        for continuation in waiting { continuation.resume(returning: outcome) }
        withExtendedLifetime(task) {}
    }
}

extension ExecutionID {
    private static let last = Atomic<UInt64>(0)
    static func next() -> ExecutionID {
        ExecutionID(number: last.add(1, ordering: .relaxed).newValue)
    }
}

extension ActionID {
    private static let last = Atomic<UInt64>(0)
    init(_ name: String) {
        self.init(number: Self.last.add(1, ordering: .relaxed).newValue, name: name)
    }
}

/// What an execution needs of its action.
protocol ExecutionOwner<Output>: AnyObject, Sendable {
    associatedtype Output: Sendable
    /// - Returns: whether it waited, and does not any more.
    func leaveLine(_ execution: Execution<Output>) -> Bool
    func yield(_ value: Output, of execution: Execution<Output>)
}

/// What the work of an execution is given.
public struct ExecutionContext<Output: Sendable>: Sendable {
    let execution: Execution<Output>
    let core: any ExecutionOwner<Output>

    /// Names the execution.
    public var id: ExecutionID { execution.id }

    /// Whether somebody asked it to end.
    public var isCancelled: Bool { execution.isCancelled }

    /// Tells a value before the result. After the end it does nothing.
    public func yield(_ value: Output) { core.yield(value, of: execution) }
}
