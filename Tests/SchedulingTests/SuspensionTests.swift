// S7: between suspend and resume no body starts; what waits is kept.

import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

extension Stress {
    @Suite(.inTurn) struct Suspension {
        @Test(arguments: [1, 2, 4])
        func `nothing starts while suspended, and everything runs afterwards`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let starts = Count()
                let stop = Count()
                let counter = try CompletionCounter()
                @Sendable func chain() {
                    starts.add()
                    if stop.value == 0 {
                        do { try scheduler.submit(in: counter, chain) } catch { Issue.record(error) }
                    }
                }
                for _ in 0..<6 { try scheduler.submit(in: counter, chain) }
                for _ in 0..<scaled(40) {
                    scheduler.suspend()
                    try #require(eventually { scheduler.statistics.running == 0 })
                    let before = starts.value
                    try scheduler.submit(in: counter) { starts.add() }
                    yieldOften(50)
                    try #require(starts.value == before)
                    scheduler.resume()
                    try #require(eventually { starts.value > before })
                }
                stop.add()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(scheduler.statistics.pending == 0)
            }
        }

        @Test func `suspensions nest`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let runs = Runs(100)
                let counter = try CompletionCounter()
                scheduler.suspend()
                scheduler.suspend()
                #expect(eventually { scheduler.statistics.running == 0 })
                for index in 0..<100 { try scheduler.submit(in: counter) { runs.note(index) } }
                scheduler.resume()
                yieldOften()
                #expect(runs.total == 0)
                #expect(scheduler.statistics.pending == 100)
                scheduler.resume()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(runs.areExactlyOnce)
            }
        }

        @Test func `a body that has started goes on while suspended`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let started = Gate()
                let gate = Gate()
                let counter = try CompletionCounter()
                let next = Count()
                try scheduler.submit(in: counter) {
                    started.open()
                    gate.wait()
                }
                try scheduler.submit { next.add() }
                started.wait()
                scheduler.suspend()
                gate.open()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(eventually { scheduler.statistics.running == 0 })
                #expect(next.value == 0)
                scheduler.resume()
                #expect(eventually { next.value == 1 })
            }
        }

        @Test(arguments: [Scheduler.ShutdownPolicy.drain, .deadline(.seconds(60))])
        func `a shutdown ends every suspension and runs waiters`(policy: Scheduler.ShutdownPolicy) throws {
            let scheduler = try Scheduler(.workers(2))
            let runs = Runs(50)
            scheduler.suspend()
            scheduler.suspend()
            for index in 0..<50 { try scheduler.submit { runs.note(index) } }
            try scheduler.shutdown(policy)
            #expect(runs.areExactlyOnce)
        }

        @Test func `a cancelling shutdown runs no suspended operations`() throws {
            for _ in 0..<scaled(50) {
                let scheduler = try Scheduler(.workers(2))
                let runs = Runs(20)
                scheduler.suspend()
                try #require(eventually { scheduler.statistics.running == 0 })
                for index in 0..<20 { try scheduler.submit { runs.note(index) } }
                try scheduler.shutdown(.cancelPending)
                try #require(runs.total == 0)
                try #require(scheduler.statistics.cancelled == 20)
            }
        }

        /// The worker puts operations back into its own queue. The resume may come at any step of its
        /// falling asleep.
        @Test(arguments: [1, 2])
        func `a resume finds operations in the worker's own queue`(workers: Int) throws {
            let name = "resume-t"
            try disturbing(name) {
                try withScheduler(.init(workers: workers, name: name)) { scheduler in
                    let counter = try CompletionCounter()
                    for round in 0..<scaled(20_000) {
                        for _ in 0..<40 { try scheduler.submit(in: counter) {} }
                        scheduler.suspend()
                        for _ in 0..<Int.random(in: 0...1000) { _ = scheduler.workers }
                        scheduler.resume()
                        try #require(counter.wait(timeout: .seconds(10)) == .completed, "round \(round)")
                    }
                }
            }
        }

        @Test func `several threads suspend and resume under load`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let counter = try CompletionCounter()
                let each = scaled(500)
                let runs = Runs(4 * each)
                _ = concurrently(4) { thread in
                    for index in 0..<each {
                        scheduler.suspend()
                        do {
                            try scheduler.submit(in: counter) { runs.note(thread * each + index) }
                        } catch { Issue.record(error) }
                        scheduler.resume()
                    }
                }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(runs.areExactlyOnce)
            }
        }
    }
}

@Test func `resuming without a suspension stops the process`() async {
    await #expect(processExitsWith: .failure) { try Scheduler(.workers(1)).resume() }
}
