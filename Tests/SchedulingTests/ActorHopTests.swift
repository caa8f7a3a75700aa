// A call that does not wait must not leave its actor: a hop costs two enqueues, and other jobs can
// intervene.

import CompositeOperationsTestSupport
import Scheduling
import Testing

/// Without `.inTurn`: a task that prefers an executor hops at each call of an actor with a custom executor.
@Suite struct ActorHops {
    @Test func `a task that is cancelled does not leave its actor to sleep`() async throws {
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await CountedActor().jobs { try? await Scheduler.shared.sleep(for: .seconds(100)) }
        }
        #expect(await task.value == 0)
    }

    @Test func `a loop that is refused does not leave its actor`() async throws {
        let scheduler = try Scheduler(.workers(1))
        try await scheduler.shutdown()
        let jobs = await CountedActor().jobs {
            try? await scheduler.forEach(0..<100) { _ in Issue.record("It is shut down.") }
            try? await scheduler.forEach(Array(0..<100)) { _ in Issue.record("It is shut down.") }
        }
        #expect(jobs == 0)
    }

    @Test func `nothing to wait for does not leave its actor`() async throws {
        let counter = try CompletionCounter()
        #expect(try await CountedActor().jobs { try await counter.wait() } == 0)
        #expect(try await CountedActor().jobs { try await counter.completed() } == 0)
    }
}
