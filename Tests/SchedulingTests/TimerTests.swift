// Timers: each operation is submitted once, not too early, or cancelled; a repeating operation does not overlap
// itself; a shutdown ends them all; and a million of them cost memory only while they are pending.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

@Suite(.watched(stressLimit)) struct Timers {
    @Test func `operations are submitted in order of their times, and none too early`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let counter = try CompletionCounter()
            let order = Locked<[Int]>([])
            let early = Count()
            for number in (0..<10).reversed() {
                let delay = Duration.milliseconds(5 + 20 * number)
                let due = ContinuousClock.now + delay
                try scheduler.submit(after: delay, in: counter) {
                    if ContinuousClock.now < due - .microseconds(50) { early.add() }
                    order.withLock { $0.append(number) }
                }
            }
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
            #expect(order.withLock { $0 } == Array(0..<10))
            #expect(early.value == 0)
        }
    }

    @Test func `overdue work is submitted at once`() throws {
        try withScheduler(.workers(2)) { scheduler in
            let counter = try CompletionCounter()
            try scheduler.submit(after: .zero, in: counter) {}
            try scheduler.submit(after: .seconds(-3), in: counter) {}
            try scheduler.submit(after: .seconds(Int64.min), in: counter) {}
            try scheduler.submit(at: .now - .seconds(1), in: counter) {}
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
        }
    }

    @Test func `an unreachable time never comes, and is cancelled`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let ran = Count()
            let counter = try CompletionCounter()
            let far = try scheduler.submit(after: .seconds(Int64.max), in: counter) { ran.add() }
            try scheduler.submit(every: .seconds(Int64.max)) { ran.add() }
            #expect(counter.outstanding == 1)
            #expect(far.cancel())
            #expect(!far.cancel())
            #expect(counter.outstanding == 0)
            #expect(ran.value == 0)
        }
    }

    @Test func `a cancelled operation is released, and one that was submitted cannot be cancelled`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let released = Count()
            let ran = Gate()
            let late = try scheduler.submit(after: .seconds(3600), capturing(Token(released)) {})
            #expect(late.cancel())
            #expect(released.value == 1)
            let soon = try scheduler.submit(after: .zero) { ran.open() }
            #expect(ran.wait(timeout: .seconds(20)))
            #expect(!soon.cancel())
        }
    }

    @Test func `releasing a handle cancels none`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let ran = Gate()
            _ = try scheduler.submit(after: .milliseconds(5)) { ran.open() }
            #expect(ran.wait(timeout: .seconds(20)))
        }
    }

    @Test func `a body sets timers`() throws {
        try withScheduler(.workers(2)) { scheduler in
            let ran = Gate()
            try scheduler.submit {
                do {
                    try scheduler.submit(after: .milliseconds(1)) { ran.open() }
                } catch { Issue.record(error) }
            }
            #expect(ran.wait(timeout: .seconds(20)))
        }
    }

    @Test(arguments: [Scheduler.ShutdownPolicy.drain, .cancelPending, .deadline(.milliseconds(10))])
    func `every shutdown cancels pending timers, and refuses new ones`(
        policy: Scheduler.ShutdownPolicy
    ) throws {
        let scheduler = try Scheduler(.workers(2))
        let released = Count()
        let ran = Count()
        let counter = try CompletionCounter()
        for seconds in 1...100 {
            try scheduler.submit(
                after: .seconds(1000 * seconds), in: counter,
                capturing(Token(released)) { ran.add() })
        }
        let ticks = try scheduler.submit(
            every: .seconds(1000), in: counter, capturing(Token(released)) { ran.add() })
        try scheduler.shutdown(policy)
        #expect(released.value == 101)
        #expect(ran.value == 0)
        #expect(counter.outstanding == 0)
        #expect(!ticks.cancel())
        #expect(code { try scheduler.submit(after: .zero, capturing(Token(released)) {}) } == .closed)
        #expect(released.value == 102)
    }

    @Test func `a scheduler last held by a timer is released`() async throws {
        let gone = Gate()
        weak var seen: Scheduler?
        func setAndForget() throws {
            let scheduler = try Scheduler(.workers(1))
            seen = scheduler
            try scheduler.submit(after: .milliseconds(20)) { [scheduler] in
                _ = scheduler.workers
                gone.open()
            }
        }
        try setAndForget()
        #expect(gone.wait(timeout: .seconds(20)))
        #expect(eventually { seen == nil })
    }

    // MARK: Repetition

    @Test func `a repeating timer keeps its rate, runs alone, and ends on cancel`() throws {
        try withScheduler(.workers(4)) { scheduler in
            let counter = try CompletionCounter()
            let released = Count()
            let runs = Count()
            let inside = Count()
            let beside = Count()
            let enough = Gate()
            let begin = ContinuousClock.now
            let ticks = try scheduler.submit(
                every: .milliseconds(4), in: counter,
                capturing(Token(released)) {
                    if inside.add() > 1 { beside.add() }
                    if runs.add() == 25 { enough.open() }
                    inside.add(-1)
                })
            #expect(enough.wait(timeout: .seconds(20)))
            #expect(ContinuousClock.now - begin >= .milliseconds(99))
            #expect(ticks.cancel())
            #expect(!ticks.cancel())
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
            #expect(released.value == 1)
            let count = runs.value
            usleep(20_000)
            #expect(runs.value == count)
            #expect(beside.value == 0)
        }
    }

    @Test func `a run longer than the interval skips times`() throws {
        try withScheduler(.workers(2)) { scheduler in
            let runs = Locked<[ContinuousClock.Instant]>([])
            let enough = Gate()
            let ticks = try scheduler.submit(every: .milliseconds(10), startingAfter: .zero) {
                let count = runs.withLock { runs in
                    runs.append(.now)
                    return runs.count
                }
                if count == 5 { enough.open() }
                usleep(14_000)
            }
            #expect(enough.wait(timeout: .seconds(20)))
            ticks.cancel()
            let times = runs.withLock { $0 }
            // If every second tick, or fewer, starts a run, that takes 80 ms, less the delay of the first run.
            // Runs back to back would take 56 ms.
            #expect(times[4] - times[0] >= .milliseconds(70))
        }
    }

    @Test func `a repeat cancels itself`() throws {
        try withScheduler(.workers(2)) { scheduler in
            let counter = try CompletionCounter()
            let handle = Locked<ScheduledOperation?>(nil)
            let released = Count()
            let runs = Count()
            let seen = Count()
            let isKnown = Gate()
            let ticks = try scheduler.submit(
                every: .milliseconds(1), in: counter,
                capturing(Token(released)) {
                    isKnown.wait()
                    if runs.add() == 3 {
                        handle.withLock { $0 }?.cancel()
                        seen.add(released.value)
                    }
                })
            handle.withLock { $0 = ticks }
            isKnown.open()
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
            #expect(runs.value == 3)
            #expect(seen.value == 0)
            #expect(released.value == 1)
        }
    }

    @Test func `an interval that is not positive stops the process`() async {
        await #expect(processExitsWith: .failure) { try repeatNever() }
    }

    // MARK: Sleep

    @Test func `a task sleeps`() async throws {
        try await withScheduler(.workers(2)) { scheduler in
            let begin = ContinuousClock.now
            try await scheduler.sleep(for: .milliseconds(20))
            #expect(ContinuousClock.now - begin >= .milliseconds(19))
            try await scheduler.sleep(until: begin)
            try await scheduler.sleep(for: .seconds(Int64.min))
        }
    }

    @Test func `a sleeping task is cancelled, before, during, and by a shutdown`() async throws {
        let scheduler = try Scheduler(.workers(2))
        func sleepLong() -> Task<Bool, Never> {
            Task {
                do throws(CancellationError) { try await scheduler.sleep(for: .seconds(Int64.max)) } catch {
                    return true
                }
                return false
            }
        }
        let before = sleepLong()
        before.cancel()
        #expect(await before.value)
        let meanwhile = sleepLong()
        try await scheduler.sleep(for: .milliseconds(10))
        meanwhile.cancel()
        #expect(await meanwhile.value)
        let atTheEnd = sleepLong()
        try await scheduler.sleep(for: .milliseconds(10))
        try await scheduler.shutdown()
        #expect(await atTheEnd.value)
        #expect(await sleepLong().value)
    }

    @Test func `many tasks sleep, and half of them are cancelled at any time`() async throws {
        let count = scaled(4000)
        try await withScheduler(.workers(2)) { scheduler in
            let slept = Count()
            let cancelled = Count()
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<count {
                    group.addTask {
                        let task = Task {
                            do {
                                try await scheduler.sleep(for: .microseconds(index % 3000))
                                slept.add()
                            } catch { cancelled.add() }
                        }
                        if index % 2 == 0 {
                            try? await scheduler.sleep(for: .microseconds(index % 2000))
                            task.cancel()
                        }
                        await task.value
                    }
                }
            }
            #expect(slept.value + cancelled.value == count)
            #expect(slept.value >= count / 2)
        }
    }
}

