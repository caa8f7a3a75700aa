// Leftovers.swift - after each test, no operation and no queue of this process is left (G37).
//
// They are counted for the whole process, so this is looked at only where one test runs at a time: in a debug build, by
// `Scripts/census`, which sets CENSUS to the file that is to hold the names of the tests that were looked at.

import CompositeOperations
import Glibc
import PropertyTesting
import Testing

/// Records an issue when a test leaves operations or queues behind.
struct LeavesNothingTrait: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        #if DEBUG
            guard let path = Self.path else { return try await function() }
            let result: Result<Void, any Error>
            do { result = .success(try await function()) } catch { result = .failure(error) }
            // What the test has held goes with its frame, and what others hold a moment later.
            let known = Self.known.withLock { $0 }
            if await !eventually(within: .seconds(5), { Instances.live == known }) {
                let now = Instances.live
                let (operations, queues) = (now.operations - known.operations, now.queues - known.queues)
                Issue.record(
                    "Left behind: \(operations) operations, \(queues) queues.",
                    sourceLocation: test.sourceLocation)
                Self.known.withLock { $0 = now }
            }
            Self.add("\(test.id)\n", to: path)
            try result.get()
        #else
            try await function()
        #endif
    }

    #if DEBUG
        private static let path = getenv("CENSUS").map { String(cString: $0) }
        /// What is left of tests of which that has been said.
        private static let known = Locked(Instances.none)

        private static func add(_ line: String, to path: String) {
            guard let file = fopen(path, "a") else { fatalError("\(path) cannot be written") }
            fputs(line, file)
            fclose(file)
        }
    #endif
}

extension Trait where Self == LeavesNothingTrait {
    /// No operation and no queue is left after each test of the suite.
    static var leavesNothing: Self { LeavesNothingTrait() }
}
