// S3: a worker finds whatever is submitted to an idle scheduler, at whichever step of falling asleep the
// submission arrives.

import Glibc
import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

extension Stress {
    @Suite(.inTurn) struct LostWakeUp {
        @Test(arguments: [1, 2, 3, 8])
        func `single submissions to an idle scheduler are run`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let counter = try CompletionCounter()
                for round in 0..<scaled(3000) {
                    try scheduler.submit(in: counter) {}
                    try #require(counter.wait(timeout: .seconds(20)) == .completed, "round \(round)")
                }
            }
        }

        @Test(arguments: [1, 2, 8], [2, 8])
        func `simultaneous single submissions are run`(workers: Int, submitters: Int) throws {
            let rounds = scaled(400)
            try withScheduler(.workers(workers)) { scheduler in
                let completed = concurrently(submitters) { _ -> Int in
                    var completed = 0
                    do {
                        let counter = try CompletionCounter()
                        for _ in 0..<rounds {
                            try scheduler.submit(in: counter) {}
                            if counter.wait(timeout: .seconds(20)) == .completed { completed += 1 }
                        }
                    } catch { Issue.record(error) }
                    return completed
                }
                #expect(completed == Array(repeating: rounds, count: submitters))
            }
        }

        /// The submitter meets a worker that is asleep, falling asleep, or still searching.
        @Test(arguments: [1, 2])
        func `submissions at random distances are run`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let counter = try CompletionCounter()
                for round in 0..<scaled(3000) {
                    for _ in 0..<Int.random(in: 0...300) { _ = scheduler.workers }
                    try scheduler.submit(in: counter) {}
                    if round.isMultiple(of: 3) { try scheduler.submit(in: counter) {} }
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                }
            }
        }

        /// A body wakes workers for what it submits, and a sleeping worker is not forgotten.
        @Test(arguments: [2, 4])
        func `work submitted before a body blocks is run`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                for _ in 0..<scaled(300) {
                    let gate = Gate()
                    let counter = try CompletionCounter()
                    try scheduler.submit(in: counter) {
                        do { try scheduler.submit(in: counter) { gate.open() } } catch { Issue.record(error) }
                        gate.wait()
                    }
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                }
            }
        }

        /// Each body needs its own worker: neither submission may rely on the worker that the other one wakes.
        @Test func `two bodies that are submitted at once meet`() throws {
            let name = "meet-t"
            try disturbing(name) {
                try withScheduler(.init(workers: 4, name: name)) { scheduler in
                    let rounds = scaled(60_000)
                    let arrived = Runs(rounds)
                    let gates = (0..<rounds).map { _ in Gate() }
                    let met = Count()
                    let failed = Count()
                    let ready = Count()
                    let isOver = Count()
                    let end = ContinuousClock.now + .seconds(20)  // on a busy machine there are fewer rounds
                    _ = concurrently(2) { thread in
                        takePart(in: name)
                        do {
                            let counter = try CompletionCounter()
                            for round in 0..<rounds where failed.value == 0 {
                                if thread == 0, ContinuousClock.now > end { isOver.add() }
                                ready.add()
                                while ready.value < 2 * (round + 1) && failed.value == 0 { sched_yield() }
                                if isOver.value != 0 { break }
                                try scheduler.submit(in: counter) {
                                    if arrived.note(round) == 2 { gates[round].open() }
                                    if gates[round].wait(timeout: .seconds(10)) {
                                        met.add()
                                    } else {
                                        failed.add()
                                    }
                                }
                                counter.wait()
                            }
                        } catch {
                            Issue.record(error)
                            failed.add()
                        }
                    }
                    try #require(failed.value == 0, "round \(met.value / 2)")
                    try #require(met.value == (isOver.value == 0 ? 2 * rounds : ready.value - 2))
                    try #require(met.value >= 2 * min(rounds, 500))
                }
            }
        }
    }
}
