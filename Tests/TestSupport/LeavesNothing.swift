// LeavesNothing.swift - checks that no test leaves counted instances behind in this process.
//
// Instances are counted for the whole process, so the check runs only where one test runs at a time: in a debug build, under
// `Scripts/census`, which sets CENSUS to the path of a file; the names of the checked tests are appended to it.

import CompositeOperations
import CompositeOperationsBasics
import Glibc
import PropertyTesting
package import Testing

/// Records an issue when a test leaves instances of counted classes behind.
package struct LeavesNothingTrait: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        _ = Self.diagnosticsAreOff
        if !allHaveContexts { COQueues.disregardValuesHere() }
        #if DEBUG
            guard let path = Self.path else { return try await function() }
            let result: Result<Void, any Error>
            do { result = .success(try await function()) } catch { result = .failure(error) }
            let left = await Self.leftovers()
            if !left.isEmpty {
                Issue.record(
                    "Left behind: \(left.joined(separator: ", ")).", sourceLocation: test.sourceLocation)
            }
            Self.add("\(test.id)\n", to: path)
            try result.get()
        #else
            try await function()
        #endif
    }

    /// Turns diagnostics off; otherwise each refused call in a test would print a line.
    private static let diagnosticsAreOff: Void = Diagnostics.onReport(nil)

    #if DEBUG
        private static let path = getenv("CENSUS").map { String(cString: $0) }
        /// The leftovers of earlier tests, already reported.
        private static let known = Locked<[String: Int]>([:])

        /// Returns the instances left behind. Polls for up to 5 s, since some objects are released shortly after the test returns.
        private static func leftovers() async -> [String] {
            let known = known.withLock { $0 }
            let end = ContinuousClock.now + .seconds(5)
            while true {
                let live = InstanceCount.live
                if live == known { return [] }
                guard ContinuousClock.now > end else {
                    try? await Task.sleep(for: .microseconds(200))
                    continue
                }
                Self.known.withLock { $0 = live }
                return Set(live.keys).union(known.keys).sorted().compactMap { name in
                    let number = live[name, default: 0] - known[name, default: 0]
                    return number == 0 ? nil : "\(number) \(name)"
                }
            }
        }

        private static func add(_ line: String, to path: String) {
            guard let file = fopen(path, "a") else { fatalError("\(path) cannot be written") }
            fputs(line, file)
            fclose(file)
        }
    #endif
}

extension Trait where Self == LeavesNothingTrait {
    /// Checks that no counted instance is left after any test of the suite.
    package static var leavesNothing: Self { LeavesNothingTrait() }
}
