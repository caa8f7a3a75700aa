public import PropertyTesting
public import Testing

/// Expects that `body` leaves no thread, no open file and no counted instance behind; otherwise records one
/// issue that lists the leftovers. The check covers the whole process: see ``/PropertyTesting/Census``.
///
/// - Parameters:
///   - limit: how long leftovers may still be released.
///   - isExpected: whether a resource may be left.
/// - Throws: the error of `body`, after the check.
public func expectNothingLeft<Success, Failure>(
    within limit: Duration = .seconds(2), except isExpected: (Resource) -> Bool = { _ in false },
    sourceLocation: SourceLocation = #_sourceLocation, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws(Failure) -> Success
) async throws(Failure) -> Success {
    func take<Answer>(_ census: () throws(CensusError) -> Answer) -> Answer? {
        do throws(CensusError) { return try census() } catch {
            Issue.record("\(error)", sourceLocation: sourceLocation)
            return nil
        }
    }
    let before = take { () throws(CensusError) in try Census() }
    defer {
        let left = take { () throws(CensusError) in
            try before?.leftovers(within: limit, except: isExpected) ?? []
        }
        if let left, !left.isEmpty {
            let list = left.map(\.description).joined(separator: "\n")
            Issue.record("Left behind:\n\(list)", sourceLocation: sourceLocation)
        }
    }
    return try await body()
}