extension Stress {
    @Suite(.inTurn) struct TimerStress {
        @Test(arguments: [1, 2, 4])
        func `each timer runs or is cancelled, once, in any race`(threads: Int) throws {
            let each = scaled(20_000)
            try withScheduler(.workers(2)) { scheduler in
                let counter = try CompletionCounter()
                let runs = Runs(threads * each)
                let released = Count()
                let inTime = concurrently(threads) { thread -> [Bool] in
                    var inTime: [Bool] = []
                    do {
                        for index in 0..<each {
                            let number = thread * each + index
                            let timer = try scheduler.submit(
                                after: .microseconds(Int.random(in: 0...300)), in: counter,
                                capturing(Token(released)) { runs.note(number) })
                            for _ in 0..<Int.random(in: 0...100) { _ = scheduler.workers }
                            if Int.random(in: 0..<3) == 0 { sched_yield() }
                            inTime.append(timer.cancel())
                        }
                    } catch { Issue.record(error) }
                    return inTime
                }.flatMap(\.self)
                try #require(counter.wait(timeout: .seconds(60)) == .completed)
                #expect(zip(runs.each, inTime).allSatisfy { $0 == ($1 ? 0 : 1) })
                #expect(eventually { released.value == threads * each })
            }
        }

        @Test func `a repeat is cancelled alongside its runs, only once`() throws {
            try withScheduler(.workers(4)) { scheduler in
                let rounds = scaled(2000)
                let released = Count()
                let late = Count()
                for _ in 0..<rounds {
                    let counter = try CompletionCounter()
                    let isOver = Count()
                    let ticks = try scheduler.submit(
                        every: .microseconds(50), startingAfter: .zero, in: counter,
                        capturing(Token(released)) { if isOver.value == 2 { late.add() } })
                    for _ in 0..<Int.random(in: 0...5000) { _ = scheduler.workers }
                    #expect(ticks.cancel())
                    counter.wait()
                    isOver.add(2)
                }
                #expect(released.value == rounds)
                #expect(late.value == 0)
            }
        }

