// ActionPolicy.swift - what becomes of a trigger, in words.

public import Runs

/// How an action treats a trigger that finds no room.
public enum ActionPolicy: Hashable, Sendable {
    /// The trigger is refused: ``DisabledReason/busy``.
    case reject
    /// The trigger waits, first come first served; beyond so many it is refused: ``DisabledReason/queueFull``.
    case queue(Int)
    /// The running execution is cancelled, and the newest trigger runs when that has really ended.
    case switchToLatest
    /// The running execution goes on, and the newest trigger runs after it.
    case coalesce
}

/// Why a trigger was not let in, or not for long.
public enum DisabledReason: Hashable, Sendable, CustomStringConvertible {
    /// The precondition does not hold.
    case precondition
    /// As many run as may.
    case busy
    /// As many wait as may.
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

    /// nil where the trigger was let in, and cancelled later.
    init?(_ kind: CancelReason.Kind) {
        switch kind {
        case .precondition: self = .precondition
        case .busy: self = .busy
        case .queueFull: self = .queueFull
        case .displaced: self = .superseded
        default: return nil
        }
    }

    /// As an outcome says it.
    var kind: CancelReason.Kind {
        switch self {
        case .precondition: .precondition
        case .busy: .busy
        case .queueFull: .queueFull
        case .superseded: .displaced
        }
    }
}

/// Names an action: for logs and errors.
public struct ActionID: Hashable, Sendable, CustomStringConvertible {
    let number: UInt64
    /// The name that its owner gave it.
    public let name: String

    /// The name, and a number that no other action of the process has.
    public var description: String { name.isEmpty ? "action #\(number)" : "'\(name)' #\(number)" }
}

/// Names one trigger of any action. Those of a process are in the order in which they were made.
public typealias ExecutionID = RunID

/// The errors of a direct call.
public enum ActionError: Error {
    /// The call was not let in, or lost its place in the line.
    case disabled(DisabledReason, action: ActionID)
    /// The work threw this.
    case failed(any Error)
    /// The execution was cancelled.
    case cancelled
}

/// An event of an action, for its owner.
public enum ActionEvent<Output: Sendable>: Sendable {
    /// The trigger was let in; its work begins now.
    case started(ExecutionID)
    /// The work yielded a value, or returned it.
    case value(ExecutionID, Output)
    /// The work returned. The last event of an execution, as the next three are.
    case finished(ExecutionID)
    /// The work threw.
    case failed(ExecutionID, any Error)
    /// Cancelled: before the work began, or by it.
    case cancelled(ExecutionID)
    /// The trigger was not let in, or lost its place in the line.
    case rejected(ExecutionID, DisabledReason)
}

/// A failure as a view may show it.
public struct ActionFailure: Sendable {
    /// Which execution failed.
    public let execution: ExecutionID
    /// The text that the action's owner made of the error.
    public let message: String
    /// The error that the work threw.
    public let error: any Error
}

/// The text of an error, as `String(describing:)` makes it.
public func plainDescription(_ error: any Error) -> String { String(describing: error) }
