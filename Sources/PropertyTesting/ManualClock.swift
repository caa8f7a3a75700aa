// ManualClock.swift - a clock that stands still until a test moves it.

internal import CompositeOperationsBasics

/// A clock for work that waits: time passes only when a test advances it.
public final class ManualClock: Clock, Sendable {
    /// A moment, as the time since the clock was created.
    public struct Instant: InstantProtocol {
        /// The time since the clock was created.
        public var offset: Duration
        /// A moment.
        public init(offset: Duration) { self.offset = offset }
        /// A later moment, or an earlier one.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// How much later `other` is.
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Whether `left` is earlier than `right`.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Instant(offset: .zero)
        var count = 0
        /// Keyed by the moment for which they wait; no list is empty.
        var sleepers: [Instant: WaitList] = [:]

        /// Changes the list of a moment; an empty list is removed.
        mutating func change<Answer>(at moment: Instant, _ body: (inout WaitList) -> Answer) -> Answer {
            var list = sleepers.removeValue(forKey: moment) ?? WaitList()
            defer { if !list.isEmpty { sleepers[moment] = list } }
            return body(&list)
        }
    }

    private let state = Locked(State())

    /// Creates a clock that shows zero.
    public init() {}

    /// The current time of the clock.
    public var now: Instant { state.withLock { $0.now } }
    /// A nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }
    /// The number of tasks that wait for a later moment.
    public var sleepers: Int { state.withLock { $0.count } }
    /// The number of moments for which tasks wait.
    package var moments: Int { state.withLock { $0.sleepers.count } }

    /// Waits until a test has moved the clock to `deadline`.
    ///
    /// - Throws: `CancellationError`, when the task is cancelled before that.
    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let wakening = await Waiter.wait { waiter in
            state.withLock { state in
                if deadline <= state.now { return Task.isCancelled ? .isCancelled : .isOver }
                let registration = state.change(at: deadline) { $0.append(waiter) }
                if case .waits = registration { state.count += 1 }
                return registration
            }
        } orCancelledBy: { [state] waiter in
            state.withLock { state in
                let isRemoved = state.change(at: deadline) { $0.remove(waiter) }
                if isRemoved { state.count -= 1 }
                return isRemoved
            }
        }
        if wakening == .cancelled { throw CancellationError() }
    }

    /// Moves the clock forward, and wakes the tasks whose moment has come, earliest first.
    public func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let moments = state.sleepers.keys.filter { $0 <= state.now }.sorted()
            return moments.map { moment in
                var list = state.sleepers.removeValue(forKey: moment)
                return list?.takeAll { state.count -= 1 }
            }
        }
        for waiters in due { waiters?.wake() }
    }
}
