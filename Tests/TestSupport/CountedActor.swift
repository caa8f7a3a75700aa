// CountedActor.swift - how often code leaves its actor, and comes back: each time is a job of the actor's executor.

import Dispatch
import Synchronization

/// Counts the jobs that it is given, and has a queue run them.
public final class CountingExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "counted")
    private let count = Atomic(0)

    /// How many it was given.
    public var jobs: Int { count.load(ordering: .relaxed) }

    /// Counts it.
    public func enqueue(_ job: consuming ExecutorJob) {
        count.add(1, ordering: .relaxed)
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}

/// Counts how often what runs on it comes back.
public actor CountedActor {
    /// Has the count.
    public nonisolated let executor = CountingExecutor()
    /// That of the actor.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// One with an executor of its own.
    public init() {}

    /// - Returns: how many jobs more it took.
    public func jobs(of body: nonisolated(nonsending) () async throws -> Void) async rethrows -> Int {
        let before = executor.jobs
        try await body()
        return executor.jobs - before
    }
}
