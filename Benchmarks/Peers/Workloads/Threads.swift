import BenchmarkCore
import Dispatch
import Foundation

/// Starts threads, releases them together, and waits until all have run.
///
/// - Parameters:
///   - prepare: what a thread creates before the start.
///   - run: the measured work.
///   - after: how a thread uses what it created, after its clock has stopped.
/// - Returns: when they began, and when the last one had finished.
func onThreads<State>(
    _ count: Int, _ prepare: @escaping @Sendable (Int) -> State,
    run: @escaping @Sendable (Int, State) -> Void, after: @escaping @Sendable (Int, State) -> Void
) -> (start: Int, stop: Int) {
    let line = StartLine(count)
    let done = DispatchGroup()
    let over = DispatchGroup()
    for thread in 0..<count {
        done.enter()
        over.enter()
        Thread.detachNewThread {
            let state = prepare(thread)
            line.arrive()
            run(thread, state)
            done.leave()
            after(thread, state)
            over.leave()
        }
    }
    let start = line.go()
    done.wait()
    let stop = stopClock()
    over.wait()
    return (start, stop)
}

/// Like ``onThreads(_:_:run:after:)``, for threads that create nothing.
func onThreads(_ count: Int, run: @escaping @Sendable (Int) -> Void) -> (start: Int, stop: Int) {
    onThreads(count) { _ in
    } run: { thread, _ in
        run(thread)
    } after: { _, _ in
    }
}

/// A line where threads wait until all of them have arrived.
private final class StartLine: Sendable {
    private let ready = DispatchGroup()
    private let signal = DispatchSemaphore(value: 0)
    private let threads: Int

    init(_ threads: Int) {
        self.threads = threads
        for _ in 0..<threads { ready.enter() }
    }

    func arrive() {
        ready.leave()
        signal.wait()
    }

    /// Releases the threads when all have arrived; returns the time just before.
    func go() -> Int {
        ready.wait()
        let start = startClock()
        for _ in 0..<threads { signal.signal() }
        return start
    }
}

/// Sendable: written before a semaphore is signalled, read after the wait for it has returned.
private final class BlockingResult<Value>: @unchecked Sendable {
    var value: Value?
}

/// Runs `body` in a task, and blocks the calling thread, which does not belong to the executor, until the task ends.
///
/// - Parameter beginsHere: whether the calling thread runs everything up to the first await, so that no data is in another
///   thread's caches.
func blocking<Value: Sendable>(
    beginsHere: Bool = false, _ body: @escaping @Sendable () async -> Value
) -> Value {
    let result = BlockingResult<Value>()
    let done = DispatchSemaphore(value: 0)
    let run = { @Sendable in
        result.value = await body()
        done.signal()
    }
    if beginsHere { Task.immediateDetached(operation: run) } else { Task.detached(operation: run) }
    done.wait()
    return result.value.unsafelyUnwrapped
}

/// Like ``blocking(beginsHere:_:)``, on the main actor. The caller must be the main thread, because it runs the actor's jobs.
func onMainActor(_ body: @escaping @MainActor () async -> Sample) -> Sample {
    precondition(Thread.isMainThread, "the main actor's jobs are run by the main thread")
    /// Sendable: used by the main thread alone.
    final class Result: @unchecked Sendable {
        var sample: Sample?
    }
    let result = Result()
    Task { @MainActor in result.sample = await body() }
    while true {
        if let sample = result.sample { return sample }
        _ = RunLoop.main.run(mode: .default, before: .distantFuture)
    }
}
