// S4 wait safety, S5 wait liveness, and the counter by itself.

import Glibc
import PropertyTesting
import Scheduling
import Testing

extension Stress {
    @Suite struct Waiting {
        /// `Slots` is plain memory: a weakened ordering is a data race under ThreadSanitizer.
        @Test(arguments: [1, 2, 4])
        func `a wait sees what the operations wrote`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let counter = try CompletionCounter()
                for round in 1...scaled(300) {
                    let slots = Slots(count: 8)
                    for index in 0..<8 { try scheduler.submit(in: counter) { slots[index] = round } }
                    counter.wait()
                    try #require(slots.sum == 8 * round)
                }
            }
        }

        @Test(arguments: [2, 8])
        func `the last leaver sees what every other leaver wrote`(threads: Int) throws {
            for value in 1...scaled(200) {
                let counter = try CompletionCounter()
                let slots = Slots(count: threads)
                counter.enter(threads)
                let sums = concurrently(threads) { index -> Int? in
                    slots[index] = value
                    return counter.leave() ? slots.sum : nil
                }
                try #require(sums.compactMap(\.self) == [threads * value])
            }
        }

        @Test func `an operation sees what its submitter wrote`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let counter = try CompletionCounter()
                for value in 1...scaled(1000) {
                    let slots = Slots(count: 2)
                    slots[0] = value
                    try scheduler.submit(in: counter) { slots[1] = slots[0] }
                    counter.wait()
                    try #require(slots[1] == value)
                }
            }
        }

        @Test func `many waiters, early and late, all return`() throws {
            try withScheduler(.workers(2)) { scheduler in
                for _ in 0..<scaled(60) {
                    let counter = try CompletionCounter()
                    let gate = Gate()
                    try scheduler.submit(in: counter) { gate.wait() }
                    let outcomes = concurrently(9) { thread in
                        if thread == 0 { gate.open() }
                        return counter.wait(timeout: .seconds(20))
                    }
                    try #require(outcomes.allSatisfy { $0 == .completed })
                }
            }
        }

        /// The waiter of one generation is released although the next one begins at once.
        @Test func `a waiter is released while the counter goes on`() throws {
            let counter = try CompletionCounter()
            let stop = Count()
            counter.enter()
            let outcomes = concurrently(3) { thread -> CompletionCounter.WaitOutcome in
                if thread == 0 {
                    while stop.value < 2 {  // never at zero for longer than between two instructions
                        counter.leave()
                        counter.enter()
                    }
                    return .completed
                }
                defer { stop.add() }
                for _ in 0..<scaled(100) where counter.wait(timeout: .seconds(20)) == .timedOut {
                    return .timedOut
                }
                return .completed
            }
            #expect(outcomes == [.completed, .completed, .completed])
            counter.leave()
        }

        @Test func `a notification fires once, after the operations and before no one`() throws {
            try withScheduler(.workers(3)) { scheduler in
                for _ in 0..<scaled(300) {
                    let counter = try CompletionCounter()
                    let slots = Slots(count: 4)
                    let done = try CompletionCounter()
                    let fired = Count()
                    for index in 0..<4 { try scheduler.submit(in: counter) { slots[index] = 1 } }
                    done.enter(3)
                    for _ in 0..<3 {
                        try counter.notify {
                            if slots.sum == 4 { fired.add() }
                            done.leave()
                        }
                    }
                    try #require(done.wait(timeout: .seconds(20)) == .completed)
                    try #require(fired.value == 3)
                }
            }
        }

        @Test func `tasks wait, are cancelled, and go on`() async throws {
            let scheduler = try Scheduler(.workers(2))
            for _ in 0..<scaled(100) {
                let counter = try CompletionCounter()
                counter.enter()
                let waiting = (0..<4).map { _ in Task { try await counter.wait() } }
                waiting[0].cancel()
                await #expect(throws: CancellationError.self) { try await waiting[0].value }
                try scheduler.submit { counter.leave() }
                for task in waiting.dropFirst() { try await task.value }
            }
            try await scheduler.shutdown()
        }

        @Test func `a cancellation that races the end resumes a task once`() async throws {
            let scheduler = try Scheduler(.workers(2))
            for _ in 0..<scaled(300) {
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) {}
                let task = Task { () -> Bool in
                    do { try await counter.wait() } catch { return false }
                    return counter.outstanding == 0
                }
                task.cancel()
                _ = await task.value
            }
            try await scheduler.shutdown()
        }
    }
}

@Suite struct CompletionCounterTests {
    @Test func `a new counter is complete`() throws {
        let counter = try CompletionCounter()
        #expect(counter.outstanding == 0)
        #expect(counter.wait(timeout: .zero) == .completed)
        let fired = Count()
        try counter.notify { fired.add() }
        #expect(fired.value == 1)
    }

    @Test func `enters and leaves are counted`() throws {
        let counter = try CompletionCounter()
        counter.enter(3)
        counter.enter(0)
        #expect(counter.outstanding == 3)
        #expect(!counter.leave())
        #expect(!counter.leave())
        #expect(counter.wait(timeout: .zero) == .timedOut)
        #expect(counter.wait(timeout: .seconds(-1)) == .timedOut)
        #expect(counter.leave())
        #expect(counter.wait(timeout: .seconds(Int64.max)) == .completed)
    }

    @Test func `exactly one leaver of a generation is told it was the last`() throws {
        let counter = try CompletionCounter()
        for _ in 0..<scaled(200) {
            counter.enter(4)
            #expect(concurrently(4) { _ in counter.leave() }.count { $0 } == 1)
        }
    }

    @Test func `a wait ends at its timeout, not before`() throws {
        let counter = try CompletionCounter()
        counter.enter()
        let duration = ContinuousClock().measure {
            #expect(counter.wait(timeout: .milliseconds(20)) == .timedOut)
        }
        #expect(duration >= .milliseconds(20))
        counter.leave()
    }

    @Test func `a counter that was given up fires its notification, and frees it`() throws {
        let released = Count()
        try withScheduler(.workers(1)) { scheduler in
            let gate = Gate()
            do {
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) { gate.wait() }
                let token = Token(released)
                try counter.notify { withExtendedLifetime(token) {} }
            }
            #expect(released.value == 0)
            gate.open()
        }
        #expect(released.value == 1)
    }

    @Test func `leaving more often than entering stops the process`() async {
        await #expect(processExitsWith: .signal(SIGABRT)) { try CompletionCounter().leave() }
    }

    @Test func `entering a negative number stops the process`() async {
        await #expect(processExitsWith: .failure) { try CompletionCounter().enter(-1) }
    }

    @Test func `more operations than a counter holds stop the process`() async {
        await #expect(processExitsWith: .signal(SIGABRT)) {
            let counter = try CompletionCounter()
            counter.enter(0x1FFF_FFFF)
            counter.enter()
        }
    }
}
