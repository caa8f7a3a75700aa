import CScheduler
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// The operations that began, in order.
private typealias Order = Locked<[String]>

extension Order {
    func note(_ name: String) { withLock { $0.append(name) } }
    var names: [String] { withLock { $0 } }
}

/// Calls `first` on the only worker, and then holds that worker until the gate is opened.
private func hold(_ scheduler: Scheduler, _ first: @escaping @Sendable () -> Void = {}) throws -> Gate {
    let (isIn, gate) = (Gate(), Gate())
    try scheduler.submit {
        first()
        isIn.open()
        gate.wait()
    }
    isIn.wait()
    return gate
}

/// One worker, held by its first operation until `body` has submitted its operations. Returns when all of them have
/// ended.
private func withHeldWorker(
    _ body: (Scheduler, CompletionCounter) throws -> Void
) throws {
    let scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
    let counter = try CompletionCounter()
    let gate = try hold(scheduler)
    defer { gate.open() }
    try body(scheduler, counter)
    gate.open()
    counter.wait()
    try scheduler.shutdown()
}

/// Default and background operations begin `count` times each, within 61 of the start and of each other.
private func expectShares(of count: Int, in names: [String]) {
    for other in ["default", "background"] {
        let turns = names.indices.filter { names[$0] == other }
        #expect(turns.count == count)
        #expect(turns.first! <= 61)
        #expect(zip(turns, turns.dropFirst()).allSatisfy { $1 - $0 <= 61 })
    }
}

@Suite struct PriorityTests {
    @Test func `high operations begin before all others, and the background last`() throws {
        let order = Order([])
        try withHeldWorker { scheduler, counter in
            for index in 0..<1000 { try scheduler.submit(in: counter) { order.note("default \(index)") } }
            try scheduler.submit(priority: .background, in: counter) { order.note("background") }
            for index in 0..<3 {
                try scheduler.submit(priority: .high, in: counter) { order.note("high \(index)") }
            }
        }
        #expect(order.names.prefix(3) == ["high 0", "high 1", "high 2"])
        #expect(order.names.count == 1004)
        #expect(order.names.prefix(1000).last != "background")
    }

    @Test(arguments: [10_000])
    func `the background has one turn in 61, no more while others wait`(count: Int) throws {
        let order = Order([])
        try withHeldWorker { scheduler, counter in
            for _ in 0..<count { try scheduler.submit(in: counter) { order.note("default") } }
            for _ in 0..<count {
                try scheduler.submit(priority: .background, in: counter) { order.note("background") }
            }
        }
        let names = order.names
        let last = names.lastIndex(of: "default")!
        let turns = names[...last].indices.filter { names[$0] == "background" }
        #expect(zip(turns, turns.dropFirst()).allSatisfy { $1 - $0 <= 61 })
        #expect(turns.first! <= 61)
        #expect(turns.count <= count / 30)
        #expect(names.count == 2 * count)
    }

    @Test func `others have their turns while high operations wait`() throws {
        let order = Order([])
        try withHeldWorker { scheduler, counter in
            for _ in 0..<10_000 { try scheduler.submit(priority: .high, in: counter) { order.note("high") } }
            for _ in 0..<100 { try scheduler.submit(in: counter) { order.note("default") } }
            for _ in 0..<100 {
                try scheduler.submit(priority: .background, in: counter) { order.note("background") }
            }
        }
        expectShares(of: 100, in: order.names)
    }

    /// Each fair turn comes after a row of high operations, even if these take so long that time alone would grant
    /// a fair turn after each.
    @Test func `others have their turns while long high operations wait`() throws {
        let order = Order([])
        try withHeldWorker { scheduler, counter in
            let long: @Sendable () -> Void = {
                let end = ContinuousClock.now + .microseconds(250)
                while ContinuousClock.now < end {}
                order.note("high")
            }
            for _ in 0..<600 { try scheduler.submit(priority: .high, in: counter, long) }
            for _ in 0..<10 { try scheduler.submit(in: counter) { order.note("default") } }
            for _ in 0..<10 {
                try scheduler.submit(priority: .background, in: counter) { order.note("background") }
            }
        }
        expectShares(of: 10, in: order.names)
    }

