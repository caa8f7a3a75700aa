// Submissions without `try`, and a counter's `completed()`, a name that is unambiguous everywhere.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn) struct SubmitTests {
    @Test func `the shared scheduler takes operations without try`() async throws {
        let runs = Runs(1_000)
        let counter = try CompletionCounter()
        let alone = Gate()
        for index in 0..<1_000 { Scheduler.submit(in: counter) { runs.note(index) } }
        Scheduler.submit {
            if Scheduler.current === Scheduler.shared { alone.open() }
        }
        try await counter.completed()
        #expect(runs.areExactlyOnce)
        let ranThere = alone.wait(timeout: .seconds(20))
        #expect(ranThere)
    }

    /// In its own process, which forks: the child's copies of the schedulers are closed.
    @Test(.enabled(if: !isThreadSanitized))
    func `a forked child cannot submit to the shared scheduler, and says so`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            typealias Fork = @convention(c) () -> pid_t
            let fork = unsafeBitCast(try #require(dlsym(nil, "fork")), to: Fork.self)
            Scheduler.submit {}
            let child = fork()
            if child == 0 {
                Scheduler.submit {}
                _exit(0)
            }
            var status: Int32 = 0
            while waitpid(child, &status, 0) < 0 && errno == EINTR {}
            _exit(status == 0 ? 0 : 1)
        }
        let told = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(told.contains("Scheduler.submit: the scheduler is shut down"))
    }

    @Test func `completed waits for the generation, and is cancelled`() async throws {
        let counter = try CompletionCounter()
        try await counter.completed()
        counter.enter()
        let waiting = Task { try await counter.completed() }
        let cancelled = Task { try await counter.completed() }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        counter.leave()
        try await waiting.value
        #expect(counter.outstanding == 0)
    }
}
