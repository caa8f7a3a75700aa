// CancelReason.swift - why a run has no value, although nothing failed.

/// Why a run was cancelled or never begun, and where the cancellation originated.
public struct CancelReason: Error, Sendable, CustomStringConvertible {
    /// The kind of cause.
    public enum Kind: Hashable, Sendable {
        /// `cancel()` was called.
        case requested
        /// The task that executed the run was cancelled.
        case taskCancelled
        /// Its code threw a `CancellationError`.
        case threwCancellation
        /// Its time limit expired.
        case timedOut
        /// Its scheduler or invoker was shut down.
        case shutDown
        /// A queue, an invoker, or the line of an action was full.
        case queueFull
        /// A newer run took its place, in a queue whose order allows that, or in the line of an action.
        case displaced

        /// Of an operation: a child was cancelled, and that was not handled otherwise.
        case child
        /// Of an operation: its composite ended, or started again without it.
        case parent
        /// Of an operation: the operation was removed from a queue.
        case removed
        /// Of an operation: a resolver had no attempt left.
        case exhausted

        /// Of a command: an earlier command of its batch failed. (An operation whose block rethrows a reason of a command or of
        /// an execution has failed.)
        case batchStopped
        /// Of a command: its invoker was released, or the command itself was released or abandoned before it ran.
        case abandoned

        /// Of an action's execution: the precondition did not hold.
        case precondition
        /// Of an action's execution: the maximum number of executions was running.
        case busy
    }

    /// The kind of cause.
    public let kind: Kind
    /// Of an operation: the operation in which the cancellation originated; nil if that is the cancelled operation itself.
    public package(set) var origin: RunID? = nil
    /// The underlying error.
    public let underlying: (any Error)?
    /// Whether an operation was cancelled, rather than a command or an action's execution.
    @usableFromInline package let isOfOperation: Bool

    /// Creates a reason.
    public init(_ kind: Kind = .requested, underlying: (any Error)? = nil) {
        self.init(kind, origin: nil, underlying: underlying)
    }

    package init(_ kind: Kind, origin: RunID?, underlying: (any Error)? = nil) {
        self.kind = kind
        self.origin = origin
        self.underlying = underlying
        isOfOperation = true
    }

    /// Creates a reason of a command or of an action's execution.
    @inlinable package init(ofRun kind: Kind, underlying: (any Error)? = nil) {
        self.kind = kind
        self.underlying = underlying
        isOfOperation = false
    }

    /// The kind, the origin and the underlying error.
    public var description: String {
        var text = "cancelled (\(kind)"
        if let origin { text += ", began in \(origin)" }
        if let underlying { text += ", \(underlying)" }
        return text + ")"
    }

    /// Whether a caller, the run's task or its own code requested the cancellation: the cases that Swift reports with a
    /// `CancellationError`.
    public var isRequest: Bool {
        switch kind {
        case .requested, .taskCancelled, .threwCancellation: true
        default: false
        }
    }

    /// The error that waiters for the value receive: a `CancellationError` if a command or an execution was cancelled on request,
    /// otherwise the reason.
    @usableFromInline var thrown: any Error { isRequest && !isOfOperation ? CancellationError() : self }
}
