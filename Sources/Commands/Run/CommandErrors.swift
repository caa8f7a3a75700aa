// CommandErrors.swift - what a thrown error means for a run.

internal import Runs

extension Outcome<Never> {
    /// The outcome of a run whose command threw `error`.
    ///
    /// - Parameter isAsked: whether cancellation of the run was requested.
    init(thrown error: any Error, isAsked: Bool, mappedBy map: (any Error) -> any Error) {
        switch error {
        case is CancellationError:
            self = .cancelled(
                CancelReason(ofRun: isAsked ? .requested : .threwCancellation, underlying: error))
        // The run passed the request on to an operation, which was then cancelled, too.
        case let reason as CancelReason where isAsked && reason.isRequest:
            self = .cancelled(CancelReason(ofRun: .requested, underlying: reason))
        case let reason as CancelReason where reason.kind == .timedOut && !reason.isOfOperation:
            self = .cancelled(reason)
        // Includes the refusal of another run that this run waited for: this run itself was not
        // refused.
        default: self = .failed(map(error))
        }
    }
}

/// Whether an error means that the work was cancelled, rather than impossible.
func isCancellation(_ error: any Error) -> Bool {
    switch error {
    case is CancellationError: true
    case let failure as TransactionFailure: failure.isCancellation
    default: false
    }
}
