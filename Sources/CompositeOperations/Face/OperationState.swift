// OperationState.swift - where operations are on their way, what a decision is about, and what is refused.

public import Runs

/// Tells operations of a process apart.
public typealias OperationID = RunID

/// Why a composite began to end, or a resolver was asked.
public struct Cause: Sendable, CustomStringConvertible {
    /// The child's place in the order of registration; nil when it was no child: a registration block that
    /// threw, or a timeout.
    public let index: Int?
    /// The child.
    public let child: OperationID?
    /// How it ended: failed or cancelled.
    public let outcome: Outcome<Never>

    /// The outcome, and of which child.
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

/// Where an operation is on its way.
public enum OperationState: Hashable, Sendable {
    /// Not started.
    case ready
    /// Started; its turn has not come.
    case queued
    /// Its block runs, or has returned without an end; of a composite: its children do.
    case executing
    /// A gate is closed, its own or that of a composite around it: nothing starts and nothing completes.
    case suspended
    /// A decision is asked for: cancel, or do it again.
    case deciding
    /// Between two attempts.
    case delayed
    /// Its outcome is decided; what it started has not left yet, or a composite around it may still redo it.
    case ending
    /// Ended, with a value.
    case finished
    /// Ended, with an error.
    case failed
    /// Ended, with a reason.
    case cancelled

    /// Whether nothing can follow.
    public var isTerminal: Bool { self == .finished || self == .failed || self == .cancelled }
}

/// Why a composite did not accept a child, or an operation could not be started.
public enum RegistrationError: Error, Hashable, Sendable {
    /// The composite's outcome is decided.
    case ended
    /// The registration block has returned, and a decision is asked for, or the composite waits for its next attempt.
    case deciding
    /// The scope belongs to an earlier run of the registration block.
    case stale
    /// The child has been started.
    case alreadyStarted
    /// The operation belongs to a composite.
    case hasParent
    /// The operation has nothing to run.
    case hasNoBlock
    /// `using:` names no earlier step of the same cascade, or, in a copy of a step, one that has not finished.
    case notAnEarlierStep
    /// The operation waits, by its dependencies, for the composite, or an earlier step of it for the operation.
    case wouldWaitForItself
}

/// How `resume` treats a block that was running when the operation was suspended.
public enum ResumeMode: Hashable, Sendable {
    /// Leaves it alone.
    case `continue`
    /// Makes a new attempt of the leaf.
    case restart
}