        @Test func `a shutdown during timer creation loses none`() throws {
            for _ in 0..<scaled(100) {
                let scheduler = try Scheduler(.workers(2))
                let told = Count()
                let accepted = Count()
                let ready = Count()
                _ = concurrently(3) { thread in
                    if thread == 0 {
                        while ready.value < 2 { sched_yield() }
                        do { try scheduler.shutdown() } catch { Issue.record(error) }
                        return
                    }
                    for index in 0..<1_000_000 {
                        do {
                            let delay = Duration.microseconds(index % 3 == 0 ? 0 : 100_000_000)
                            try scheduler.submit(after: delay, capturing(Token(told)) {})
                            accepted.add()
                        } catch {
                            told.add(-1)  // released, because it was refused
                            return
                        }
                        if index == 0 { ready.add() }
                    }
                }
                #expect(told.value == accepted.value)
            }
        }

        @Test(.enabled(if: !isThreadSanitized && !isAddressSanitized))
        func `a million pending timers, and their memory comes back when they are cancelled`() throws {
            let count = scaled(1_000_000)
            try withScheduler(.workers(2)) { scheduler in
                try scheduler.submit(after: .seconds(10_000)) {}
                let before = try memoryInUse()
                var timers: [ScheduledOperation] = []
                timers.reserveCapacity(count)
                for index in 0..<count {
                    timers.append(try scheduler.submit(after: .seconds(1000 + index % 1000)) {})
                }
                let full = try memoryInUse()
                for timer in timers { #expect(timer.cancel()) }
                timers = []
                // Allows for the memory that a sweep leaves, and for the memory that has not been swept yet.
                #expect(try eventually { try memoryInUse() - before < (full - before) / 20 + 1_000_000 })
            }
        }

        @Test(.enabled(if: !isThreadSanitized && !isAddressSanitized))
        func `cancelled timers do not accumulate`() throws {
            try withScheduler(.workers(2)) { scheduler in
                try scheduler.submit(after: .seconds(10_000)) {}
                let before = try memoryInUse()
                for index in 0..<scaled(1_000_000) {
                    let timer = try scheduler.submit(after: .seconds(1000 + index % 1000)) {}
                    #expect(timer.cancel())
                }
                #expect(try eventually { try memoryInUse() - before < 2_000_000 })
            }
        }

        @Test func `a million timers fire, each once`() throws {
            let count = scaled(isThreadSanitized || isAddressSanitized ? 100_000 : 1_000_000)
            try withScheduler(.workers(2)) { scheduler in
                let counter = try CompletionCounter()
                let sum = Count()
                for index in 0..<count {
                    try scheduler.submit(after: .microseconds(index % 200_000), in: counter) { sum.add() }
                }
                counter.wait()
                #expect(sum.value == count)
            }
        }

        /// Whether the timers' thread is asleep, falling asleep or waking up, it is notified of a timer that is
        /// due earlier.
        @Test func `timers at random distances fire`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let far = try scheduler.submit(after: .seconds(10_000)) {}
                let counter = try CompletionCounter()
                for round in 0..<scaled(5000) {
                    for _ in 0..<Int.random(in: 0...300) { _ = scheduler.workers }
                    try scheduler.submit(after: .microseconds(Int.random(in: 0...100)), in: counter) {}
                    try #require(counter.wait(timeout: .seconds(20)) == .completed, "round \(round)")
                }
                #expect(far.cancel())
            }
        }

        /// T4: no thread wakes up while nothing is due.
        @Test func `the thread of the timers sleeps while nothing is due`() throws {
            let name = "timer-i"
            try withScheduler(.init(workers: 1, name: name)) { scheduler in
                let fired = Gate()
                try scheduler.submit(after: .milliseconds(1)) { fired.open() }
                try scheduler.submit(after: .seconds(Int64.max)) {}
                #expect(fired.wait(timeout: .seconds(20)))
                let thread = try #require(KernelThread.named("\(name)-timer").first)
                #expect(eventually { thread.isAsleep })
                usleep(50_000)
                let before = thread.voluntarySwitches
                usleep(300_000)
                #expect(thread.voluntarySwitches == before)
            }
        }
    }
}

/// A closure that keeps `token` until it is released.
private func capturing(_ token: Token, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    { withExtendedLifetime(token) { body() } }
}

private func repeatNever() throws {
    try Scheduler(.workers(1)).submit(every: .zero) {}
}
