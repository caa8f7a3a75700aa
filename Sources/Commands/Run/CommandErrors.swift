// CommandErrors.swift - what a thrown error means for a run.

internal import Runs

extension Outcome<Never> {
    /// The end of a run whose command threw this.
    ///
    /// - Parameter isAsked: whether somebody asked the run to end.
    init(thrown error: any Error, isAsked: Bool, mappedBy map: (any Error) -> any Error) {
        switch error {
        case is CancellationError:
            self = .cancelled(
                CancelReason(ofRun: isAsked ? .requested : .threwCancellation, underlying: error))
        // The run has passed the request on to an operation.
        case let reason as CancelReason where isAsked && reason.isRequest:
            self = .cancelled(CancelReason(ofRun: .requested, underlying: reason))
        case let reason as CancelReason where reason.kind == .timedOut && !reason.isOfOperation:
            self = .cancelled(reason)
        // Also that another run, which this one waited for, was refused: this one was not.
        default: self = .failed(map(error))
        }
    }
}

/// Whether an error says that something was given up, rather than impossible.
func isCancellation(_ error: any Error) -> Bool {
    switch error {
    case is CancellationError: true
    case let failure as TransactionFailure: failure.isCancellation
    default: false
    }
}
