// ExplorationFailureTests.swift - reports on bodies that fail, do not end, do not repeat, or are not alone.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(.seconds(60))) struct ExplorationFailureTests {
    @Test func `a task made ready by a foreign thread is shown`() async throws {
        let failure = try await failing {
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

    @Test func `a task a foreign thread makes ready later is shown`() async throws {
        let failure = try await failing {
            let waiting = Locked<CheckedContinuation<Void, Never>?>(nil)
            async let first: Void = withCheckedContinuation { continuation in
                waiting.withLock { $0 = continuation }
            }
            // Begins when the first task waits, and starts a detached thread. When that thread resumes the first task,
            // usually no other task is ready any more.
            async let second: Void = {
                let thread = startedThread {
                    usleep(2_000)
                    waiting.withLock { $0.take() }?.resume()
                }
                pthread_detach(thread)
            }()
            _ = await (first, second)
        }
        #expect(failure.reason == .outside)
    }

    @Test func `tasks that yield forever are reported, and tasks that yield until another arrives are not`()
        async throws
    {
        let failure = try await failing(options: ExplorationOptions(steps: 1_000)) {
            while !Task.isCancelled { await Task.yield() }
        }
        #expect(failure.reason == .endless(steps: 1_000))
        _ = try await covered(options: ExplorationOptions(departures: 2, random: 10)) {
            let isSet = Locked(false)
            async let waiting: Void = { while !isSet.withLock({ $0 }) { await Task.yield() } }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = await (waiting, setting)
        }
        // A task that yields is queued behind the others; otherwise there would be decisions until the step limit.
        let usual = try await covered(options: ExplorationOptions(departures: 0, random: 0)) {
            let isSet = Locked(false)
            async let waiting: Void = { while !isSet.withLock({ $0 }) { await Task.yield() } }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = await (waiting, setting)
        }
        #expect(usual.decisions < 10, "\(usual)")
    }

    @Test func `a polling task is overtaken by waiting ones`() async throws {
        let usual = ExplorationOptions(departures: 0, random: 0, steps: 1_000)
        _ = try await covered(options: usual) {
            let isSet = Locked(false)
            async let asking: Void = {
                while !isSet.withLock({ $0 }) { await explorationPoint("asks") }
            }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = await (asking, setting)
        }
    }

    @Test func `tasks left over where nothing can go on are cancelled`() async throws {
        let cancelled = Locked(0)
        let failure = try await failing(options: ExplorationOptions(departures: 0, random: 100)) {
            await withTaskCancellationHandler {
                await withCheckedContinuation { (_: CheckedContinuation<Void, Never>) in }
            } onCancel: {
                cancelled.withLock { $0 += 1 }
                // The tasks started here are not steps of the schedule, which has ended.
                for _ in 0..<3 { Task { cancelled.withLock { $0 += 1 } } }
            }
        }
        #expect(failure.steps.count == 1, "\(failure)")
        #expect(failure.reason == .stuck && failure.schedule.departures.isEmpty)
        #expect(cancelled.withLock { $0 } > 0)
    }

    @Test func `leftover tasks are in every order, too`() async throws {
        let orders = Locked<Set<[Int]>>([])
        let coverage = try await covered(options: ExplorationOptions(departures: nil)) {
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

    @Test func `a leftover main actor task may still be made ready`() async throws {
        let waiting = Locked<CheckedContinuation<Void, Never>?>(nil)
        _ = try await covered(options: ExplorationOptions(departures: 0, random: 0)) {
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
        // The actor is abandoned at a different step each time.
        for steps in 100..<108 {
            let counter = Counter()
            let failure = try await failing(options: ExplorationOptions(steps: steps)) {
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<2 {
                        group.addTask {
                            while true {
                                await counter.add()
                                await Task.yield()
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

    @Test func `tasks that sleep or yield to wait are not endless in a random order`() async throws {
        let coverage = try await covered(
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
        // The step limit is reached before another task would overtake the asking task.
        let coverage = try await covered(options: ExplorationOptions(departures: 0, random: 0, steps: 40)) {
            let isSet = Locked(false)
            async let asking: Void = {
                while !isSet.withLock({ $0 }) { await explorationPoint("asks") }
            }()
            async let setting: Void = { isSet.withLock { $0 = true } }()
            _ = await (asking, setting)
        }
        #expect(!coverage.isComplete && !coverage.isCompleteWithinBound)
    }

    @Test func `a failure that does not recur is reported`() async throws {
        let runs = Locked(0)
        let failure = try await failing {
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
        _ = try await covered(options: ExplorationOptions(departures: 0, random: 0)) {
            for seconds in [-10_000_000_000, -1, 0, 10_000_000_000] {
                try await Task.sleep(for: .seconds(seconds))
            }
        }
    }

    @Test func `a leftover task that yields forever is reported`() async throws {
        let failure = try await failing(options: ExplorationOptions(steps: 1_000)) {
            Task { while true { await Task.yield() } }
        }
        #expect(failure.reason == .endless(steps: 1_000))
    }

    @Test func `a nondeterministic body is reported`() async throws {
        let runs = Locked(0)
        let failure = try await failing {
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

    @Test(arguments: ["0:9", "99:1"]) func `a schedule mismatch is reported`(_ text: String) async throws {
        let schedule = try #require(Schedule(text))
        let failure = try await failing(
            options: ExplorationOptions(replay: schedule), twoTasks(steps: 3, into: Locked([])))
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
            return await checkSchedules(twoTasks(steps: 4, into: Locked([])))
        }.value
        guard case .held(let coverage) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(coverage.schedules.isEmpty && !coverage.isComplete && "\(coverage)" == "no schedule")
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
        _ = try await covered {
            let object = Counted(live)
            async let one: Void = { _ = object }()
            async let two: Void = { _ = object }()
            _ = await (one, two)
            most.withLock { most in most = max(most, live.withLock { $0 }) }
        }
        #expect(live.withLock { $0 } == 0 && most.withLock { $0 } == 1)
    }

    @Test func `concurrent explorations and other tasks are independent`() async throws {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let orders = Locked<[[Int]]>([])
                    _ = await checkSchedules(
                        options: ExplorationOptions(departures: nil), twoTasks(steps: 4, into: orders))
                    return Set(orders.withLock { $0 }).count
                }
                group.addTask { await Task.detached { await MainActor.run { 70 } }.value }
            }
            for try await count in group { #expect(count == 70) }
        }
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
