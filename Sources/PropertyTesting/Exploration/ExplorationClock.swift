// ExplorationClock.swift - the time of a schedule, for code that takes a clock.

/// A clock of which the time is that of the exploration whose step reads it: it passes when nothing else is done, at once,
/// by the sleep that ends first. Elsewhere, the time that goes on.
///
/// Deadlines that are reckoned from it keep their order in every schedule.
///
/// - SeeAlso: ``ManualClock``, which a test moves.
public struct ExplorationClock: Clock {
    /// A moment, as the time since the schedule began; elsewhere, since a clock was first asked.
    public typealias Instant = ManualClock.Instant

    private static let beginning = ContinuousClock.now

    /// Creates a clock; all of them show the same.
    public init() {}

    /// Its time.
    public var now: Instant {
        if let explorer = Explorer.current { return Instant(offset: explorer.readTime()) }
        return Instant(offset: Self.beginning.duration(to: .now))
    }
    /// The shortest time that a sleep takes.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Waits until it shows `deadline`.
    ///
    /// - Throws: `CancellationError`, when the task is cancelled before.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let duration = now.duration(to: deadline)
        guard duration > .zero else { return try Task.checkCancellation() }
        Explorer.current?.expectSleep(for: duration)
        defer { Explorer.current?.expectSleep(for: nil) }
        try await Task.sleep(for: duration, tolerance: tolerance)
    }
}
