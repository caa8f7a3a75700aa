// Execution.swift - a handle to one trigger, for the caller and for the work.

public import Runs
import Synchronization

/// One attempt to run an action.
///
/// Releasing it has no effect on the execution; ``Diagnostics`` then reports a failure that was neither read nor observed.
public struct Execution<Output: Sendable>: Sendable {
    @usableFromInline enum Form: Sendable {
        case trigger(Trigger)
        // The execution had ended, or was refused, when the trigger returned: see ActionCore+Direct.
        case ended(ExecutionID, Outcome<Output>)
        case refused(ActionName, ExecutionID, CancelReason.Kind)
        case failed(SeenWhenRead)
    }

    @usableFromInline let form: Form

    @inlinable init(_ form: Form) { self.form = form }

    /// The action that refused the trigger, or may have; nil if that is ruled out.
    private var action: ActionID? {
        switch form {
        case .trigger(let trigger): trigger.core.id
        case .ended, .failed: nil
        case .refused(let name, _, _): name.id
        }
    }

    /// The identity of the execution.
    public var id: ExecutionID {
        switch form {
        case .trigger(let trigger): trigger.id
        case .ended(let id, _), .refused(_, let id, _): id
        case .failed(let failure): failure.id
        }
    }

    /// How the execution ended; nil before the end. Observers may be notified later.
    @inlinable public var result: Outcome<Output>? {
        switch form {
        case .trigger(let trigger): Self.end(of: trigger)
        case .ended(_, let outcome): outcome
        case .refused(_, _, let why): .cancelled(CancelReason(ofRun: why))
        case .failed(let failure): .failed(failure.read())
        }
    }

    @usableFromInline static func end(of trigger: Trigger) -> Outcome<Output>? { trigger.end?.typed() }

    /// How the execution ends; returns after inline observers have been notified. Cancelling the waiting task has no effect: see
    /// ``cancel()``.
    public var outcome: Outcome<Output> {
        get async {
            if case .trigger(let trigger) = form { await trigger.untilTold() }
            guard let outcome = result else { fatalError("Execution: woken before its end") }
            return outcome
        }
    }

    /// The value of the execution; waits as ``outcome`` does.
    ///
    /// Throws an ``ActionError``: the trigger was not admitted, the work threw, or the execution was cancelled.
    public var value: Output {
        get async throws(ActionError) {
            switch await outcome {
            case .finished(let output): return output
            case .failed(let error): throw .failed(error)
            case .cancelled(let reason):
                guard let why = DisabledReason(reason.kind), let action else { throw .cancelled }
                throw .disabled(why, action: action)
            }
        }
    }

    /// Cancels the execution. If it waits, it is removed from the line, and its work never runs. If it runs, its cancellation is
    /// requested; its slot is freed only when it has actually ended.
    ///
    /// - Returns: false if the execution has already ended.
    @discardableResult
    public func cancel() -> Bool {
        switch form {
        case .trigger(let trigger): trigger.cancel()
        case .ended, .refused, .failed: false
        }
    }
}

/// The work's view of its execution.
public struct ExecutionContext<Output: Sendable>: Sendable {
    let trigger: Trigger

    /// The identity of the execution.
    public var id: ExecutionID { trigger.id }

    /// Whether cancellation was requested.
    public var isCancelled: Bool { trigger.isCancelled }

    /// Reports a value before the result. No effect after the end.
    public func yield(_ value: Output) { trigger.core.yield(value, of: trigger) }
}

extension Outcome {
    /// The same outcome, for code that does not know the type.
    @usableFromInline var untyped: Outcome<any Sendable> { map { $0 } }
}

extension Outcome<any Sendable> {
    /// The same outcome, for code that knows the type, which is that of the trigger.
    func typed<Value>(as type: Value.Type = Value.self) -> Outcome<Value> { map { $0 as! Value } }
}

extension ActionEvent<any Sendable> {
    func typed<Value>(as type: Value.Type = Value.self) -> ActionEvent<Value> {
        switch self {
        case .started(let id): .started(id)
        case .value(let id, let value): .value(id, value as! Value)
        case .finished(let id): .finished(id)
        case .failed(let id, let error): .failed(id, error)
        case .cancelled(let id): .cancelled(id)
        case .rejected(let id, let reason): .rejected(id, reason)
        }
    }
}

/// A failure known when the trigger returned. Reported when the last copy of the execution is released, unless the failure was
/// read.
@usableFromInline final class SeenWhenRead: Sendable {
    let id: ExecutionID
    private let unseen: UnseenFailure

    init(_ id: ExecutionID, _ unseen: UnseenFailure) { (self.id, self.unseen) = (id, unseen) }

    @usableFromInline func read() -> any Error {
        unseen.see()
        return unseen.error
    }
}

/// The identity of an action, for executions that outlive it.
@usableFromInline final class ActionName: Sendable {
    let id: ActionID
    init(_ id: ActionID) { self.id = id }
}

extension ActionID {
    private static let last = Atomic<UInt64>(0)
    init(_ name: String) {
        self.init(number: Self.last.add(1, ordering: .relaxed).newValue, name: name)
    }
}
