// ExplorationClock.swift - the time of a schedule, for code that takes a clock.

/// A clock that shows the time of the exploration whose step reads it. That time advances only when a sleeping task
/// continues, and then at once to the end of its sleep. Outside an exploration the clock shows real time.
///
/// Deadlines that are computed from it keep their order in every schedule.
///
/// - SeeAlso: ``ManualClock``, which a test moves.
public struct ExplorationClock: Clock {
    /// A moment, as the time since the schedule began; outside an exploration, since such a clock was first read.
    public typealias Instant = ManualClock.Instant

    private static let beginning = ContinuousClock.now

    /// Creates a clock; all clocks show the same time.
    public init() {}

    /// The current time of the clock.
    public var now: Instant {
        if let explorer = Explorer.current { return Instant(offset: explorer.readTime()) }
        return Instant(offset: Self.beginning.duration(to: .now))
    }
    /// The shortest duration of a sleep.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Waits until the clock shows `deadline`.
    ///
    /// - Throws: `CancellationError`, when the task is cancelled before that.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let duration = now.duration(to: deadline)
        guard duration > .zero else { return try Task.checkCancellation() }
        Explorer.current?.expectSleep(for: duration)
        defer { Explorer.current?.expectSleep(for: nil) }
        try await Task.sleep(for: duration, tolerance: tolerance)
    }
}
