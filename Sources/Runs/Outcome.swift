// Outcome.swift - how runs end: operations, runs of commands, executions of actions.

/// How a run ended. Failure is not cancellation.
public enum Outcome<Success: Sendable>: Sendable {
    /// Finished, with its value.
    case finished(Success)
    /// Failed.
    case failed(any Error)
    /// Cancelled, or never begun.
    case cancelled(CancelReason)

    /// The value. Throws the error or the ``CancelReason``; for a command or an action's execution that was cancelled on
    /// request, a `CancellationError`.
    @inlinable
    public func get() throws -> Success {
        switch self {
        case .finished(let value): value
        case .failed(let error): throw error
        case .cancelled(let reason): throw reason.thrown
        }
    }

    /// The value; nil unless it finished.
    @inlinable public var value: Success? { if case .finished(let value) = self { value } else { nil } }
    /// The error; nil unless it failed.
    @inlinable public var error: (any Error)? { if case .failed(let error) = self { error } else { nil } }
    /// Why it was cancelled; nil unless it was.
    @inlinable public var reason: CancelReason? {
        if case .cancelled(let reason) = self { reason } else { nil }
    }

    /// The same outcome with another value.
    @inlinable
    public func map<New: Sendable>(_ transform: (Success) throws -> New) rethrows -> Outcome<New> {
        switch self {
        case .finished(let value): .finished(try transform(value))
        case .failed(let error): .failed(error)
        case .cancelled(let reason): .cancelled(reason)
        }
    }

    /// Whether it has a value.
    @inlinable public var isFinished: Bool { if case .finished = self { true } else { false } }
    /// Whether it failed.
    @inlinable public var isFailed: Bool { if case .failed = self { true } else { false } }
    /// Whether it was cancelled, or never begun.
    @inlinable public var isCancelled: Bool { if case .cancelled = self { true } else { false } }

    /// The error that ``get()`` throws; nil when it finished.
    package var thrown: (any Error)? {
        switch self {
        case .finished: nil
        case .failed(let error): error
        case .cancelled(let reason): reason.thrown
        }
    }

    /// The outcome if it has no value; nil when it finished.
    package var badEnd: Outcome<Never>? {
        switch self {
        case .finished: nil
        case .failed(let error): .failed(error)
        case .cancelled(let reason): .cancelled(reason)
        }
    }

    /// Creates an outcome without a value.
    package init(_ badEnd: Outcome<Never>) {
        switch badEnd {
        case .failed(let error): self = .failed(error)
        case .cancelled(let reason): self = .cancelled(reason)
        }
    }
}
