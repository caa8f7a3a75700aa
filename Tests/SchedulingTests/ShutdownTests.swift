// S13 shutdown: every accepted operation ran or was released, and the threads are gone. S14: a closed
//     scheduler refuses.

import Glibc
import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

/// The fate of the submitted closures, seen from outside.
private final class Ledger: Sendable {
    let offered = Count()
    let accepted = Count()
    let ran = Count()
    let released = Count()

    /// Submits one operation; false when the scheduler is closed.
    func submit(to scheduler: Scheduler) -> Bool {
        let token = Token(released)
        offered.add()
        do {
            try scheduler.submit { [ran] in
                ran.add()
                withExtendedLifetime(token) {}
            }
            accepted.add()
            return true
        } catch {
            if error.code != .closed { Issue.record(error) }
            return false
        }
    }
}

extension Stress {
    @Suite(.inTurn) struct Shutdown {
        @Test(
            arguments: [Scheduler.ShutdownPolicy.drain, .cancelPending, .deadline(.microseconds(200))],
            [1, 4])
        func `under load every accepted operation runs or is released`(
            policy: Scheduler.ShutdownPolicy, workers: Int
        ) throws {
            for _ in 0..<scaled(40) {
                let scheduler = try Scheduler(.init(workers: workers, name: "shut-t"))
                let ledger = Ledger()
                _ = concurrently(4) { thread in
                    if thread == 0 {
                        while ledger.accepted.value < 200 {}
                        do { try scheduler.shutdown(policy) } catch { Issue.record(error) }
                    } else {
                        while ledger.submit(to: scheduler) {}
                    }
                }
                let statistics = scheduler.statistics
                try #require(statistics.submitted == ledger.accepted.value)
                try #require(statistics.executed == ledger.ran.value)
                try #require(statistics.executed + statistics.cancelled == statistics.submitted)
                if policy == .drain { try #require(statistics.cancelled == 0) }
                try #require(ledger.released.value == ledger.offered.value)
                try #require(eventually { KernelThread.named("shut-t").isEmpty })
            }
        }

        @Test func `a drain runs submissions by running operations`() throws {
            for _ in 0..<scaled(40) {
                let scheduler = try Scheduler(.workers(2))
                let runs = Count()
                @Sendable func tree(_ depth: Int) {
                    runs.add()
                    if depth > 0 {
                        for _ in 0..<2 {
                            do { try scheduler.submit { tree(depth - 1) } } catch { Issue.record(error) }
                        }
                    }
                }
                try scheduler.submit { tree(8) }
                try scheduler.shutdown()
                try #require(runs.value == 511)
            }
        }

        /// The second operation, and then the shutdown, arrive at every step of the worker's falling
        /// asleep.
        @Test(arguments: [1, 2])
        func `work accepted just before a drain runs`(workers: Int) throws {
            let name = "accept-t"
            try disturbing(name) {
                for round in 0..<scaled(300) {
                    let scheduler = try Scheduler(.init(workers: workers, name: name))
                    let ledger = Ledger()
                    _ = concurrently(2) { thread in
                        if thread == 0 {
                            _ = ledger.submit(to: scheduler)
                            for _ in 0..<Int.random(in: 0...2000) { _ = scheduler.workers }
                            _ = ledger.submit(to: scheduler)
                        } else {
                            while ledger.accepted.value < 2 { sched_yield() }
                            for _ in 0..<Int.random(in: 0...30) { _ = scheduler.workers }
                            do { try scheduler.shutdown() } catch { Issue.record(error) }
                        }
                    }
                    try #require(ledger.accepted.value == 2)
                    try #require(ledger.ran.value == 2, "round \(round)")
                    try #require(ledger.released.value == 2)
                }
            }
        }

        /// While the body waits, all workers sleep, which does not mean that the scheduler has drained.
        @Test func `a drain keeps its workers while a body waits`() throws {
            let name = "meets-t"
            for _ in 0..<scaled(30) {
                let scheduler = try Scheduler(.init(workers: 2, name: name))
                let outside = try CompletionCounter()
                outside.enter()
                let started = Gate()
                let met = Count()
                try scheduler.submit {
                    started.open()
                    outside.wait()
                    let gate = Gate()
                    do {
                        try scheduler.submit { gate.open() }
                        try scheduler.submit {
                            if gate.wait(timeout: .seconds(20)) { met.add() }
                        }
                    } catch { Issue.record(error) }
                }
                started.wait()
                _ = concurrently(2) { thread in
                    if thread == 0 {
                        do { try scheduler.shutdown() } catch { Issue.record(error) }
                    } else {
                        _ = eventually { code { try scheduler.submit {} } == .closed }
                        _ = eventually { KernelThread.named(name).allSatisfy(\.isAsleep) }
                        yieldOften()
                        outside.leave()
                    }
                }
                try #require(met.value == 1)
            }
        }

        @Test func `a deadline passing while a body waits cancels its submissions`() throws {
            let scheduler = try Scheduler(.workers(2))
            let outside = try CompletionCounter()
            outside.enter()
            let started = Gate()
            let ran = Count()
            let released = Count()
            let cancelled = Count()
            @Sendable func isCancelled() throws -> Bool {
                let before = ran.value
                let counter = try CompletionCounter()
                let token = Token(released)
                try scheduler.submit(in: counter) {
                    ran.add()
                    withExtendedLifetime(token) {}
                }
                counter.wait()
                return ran.value == before
            }
            try scheduler.submit {
                started.open()
                outside.wait()
                do {
                    // The thread that calls `shutdown` may be late.
                    guard try eventually({ try isCancelled() }) else { return }
                    for _ in 0..<10 where try isCancelled() { cancelled.add() }
                } catch { Issue.record(error) }
            }
            started.wait()
            let begin = ContinuousClock.now
            _ = concurrently(2) { thread in
                if thread == 0 {
                    do { try scheduler.shutdown(.deadline(.milliseconds(30))) } catch { Issue.record(error) }
                } else {
                    _ = eventually { begin.duration(to: .now) > .milliseconds(60) }
                    outside.leave()
                }
            }
            #expect(cancelled.value == 10)
            #expect(released.value == ran.value + 11)
            #expect(scheduler.statistics.cancelled == 11)
        }

        /// A cancelled range must not run on to the end of a piece, which may be long.
        @Test(arguments: [1, 2])
        func `a cancelled range stops after the indices that run`(workers: Int) throws {
            let scheduler = try Scheduler(.init(workers: workers, spareWorkers: 0))
            let counter = try CompletionCounter()
            let runs = Count()
            let started = Gate()
            let gate = Gate()
            try scheduler.submit(0..<64_000, in: counter) { _ in
                runs.add()
                started.open()
                gate.wait()
            }
            started.wait()
            cancel(scheduler, then: gate)
            #expect((1...workers).contains(runs.value))
            #expect(counter.wait(timeout: .zero) == .completed)
        }

        /// Opens the gate when the cancelling shutdown has begun, and returns after its end.
        private func cancel(_ scheduler: Scheduler, then gate: Gate) {
            _ = concurrently(2) { thread in
                if thread == 0 {
                    do { try scheduler.shutdown(.cancelPending) } catch { Issue.record(error) }
                } else {
                    // Closed, so the policy is already set.
                    _ = eventually { code { try scheduler.submit {} } == .closed }
                    gate.open()
                }
            }
        }

        @Test(arguments: [10, 200])
        func `a cancelled lane stops after the operation that runs`(operations: Int) throws {
            let scheduler = try Scheduler(.workers(2))
            let lane = try SerialLane(on: scheduler)
            let counter = try CompletionCounter()
            let runs = Runs(operations)
            let released = Count()
            let started = Gate()
            let gate = Gate()
            scheduler.suspend()
            for index in 0..<operations {
                let token = Token(released)
                try lane.submit(in: counter) {
                    withExtendedLifetime(token) {}
                    runs.note(index)
                    started.open()
                    gate.wait()
                }
            }
            scheduler.resume()
            started.wait()
            cancel(scheduler, then: gate)
            #expect(runs.each.prefix(2) == [1, 0])
            #expect(runs.total == 1)
            #expect(released.value == operations)
            #expect(counter.wait(timeout: .zero) == .completed)
        }

        @Test func `a counter completes when its operations are cancelled`() throws {
            let scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
            let started = Gate()
            let gate = Gate()
            let counter = try CompletionCounter()
            let runs = Count()
            try scheduler.submit(in: counter) {
                started.open()
                gate.wait()
            }
            for _ in 0..<100 { try scheduler.submit(in: counter) { runs.add() } }
            started.wait()
            _ = concurrently(3) { thread in
                switch thread {
                case 0: do { try scheduler.shutdown(.cancelPending) } catch { Issue.record(error) }
                case 1: counter.wait()
                default:
                    // Closed, so the policy is already set.
                    _ = eventually { code { try scheduler.submit {} } == .closed }
                    gate.open()
                }
            }
            #expect(runs.value == 0)
            #expect(scheduler.statistics.executed >= 1)
            #expect(scheduler.statistics.pending == 0)
        }

        @Test func `a deadline runs what fits and cancels the rest`() throws {
            let scheduler = try Scheduler(.workers(1))
            let counter = try CompletionCounter()
            let executed = Count()
            @Sendable func endless() {
                executed.add()
                do { try scheduler.submit(in: counter, endless) } catch { Issue.record(error) }
            }
            try scheduler.submit(in: counter, endless)
            let duration = try ContinuousClock().measure {
                try scheduler.shutdown(.deadline(.milliseconds(30)))
            }
            #expect(duration >= .milliseconds(30))
            #expect(counter.outstanding == 0)
            #expect(scheduler.statistics.executed == executed.value)
            #expect(scheduler.statistics.cancelled == 1)
        }

        @Test func `a deadline ends early when nothing is left`() throws {
            let scheduler = try Scheduler(.workers(2))
            let runs = Runs(100)
            for index in 0..<100 { try scheduler.submit { runs.note(index) } }
            let duration = try ContinuousClock().measure { try scheduler.shutdown(.deadline(.seconds(600))) }
            #expect(duration < .seconds(60))
            #expect(runs.areExactlyOnce)
        }

        @Test func `simultaneous shutdowns all return when the threads are gone`() throws {
            for _ in 0..<scaled(40) {
                let scheduler = try Scheduler(.init(workers: 3, name: "shuts-t"))
                let ledger = Ledger()
                for _ in 0..<100 { _ = ledger.submit(to: scheduler) }
                let policies: [Scheduler.ShutdownPolicy] = [
                    .drain, .cancelPending, .deadline(.milliseconds(1)),
                ]
                let pending = concurrently(3) { thread -> Int in
                    do { try scheduler.shutdown(policies[thread]) } catch { Issue.record(error) }
                    return scheduler.statistics.pending
                }
                try #require(pending == [0, 0, 0])
                try #require(ledger.released.value == 100)
            }
        }

        @Test func `a closed scheduler refuses, and never calls the body`() throws {
            let scheduler = try Scheduler(.workers(2))
            try scheduler.shutdown()
            try scheduler.shutdown(.cancelPending)
            let ledger = Ledger()
            #expect(
                concurrently(4) { _ in (0..<100).contains { _ in ledger.submit(to: scheduler) } } == [
                    false, false, false, false,
                ])
            #expect(ledger.released.value == 400)
            #expect(ledger.ran.value == 0)
            let counter = try CompletionCounter()
            let closed = SchedulerError.Code.closed
            #expect(code { try scheduler.submit(in: counter) {} } == closed)
            #expect(code { try scheduler.submit(contentsOf: [{}, {}], in: counter) } == closed)
            #expect(code { try scheduler.submit(0..<10, in: counter) { _ in } } == closed)
            #expect(code { try scheduler.forEach(0..<10) { _ in } } == closed)
            #expect(code { try scheduler.setWorkers(2) } == closed)
            #expect(counter.outstanding == 0)
            #expect(scheduler.workers == 0)
        }

