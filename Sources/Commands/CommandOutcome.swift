// CommandOutcome.swift - how runs end, and what misuse is told.

/// How a run ended.
public enum CommandOutcome<Output: Sendable>: Sendable {
    /// The command returned a value.
    case succeeded(Output)
    /// It did not.
    case failed(CommandFailure)

    /// The value; throws ``CommandFailure/error``.
    public func get() throws -> Output {
        switch self {
        case .succeeded(let output): output
        case .failed(let failure): throw failure.error
        }
    }

    /// Why it failed; nil when it succeeded.
    public var failure: CommandFailure? { if case .failed(let failure) = self { failure } else { nil } }
}

/// Why a run gave no value.
public enum CommandFailure: Error {
    /// The command threw.
    case thrown(any Error)
    /// It was cancelled before its start, or threw a `CancellationError`.
    case cancelled
    /// An invoker did not run it.
    case rejected(Rejection)
    /// Nobody was left to run it.
    case abandoned
    /// It threw after its time was over; see ``Command/timeout(_:clock:)``.
    case timedOut

    /// What the caller of `execute` is thrown and the delegate is told: the same object.
    ///
    /// The command's own error, once through ``TransactionOptions/mapError``; a `CancellationError` when it was cancelled;
    /// else this failure.
    public var error: any Error {
        switch self {
        case .thrown(let error): error
        case .cancelled: CancellationError()
        default: self
        }
    }

    /// Whether it was given up, rather than impossible: also a run of several commands that was cut short.
    public var isCancellation: Bool {
        switch self {
        case .cancelled: true
        case .thrown(let error): Self.isCancellation(error)
        default: false
        }
    }

    static func isCancellation(_ error: any Error) -> Bool {
        switch error {
        case is CancellationError: true
        case let failure as TransactionFailure: isCancellation(failure.rootCause)
        case CommandFailure.cancelled: true
        default: false
        }
    }

    /// What a thrown error means.
    init(of error: any Error, mapped by: (any Error) -> any Error) {
        switch error {
        case is CancellationError, CommandFailure.cancelled: self = .cancelled
        case CommandFailure.timedOut: self = .timedOut
        // Also the refusal of another run, which this one waited for: this one was not refused.
        default: self = .thrown(by(error))
        }
    }
}

/// Why an invoker did not run a command.
public enum Rejection: Hashable, Sendable {
    /// It held as many as it may.
    case full
    /// It was shut down, or its scheduler was.
    case shutDown
    /// A command before it in its batch failed; see ``BatchInvoker``.
    case batchStopped
}

/// A call that came at the wrong time. It has changed nothing.
public enum CommandUsageError: Error, Hashable, Sendable {
    /// The command runs, or has run.
    case alreadyExecuted
    /// There is nothing to undo: it has never run, or failed.
    case notExecuted
    /// It was undone.
    case alreadyUndone
    /// The command has no undo.
    case notUndoable
    /// It runs, or is being undone.
    case busy
    /// The call comes from inside what it would wait for.
    case reentrant
    /// An undo failed; nobody knows in which state things are.
    case broken
}

/// Where a ``TransactionCommand`` is on its way.
public enum CommandState: Hashable, Sendable {
    /// Nobody has run it.
    case ready
    /// An invoker has it.
    case accepted
    /// It runs.
    case executing
    /// It returned a value.
    case succeeded
    /// It did not.
    case failed
    /// It is being undone.
    case undoing
    /// It was undone, and may be executed again.
    case undone
    /// An undo failed.
    case broken
}
