// ActionPolicy.swift - how triggers are treated, and the errors and events of an action.

public import Runs

/// How an action treats a trigger that finds no free slot.
public enum ActionPolicy: Hashable, Sendable {
    /// The trigger is refused: ``DisabledReason/busy``.
    case reject
    /// The trigger waits, first come first served; if this many already wait, it is refused:
    /// ``DisabledReason/queueFull``.
    case queue(Int)
    /// The running execution is cancelled, and the newest trigger runs once that execution has actually ended.
    case switchToLatest
    /// The running execution continues, and the newest trigger runs after it.
    case coalesce
}

/// Why a trigger was not admitted, or lost its place in the line.
public enum DisabledReason: Hashable, Sendable, CustomStringConvertible {
    /// The precondition does not hold.
    case precondition
    /// The maximum number of executions is running.
    case busy
    /// The maximum number of triggers is waiting.
    case queueFull
    /// A later trigger took its place in the line.
    case superseded

    /// The name of the case.
    public var description: String {
        switch self {
        case .precondition: "precondition"
        case .busy: "busy"
        case .queueFull: "queueFull"
        case .superseded: "superseded"
        }
    }

    /// nil if the trigger was admitted, and cancelled later.
    init?(_ kind: CancelReason.Kind) {
        switch kind {
        case .precondition: self = .precondition
        case .busy: self = .busy
        case .queueFull: self = .queueFull
        case .displaced: self = .superseded
        default: return nil
        }
    }

    /// The corresponding kind in an outcome.
    var kind: CancelReason.Kind {
        switch self {
        case .precondition: .precondition
        case .busy: .busy
        case .queueFull: .queueFull
        case .superseded: .displaced
        }
    }
}

/// The identity of an action, for logs and errors.
public struct ActionID: Hashable, Sendable, CustomStringConvertible {
    let number: UInt64
    /// The name given by the owner.
    public let name: String

    /// The name, and a number that is unique in the process.
    public var description: String { name.isEmpty ? "action #\(number)" : "'\(name)' #\(number)" }
}

/// Identifies one trigger of any action. IDs are ordered by creation within the process.
public typealias ExecutionID = RunID

/// The errors of a direct call to an action.
public enum ActionError: Error {
    /// The call was not admitted, or lost its place in the line.
    case disabled(DisabledReason, action: ActionID)
    /// The work threw this.
    case failed(any Error)
    /// The execution was cancelled.
    case cancelled
}

/// An event of an action, for its owner.
public enum ActionEvent<Output: Sendable>: Sendable {
    /// The trigger was admitted; its work begins now.
    case started(ExecutionID)
    /// The work yielded a value, or returned it.
    case value(ExecutionID, Output)
    /// The work returned. Like the next three, this is the last event of an execution.
    case finished(ExecutionID)
    /// The work threw.
    case failed(ExecutionID, any Error)
    /// The execution was cancelled: before the work began, or because the work threw `CancellationError`.
    case cancelled(ExecutionID)
    /// The trigger was not admitted, or lost its place in the line.
    case rejected(ExecutionID, DisabledReason)
}

/// A failure for a view to show.
public struct ActionFailure: Sendable {
    /// The execution that failed.
    public let execution: ExecutionID
    /// The text for the error, made by the action's owner.
    public let message: String
    /// The error that the work threw.
    public let error: any Error
}

/// The text of an error, made by `String(describing:)`.
public func plainDescription(_ error: any Error) -> String { String(describing: error) }