        @Test func `an asynchronous shutdown drains, and refuses on the scheduler itself`() async throws {
            let scheduler = try Scheduler(.workers(2))
            let runs = Runs(100)
            for index in 0..<100 { try scheduler.submit { runs.note(index) } }
            await withTaskExecutorPreference(scheduler) {
                do throws(SchedulerError) {
                    try await scheduler.shutdown()
                    Issue.record("a shutdown waited for its own worker")
                } catch {
                    #expect(error.code == .wouldDeadlock)
                }
            }
            try await scheduler.shutdown()
            try await scheduler.shutdown()
            #expect(runs.areExactlyOnce)
        }

        @Test func `withScheduler drains when its body throws`() async throws {
            struct Planned: Error {}
            let runs = Runs(50)
            #expect(throws: Planned.self) {
                try withScheduler(.workers(1)) { scheduler in
                    for index in 0..<50 { try scheduler.submit { runs.note(index) } }
                    throw Planned()
                }
            }
            #expect(runs.areExactlyOnce)
            await #expect(throws: Planned.self) {
                try await withScheduler(.workers(1)) { _ in
                    await Task.yield()
                    throw Planned()
                }
            }
        }

        @Test func `the last reference drains, also when an operation holds it`() throws {
            for _ in 0..<scaled(30) {
                let runs = Runs(100)
                do {
                    let scheduler = try Scheduler(.init(workers: 2, name: "last-t"))
                    for index in 0..<100 {
                        try scheduler.submit {
                            runs.note(index)
                            withExtendedLifetime(scheduler) {}
                        }
                    }
                }
                try #require(eventually { runs.total == 100 })
                try #require(eventually { KernelThread.named("last-t").isEmpty })
                try #require(runs.areExactlyOnce)
            }
        }
    }
}

@Test func `shutting the shared scheduler down stops the process`() async {
    await #expect(processExitsWith: .failure) { try await Scheduler.shared.shutdown() }
}
