// CommandErrors.swift - what a thrown error means for a run.

internal import Runs

extension Outcome<Never> {
    /// What it means for a run that its command threw this.
    ///
    /// - Parameter isAsked: whether somebody asked the run to end.
    init(thrown error: any Error, isAsked: Bool, mappedBy map: (any Error) -> any Error) {
        switch error {
        // It may have passed that on to an operation.
        case let reason as CancelReason where isAsked && reason.isRequest:
            self = .cancelled(CancelReason(ofRun: .requested, underlying: reason))
        case is CancellationError:
            self = .cancelled(CancelReason(ofRun: .threwCancellation, underlying: error))
        case let reason as CancelReason where reason.kind == .timedOut && !reason.isOfOperation:
            self = .cancelled(reason)
        // Also that another run, which this one waited for, was refused: this one was not.
        default: self = .failed(map(error))
        }
    }
}

extension Outcome {
    /// What it is of a run that somebody has cancelled.
    var requested: Outcome {
        guard case .cancelled(let reason) = self, reason.kind == .threwCancellation else { return self }
        return .cancelled(CancelReason(ofRun: .requested, underlying: reason.underlying))
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
