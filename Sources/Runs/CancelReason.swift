// CancelReason.swift - why a run gave no value, though nothing failed.

/// Why a run was cancelled, or never begun, and where that began.
public struct CancelReason: Error, Sendable, CustomStringConvertible {
    /// The kind of cause that cancelled a run.
    public enum Kind: Hashable, Sendable {
        /// Somebody called `cancel()`.
        case requested
        /// The task that ran it was cancelled.
        case taskCancelled
        /// Its code threw a `CancellationError`.
        case threwCancellation
        /// Its time was over.
        case timedOut
        /// Its scheduler, or its invoker, was shut down.
        case shutDown
        /// A queue, an invoker, or the line of an action held as many as it may.
        case queueFull
        /// A newer one took its place, in a queue of an order that says so, or in the line of an action.
        case displaced

        /// Of an operation: a child was cancelled, and nobody decided otherwise.
        case child
        /// Of an operation: the composite that it belongs to ended, or started anew without it.
        case parent
        /// Of an operation: it was removed from a queue.
        case removed
        /// Of an operation: a resolver had no attempt left.
        case exhausted

        /// Of a command: one before it in its batch failed. (An operation whose block throws on a reason of a command or of an
        /// execution has failed.)
        case batchStopped
        /// Of a command: nobody was left to run it.
        case abandoned

        /// Of an action's execution: the precondition did not hold.
        case precondition
        /// Of an action's execution: as many ran as may.
        case busy
    }

    /// The kind of cause.
    public let kind: Kind
    /// Of an operation: the one in which the cancellation began; nil when it is the one that was cancelled.
    public package(set) var origin: RunID? = nil
    /// An error behind it.
    public let underlying: (any Error)?
    /// Whether an operation was cancelled, and not a command or an action's execution.
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

    /// Of a command, or an action's execution.
    @inlinable package init(ofRun kind: Kind, underlying: (any Error)? = nil) {
        self.kind = kind
        self.underlying = underlying
        isOfOperation = false
    }

    /// The kind, and what is known beyond it.
    public var description: String {
        var text = "cancelled (\(kind)"
        if let origin { text += ", began in \(origin)" }
        if let underlying { text += ", \(underlying)" }
        return text + ")"
    }

    /// Whether somebody wanted it, or its task, or its own code: what Swift says with a `CancellationError`.
    public var isRequest: Bool {
        switch kind {
        case .requested, .taskCancelled, .threwCancellation: true
        default: false
        }
    }

    /// The error that waiters for the value are thrown: the reason, and a `CancellationError` where a command or an execution was
    /// cancelled on request.
    @usableFromInline var thrown: any Error { isRequest && !isOfOperation ? CancellationError() : self }
}
