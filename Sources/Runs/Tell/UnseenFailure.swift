// UnseenFailure.swift - a failure that is told when it goes, unless somebody has looked at it.

internal import Scheduling
internal import Synchronization

/// A failure that nobody has looked at yet. Whatever ended with it holds it, and lets it go with itself.
package final class UnseenFailure: Sendable {
    package let error: any Error
    private let diagnostic: @Sendable () -> Diagnostic
    private let isSeen = Atomic(false)

    /// - Parameter diagnostic: what is told then. Called on a worker of `Scheduler.shared`: it may ask for the text of the error.
    package init(_ error: any Error, telling diagnostic: @escaping @Sendable () -> Diagnostic) {
        self.error = error
        self.diagnostic = diagnostic
    }

    /// - Parameter subject: of what it is, in words.
    package convenience init(_ error: any Error, of subject: @escaping @Sendable () -> String) {
        self.init(error) { Diagnostic("\(subject()) failed, and nobody looked: \(error)") }
    }

    deinit {
        if isSeen.load(ordering: .relaxed) || Diagnostics.areToldHere { return }
        // Elsewhere: whoever lets go of the holder may hold what the listener needs, or the text of the error.
        try? Scheduler.shared.submit { [diagnostic] in Diagnostics.report(diagnostic()) }
    }

    /// Somebody looks at it.
    package func see() { isSeen.store(true, ordering: .relaxed) }
}
