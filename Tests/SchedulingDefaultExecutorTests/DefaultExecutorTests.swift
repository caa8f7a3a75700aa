// The default executor of a program. A process installs it only once, so each test has its own process.

import Scheduling
import SchedulingDefaultExecutor
import Testing

private actor Account {
    private var balance = 0
    func deposit(_ amount: Int) -> Scheduler? {
        balance += amount
        return .current
    }
}

@concurrent private func onCurrentJob() async -> Scheduler? { .current }

/// Returns the scheduler on which a new job runs. The test's body belongs to a job that has already
/// begun, and stays where it is.
private func current() async -> Scheduler? { await Task { @MainActor in await onCurrentJob() }.value }

@MainActor private func currentOfMainActor() -> Scheduler? { .current }

/// Without `await`: such a call would be a task of the scheduler that it shuts down.
private func shutDown(_ scheduler: Scheduler) throws { try scheduler.shutdown() }

@Suite struct DefaultExecutorTests {
    @Test func `tasks without their own executor run on the scheduler`() async {
        await #expect(processExitsWith: .success) {
            let scheduler = try Scheduler(.init(workers: 2))
            #expect(await current() == nil)
            scheduler.installAsDefaultExecutor()
            #expect(await current() === scheduler)
            let detached = await Task.detached { Scheduler.current }.value
            #expect(detached === scheduler)
            let unstructured = await Task { @concurrent in Scheduler.current }.value
            #expect(unstructured === scheduler)
            // From a new task, because a call to an idle actor runs where its caller runs.
            let depositor = await Task.detached { await Account().deposit(1) }.value
            #expect(depositor === scheduler)
            let withoutPreference = await Task { @MainActor in
                await withTaskExecutorPreference(nil) { await onCurrentJob() }
            }.value
            #expect(withoutPreference === scheduler)
            let children = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<1000 { group.addTask { Scheduler.current === scheduler } }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(children == 1000)
        }
    }

    @Test func `a task that slept resumes on the scheduler, not too early`() async {
        await #expect(processExitsWith: .success) {
            Scheduler.shared.installAsDefaultExecutor()
            let start = ContinuousClock.now
            let places = try await Task.detached { () async throws -> [Scheduler?] in
                try await Task.sleep(for: .milliseconds(20))
                let first = Scheduler.current
                try await SuspendingClock().sleep(for: .milliseconds(1))
                return [first, Scheduler.current]
            }.value
            #expect(places.allSatisfy { $0 === Scheduler.shared })
            #expect(ContinuousClock.now - start >= .milliseconds(21))
            let cancelled = Task.detached { try await Task.sleep(for: .seconds(3600)) }
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
        }
    }

    @Test func `a preference and the main actor stay as they are`() async {
        await #expect(processExitsWith: .success) {
            let other = try Scheduler(.init(workers: 1))
            Scheduler.shared.installAsDefaultExecutor()
            #expect(await withTaskExecutorPreference(other) { await onCurrentJob() } === other)
            #expect(await currentOfMainActor() == nil)
            #expect(await current() === Scheduler.shared)
        }
    }

    @Test func `after a shutdown tasks run on the shared scheduler`() async {
        await #expect(processExitsWith: .success) {
            let scheduler = try Scheduler(.init(workers: 1))
            scheduler.installAsDefaultExecutor()
            #expect(await current() === scheduler)
            try await MainActor.run { try shutDown(scheduler) }
            #expect(await current() === Scheduler.shared)
        }
    }

    @Test func `the priority of a task is kept`() async {
        await #expect(processExitsWith: .success) {
            Scheduler.shared.installAsDefaultExecutor()
            #expect(await Task.detached(priority: .high) { Task.currentPriority }.value == .high)
        }
    }

    @Test func `a second installation stops the process`() async throws {
        let result = try await #require(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            Scheduler.shared.installAsDefaultExecutor()
            Scheduler.shared.installAsDefaultExecutor()
        }
        let said = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(said.contains("Scheduler.installAsDefaultExecutor: called a second time"))
    }
}
