// UnseenFailure.swift - a failure that is told when it goes, unless somebody has looked at it.

internal import Scheduling
internal import Synchronization

/// A failure that nobody has looked at yet. Whatever ended with it holds it, and lets it go with itself.
package final class UnseenFailure: Sendable {
    package let error: any Error
    private let subject: @Sendable () -> String
    private let isSeen = Atomic(false)

    /// - Parameter subject: of what it is, in words.
    package init(_ error: any Error, of subject: @escaping @Sendable () -> String) {
        self.error = error
        self.subject = subject
    }

    deinit {
        if isSeen.load(ordering: .relaxed) { return }
        Diagnostics.reportUnseen(error) { [subject] error in
            Diagnostic("\(subject()) failed, and nobody looked: \(error)")
        }
    }

    /// Somebody looks at it.
    package func see() { isSeen.store(true, ordering: .relaxed) }
}

extension Diagnostics {
    /// Reports a failure that goes with an object.
    ///
    /// Elsewhere: whoever lets the object go may hold what the listener needs, or the text of the error.
    package static func reportUnseen(
        _ error: any Error, _ diagnostic: @escaping @Sendable (any Error) -> Diagnostic
    ) {
        try? Scheduler.shared.submit { report(diagnostic(error)) }
    }
}
