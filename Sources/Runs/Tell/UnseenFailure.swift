// UnseenFailure.swift - a failure that is reported when it is deallocated, unless it was read.

internal import Scheduling
internal import Synchronization

/// A failure that has not been read yet. Owned by the object that ended with it, and released with that object.
package final class UnseenFailure: Sendable {
    package let error: any Error
    private let diagnostic: @Sendable () -> Diagnostic
    private let isSeen = Atomic(false)

    /// - Parameter diagnostic: makes the report. Called on a worker of `Scheduler.shared`, so it may use the error's
    ///   description.
    package init(_ error: any Error, telling diagnostic: @escaping @Sendable () -> Diagnostic) {
        self.error = error
        self.diagnostic = diagnostic
    }

    /// - Parameter subject: the failed object, in words.
    package convenience init(_ error: any Error, of subject: @escaping @Sendable () -> String) {
        self.init(error) { Diagnostic("\(subject()) failed, and its error was never read: \(error)") }
    }

    deinit {
        if isSeen.load(ordering: .relaxed) || Diagnostics.areToldHere { return }
        // On another thread: the releasing thread may hold a lock that the listener, or the error's description, needs.
        try? Scheduler.shared.submit { [diagnostic] in Diagnostics.report(diagnostic()) }
    }

    /// Records that the failure was read.
    package func see() { isSeen.store(true, ordering: .relaxed) }
}
