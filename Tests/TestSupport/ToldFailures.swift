// ToldFailures.swift - what this process is told of failures that nobody has looked at.

import CompositeOperations
import Scheduling

/// The sentences of diagnostics from now on. For the process of an exit test: there is one listener.
package struct ToldFailures: Sendable {
    private let told = Log<String>()

    package init() { Diagnostics.onReport { [told] in told.add($0.message) } }

    package var count: Int { told.entries.count }

    /// Waits until there are as many as there are to be, and as long as those that were to be told before may take.
    ///
    /// - Returns: whether it was told of these failures, each once, and of nothing else.
    package func areOf(_ subjects: [String], _ error: any Error) async throws -> Bool {
        guard await eventually({ told.entries.count >= subjects.count }) else { return false }
        try await Scheduler.shared.forEach(0..<1_000) { _ in }
        return told.entries.sorted() == subjects.map { "\($0) failed, and nobody looked: \(error)" }.sorted()
    }
}
