import PropertyTesting
public import Testing

/// Runs each case of a test under a ``/PropertyTesting/Watchdog``; for a suite, each case of each of its tests.
///
/// Unlike `.timeLimit`, which records an issue and then waits for a test that hangs, this trait ends the
/// process, and reports the test, what its threads wait for and, inside `forAll`, how to replay the case.
public struct WatchedTrait: SuiteTrait, TestTrait, TestScoping {
    private let limit: Duration

    fileprivate init(limit: Duration) { self.limit = limit }

    /// True: the tests of a suite and of its nested suites are watched.
    public var isRecursive: Bool { true }

    /// Runs the case under a watchdog, unless another trait of this kind is nearer to the test.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // Traits of a suite come before traits of its tests and nested suites.
        let nearest = test.traits.lazy.compactMap { $0 as? WatchedTrait }.last
        guard let nearest, nearest.limit == limit else { return try await function() }
        let arguments = testCase.map(arguments(of:)) ?? []
        let name = arguments.isEmpty ? "\(test.id)" : "\(test.id) with \(arguments.joined(separator: ", "))"
        try await Watchdog.run(name, limit: limit) { try await function() }
    }
}

/// The arguments of a case, which Swift Testing does not expose; empty if its private layout changes.
private func arguments(of testCase: Test.Case) -> [String] {
    // The layout of Swift 6.3: _kind, an enumeration; its payload; the payload's array.
    guard let kind = Mirror(reflecting: testCase).descendant("_kind"),
        let payload = Mirror(reflecting: kind).children.first?.value,
        let arguments = Mirror(reflecting: payload).descendant("arguments")
    else { return [] }
    return Mirror(reflecting: arguments).children.compactMap { argument in
        Mirror(reflecting: argument.value).descendant("value").map { String(describingForTest: $0) }
    }
}

extension Trait where Self == WatchedTrait {
    /// Ends the process when a case of the test takes longer; see ``/PropertyTesting/Watchdog``.
    ///
    /// When a test and suites around it have this trait, only the nearest one applies: so a test can have a
    /// longer limit than its suite.
    ///
    /// - Parameter limit: the limit for each case of a test, excluding the wait for its turn.
    public static func watched(_ limit: Duration) -> Self { WatchedTrait(limit: limit) }
}
