// Issues.swift - collects the issues of a search's runs. There may be hundreds; only the first issue of a run
// counts.

import Glibc
import PropertyTesting
import Testing

/// The reason why a run fails: the issue that was recorded first.
final class FirstReason: Sendable {
    private let first = Locked<String?>(nil)

    func note(_ reason: String) { first.withLock { if $0 == nil { $0 = reason } } }

    /// Returns the reason and clears it.
    func take() -> String? { first.withLock { $0.take() } }
}

/// Runs `body`, and notes the issues that are recorded in it, in place of the testing library.
func swallowingIssues(
    into found: FirstReason, isolation: isolated (any Actor)? = #isolation, _ body: () async -> Void
) async {
    guard let test = Test.current else { return await body() }
    let swallow = IssueHandlingTrait.compactMapIssues { issue in
        // An issue that was recorded on a thread without a task is delivered to every running test: its
        // source location shows where it belongs.
        let place = issue.sourceLocation.map { "\($0.fileName):\($0.line): " } ?? ""
        found.note("\(place)\(issue)")
        return nil
    }
    // The trait's closure is Sendable, but it is called here, in this task, before this function returns.
    nonisolated(unsafe) let body = body
    do { try await swallow.provideScope(for: test, testCase: Test.Case.current) { await body() } } catch {
        found.note("threw \(error)")
    }
}

/// A variable of the process's environment.
func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
