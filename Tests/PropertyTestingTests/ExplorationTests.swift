// ExplorationTests.swift - which schedules are run, and what they consist of.

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
        // 8 choose 4.
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

    @Test func `the limit holds and is shown`() async throws {
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
            // Tasks that have nothing to do with the fault make many decisions.
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

    @Test func `a point lets others run, and elsewhere does nothing`() async throws {
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

    @Test func `one departure delays a task behind a whole chain of others`() async throws {
        let orders = Locked<Set<String>>([])
        _ = try await covered(options: ExplorationOptions(departures: 1, random: 0)) {
            let order = Locked("")
            let (isLast, last) = AsyncStream.makeStream(of: Void.self)
            @Sendable func go(_ number: Int) {
                order.withLock { $0 += "\(number)" }
                if number < 6 { Task.detached { go(number + 1) } } else { last.finish() }
            }
            go(0)
            async let other: Void = order.withLock { $0 += "-" }
            for await _ in isLast {}
            await other
            orders.withLock { orders in _ = orders.insert(order.withLock { $0 }) }
        }
        #expect(orders.withLock { $0.isSuperset(of: ["0-123456", "01-23456", "0123456-"]) })
    }

    @Test func `a task that calls functions is in one step, with a preferred executor and without`()
        async throws
    {
        @Sendable func call(_ depth: Int) async { if depth > 0 { await call(depth - 1) } }
        @Sendable func work() async {
            await call(3)
            await explorationPoint("between")
            await call(3)
        }
        let options = ExplorationOptions(departures: nil)
        let children = try await covered(options: options) {
            async let one: Void = work()
            async let two: Void = work()
            _ = await (one, two)
        }
        let detached = try await covered(options: options) {
            let tasks = [Task.detached { await work() }, Task.detached { await work() }]
            for task in tasks { await task.value }
        }
        #expect(children.isComplete && detached.isComplete)
        #expect(children.schedules == detached.schedules && children.decisions == detached.decisions)
    }

    @Test func `a point in an actor lets others into it, whatever their tasks are`() async throws {
        actor Counter {
            private(set) var count = 0
            func add() async {
                let old = count
                await explorationPoint("read")
                count = old + 1
            }
        }
        let seen = Locked<Set<Int>>([])
        let coverage = try await covered(options: ExplorationOptions(departures: nil)) {
            let counter = Counter()
            let tasks = [Task { await counter.add() }, Task.detached { await counter.add() }]
            for task in tasks { await task.value }
            let count = await counter.count
            seen.withLock { _ = $0.insert(count) }
        }
        #expect(coverage.isComplete && seen.withLock { $0 } == [1, 2])
    }

    @Test func `an unstructured task sleeps and yields as a child task does`() async throws {
        actor Place {
            private(set) var log: [Int] = []
            func rest(_ number: Int) async throws {
                log.append(number)
                try await Task.sleep(for: .seconds(number))
                await Task.yield()
                log.append(-number)
            }
        }
        let logs = Locked<Set<[Int]>>([])
        let coverage = try await covered(options: ExplorationOptions(departures: 2)) {
            let place = Place()
            let tasks = [1, 2].map { number in
                Task {
                    try await place.rest(number)
                    try await Task.sleep(for: .seconds(1))
                    await Task.yield()
                }
            }
            for task in tasks { try await task.value }
            let log = await place.log
            logs.withLock { _ = $0.insert(log) }
        }
        #expect(coverage.isCompleteWithinBound)
        #expect(logs.withLock { $0.isSuperset(of: [[1, 2, -1, -2], [2, 1, -1, -2], [1, -1, 2, -2]]) })
    }

    @Test func `a task that outlives its exploration continues as a step of the next`() async throws {
        // Like a service that a program starts on first use.
        let (requests, service) = AsyncStream.makeStream(of: CheckedContinuation<Int, Never>.self)
        let isStarted = Locked(false)
        @Sendable func ask() async -> Int {
            let isFirst = isStarted.withLock { isStarted in
                defer { isStarted = true }
                return !isStarted
            }
            if isFirst {
                Task {
                    for await request in requests {
                        try? await Task.sleep(for: .milliseconds(1))
                        await Task.yield()
                        request.resume(returning: 1)
                    }
                }
            }
            return await withCheckedContinuation { service.yield($0) }
        }
        let usual = ExplorationOptions(departures: 0, random: 0)
        // At the end of an exploration the service waits for a request; elsewhere it reaches that wait a moment
        // after the answer.
        for _ in 0..<3 { _ = try await covered(options: usual) { #expect(await ask() == 1) } }
        for _ in 0..<3 { #expect(await ask() == 1) }
        service.finish()
    }

    @Test func `tasks left at a point by an endless schedule are not in the next`() async throws {
        actor Endless {
            func go() async { while true { await explorationPoint("again") } }
        }
        for steps in 100...101 {
            let options = ExplorationOptions(limit: 2, random: 0, steps: steps)
            let failure = try await failing(options: options) { await Endless().go() }
            #expect(failure.reason == .endless(steps: steps))
            #expect(Set(failure.steps.map(\.task)) == [1])
        }
    }

    @Test func `a clock of explorations shows the time of the schedule, and elsewhere the time`() async throws
    {
        let clock = ExplorationClock()
        let orders = Locked<Set<[Int]>>([])
        _ = try await covered(options: ExplorationOptions(departures: 0, random: 0)) {
            #expect(clock.now.offset == .zero)
            let order = Locked<[Int]>([])
            let deadlines = [3, 1, 2].map { clock.now.advanced(by: .nanoseconds($0)) }
            await withTaskGroup(of: Void.self) { group in
                for deadline in deadlines {
                    group.addTask {
                        try? await clock.sleep(until: deadline)
                        #expect(clock.now == deadline)
                        order.withLock { $0.append(Int(deadline.offset / .nanoseconds(1))) }
                    }
                }
            }
            let sleep = Task { try await clock.sleep(for: .seconds(1)) }
            sleep.cancel()
            await #expect(throws: CancellationError.self) { try await sleep.value }
            #expect(clock.now.offset == .nanoseconds(3))
            orders.withLock { orders in _ = orders.insert(order.withLock { $0 }) }
        }
        #expect(orders.withLock { $0 } == [[1, 2, 3]])
        let (before, start) = (clock.now, ContinuousClock.now)
        try await clock.sleep(for: .milliseconds(2))
        #expect(before.duration(to: clock.now) >= .milliseconds(2))
        #expect(before.duration(to: clock.now) - start.duration(to: .now) < .milliseconds(1))
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

    @Test func `the body sees the values of the caller's task`() async throws {
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
