// InTurn.swift - not all tests at once. Swift Testing begins all of them, and many have blocks that wait on threads of
// their own: some hundred of these are more than Dispatch, which runs Swift's tasks, too, has threads for. And not on the
// threads of Swift's tasks, one a processor: two tests that wait, or compute for seconds, would hold all the others up, and
// what has a time limit in these would fail.

import Glibc
import PropertyTesting
public import Testing

/// At most 16 test cases of this process at a time, on threads of their own: they may block.
public struct InTurnTrait: SuiteTrait, TestTrait, TestScoping {
    private static let turnstile = Turnstile(width: TestThreads.count)
    /// Whether this is inside of one that has its turn: of a suite in a suite.
    @TaskLocal private static var isInside = false

    /// True: the trait applies to all tests of a suite.
    public var isRecursive: Bool { true }

    /// For the testing library.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        if Self.isInside { return try await function() }
        await Self.turnstile.enter()
        defer { Self.turnstile.leave() }
        try await Self.$isInside.withValue(true) {
            try await withTaskExecutorPreference(TestThreads.all, operation: function)
        }
    }
}

extension Trait where Self == InTurnTrait {
    /// Some at a time. The first trait of a suite: a time limit begins after it.
    public static var inTurn: Self { InTurnTrait() }
}

/// Lets some in, and the others in the order in which they came.
private final class Turnstile: Sendable {
    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Locked<State>

    init(width: Int) { state = Locked(State(free: width)) }

    func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.free == 0 {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.waiting.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}

/// As many threads as there may be tests at a time, and some for the tasks of these.
private final class TestThreads: TaskExecutor {
    static let count = 16
    static let all = TestThreads(count + 8)

    private let jobs = Locked<(taken: Int, waiting: [UnownedJob])>((0, []))
    /// Counts the jobs that nobody has taken.
    nonisolated(unsafe) private let available = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    private init(_ count: Int) {
        sem_init(available, 0, 0)
        for _ in 0..<count { _ = startThread(for: "TestThreads") { [unowned self] in serve() } }  // for ever
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.waiting.append(job) }
        sem_post(available)
    }

    private func serve() {
        while true {
            while sem_wait(available) != 0 {}  // interrupted
            let job = jobs.withLock { jobs in
                let job = jobs.waiting[jobs.taken]
                jobs.taken += 1
                if jobs.taken == jobs.waiting.count { jobs = (0, []) }
                return job
            }
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
