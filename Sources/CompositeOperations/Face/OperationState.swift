// OperationState.swift - the states of operations, the causes of decisions, and the reasons for refusals.

public import Runs

/// Identifies an operation within the process.
public typealias OperationID = RunID

/// Why a composite began to end, or a resolver was consulted.
public struct Cause: Sendable, CustomStringConvertible {
    /// The child's place in the order of registration; nil when the cause is not a child, but a registration block that
    /// threw, or a timeout.
    public let index: Int?
    /// The child.
    public let child: OperationID?
    /// How it ended: failed or cancelled.
    public let outcome: Outcome<Never>

    /// The outcome, and the child's index.
    public var description: String {
        let what =
            switch outcome {
            case .failed(let error): "failed: \(error)"
            case .cancelled(let reason): "\(reason)"
            }
        guard let index else { return what }
        return "child \(index) \(what)"
    }
}

/// The state of an operation.
public enum OperationState: Hashable, Sendable {
    /// Not started.
    case ready
    /// Started; its turn has not come.
    case queued
    /// Its block runs, or has returned without ending the operation; in a composite, the children run.
    case executing
    /// Its own gate, or that of an enclosing composite, is closed: nothing starts and nothing completes.
    case suspended
    /// A decision is pending: to cancel, or to redo.
    case deciding
    /// Between two attempts.
    case delayed
    /// Its outcome is decided, but something that it started is still running, or an enclosing composite may still redo
    /// it.
    case ending
    /// Ended, with a value.
    case finished
    /// Ended, with an error.
    case failed
    /// Ended, with a reason.
    case cancelled

    /// Whether no other state can follow.
    public var isTerminal: Bool { self == .finished || self == .failed || self == .cancelled }
}

/// Why a composite did not accept a child, or an operation could not be started.
public enum RegistrationError: Error, Hashable, Sendable {
    /// The composite's outcome is decided.
    case ended
    /// The registration block has returned, and a decision is pending, or the composite waits for its next attempt.
    case deciding
    /// The scope belongs to an earlier run of the registration block.
    case stale
    /// The child has been started.
    case alreadyStarted
    /// The operation belongs to a composite.
    case hasParent
    /// The operation has nothing to run.
    case hasNoBlock
    /// `using:` does not name an earlier step of the same cascade, or, in a copy of a step, names one that has not
    /// finished.
    case notAnEarlierStep
    /// Through dependencies, the operation waits for the composite, or an earlier step of the composite waits for the
    /// operation.
    case wouldWaitForItself
}

/// How `resume` treats a block that was running when the operation was suspended.
public enum ResumeMode: Hashable, Sendable {
    /// Leaves it alone.
    case `continue`
    /// Starts a new attempt of the leaf.
    case restart
}
