// Execution.swift - one trigger, what became of it, and what its work is given.

import CompositeOperations
import CompositeOperationsBasics
import Synchronization

/// One attempt to run an action.
///
/// To drop it changes nothing.
public final class Execution<Output: Sendable>: @unchecked Sendable {
    // Unchecked: `state` is used under `lock` alone.

    /// Names it.
    public let id: ExecutionID

    private let lock = WordLock()
    private var state = ExecutionState()
    private let core: any ExecutionOwner<Output>
    private let instance = Instance(.executions)

    init(_ core: any ExecutionOwner<Output>) {
        id = .next()
        self.core = core
    }

    private func locked<Value>(_ body: (inout ExecutionState) -> Value) -> Value {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return body(&state)
    }

    /// How it ended; nil: it has not.
    public var outcomeIfFinished: ExecutionOutcome<Output>? {
        switch locked({ $0.end }) {
        case nil: nil
        case .completed(let output)?: .completed(output as! Output)
        case .failed(let error)?: .failed(error)
        case .cancelled?: .cancelled
        case .rejected(let reason)?: .rejected(reason)
        }
    }

    /// Whether it has ended.
    var isOver: Bool { locked { $0.end != nil } }

    /// How it ends, when observers in place have been told. To cancel the task that waits changes nothing: see ``cancel()``.
    public var outcome: ExecutionOutcome<Output> {
        get async {
            await withCheckedContinuation { continuation in
                let isTold = locked { state in
                    if !state.isTold { state.waiting.append(continuation) }
                    return state.isTold
                }
                if isTold { continuation.resume() }
            }
            guard let outcome = outcomeIfFinished else { fatalError("Execution: woken before its end") }
            return outcome
        }
    }

    /// Takes it out of the line, when it waits: its work never runs. Asks it to end, when it runs: its slot is free when it
    /// has really ended.
    public func cancel() {
        if core.leaveLine(self) { return }
        let task = locked { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    var isCancelled: Bool { locked { $0.isCancelled } }

    /// The task of its work: cancelled already, when somebody asked for that before.
    func begin(_ task: Task<Void, Never>) {
        let isCancelled = locked { state in
            // It may have ended already.
            if state.end == nil { state.task = task }
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// Latches its outcome, as soon as it is known: before it is told, and settled.
    func refuse(_ reason: DisabledReason) { locked { $0.end = .rejected(reason) } }

    /// Latches its outcome, and tells those who wait.
    func settle(_ outcome: ExecutionOutcome<Output>) {
        switch outcome {
        case .completed(let output): settle(as: .completed(output))
        case .failed(let error): settle(as: .failed(error))
        case .cancelled: settle(as: .cancelled)
        case .rejected(let reason): settle(as: .rejected(reason))
        }
    }

    private func settle(as end: ExecutionEnd) {
        let before = locked { state in
            defer {
                state.end = end
                state.isTold = true
                state.waiting = []
                state.task = nil
            }
            return state
        }
        for continuation in before.waiting { continuation.resume() }
    }
}

/// What an execution knows. Neither this nor its end knows the type of the output: a generic type is looked up wherever it
/// is used, which takes longer than the use.
private struct ExecutionState {
    var end: ExecutionEnd?
    /// Whether its end is; from then on nobody waits.
    var isTold = false
    var waiting: [CheckedContinuation<Void, Never>] = []
    var task: Task<Void, Never>?
    var isCancelled = false
}

private enum ExecutionEnd {
    case completed(any Sendable)
    case failed(any Error)
    case cancelled
    case rejected(DisabledReason)
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
