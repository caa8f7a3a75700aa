// ToldFailures.swift - the reports in this process of failures whose errors were never read.

import CompositeOperations
import Scheduling

/// The diagnostics reported from now on. For the process of an exit test, because there is only one listener.
package struct ToldFailures: Sendable {
    private let told = Log<String>()

    package init() { Diagnostics.onReport { [told] in told.add($0.message) } }

    package var count: Int { told.entries.count }

    /// Waits until the expected number of reports has arrived, and then long enough for other pending reports to arrive.
    ///
    /// - Returns: whether exactly these failures were reported, each once.
    package func areOf(_ subjects: [String], _ error: any Error) async throws -> Bool {
        guard await eventually({ told.entries.count >= subjects.count }) else { return false }
        try await Scheduler.shared.forEach(0..<1_000) { _ in }
        return told.entries.sorted()
            == subjects.map { "\($0) failed, and its error was never read: \(error)" }.sorted()
    }
}