    /// Long operations get a fair turn each: the background's share is counted, not timed.
    @Test func `long operations are delayed by the background no more often`() throws {
        let order = Order([])
        try withHeldWorker { scheduler, counter in
            let long: @Sendable () -> Void = {
                let end = ContinuousClock.now + .microseconds(400)
                while ContinuousClock.now < end {}
                order.note("default")
            }
            for _ in 0..<200 { try scheduler.submit(in: counter, long) }
            for _ in 0..<100 {
                try scheduler.submit(priority: .background, in: counter) { order.note("background") }
            }
        }
        let names = order.names
        let last = names.lastIndex(of: "default")!
        #expect(names[...last].count { $0 == "background" } <= 5)
    }

    @Test(arguments: Scheduler.Priority.allCases)
    func `submissions inherit the body's priority`(priority: Scheduler.Priority) throws {
        let seen = Locked<[Scheduler.Priority]>([])
        let note: @Sendable () -> Void = { seen.withLock { $0.append(Scheduler.currentPriority) } }
        try withScheduler(.init(workers: 2)) { scheduler in
            let counter = try CompletionCounter()
            try scheduler.submit(priority: priority, in: counter) {
                note()
                do {
                    try scheduler.submit(in: counter) {
                        note()
                        try? scheduler.submit(contentsOf: [note, note], in: counter)
                    }
                    try scheduler.forEach(0..<8) { _ in note() }
                    _ = Scheduler.join({ _ = Scheduler.join(note, note) }, note)
                    let inner = try CompletionCounter()
                    try scheduler.submit(priority: .high, in: inner) {
                        #expect(Scheduler.currentPriority == .high)
                    }
                    inner.wait()
                    note()
                } catch {
                    Issue.record(error)
                }
            }
            counter.wait()
        }
        #expect(seen.withLock { $0 } == Array(repeating: priority, count: 16))
        #expect(Scheduler.currentPriority == .default)
    }

    @Test func `jobs have the priority of their tasks`() async throws {
        #expect(Scheduler.Priority(.userInitiated) == .high && Scheduler.Priority(.medium) == .default)
        #expect(Scheduler.Priority(.utility) == .default && Scheduler.Priority(.background) == .background)
        let scheduler = try Scheduler(.init(workers: 2))
        for (task, expected) in [
            (TaskPriority.high, Scheduler.Priority.high), (.medium, .default), (.low, .default),
            (.background, .background),
        ] {
            let seen = await Task(executorPreference: scheduler, priority: task) {
                let own = Scheduler.currentPriority
                async let child = Scheduler.currentPriority
                return [own, await child]
            }.value
            #expect(seen.first == expected)
            // A waiting task may raise the priority of another task, but never lowers it.
            #expect(seen.allSatisfy { $0 >= expected })
        }
    }

    @Test func `tasks of high priority begin before a thousand that wait`() async throws {
        let order = Order([])
        let scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
        let gate = try hold(scheduler)
        // In Swift 6.3, a group's `addTask` with an executor drops the priority.
        let priorities = Array(repeating: TaskPriority.medium, count: 1000) + [.background, .high]
        let tasks = priorities.map { priority in
            Task(executorPreference: scheduler, priority: priority) { order.note("\(priority)") }
        }
        gate.open()
        for task in tasks { await task.value }
        #expect(order.names.first == "\(TaskPriority.high)")
        #expect(order.names.count == 1002)
    }

    @Test func `a lane with a high operation does not wait behind others`() throws {
        let order = Order([])
        try withHeldWorker { scheduler, counter in
            let lane = try SerialLane(on: scheduler)
            for _ in 0..<1000 { try scheduler.submit(in: counter) { order.note("default") } }
            try lane.submit(priority: .background, in: counter) { order.note("lane, background") }
            try lane.submit(priority: .high, in: counter) { order.note("lane, high") }
        }
        #expect(order.names.prefix(2) == ["lane, background", "lane, high"])
    }

    @Test func `many of one priority at once: all or none`() throws {
        let order = Order([])
        try withHeldWorker { scheduler, counter in
            try scheduler.submit(in: counter) { order.note("default") }
            try scheduler.submit(
                contentsOf: (0..<3).map { index in { order.note("high \(index)") } }, priority: .high,
                in: counter)
        }
        #expect(order.names == ["high 0", "high 1", "high 2", "default"])
        let closed = try Scheduler(.init(workers: 1))
        try closed.shutdown()
        #expect(throws: SchedulerError.self) { try closed.submit(priority: .high) {} }
        #expect(throws: SchedulerError.self) { try closed.submit(contentsOf: [], priority: .background) }
    }

