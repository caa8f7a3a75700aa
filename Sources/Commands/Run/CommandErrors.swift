// CommandErrors.swift - what a thrown error means for a run, and what its caller and its delegate are told.

internal import Runs

extension Outcome<Never> {
    /// What it means for a run that its command threw this.
    init(thrown error: any Error, mappedBy map: (any Error) -> any Error) {
        switch error {
        case is CancellationError: self = .cancelled(CancelReason(.threwCancellation))
        // Also those of another run, which this one waited for; not its refusal: this one was not refused.
        case let reason as CancelReason where reason.isRequest || reason.kind == .timedOut:
            self = .cancelled(reason)
        default: self = .failed(map(error))
        }
    }
}

extension Outcome {
    /// What the caller of `execute` is thrown, and the delegate is told, the same object: the command's own error, once through
    /// ``TransactionOptions/mapError``; a `CancellationError` when somebody cancelled the run; else the reason.
    var toldError: (any Error)? {
        switch self {
        case .finished: nil
        case .failed(let error): error
        case .cancelled(let reason): reason.isRequest ? CancellationError() : reason
        }
    }

    /// The value; throws ``toldError``.
    func getForCaller() throws -> Success {
        if case .finished(let value) = self { return value }
        throw toldError ?? CancellationError()
    }
}

/// Whether an error says that something was given up, rather than impossible.
func isCancellation(_ error: any Error) -> Bool {
    switch error {
    case is CancellationError: true
    case let failure as TransactionFailure: failure.isCancellation
    case let reason as CancelReason: reason.isRequest
    default: false
    }
}
