public import PropertyTesting
public import Testing

/// Runs the body of a test once for each order in which the steps of its tasks may come. The first order in which it fails
/// is recorded as one issue, with as few departures from the usual one as could be found, and what replays it.
///
/// ```swift
/// @Test func theLatchOpens() async {
///     await explore {
///         let latch = Latch()
///         async let waiting: Void = latch.wait()
///         async let opening: Void = latch.open()
///         _ = await (waiting, opening)
///     }
/// }
/// ```
///
/// Inside, `#expect`, `#require` and thrown errors all mean that an order is not as it should be; so does a body in which
/// nothing can go on. A body begins anew each time, and makes all that it uses. See
/// ``/PropertyTesting/checkSchedules(options:verdict:_:)`` for what is explored, and what is not.
///
/// `EXPLORE_REPLAY` of the environment is a schedule to replay, by each call in the process: choose the test by `--filter`.
///
/// - Parameters:
///   - departures: how many departures from the usual order a schedule may have; nil: any number.
///   - limit: how many of these schedules are run at most.
///   - random: how many random ones are run beside them, when they were not all that there are.
///   - steps: how many steps a schedule may have.
///   - sharing: what its tasks share. Where that is actors alone, orders that differ in nothing else are run once, whatever
///     `departures` is.
///   - replay: the only schedule to run, as an issue gave it.
/// - Returns: which schedules were run; nil: one of them failed.
@discardableResult public func explore(
    departures: Int? = 3, limit: Int = 100_000, random: Int = 1_000, steps: Int = 10_000,
    sharing: Sharing = .anything, replay: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable () async throws -> Void
) async -> ExplorationCoverage? {
    let text = replay ?? environment("EXPLORE_REPLAY")
    let schedule = text.flatMap { Schedule($0) }
    if let text, schedule == nil {
        Issue.record("'\(text)' is no schedule: one looks like 7:1.12:2", sourceLocation: sourceLocation)
        return nil
    }
    let options = ExplorationOptions(
        departures: departures, limit: limit, random: random, steps: steps, sharing: sharing, replay: schedule
    )
    let found = FirstReason()
    var outcome: ExplorationOutcome?
    await swallowingIssues(into: found) {
        outcome = await checkSchedules(options: options, verdict: { found.take() }, body)
    }
    switch outcome {
    case .held(let coverage): return coverage
    case .failed(let failure): Issue.record("\(failure)", sourceLocation: sourceLocation)
    case nil: Issue.record("\(found.take() ?? "Nothing was explored.")", sourceLocation: sourceLocation)
    }
    return nil
}