    @Test(arguments: Scheduler.CapacityPolicy.allCases)
    func `the capacity counts operations of every priority`(policy: Scheduler.CapacityPolicy) throws {
        let scheduler = try Scheduler(.init(workers: 2, capacity: 2, whenFull: policy))
        let (ran, accepted) = (Count(), Count())
        for index in 0..<300 {
            let priority = Scheduler.Priority.allCases[index % 3]
            do {
                try scheduler.submit(priority: priority) { ran.add() }
                accepted.add()
            } catch {
                #expect(error.code == .full && policy == .reject)
            }
        }
        try scheduler.shutdown()
        #expect(ran.value == accepted.value)
        #expect(scheduler.statistics.executed == UInt64(accepted.value))
    }

    @Test(arguments: Scheduler.Priority.allCases)
    func `a cancelling shutdown drops waiters of every priority`(priority: Scheduler.Priority) throws {
        let scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
        let (ran, counter) = (Count(), try CompletionCounter())
        let gate = try hold(scheduler) {
            // Into its worker's deque.
            for _ in 0..<10 { try? scheduler.submit(priority: priority, in: counter) { ran.add() } }
        }
        for _ in 0..<10 { try scheduler.submit(priority: priority, in: counter) { ran.add() } }
        _ = concurrently(2) { thread in
            if thread == 0 {
                try? scheduler.shutdown(.cancelPending)
            } else {
                #expect(eventually { (try? scheduler.submit {}) == nil })
                gate.open()
            }
        }
        #expect(counter.wait(timeout: .seconds(20)) == .completed)
        #expect(ran.value == 0)
        #expect(scheduler.statistics.cancelled >= 20)
    }

    @Test(arguments: Scheduler.Priority.allCases)
    func `nothing of any priority starts while suspended, and all of it after`(priority: Scheduler.Priority)
        throws
    {
        try withScheduler(.init(workers: 2)) { scheduler in
            let (ran, counter) = (Count(), try CompletionCounter())
            for _ in 0..<50 {
                scheduler.suspend()
                #expect(eventually { scheduler.statistics.running == 0 })
                let before = ran.value
                for _ in 0..<20 {
                    try scheduler.submit(priority: priority, in: counter) {
                        ran.add()
                        try? scheduler.submit(in: counter) { ran.add() }
                    }
                }
                #expect(ran.value == before)
                scheduler.resume()
            }
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
            #expect(ran.value == 2000)
        }
    }

    /// A worker that leaves, or is replaced, leaves no operations of any priority behind.
    @Test(arguments: Scheduler.Priority.allCases)
    func `operations in the deque of a worker that leaves or blocks are run`(priority: Scheduler.Priority)
        throws
    {
        try withScheduler(.init(workers: 2)) { scheduler in
            let (ran, counter) = (Count(), try CompletionCounter())
            for round in 0..<20 {
                let gate = Gate()
                try scheduler.submit(priority: priority, in: counter) {
                    for _ in 0..<5 { try? scheduler.submit(in: counter) { ran.add() } }
                    try? scheduler.submit(in: counter) { gate.open() }
                    if round % 2 == 0 { Scheduler.blocking { gate.wait() } } else { gate.wait() }
                }
                if round % 4 < 2 { try scheduler.setWorkers(1 + round % 2) }
            }
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
            #expect(ran.value == 100)
        }
    }
}

extension Stress {
    @Suite(.inTurn) struct Priorities {
        @Test(arguments: [1, 2, 5])
        func `operations of all priorities, from everywhere, run once`(workers: Int) throws {
            let each = scaled(20_000)
            try withScheduler(.init(workers: workers)) { scheduler in
                let (runs, counter) = (Runs(3 * 2 * each), try CompletionCounter())
                _ = concurrently(3) { thread in
                    for index in 0..<each {
                        let priority = Scheduler.Priority.allCases[(index + thread) % 3]
                        let number = 2 * (thread * each + index)
                        do {
                            try scheduler.submit(priority: priority, in: counter) {
                                runs.note(number)
                                do {
                                    if index % 5 == 0 {
                                        let other = Scheduler.Priority.allCases[index % 3]
                                        try scheduler.submit(priority: other, in: counter) {
                                            runs.note(number + 1)
                                        }
                                    } else {
                                        try scheduler.submit(in: counter) { runs.note(number + 1) }
                                    }
                                } catch {
                                    Issue.record(error)
                                }
                            }
                        } catch {
                            Issue.record(error)
                        }
                    }
                }
                #expect(counter.wait(timeout: .seconds(60)) == .completed)
                #expect(runs.areExactlyOnce)
            }
        }
    }
}
