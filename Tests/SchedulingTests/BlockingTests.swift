// X7, Z1 to Z5: what a wait runs on its stack, and which worker replaces one whose operation blocks.

import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

private enum Request {
    @TaskLocal static var id = 0
}

private final class Order: Sendable {
    private let numbers = Locked<[Int]>([])
    var noted: [Int] { numbers.withLock { $0 } }
    func note(_ number: Int) { numbers.withLock { $0.append(number) } }
}

/// The sum over all children of the number of older children that had not ended when the child ended. A Fenwick tree counts
/// the children that have ended: O(n log n).
private func olderAtTheEnd(_ ends: [Int]) -> Int {
    var ended = [Int](repeating: 0, count: ends.count + 1)
    var sum = 0
    for child in ends {
        var older = child
        var place = child
        while place > 0 { (older, place) = (older - ended[place], place & (place - 1)) }
        sum += older
        place = child + 1
        while place < ended.count { (ended[place], place) = (ended[place] + 1, place + (place & -place)) }
    }
    return sum
}

/// Submits four operations that block. Those beyond the spare workers begin only when others continue.
private func blockFour(spareWorkers: Int) throws {
    let gate = Gate()
    let counter = try CompletionCounter()
    try withScheduler(.init(workers: 1, name: "limit-t", spareWorkers: spareWorkers)) { scheduler in
        let begun = Count()
        for _ in 0..<4 {
            try scheduler.submit(in: counter) {
                begun.add()
                Scheduler.blocking { gate.wait() }
            }
        }
        try #require(eventually { scheduler.statistics.exhausted > 0 })
        try #require(begun.value == 1 + spareWorkers)
        gate.open()
        counter.wait()
        try #require(begun.value == 4)
    }
}

/// Keeps a CPU busy for `length`.
private func keepBusy(for length: Duration) {
    let end = ContinuousClock.now + length
    while ContinuousClock.now < end {}
}

extension Stress {
    @Suite(.inTurn) struct Blocking {
        // MARK: Workers that block

        @Test(arguments: [1, 2, 4], [false, true])
        func `operations that block do not keep others from running`(workers: Int, announced: Bool) throws {
            let gate = Gate()
            let counter = try CompletionCounter()
            try withScheduler(.init(workers: workers)) { scheduler in
                for _ in 0..<workers {
                    try scheduler.submit(in: counter) {
                        if announced { Scheduler.blocking { gate.wait() } } else { gate.wait() }
                    }
                }
                try scheduler.submit(in: counter) { gate.open() }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
            }
        }

        @Test func `temporarily needed threads exit again`() throws {
            let gate = Gate()
            let counter = try CompletionCounter()
            try withScheduler(.init(workers: 2, name: "spare-t")) { scheduler in
                for _ in 0..<40 { try scheduler.submit(in: counter) { Scheduler.blocking { gate.wait() } } }
                #expect(eventually { scheduler.statistics.replaced >= 38 })
                gate.open()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(scheduler.workers == 2)
                #expect(eventually { scheduler.statistics.threads == 2 })
                #expect(eventually { KernelThread.named("spare-t").count == 2 })
            }
        }

        @Test func `unneeded threads exit even while there is always work`() throws {
            let gate = Gate()
            let counter = try CompletionCounter()
            try withScheduler(.init(workers: 2, name: "busy-t")) { scheduler in
                for _ in 0..<40 { try scheduler.submit(in: counter) { Scheduler.blocking { gate.wait() } } }
                #expect(eventually { scheduler.statistics.replaced >= 38 })
                gate.open()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                try #require(
                    eventually {
                        for _ in 0..<8 { try scheduler.submit(in: counter) {} }
                        counter.wait()
                        return scheduler.statistics.threads == 2
                    })
            }
        }

