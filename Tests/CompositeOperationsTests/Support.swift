// What the tests of this module share: limits, logs, gates to wait at, a clock that tests move.

import CompositeOperations
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

/// Sizes grow and shrink with `STRESS_SCALE` of the environment.
let stressScale: Double = getenv("STRESS_SCALE").flatMap { Double(String(cString: $0)) } ?? 1

/// A debug build is five to ten times slower, and does a fifth of it; the release build does all of it.
#if DEBUG
    private let buildScale = 0.2
#else
    private let buildScale = 1.0
#endif

func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * stressScale * buildScale)) }

let isThreadSanitized = dlsym(nil, "__tsan_init") != nil
let isAddressSanitized = dlsym(nil, "__asan_init") != nil

/// How long a case of a test may take: many times of what it takes on a busy machine.
let testLimit: Duration =
    .seconds(240) * max(1, stressScale) * (isThreadSanitized || isAddressSanitized ? 2 : 1)

/// For blocks that wait: they must not take the workers of the built-in scheduler from other tests.
let elsewhere = DispatchQueue(label: "elsewhere", attributes: .concurrent)

/// What happened, in order.
final class Log<Entry: Sendable>: Sendable {
    private let storage = Locked<[Entry]>([])
    var entries: [Entry] { storage.withLock { $0 } }
    func add(_ entry: Entry) { storage.withLock { $0.append(entry) } }
    /// For entries that refer to the log.
    func removeAll() {
        let former = storage.withLock { entries in
            defer { entries = [] }
            return entries
        }
        withExtendedLifetime(former) {}
    }
}

/// A count with an identity.
final class Count: Sendable {
    private let storage = Atomic(0)
    var value: Int { storage.load(ordering: .sequentiallyConsistent) }
    @discardableResult
    func add(_ amount: Int = 1) -> Int { storage.add(amount, ordering: .sequentiallyConsistent).newValue }
}

/// Counts when it goes: captured by a closure, it tells that the closure was released.
final class Token: Sendable {
    private let released: Count
    init(_ released: Count) { self.released = released }
    deinit { released.add() }
}

struct TestError: Error, Equatable {
    var number = 0
}

/// Waits until an atomic condition holds that no event tells of; for states that another thread is about to reach.
func eventually(within limit: Duration = testLimit * 0.75, _ condition: () throws -> Bool) async rethrows
    -> Bool
{
    let end = ContinuousClock.now + limit
    var looks = 0
    while try !condition() {
        if ContinuousClock.now > end { return false }
        // As a rule it is so in a moment. Who looks for longer must not keep the processors from what it waits for.
        looks += 1
        if looks < 50 { await Task.yield() } else { try? await Task.sleep(for: .microseconds(200)) }
    }
    return true
}

extension Outcome {
    var isFinished: Bool { if case .finished = self { true } else { false } }
    var isCancelled: Bool { if case .cancelled = self { true } else { false } }
    var isFailed: Bool { if case .failed = self { true } else { false } }
    var reason: CancelReason? { if case .cancelled(let reason) = self { reason } else { nil } }
    var error: (any Error)? { if case .failed(let error) = self { error } else { nil } }
}

/// A clock that stands still until a test moves it.
final class ManualClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration
        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct Sleeper {
        let id: Int
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant(offset: .zero)
        var lastID = 0
        var sleepers: [Sleeper] = []
        var cancelled: Set<Int> = []
    }

    private let state = Locked(State())

    var now: Instant { state.withLock { $0.now } }
    var minimumResolution: Duration { .nanoseconds(1) }

    /// How many sleep now.
    var sleepers: Int { state.withLock { $0.sleepers.count } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<Void, any Error>) in
                let answer = state.withLock { state -> Result<Void, any Error>? in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if deadline <= state.now { return .success(()) }
                    state.sleepers.append(Sleeper(id: id, deadline: deadline, continuation: continuation))
                    return nil
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            let sleeper = state.withLock { state -> Sleeper? in
                guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.sleepers.remove(at: index)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Moves the clock, and wakes those whose time has come.
    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.deadline <= state.now }
            state.sleepers.removeAll { $0.deadline <= state.now }
            return due
        }
        for sleeper in due { sleeper.continuation.resume() }
    }
}
