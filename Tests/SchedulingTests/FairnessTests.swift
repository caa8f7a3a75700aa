// S11 fairness: the oldest operation starts after a bounded number of newer bodies. S12: a blocked body
//     withholds nothing from other workers.

import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

/// DESIGN.md, X4: every 61st step takes an old operation, alternately from outside and from the worker's
/// own queue: one in 122 steps from each. The promise is twice that.
private let mostNewerBodies = 4 * 61

/// Resubmits itself until the victim starts, or until `limit`.
private final class Endless: Sendable {
    let executed = Count()
    let victimStartedAfter = Count()
    private let stop = Count()
    private let limit = 1_000_000

    func run(on scheduler: Scheduler, in counter: CompletionCounter) {
        if executed.add() < limit, stop.value == 0 {
            do {
                try scheduler.submit(in: counter) { self.run(on: scheduler, in: counter) }
            } catch { Issue.record(error) }
        }
    }

    func victim() {
        victimStartedAfter.reset(to: executed.value)
        stop.add()
    }
}

extension Stress {
    @Suite(.inTurn) struct Fairness {
        @Test func `an outside operation starts amid endless work`() throws {
            for _ in 0..<scaled(50) {
                try withScheduler(.workers(1)) { scheduler in
                    let endless = Endless()
                    let counter = try CompletionCounter()
                    try scheduler.submit(in: counter) { endless.run(on: scheduler, in: counter) }
                    try #require(eventually { endless.executed.value > 0 })
                    try scheduler.submit(in: counter) { endless.victim() }
                    let executedBefore = endless.executed.value
                    counter.wait()
                    try #require(endless.victimStartedAfter.value - executedBefore <= mostNewerBodies)
                }
            }
        }

        /// A worker's own queue is last in, first out; its bottom is reached all the same.
        @Test func `the oldest operation of a worker's own queue starts amid endless work`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let endless = Endless()
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) {
                    do {
                        try scheduler.submit(in: counter) { endless.victim() }
                        try scheduler.submit(in: counter) { endless.run(on: scheduler, in: counter) }
                    } catch { Issue.record(error) }
                }
                counter.wait()
                #expect(endless.victimStartedAfter.value <= mostNewerBodies)
            }
        }

        @Test func `each of many submitters is served amid endless work`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let endless = Endless()
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) { endless.run(on: scheduler, in: counter) }
                let outcomes = concurrently(16) { _ -> CompletionCounter.WaitOutcome in
                    do {
                        let mine = try CompletionCounter()
                        try scheduler.submit(in: mine) {}
                        return mine.wait(timeout: .seconds(20))
                    } catch {
                        Issue.record(error)
                        return .timedOut
                    }
                }
                #expect(outcomes.allSatisfy { $0 == .completed })
                endless.victim()
                counter.wait()
            }
        }
    }

    @Suite(.inTurn) struct BlockedWorker {
        @Test(arguments: [1, 2, 3, 50, 1000], [2, 3])
        func `others run waiters behind a blocked body`(operations: Int, workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                for _ in 0..<scaled(20) {
                    let gate = Gate()
                    let left = Count()
                    left.reset(to: operations)
                    let counter = try CompletionCounter()
                    try scheduler.submit(in: counter) {
                        for _ in 0..<operations {
                            do {
                                try scheduler.submit(in: counter) { if left.add(-1) == 0 { gate.open() } }
                            } catch { Issue.record(error) }
                        }
                        gate.wait()
                    }
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                }
            }
        }

        /// All workers but one are blocked, each with a lone operation behind it.
        @Test func `a free worker serves many blocked ones`() throws {
            let blocked = 3
            try withScheduler(.workers(blocked + 1)) { scheduler in
                for _ in 0..<scaled(20) {
                    let gates = (0..<blocked).map { _ in Gate() }
                    let counter = try CompletionCounter()
                    for gate in gates {
                        try scheduler.submit(in: counter) {
                            do { try scheduler.submit(in: counter) { gate.open() } } catch {
                                Issue.record(error)
                            }
                            gate.wait()
                        }
                    }
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                }
            }
        }

        @Test func `outside submissions are run while a body blocks`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let gate = Gate()
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) { gate.wait() }
                let outside = try CompletionCounter()
                for _ in 0..<scaled(1000) {
                    try scheduler.submit(in: outside) {}
                    try #require(outside.wait(timeout: .seconds(20)) == .completed)
                }
                gate.open()
                counter.wait()
            }
        }
    }
}
