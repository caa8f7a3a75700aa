// Execution.swift - a handle of one trigger, for who has made it and for its work.

public import Runs
import Synchronization

/// One attempt to run an action.
///
/// To drop it changes nothing; ``Diagnostics`` tells then of a failure that nobody has read or heard of.
public struct Execution<Output: Sendable>: Sendable {
    @usableFromInline enum Form: Sendable {
        case trigger(Trigger)
        // When the trigger returned, it had ended, or was not let in: see ActionCore+Direct.
        case ended(ExecutionID, Outcome<Output>)
        case refused(ActionName, ExecutionID, CancelReason.Kind)
        case failed(SeenWhenRead)
    }

    @usableFromInline let form: Form

    @inlinable init(_ form: Form) { self.form = form }

    /// The action that did not let this in, or may not have.
    private var action: ActionID? {
        switch form {
        case .trigger(let trigger): trigger.core.id
        case .ended, .failed: nil
        case .refused(let name, _, _): name.id
        }
    }

    /// Names it.
    public var id: ExecutionID {
        switch form {
        case .trigger(let trigger): trigger.id
        case .ended(let id, _), .refused(_, let id, _): id
        case .failed(let failure): failure.id
        }
    }

    /// How it ended; nil before. Observers may be told of it later.
    @inlinable public var result: Outcome<Output>? {
        switch form {
        case .trigger(let trigger): Self.end(of: trigger)
        case .ended(_, let outcome): outcome
        case .refused(_, _, let why): .cancelled(CancelReason(ofRun: why))
        case .failed(let failure): .failed(failure.read())
        }
    }

    @usableFromInline static func end(of trigger: Trigger) -> Outcome<Output>? { trigger.end?.typed() }

    /// How it ends, when observers in place have been told. To cancel the task that waits changes nothing: see ``cancel()``.
    public var outcome: Outcome<Output> {
        get async {
            if case .trigger(let trigger) = form { await trigger.untilTold() }
            guard let outcome = result else { fatalError("Execution: woken before its end") }
            return outcome
        }
    }

    /// Its value; waits as ``outcome`` does.
    ///
    /// Throws that it was not let in, what the work threw, or that it was cancelled.
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

    /// Takes it out of the line, when it waits: its work never runs. Asks it to end, when it runs: its slot is free when it
    /// has really ended.
    ///
    /// - Returns: false when it has ended already.
    @discardableResult
    public func cancel() -> Bool {
        switch form {
        case .trigger(let trigger): trigger.cancel()
        case .ended, .refused, .failed: false
        }
    }
}

/// The execution, as its work sees it.
public struct ExecutionContext<Output: Sendable>: Sendable {
    let trigger: Trigger

    /// Names the execution.
    public var id: ExecutionID { trigger.id }

    /// Whether somebody asked it to end.
    public var isCancelled: Bool { trigger.isCancelled }

    /// Tells a value before the result. After the end it does nothing.
    public func yield(_ value: Output) { trigger.core.yield(value, of: trigger) }
}

extension Outcome {
    /// The same, for code that does not know the type.
    @usableFromInline var untyped: Outcome<any Sendable> { map { $0 } }
}

extension Outcome<any Sendable> {
    /// The same, for code that knows the type: that of the trigger.
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

/// A failure that was there when the trigger returned, told when the last copy of the execution goes, unless somebody has read it.
@usableFromInline final class SeenWhenRead: Sendable {
    let id: ExecutionID
    private let unseen: UnseenFailure

    init(_ id: ExecutionID, _ unseen: UnseenFailure) { (self.id, self.unseen) = (id, unseen) }

    @usableFromInline func read() -> any Error {
        unseen.see()
        return unseen.error
    }
}

/// Names an action, to whoever has nothing else of it.
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
