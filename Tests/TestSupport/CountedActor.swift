// CountedActor.swift - counts the jobs of an actor's executor: one each time code leaves the actor and comes back.

import Dispatch
import Synchronization

/// Counts its jobs, and runs them on a queue.
public final class CountingExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "counted")
    private let count = Atomic(0)

    /// The number of jobs so far.
    public var jobs: Int { count.load(ordering: .relaxed) }

    /// Counts a job, and runs it on the queue.
    public func enqueue(_ job: consuming ExecutorJob) {
        count.add(1, ordering: .relaxed)
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}

/// Counts how often the code that runs on it comes back.
public actor CountedActor {
    /// The executor, which holds the count.
    public nonisolated let executor = CountingExecutor()
    /// The executor of the actor.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Creates an actor with its own executor.
    public init() {}

    /// - Returns: the number of jobs that `body` took.
    public func jobs(of body: nonisolated(nonsending) () async throws -> Void) async rethrows -> Int {
        let before = executor.jobs
        try await body()
        return executor.jobs - before
    }
}
