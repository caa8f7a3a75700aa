// ExplorationTests.swift - which schedules are run, and of what.

import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(.seconds(60))) struct ExplorationTests {
    @Test func `all orders of two tasks are run, and each of their interleavings is among them`() async throws
    {
        let orders = Locked<[[Int]]>([])
        let coverage = try await covered(
            options: ExplorationOptions(departures: nil), twoTasks(steps: 4, into: orders))
        let seen = orders.withLock { $0 }
        // 8 over 4.
        #expect(Set(seen).count == 70)
        #expect(coverage.isComplete && coverage.random == 0)
        #expect(coverage.schedules.reduce(0, +) == seen.count)
    }

    @Test func `schedules with more departures come later, none twice, and their numbers add up`()
        async throws
    {
        let orders = Locked<[[Int]]>([])
        let body = twoTasks(steps: 4, into: orders)
        let all = try await covered(options: ExplorationOptions(departures: nil), body)
        var sum: [Int] = []
        for bound in 0...4 {
            let some = try await covered(options: ExplorationOptions(departures: bound, random: 0), body)
            #expect(some.schedules.count == bound + 1 && some.isCompleteWithinBound && !some.isComplete)
            #expect(Array(some.schedules.prefix(sum.count)) == sum)
            sum = some.schedules
        }
        let bounded = try await covered(options: ExplorationOptions(departures: 100), body)
        #expect(bounded.schedules == all.schedules && bounded.isComplete)
        #expect(sum.indices.allSatisfy { sum[$0] == all.schedules[$0] })
        #expect(sum[0] == 1)
    }

    @Test func `the limit holds, and is said`() async throws {
        let coverage = try await covered(
            options: ExplorationOptions(departures: nil, limit: 10, random: 5),
            twoTasks(steps: 4, into: Locked([])))
        #expect(coverage.schedules.reduce(0, +) == 10 && coverage.random == 5)
        #expect(!coverage.isComplete && !coverage.isCompleteWithinBound)
        #expect("\(coverage)".hasPrefix("the first 10 schedules"), "\(coverage)")
    }

    @Test(arguments: Subject.allCases) func `a fault is found with few departures, and replayed`(
        _ subject: Subject
    ) async throws {
        let failure = try await failing(subject.body(isFaulty: true))
        #expect((1...3).contains(failure.schedule.departures.count), "\(failure)")
        let schedule = try #require(Schedule("\(failure.schedule)"))
        for _ in 0..<30 {
            let again = try await failing(
                options: ExplorationOptions(replay: schedule), subject.body(isFaulty: true))
            #expect(again.reason == failure.reason && again.schedule == schedule)
            #expect(again.steps.map(\.choice) == failure.steps.map(\.choice))
        }
        let held = try await covered(
            options: ExplorationOptions(departures: nil), subject.body(isFaulty: false))
        #expect(held.isComplete && held.schedules.reduce(0, +) > 1)
    }

    @Test(arguments: Subject.allCases) func `a random schedule that fails gets few departures`(
        _ subject: Subject
    ) async throws {
        let options = ExplorationOptions(departures: 0, random: 10_000)
        let body = subject.body(isFaulty: true)
        let failure = try await failing(options: options) {
            // What has nothing to do with the fault makes many decisions.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { for _ in 0..<6 { await Task.yield() } } }
                group.addTask { try await body() }
                try await group.waitForAll()
            }
        }
        #expect((1...2).contains(failure.schedule.departures.count), "\(failure)")
    }

    @Test func `unstructured and detached tasks, and the main actor, are steps like others`() async throws {
        let orders = Locked<Set<[String]>>([])
        let coverage = try await covered(options: ExplorationOptions(departures: nil)) {
            let order = Locked<[String]>([])
            @Sendable func note(_ name: String) { order.withLock { $0.append(name) } }
            let tasks = [
                Task { note("task") }, Task.detached { note("detached") },
                Task { @MainActor in
                    MainActor.assertIsolated()
                    note("main")
                },
            ]
            for task in tasks { await task.value }
            orders.withLock { orders in _ = orders.insert(order.withLock { $0 }) }
        }
        #expect(coverage.isComplete)
        #expect(orders.withLock { $0.count } == 6)
    }

    @Test func `sleeping tasks are woken in the order of time, and no time passes meanwhile`() async throws {
        let start = ContinuousClock.now
        let orders = Locked<Set<[Int]>>([])
        let usual = ExplorationOptions(departures: 0, random: 0)
        let body: @Sendable () async throws -> Void = {
            let order = Locked<[Int]>([])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for hours in [3, 1, 2] {
                    group.addTask {
                        try await Task.sleep(for: .seconds(3_600 * hours))
                        order.withLock { $0.append(hours) }
                    }
                }
                try await group.waitForAll()
            }
            orders.withLock { orders in _ = orders.insert(order.withLock { $0 }) }
        }
        _ = try await covered(options: usual, body)
        #expect(orders.withLock { $0 } == [[1, 2, 3]])
        let times = Locked<[Int]>([])
        _ = try await covered(options: usual) {
            times.withLock { $0 = [] }
            async let twice: Void = {
                for _ in 0..<2 {
                    try await Task.sleep(for: .seconds(60))
                    times.withLock { $0.append(60) }
                }
            }()
            async let once: Void = {
                try await Task.sleep(for: .seconds(90))
                times.withLock { $0.append(90) }
            }()
            _ = try await (twice, once)
        }
        #expect(times.withLock { $0 } == [60, 90, 60])
        // A task that was woken may be overtaken.
        _ = try await covered(options: ExplorationOptions(departures: nil), body)
        #expect(orders.withLock { $0.count } > 1)
        #expect(ContinuousClock.now - start < .seconds(600))
    }

    @Test func `a time limit may pass at any moment`() async throws {
        let outcomes = Locked<Set<String>>([])
        _ = try await covered {
            let outcome = await withTaskGroup(of: String.self) { group in
                group.addTask {
                    await Task.yield()
                    return "done"
                }
                group.addTask {
                    try? await Task.sleep(for: .seconds(1))
                    return "late"
                }
                defer { group.cancelAll() }
                return await group.next() ?? ""
            }
            outcomes.withLock { _ = $0.insert(outcome) }
        }
        #expect(outcomes.withLock { $0 } == ["done", "late"])
    }

    @Test func `a point makes room for others, and elsewhere does nothing`() async throws {
        await explorationPoint("elsewhere")
        let seen = Locked<Set<Int>>([])
        let body: @Sendable () async -> Void = {
            let counter = Locked(0)
            @Sendable func add() async {
                let old = counter.withLock { $0 }
                await explorationPoint("read")
                counter.withLock { $0 = old + 1 }
            }
            async let one: Void = add()
            async let two: Void = add()
            _ = await (one, two)
            seen.withLock { seen in _ = seen.insert(counter.withLock { $0 }) }
        }
        _ = try await covered(options: ExplorationOptions(departures: 0, random: 0), body)
        #expect(seen.withLock { $0 } == [2], "at a point a task usually goes on")
        _ = try await covered(body)
        #expect(seen.withLock { $0 } == [1, 2])
    }

    @Test func `a history of the steps is checked for an order`() async throws {
        actor Register {
            private var value = 0
            func add() async -> Int {
                let old = value
                await explorationPoint("read")
                value = old + 1
                return old
            }
        }
        struct NoOrder: Error {}
        let failure = try await failing {
            let history = History<String, Int>(threads: 2, callsPerThread: 1)
            let register = Register()
            async let one = history.record(on: 0, "add") { await register.add() }
            async let two = history.record(on: 1, "add") { await register.add() }
            _ = await (one, two)
            let calls = history.calls
            guard isLinearizable(calls, from: 0, step: { $2 == $0 ? $0 + 1 : nil }) else { throw NoOrder() }
        }
        #expect(failure.reason == .failed("threw NoOrder()"))
        #expect(failure.steps.contains { $0.points == ["read"] })
    }

    @Test func `the values of the caller's task are those of the body`() async throws {
        let seen = Locked<Set<Int>>([])
        try await Bound.$number.withValue(7) {
            _ = try await covered {
                async let one: Void = { seen.withLock { _ = $0.insert(Bound.number) } }()
                await one
            }
        }
        #expect(seen.withLock { $0 } == [7])
    }

    enum Bound { @TaskLocal static var number = 0 }
}