        @Test func `a limit of spare workers is kept, counted, shown`() async {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                try blockFour(spareWorkers: 2)
            }
            #expect(sentence(result).contains("'limit-t': as many workers are blocked as the limit"))
        }

        @Test func `a replacement that finds ended workers continues with the rest`() throws {
            try withScheduler(.init(workers: 3, name: "ended-t", spareWorkers: 3)) { scheduler in
                for _ in 0..<4 {
                    let gates = [Gate(), Gate()]
                    let counter = try CompletionCounter()
                    for _ in 0..<6 {
                        try scheduler.submit(in: counter) { Scheduler.blocking { gates[0].wait() } }
                    }
                    #expect(eventually { scheduler.statistics.threads == 6 })
                    gates[0].open()
                    counter.wait()
                    // Three have ended, and the watch joins them at its next check.
                    #expect(eventually { KernelThread.named("ended-t").count == 3 })
                    let before = scheduler.statistics.replaced
                    for _ in 0..<3 { try scheduler.submit(in: counter) { gates[1].wait() } }
                    try scheduler.submit(in: counter) {}
                    #expect(eventually { scheduler.statistics.replaced > before })
                    gates[1].open()
                    #expect(counter.wait(timeout: .seconds(20)) == .completed)
                }
            }
        }

        @Test func `leaving workers do not count as spare`() throws {
            let gate = Gate()
            let (begun, smaller) = (Count(), Count())
            let counter = try CompletionCounter()
            try withScheduler(.init(workers: 4, spareWorkers: 3)) { scheduler in
                for _ in 0..<4 {
                    try scheduler.submit(in: counter) {
                        begun.add()
                        while smaller.value == 0 { sched_yield() }  // a worker that runs is not replaced
                        Scheduler.blocking { gate.wait() }
                    }
                }
                #expect(eventually { begun.value == 4 })
                try scheduler.setWorkers(1)
                smaller.add()
                try scheduler.submit(in: counter) { gate.open() }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(scheduler.statistics.exhausted == 0)
            }
        }

        @Test func `an operation that runs most of the time, and sleeps for moments, is not replaced`() throws
        {
            // On a busy machine a short sleep may take long, and look like a wait: a round counts only if the body had the
            // processor for most of its time.
            var replaced = 0
            for _ in 0..<60 where replaced < 10 {
                let hadTheProcessor = Locked(false)
                let counter = try CompletionCounter()
                let isLeftAlone = try withScheduler(.init(workers: 1)) { scheduler in
                    try scheduler.submit(in: counter) {
                        let began = (ContinuousClock.now, threadTime())
                        for _ in 0..<200 {
                            // Measured in CPU time: in real time, a body that is preempted would hardly run, and would
                            // sleep most of the time.
                            let end = threadTime() + 400_000
                            while threadTime() < end {}
                            usleep(20)
                        }
                        let ran = Duration.nanoseconds(threadTime() - began.1)
                        hadTheProcessor.withLock { $0 = ContinuousClock.now - began.0 < ran * 1.5 }
                    }
                    try scheduler.submit(in: counter) {}
                    counter.wait()
                    return scheduler.statistics.replaced == 0
                }
                if isLeftAlone { return }
                if hadTheProcessor.withLock({ $0 }) { replaced += 1 }
            }
            #expect(replaced < 10)
        }

        @Test func `without spare workers none is replaced`() throws {
            let gate = Gate()
            let counter = try CompletionCounter()
            try withScheduler(.init(workers: 1, spareWorkers: 0)) { scheduler in
                try scheduler.submit(in: counter) { Scheduler.blocking { gate.wait() } }
                try scheduler.submit(in: counter) {}
                #expect(counter.wait(timeout: .milliseconds(50)) == .timedOut)
                #expect(scheduler.statistics.threads == 1)
                gate.open()
                counter.wait()
            }
        }

        @Test func `an invalid number of spare workers is refused`() {
            for count in [-1, 65_537, Int.max] {
                let configuration = Scheduler.Configuration(workers: 1, spareWorkers: count)
                #expect(code { _ = try Scheduler(configuration) } == .invalidSpareWorkers)
            }
        }

        @Test func `a blocking body's values and errors are kept`() throws {
            struct Failure: Error {}
            #expect(Scheduler.blocking { 3 } == 3)
            #expect(throws: Failure.self) { try Scheduler.blocking { throw Failure() } }
            try withScheduler(.init(workers: 1)) { scheduler in
                let right = Count()
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) {
                    if Scheduler.blocking({ Scheduler.blocking { 4 } }) == 4 { right.add() }
                    do { try Scheduler.blocking { throw Failure() } } catch { right.add() }
                }
                counter.wait()
                #expect(right.value == 2)
            }
        }

        @Test func `a replaced operation's submissions run while it blocks again`() throws {
            let counter = try CompletionCounter()
            let again = Gate()
            let gate = Gate()
            try withScheduler(.init(workers: 1)) { scheduler in
                try scheduler.submit(in: counter) {
                    Scheduler.blocking { gate.wait() }
                    do { try scheduler.submit(in: counter) { again.open() } } catch { Issue.record(error) }
                    again.wait()  // not announced: the replacement has this worker's seat
                }
                try scheduler.submit(in: counter) {}
                #expect(eventually { scheduler.statistics.replaced == 1 })
                gate.open()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
            }
        }

        // MARK: Waits

        @Test(arguments: [1, 2, 4])
        func `a wait under a lock runs no contender`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let lock = Locked(0)
                let all = try CompletionCounter()
                for _ in 0..<20 {
                    try scheduler.submit(in: all) {
                        do {
                            let inner = try CompletionCounter()
                            try scheduler.submit(in: inner) { usleep(200) }
                            lock.withLock {
                                inner.wait()
                                $0 += 1
                            }
                        } catch { Issue.record(error) }
                    }
                }
                #expect(all.wait(timeout: .seconds(20)) == .completed)
                #expect(lock.withLock { $0 } == 20)
            }
        }

        @Test(arguments: [1, 2, 4])
        func `operations below a wait see none of its task locals`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let strangers = Count()
                let all = try CompletionCounter()
                for id in 1...50 {
                    try scheduler.submit(in: all) {
                        do {
                            let inner = try CompletionCounter()
                            for _ in 0..<10 {
                                try scheduler.submit(in: inner) { if Request.id != 0 { strangers.add() } }
                            }
                            Request.$id.withValue(id) {
                                inner.wait()
                                if Request.id != id { strangers.add() }
                            }
                        } catch { Issue.record(error) }
                    }
                }
                #expect(all.wait(timeout: .seconds(20)) == .completed)
                #expect(strangers.value == 0)
            }
        }

        @Test(arguments: [1, 2, 4])
        func `operations that wait for one gate end when it opens`(workers: Int) throws {
            try withScheduler(.init(workers: workers, spareWorkers: 64)) { scheduler in
                let gate = try CompletionCounter()
                let all = try CompletionCounter()
                gate.enter()
                for _ in 0..<20_000 { try scheduler.submit(in: all) { gate.wait() } }
                #expect(eventually { scheduler.statistics.replaced >= 32 })
                gate.leave()
                #expect(all.wait(timeout: .seconds(20)) == .completed)
            }
        }

        @Test(arguments: [1, 2, 4])
        func `a wait inside a wait, 10,000 deep, ends`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let all = try CompletionCounter()
                @Sendable func descend(_ depth: Int) {
                    guard depth > 0 else { return }
                    do {
                        let counter = try CompletionCounter()
                        try scheduler.submit(in: counter) { descend(depth - 1) }
                        counter.wait()
                    } catch { Issue.record(error) }
                }
                // Under ThreadSanitizer, 10,000 take eight seconds.
                try scheduler.submit(in: all) { descend(isThreadSanitized ? 2_000 : 10_000) }
                #expect(all.wait(timeout: .seconds(60)) == .completed)
            }
        }

        @Test(arguments: [1, 2, 4])
        func `waits of operations that others wait for are no cycle`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let (first, second) = (try CompletionCounter(), try CompletionCounter())
                let all = try CompletionCounter()
                first.enter()
                try scheduler.submit(in: second) { first.wait() }
                for _ in 0..<workers { try scheduler.submit(in: all) { second.wait() } }
                first.leave()  // by a thread outside the scheduler
                #expect(all.wait(timeout: .seconds(20)) == .completed)
            }
        }

        @Test(arguments: [1, 2, 4])
        func `a limit holds, and nothing runs on the waiter's stack`(workers: Int) throws {
            try withScheduler(.init(workers: workers)) { scheduler in
                let gate = try CompletionCounter()
                let all = try CompletionCounter()
                gate.enter()
                let times = Locked<[Duration]>([])
                for _ in 0..<40 {
                    try scheduler.submit(in: all) {
                        let clock = ContinuousClock()
                        let began = clock.now
                        guard gate.wait(timeout: .milliseconds(50)) == .timedOut else { return }
                        times.withLock { $0.append(clock.now - began) }
                    }
                    try scheduler.submit(in: all) { usleep(100_000) }  // runs if the wait helps
                }
                #expect(all.wait(timeout: .seconds(60)) == .completed)
                gate.leave()
                let sorted = times.withLock { $0.sorted() }
                try #require(sorted.count == 40)
                #expect(sorted[0] >= .milliseconds(50))
                #expect(sorted[20] < .milliseconds(60))
            }
        }

        @Test func `a wait helps its chosen work`() throws {
            try withScheduler(.init(workers: 1, spareWorkers: 0)) { scheduler in
                for help in CompletionCounter.Help.allCases where help != .nobody {
                    let order = Locked<[String]>([])
                    let note = { @Sendable (name: String) in order.withLock { $0.append(name) } }
                    let all = try CompletionCounter()
                    try scheduler.submit(in: all) {
                        do {
                            let own = try CompletionCounter()
                            try scheduler.submit(in: own) { note("own") }
                            try scheduler.submit(in: all) { note("stranger") }
                            own.wait(helping: help)
                            note("waited")
                        } catch { Issue.record(error) }
                    }
                    #expect(all.wait(timeout: .seconds(20)) == .completed)
                    let expected =
                        help == .own ? ["own", "waited", "stranger"] : ["stranger", "own", "waited"]
                    #expect(order.withLock { $0 } == expected)
                }
            }
        }

        @Test func `a wait without help leaves it to another worker`() throws {
            try withScheduler(.init(workers: 1)) { scheduler in
                let all = try CompletionCounter()
                let elsewhere = Count()
                try scheduler.submit(in: all) {
                    do {
                        let (own, waiter) = (try CompletionCounter(), KernelThread.current.id)
                        try scheduler.submit(in: own) {
                            if KernelThread.current.id != waiter { elsewhere.add() }
                        }
                        own.wait(helping: .nobody)
                    } catch { Issue.record(error) }
                }
                #expect(all.wait(timeout: .seconds(20)) == .completed)
                #expect(elsewhere.value == 1)
            }
        }

        // MARK: Tasks

        /// U4: when a child ends, the runtime walks the children of its group, starting with the oldest. The test counts
        /// the length of the walk, because times vary on a busy machine. When the newest child ran first, the mean walk was
        /// half of the group. For long children it was a fifth, when a fair turn took more operations than ran until the
        /// next fair turn (X4).
        @Test(arguments: [1, 2], [0, 20])
        func `a child of a group filled by a task on a worker has few older ones at its end`(
            workers: Int, length_us: Int
        ) async throws {
            let count = 20_000
            let ends = Order()
            try await withScheduler(.init(workers: workers)) { scheduler in
                await withTaskExecutorPreference(scheduler) {
                    await withTaskGroup(of: Void.self) { group in
                        for index in 0..<count {
                            group.addTask {
                                keepBusy(for: .microseconds(length_us))
                                ends.note(index)
                            }
                        }
                    }
                }
            }
            #expect(ends.noted.count == count)
            let walked = olderAtTheEnd(ends.noted)
            #expect(walked / count <= 256)
        }

        @Test func `the jobs of a task begin about in their order`() async throws {
            let order = Order()
            try await withScheduler(.init(workers: 1, spareWorkers: 0)) { scheduler in
                await withTaskExecutorPreference(scheduler) {
                    await withDiscardingTaskGroup { group in
                        for index in 0..<1000 { group.addTask { order.note(index) } }
                    }
                }
            }
            let begun = order.noted
            #expect(begun.sorted() == Array(0..<1000))
            // The bound is two batches: one taken at once, and one that a fair turn takes in between.
            #expect(begun.enumerated().allSatisfy { place, index in abs(place - index) <= 256 })
        }
    }
}
