// InTurn.swift - limits the tests that run at once. Swift Testing starts all tests at once, and many have blocks that wait
// on separate threads. Dispatch, which also runs Swift's tasks, does not have threads for a hundred of these. Nor do the
// tests run on the threads of Swift's tasks: there is one per processor, so a few tests that wait, or compute for seconds,
// would delay all other tests, and their time limits would expire.

import Glibc
import PropertyTesting
public import Testing

/// Runs at most 16 test cases of this process at a time, on dedicated threads: they may block.
public struct InTurnTrait: SuiteTrait, TestTrait, TestScoping {
    private static let turnstile = Turnstile(width: TestThreads.count)
    /// Whether an enclosing trait has already admitted the current task, as in a suite within a suite.
    @TaskLocal private static var isInside = false

    /// True: the trait applies to all tests of a suite.
    public var isRecursive: Bool { true }

    /// Called by the testing library.
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
    /// Limits the number of tests that run at a time. Make it the first trait of a suite, so time limits begin after the
    /// wait.
    public static var inTurn: Self { InTurnTrait() }
}

/// Admits a limited number of tasks at a time; the others wait in the order of arrival.
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

/// As many threads as tests may run at a time, and some for the tasks of these tests.
private final class TestThreads: TaskExecutor {
    static let count = 16
    static let all = TestThreads(count + 8)

    private let jobs = Locked<(taken: Int, waiting: [UnownedJob])>((0, []))
    /// Counts the jobs that no thread has taken yet.
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
