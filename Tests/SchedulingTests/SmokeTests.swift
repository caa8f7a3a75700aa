import Scheduling
import Testing

@Test func `closures, ranges, lanes and tasks run`() async throws {
    try await withScheduler { scheduler in
        let counter = try CompletionCounter()
        for _ in 0..<1000 { try scheduler.submit(in: counter) {} }
        try await counter.wait()
        try await scheduler.forEach(0..<1000) { _ in }
        let sum = await withTaskExecutorPreference(scheduler) {
            await withTaskGroup(of: Int.self) { group in
                for i in 0..<100 { group.addTask { i } }
                return await group.reduce(0, +)
            }
        }
        #expect(sum == 4950)
        let lane = try SerialLane(on: scheduler)
        let account = Account(lane: lane)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { await account.add(1) } }
        }
        #expect(await account.balance == 100)
    }
}

actor Account {
    let lane: SerialLane
    var balance = 0
    init(lane: SerialLane) { self.lane = lane }
    nonisolated var unownedExecutor: UnownedSerialExecutor { lane.asUnownedSerialExecutor() }
    func add(_ n: Int) { balance += n }
}
