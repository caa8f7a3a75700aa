// The default executor of a program: each kind of task reports which scheduler it runs on.

import Scheduling
import SchedulingDefaultExecutor

nonisolated func place() -> String {
    guard let scheduler = Scheduler.current else { return "elsewhere" }
    return scheduler === Scheduler.shared ? "on the shared scheduler" : "on another scheduler"
}

actor Account {
    private var balance = 0
    func deposit(_ amount: Int) -> String {
        balance += amount
        return place()
    }
}

@MainActor func mainActor() -> String { place() }

@concurrent func concurrent() async -> String { place() }

Scheduler.shared.installAsDefaultExecutor()

print("detached task:", await Task.detached { place() }.value)
print("concurrent function:", await concurrent())
print(
    "child task:",
    await withTaskGroup(of: String.self) { group in
        group.addTask { place() }
        return await group.next() ?? "nowhere"
    })
async let branch = place()
print("async let:", await branch)
print("actor:", await Account().deposit(1))
print(
    "after a yield:",
    await Task.detached { () async -> String in
        await Task.yield(); return place()
    }.value)
print(
    "after a sleep:",
    try await Task.detached { () async throws -> String in
        try await Task.sleep(for: .milliseconds(1))
        return place()
    }.value)
print("no preference:", await withTaskExecutorPreference(nil) { await concurrent() })
print("main actor:", mainActor())
try await withScheduler(.init(workers: 1)) { other in
    print("a preference:", await withTaskExecutorPreference(other) { await concurrent() })
}
let cancelled = Task.detached { try await Task.sleep(for: .seconds(3600)) }
cancelled.cancel()
print("a cancelled sleep:", await cancelled.result)
