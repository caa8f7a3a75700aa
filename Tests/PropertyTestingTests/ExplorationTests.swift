import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(.seconds(60))) struct ExplorationTests {
    private func failure(
        options: ExplorationOptions = ExplorationOptions(),
        _ body: @escaping @Sendable () async throws -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> FailingSchedule {
        switch await checkSchedules(options: options, body) {
        case .failed(let failure): return failure
        case .held(let coverage):
            Issue.record("held: \(coverage)", sourceLocation: sourceLocation)
            throw NothingFound()
        }
    }

    private func coverage(
        options: ExplorationOptions = ExplorationOptions(),
        _ body: @escaping @Sendable () async throws -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> ExplorationCoverage {
        switch await checkSchedules(options: options, body) {
        case .held(let coverage): return coverage
        case .failed(let failure):
            Issue.record("\(failure)", sourceLocation: sourceLocation)
            throw NothingFound()
        }
    }

    struct NothingFound: Error {}

    /// The orders in which two tasks log their steps.
    private static func twoTasks(steps: Int, into orders: Locked<[[Int]]>) -> @Sendable () async -> Void {
        {
            let order = Locked<[Int]>([])
            @Sendable func go(_ task: Int) async {
                for step in 0..<steps {
                    if step > 0 { await Task.yield() }
                    order.withLock { $0.append(task) }
                }
            }
            async let first: Void = go(1)
            async let second: Void = go(2)
            _ = await (first, second)
            orders.withLock { orders in orders.append(order.withLock { $0 }) }
        }
    }

    // MARK: - Which schedules

    @Test func `all orders of two tasks are run, and each of their interleavings is among them`() async throws
    {
        let orders = Locked<[[Int]]>([])
        let coverage = try await coverage(
            options: ExplorationOptions(departures: nil), Self.twoTasks(steps: 4, into: orders))
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
        let body = Self.twoTasks(steps: 4, into: orders)
        let all = try await coverage(options: ExplorationOptions(departures: nil), body)
        var sum: [Int] = []
        for bound in 0...4 {
            let some = try await coverage(options: ExplorationOptions(departures: bound, random: 0), body)
            #expect(some.schedules.count == bound + 1 && some.isCompleteWithinBound && !some.isComplete)
            #expect(Array(some.schedules.prefix(sum.count)) == sum)
            sum = some.schedules
        }
        let bounded = try await coverage(options: ExplorationOptions(departures: 100), body)
        #expect(bounded.schedules == all.schedules && bounded.isComplete)
        #expect(sum.indices.allSatisfy { sum[$0] == all.schedules[$0] })
        #expect(sum[0] == 1)
    }

    @Test func `the limit holds, and is said`() async throws {
        let coverage = try await coverage(
            options: ExplorationOptions(departures: nil, limit: 10, random: 5),
            Self.twoTasks(steps: 4, into: Locked([])))
        #expect(coverage.schedules.reduce(0, +) == 10 && coverage.random == 5)
        #expect(!coverage.isComplete && !coverage.isCompleteWithinBound)
        #expect("\(coverage)".hasPrefix("the first 10 schedules"), "\(coverage)")
    }

    @Test(arguments: Subject.allCases) func `a fault is found with few departures, and replayed`(
        _ subject: Subject
    ) async throws {
        let failure = try await failure(subject.body(isFaulty: true))
        #expect((1...3).contains(failure.schedule.departures.count), "\(failure)")
        let schedule = try #require(Schedule("\(failure.schedule)"))
        for _ in 0..<30 {
            let again = try await self.failure(
                options: ExplorationOptions(replay: schedule), subject.body(isFaulty: true))
            #expect(again.reason == failure.reason && again.schedule == schedule)
            #expect(again.steps.map(\.choice) == failure.steps.map(\.choice))
        }
        let held = try await coverage(
            options: ExplorationOptions(departures: nil), subject.body(isFaulty: false))
        #expect(held.isComplete && held.schedules.reduce(0, +) > 1)
    }

    @Test(arguments: Subject.allCases) func `a random schedule that fails gets few departures`(
        _ subject: Subject
    ) async throws {
        let options = ExplorationOptions(departures: 0, random: 10_000)
        let body = subject.body(isFaulty: true)
        let failure = try await failure(options: options) {
            // What has nothing to do with the fault makes many decisions.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { for _ in 0..<6 { await Task.yield() } } }
                group.addTask { try await body() }
                try await group.waitForAll()
            }
        }
        #expect((1...2).contains(failure.schedule.departures.count), "\(failure)")
    }

    // MARK: - What is explored

    @Test func `unstructured and detached tasks, and the main actor, are steps like others`() async throws {
        let orders = Locked<Set<[String]>>([])
        let coverage = try await coverage(options: ExplorationOptions(departures: nil)) {
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

    @Test func `who sleeps is woken in the order of time, and no time passes meanwhile`() async throws {
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
        _ = try await coverage(options: usual, body)
        #expect(orders.withLock { $0 } == [[1, 2, 3]])
        let times = Locked<[Int]>([])
        _ = try await coverage(options: usual) {
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
        _ = try await coverage(options: ExplorationOptions(departures: nil), body)
        #expect(orders.withLock { $0.count } > 1)
        #expect(ContinuousClock.now - start < .seconds(600))
    }

    @Test func `a time limit may pass at any moment`() async throws {
        let outcomes = Locked<Set<String>>([])
        _ = try await coverage {
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
        _ = try await coverage(options: ExplorationOptions(departures: 0, random: 0), body)
        #expect(seen.withLock { $0 } == [2], "at a point a task usually goes on")
        _ = try await coverage(body)
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
        let failure = try await failure {
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
            _ = try await coverage {
                async let one: Void = { seen.withLock { _ = $0.insert(Bound.number) } }()
                await one
            }
        }
        #expect(seen.withLock { $0 } == [7])
    }

    enum Bound { @TaskLocal static var number = 0 }

    // MARK: - What is told

    @Test func `a task that another thread makes ready is told`() async throws {
        let failure = try await failure {
            let waiting = Locked<CheckedContinuation<Void, Never>?>(nil)
            async let first: Void = withCheckedContinuation { continuation in
                waiting.withLock { $0 = continuation }
            }
            async let second: Void = {
                let thread = startedThread { waiting.withLock { $0.take() }?.resume() }
                pthread_join(thread, nil)
            }()
            _ = await (first, second)
        }
        #expect(failure.reason == .outside)
    }

    @Test func `a task that another thread makes ready later is told`() async throws {
        let failure = try await failure {
            await withCheckedContinuation { continuation in
                let thread = startedThread {
                    usleep(2_000)
                    continuation.resume()
                }
                pthread_detach(thread)
            }
        }
        #expect(failure.reason == .outside)
    }

    @Test func `tasks that yield for ever are told, and tasks that yield until another one has come are not`()
        async throws
    {
        let failure = try await failure(options: ExplorationOptions(steps: 1_000)) {
            while !Task.isCancelled { await Task.yield() }
        }
        #expect(failure.reason == .endless(steps: 1_000))
        _ = try await coverage(options: ExplorationOptions(departures: 2, random: 10)) {
            let isSet = Locked(false)
            async let waiting: Void = { while !isSet.withLock({ $0 }) { await Task.yield() } }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = await (waiting, setting)
        }
        // Who yields is behind the others: else there would be decisions until patience ends.
        let usual = try await coverage(options: ExplorationOptions(departures: 0, random: 0)) {
            let isSet = Locked(false)
            async let waiting: Void = { while !isSet.withLock({ $0 }) { await Task.yield() } }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = await (waiting, setting)
        }
        #expect(usual.decisions < 10, "\(usual)")
    }

    @Test func `a task that asks again and again is overtaken by those that wait`() async throws {
        let usual = ExplorationOptions(departures: 0, random: 0, steps: 1_000)
        _ = try await coverage(options: usual) {
            let isSet = Locked(false)
            async let asking: Void = {
                while !isSet.withLock({ $0 }) { await explorationPoint("asks") }
            }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = await (asking, setting)
        }
    }

    @Test func `what is left over where nothing can go on is cancelled`() async throws {
        let cancelled = Locked(0)
        let failure = try await failure(options: ExplorationOptions(departures: 0, random: 100)) {
            await withTaskCancellationHandler {
                await withCheckedContinuation { (_: CheckedContinuation<Void, Never>) in }
            } onCancel: {
                cancelled.withLock { $0 += 1 }
                // These are no steps of the schedule, which has ended.
                for _ in 0..<3 { Task { cancelled.withLock { $0 += 1 } } }
            }
        }
        #expect(failure.steps.count == 1, "\(failure)")
        #expect(failure.reason == .stuck && failure.schedule.departures.isEmpty)
        #expect(cancelled.withLock { $0 } > 0)
    }

    @Test func `tasks that are left over are in every order, too`() async throws {
        let orders = Locked<Set<[Int]>>([])
        let coverage = try await coverage(options: ExplorationOptions(departures: nil)) {
            let order = Locked<[Int]>([])
            for number in 0..<3 {
                Task {
                    order.withLock { $0.append(number) }
                    if order.withLock({ $0.count }) == 3 {
                        orders.withLock { orders in _ = orders.insert(order.withLock { $0 }) }
                    }
                }
            }
        }
        #expect(coverage.isComplete && orders.withLock { $0.count } == 6)
    }

    @Test func `a main actor's task that is left over may be made ready after all`() async throws {
        let waiting = Locked<CheckedContinuation<Void, Never>?>(nil)
        _ = try await coverage(options: ExplorationOptions(departures: 0, random: 0)) {
            Task { @MainActor in
                await withCheckedContinuation { continuation in waiting.withLock { $0 = continuation } }
            }
        }
        waiting.withLock { $0.take() }?.resume()
    }

    @Test func `an actor that endless tasks use serves others afterwards`() async throws {
        actor Counter {
            private var count = 0
            func add() { count += 1 }
        }
        // Wherever it is left.
        for steps in 100..<108 {
            let counter = Counter()
            let failure = try await failure(options: ExplorationOptions(steps: steps)) {
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<2 {
                        group.addTask {
                            while true {
                                await counter.add()
                                await Task.yield()
                            }
                        }
                    }
                }
            }
            #expect(failure.reason == .endless(steps: steps))
            await Task.detached { await counter.add() }.value
        }
    }

    @Test func `what waits by sleeping or yielding is not endless in a random order`() async throws {
        let coverage = try await coverage(
            options: ExplorationOptions(departures: 0, random: 200, steps: 1_000)
        ) {
            let isSet = Locked(false)
            async let sleeping: Void = {
                while !isSet.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(10)) }
            }()
            async let yielding: Void = { while !isSet.withLock({ $0 }) { await Task.yield() } }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = try await (sleeping, yielding, setting)
        }
        #expect(coverage.decisions < 100, "\(coverage)")
    }

    @Test func `a schedule with too many steps is brought to its end in the usual order, and is not all`()
        async throws
    {
        // With less patience than it takes until the task that asks is overtaken.
        let coverage = try await coverage(options: ExplorationOptions(departures: 0, random: 0, steps: 40)) {
            let isSet = Locked(false)
            async let asking: Void = {
                while !isSet.withLock({ $0 }) { await explorationPoint("asks") }
            }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = await (asking, setting)
        }
        #expect(!coverage.isComplete && !coverage.isCompleteWithinBound)
    }

    @Test func `a failure that does not come again is told`() async throws {
        let runs = Locked(0)
        let failure = try await failure {
            let run = runs.withLock { runs in
                runs += 1
                return runs
            }
            async let one: Void = Task.yield()
            async let two: Void = Task.yield()
            _ = await (one, two)
            if run == 3 { throw Oversold() }
        }
        guard case .notRepeated = failure.reason else {
            Issue.record("\(failure)")
            return
        }
    }

    @Test func `no sleep is too long, or too short`() async throws {
        _ = try await coverage(options: ExplorationOptions(departures: 0, random: 0)) {
            for seconds in [-10_000_000_000, -1, 0, 10_000_000_000] {
                try await Task.sleep(for: .seconds(seconds))
            }
        }
    }

    @Test func `a task that is left over and yields for ever is told`() async throws {
        let failure = try await failure(options: ExplorationOptions(steps: 1_000)) {
            Task { while true { await Task.yield() } }
        }
        #expect(failure.reason == .endless(steps: 1_000))
    }

    @Test func `a body that does not repeat itself is told`() async throws {
        let runs = Locked(0)
        let failure = try await failure {
            let run = runs.withLock { runs in
                runs += 1
                return runs
            }
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<(run + 1) { group.addTask { await Task.yield() } }
            }
        }
        guard case .notRepeatable = failure.reason else {
            Issue.record("\(failure)")
            return
        }
    }

    @Test(arguments: ["0:9", "99:1"]) func `a schedule that does not fit is told`(_ text: String) async throws
    {
        let schedule = try #require(Schedule(text))
        let failure = try await failure(
            options: ExplorationOptions(replay: schedule), Self.twoTasks(steps: 3, into: Locked([])))
        guard case .doesNotFit = failure.reason else {
            Issue.record("\(failure)")
            return
        }
    }

    @Test func `text of a schedule`() throws {
        for text in [".", "0:1", "7:1.12:2"] { #expect("\(try #require(Schedule(text)))" == text) }
        for text in [
            "", "+7:1", "7:+1", "99999999999:1", "7", "7:0", "-1:1", "7:1.7:1", "8:1.7:1", "7:1.", "a:b",
            "7:99999", "7:1:2",
        ] {
            #expect(Schedule(text) == nil, "\(text)")
        }
    }

    @Test func `a cancelled exploration ends with what it has`() async {
        let outcome = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await checkSchedules(Self.twoTasks(steps: 4, into: Locked([])))
        }.value
        guard case .held(let coverage) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(coverage.schedules.isEmpty && !coverage.isComplete)
    }

    @Test func `the body's objects are gone with each schedule that ends`() async throws {
        final class Counted: Sendable {
            let live: Locked<Int>
            init(_ live: Locked<Int>) {
                self.live = live
                live.withLock { $0 += 1 }
            }
            deinit { live.withLock { $0 -= 1 } }
        }
        let live = Locked(0)
        let most = Locked(0)
        _ = try await coverage {
            let object = Counted(live)
            async let one: Void = { _ = object }()
            async let two: Void = { _ = object }()
            _ = await (one, two)
            most.withLock { most in most = max(most, live.withLock { $0 }) }
        }
        #expect(live.withLock { $0 } == 0 && most.withLock { $0 } == 1)
    }

    @Test func `explorations at the same time, and other tasks meanwhile, are each for itself`() async throws
    {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let orders = Locked<[[Int]]>([])
                    _ = await checkSchedules(
                        options: ExplorationOptions(departures: nil), Self.twoTasks(steps: 4, into: orders))
                    return Set(orders.withLock { $0 }).count
                }
                group.addTask { await Task.detached { await MainActor.run { 70 } }.value }
            }
            for try await count in group { #expect(count == 70) }
        }
    }

    // MARK: - In a test

    @Test func `explore records one issue, with what replays it`() async {
        let body = Subject.lostWakeup.body(isFaulty: true)
        await withKnownIssue {
            let coverage = await explore(body)
            #expect(coverage == nil)
        } matching: {
            "\($0)".contains("EXPLORE_REPLAY=") && "\($0)".contains("Nothing can go on")
        }
        await withKnownIssue {
            await explore(replay: "x", body)
        } matching: {
            "\($0)".contains("'x' is no schedule")
        }
    }

    @Test func `an expectation that fails in some order is an issue, once`() async {
        let runs = Locked(0)
        await withKnownIssue {
            await explore {
                runs.withLock { $0 += 1 }
                let order = Locked<[Int]>([])
                async let one: Void = { order.withLock { $0.append(1) } }()
                async let two: Void = { order.withLock { $0.append(2) } }()
                _ = await (one, two)
                #expect(order.withLock { $0 } == [1, 2])
            }
        } matching: {
            "\($0)".contains("ExplorationTests.swift") && "\($0)".contains("departure")
        }
        #expect(runs.withLock { $0 } >= 2)
    }

    @Test func `explore says what it has run`() async throws {
        let coverage = try #require(
            await explore(departures: nil, Subject.overselling.body(isFaulty: false)))
        #expect("\(coverage)".hasPrefix("all "), "\(coverage)")
    }
}

private func startedThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
    final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
    var thread = pthread_t()
    pthread_create(
        &thread, nil,
        { context in
            Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
            return nil
        }, Unmanaged.passRetained(Body(body)).toOpaque())
    return thread
}
