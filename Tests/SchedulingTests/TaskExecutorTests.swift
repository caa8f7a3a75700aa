// Swift concurrency on a scheduler: task executor preference, actors on lanes, and tasks that outlive a
// shutdown.

import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

private actor Account {
    private let lane: SerialLane
    private(set) var balance = 0

    init(lane: SerialLane) { self.lane = lane }

    nonisolated var unownedExecutor: UnownedSerialExecutor { lane.asUnownedSerialExecutor() }

    func add(_ amount: Int) { balance += amount }

    /// A suspension in the middle lets other calls in, on the same lane.
    func addSlowly(_ amount: Int) async {
        await Task.yield()
        balance += amount
    }

    func isOnLane() -> Bool { lane.isCurrent }

    nonisolated func addAssumingIsolation() { assumeIsolated { $0.balance += 1 } }

    func addThroughAssumption() { addAssumingIsolation() }
}

extension Stress {
    @Suite(.inTurn) struct Tasks {
        @Test(arguments: [1, 2, 4])
        func `a task group sums on the workers`(workers: Int) async throws {
            let scheduler = try Scheduler(.workers(workers))
            let elsewhere = Count()
            let sum = await withTaskExecutorPreference(scheduler) {
                await withTaskGroup(of: Int.self) { group in
                    for index in 0..<scaled(1000) {
                        group.addTask {
                            if Scheduler.current !== scheduler { elsewhere.add() }
                            await Task.yield()
                            if Scheduler.current !== scheduler { elsewhere.add() }
                            return index
                        }
                    }
                    return await group.reduce(0, +)
                }
            }
            #expect(sum == (0..<scaled(1000)).reduce(0, +))
            #expect(elsewhere.value == 0)
            try await scheduler.shutdown()
        }

        @Test(arguments: [1, 4])
        func `actors on lanes are isolated`(workers: Int) async throws {
            let scheduler = try Scheduler(.workers(workers))
            let accounts = try (0..<4).map { _ in Account(lane: try SerialLane(on: scheduler)) }
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<scaled(1000) {
                    group.addTask { await accounts[index % 4].add(1) }
                    group.addTask { await accounts[index % 4].addSlowly(1) }
                    group.addTask { await accounts[index % 4].addThroughAssumption() }
                }
            }
            var total = 0
            for account in accounts {
                #expect(await account.isOnLane())
                total += await account.balance
            }
            #expect(total == 3 * scaled(1000))
            try await scheduler.shutdown()
        }

        @Test(arguments: [Scheduler.ShutdownPolicy.drain, .cancelPending])
        func `tasks that a shutdown overtakes still end`(policy: Scheduler.ShutdownPolicy) async throws {
            for _ in 0..<scaled(20) {
                let scheduler = try Scheduler(.workers(2))
                let account = Account(lane: try SerialLane(on: scheduler))
                let tasks = (0..<50).map { index in
                    Task(executorPreference: scheduler) {
                        for _ in 0..<5 {
                            await Task.yield()
                            await account.add(1)
                        }
                        return index
                    }
                }
                try await scheduler.shutdown(policy)
                var sum = 0
                for task in tasks { sum += await task.value }
                try #require(sum == (0..<50).reduce(0, +))
                try #require(await account.balance == 250)
            }
        }
    }
}

@Suite(.inTurn) struct TaskExecutorTests {
    @Test func `a task that prefers a scheduler that is shut down runs on the shared one`() async throws {
        let scheduler = try Scheduler(.workers(1))
        try await scheduler.shutdown()
        let current = await withTaskExecutorPreference(scheduler) { Scheduler.current }
        #expect(current === Scheduler.shared)
    }

    @Test func `an actor on a lane that is shut down goes on`() async throws {
        let scheduler = try Scheduler(.workers(1))
        let account = Account(lane: try SerialLane(on: scheduler))
        await account.add(1)
        try await scheduler.shutdown()
        await account.add(1)
        #expect(await account.balance == 2)
        #expect(await account.isOnLane())
    }

    @Test(arguments: Scheduler.CapacityPolicy.allCases)
    func `tasks of a bounded scheduler all end`(policy: Scheduler.CapacityPolicy) async throws {
        let scheduler = try Scheduler(.init(workers: 1, capacity: 1, whenFull: policy))
        let sum = await withTaskGroup(of: Int.self) { group in
            for index in 0..<200 {
                group.addTask(executorPreference: scheduler) {
                    await Task.yield()
                    return index
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sum == 19900)
        try await scheduler.shutdown()
    }

    @Test func `the current scheduler is known inside its bodies only`() throws {
        try withScheduler(.workers(1)) { scheduler in
            #expect(Scheduler.current == nil)
            let counter = try CompletionCounter()
            let right = Count()
            try scheduler.submit(in: counter) { if Scheduler.current === scheduler { right.add() } }
            counter.wait()
            #expect(right.value == 1)
        }
    }

    @Test func `assuming the isolation of another lane stops the process`() async {
        await #expect(processExitsWith: .failure) {
            Account(lane: try SerialLane(on: Scheduler(.workers(1)))).addAssumingIsolation()
        }
    }
}
