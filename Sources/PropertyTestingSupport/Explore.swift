public import PropertyTesting
public import Testing

/// Runs the body of a test once for each possible order of the steps of its tasks. The first order in which it fails is
/// recorded as one issue, with as few departures from the usual order as could be found, and the setting that replays it.
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
/// Inside, a failed `#expect` or `#require` and a thrown error all mean that an order fails; so does a body in which
/// nothing can continue. A body starts afresh each time, and creates everything that it uses. See
/// ``/PropertyTesting/checkSchedules(options:verdict:_:)`` for the coverage of an exploration.
///
/// The environment variable `EXPLORE_REPLAY` is a schedule to replay, for each call in the process: select the test with
/// `--filter`.
///
/// - Parameters:
///   - departures: the maximum number of departures from the usual order; nil: any number.
///   - limit: the maximum number of schedules that the search runs.
///   - random: the number of additional random schedules, if the search did not cover all.
///   - steps: the maximum number of steps of a schedule.
///   - sharing: the state that the tasks share. If they share only actors, orders that make no difference to the actors
///     are run once, whatever `departures` is.
///   - replay: the only schedule to run, from an issue.
/// - Returns: the schedules that were run; nil if one of them failed.
@discardableResult public func explore(
    departures: Int? = 3, limit: Int = 100_000, random: Int = 1_000, steps: Int = 10_000,
    sharing: Sharing = .anything, replay: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable () async throws -> Void
) async -> ExplorationCoverage? {
    let text = replay ?? environment("EXPLORE_REPLAY")
    let schedule = text.flatMap { Schedule($0) }
    if let text, schedule == nil {
        Issue.record("'\(text)' is not a schedule, which looks like 7:1.12:2", sourceLocation: sourceLocation)
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
