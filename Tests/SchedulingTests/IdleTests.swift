// S17: an idle scheduler uses no CPU, and a submission sends a bounded number of wake-ups.

import Glibc
import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

extension Stress {
    @Suite(.inTurn) struct Idle {
        @Test func `idle workers do not wake up`() throws {
            let name = "idle-t"
            try withScheduler(.init(workers: 4, name: name)) { scheduler in
                let counter = try CompletionCounter()
                for _ in 0..<1000 { try scheduler.submit(in: counter) {} }
                counter.wait()
                var threads: [KernelThread] = []
                let haveNames = eventually {  // each thread names itself
                    threads = KernelThread.named(name) + KernelThread.watch(of: name)
                    return threads.count == 5
                }
                #expect(haveNames)
                func switches() -> [Int] { threads.compactMap(\.voluntarySwitches) }
                // Falling asleep takes a few timed sleeps of the sentry, whenever it gets a CPU for them; then a second
                // passes without any.
                var before: [Int] = [], after: [Int] = []
                let isSilent = eventually {
                    before = switches()
                    sleep(1)
                    after = switches()
                    return after == before
                }
                #expect(isSilent, "\(before), and a second later \(after)")
            }
        }

        @Test func `a new scheduler falls asleep without any work`() throws {
            let name = "fresh-t"
            try withScheduler(.init(workers: 4, name: name)) { scheduler in
                #expect(eventually { scheduler.statistics.parked >= 4 })
                #expect(eventually { KernelThread.named(name).allSatisfy(\.isAsleep) })
            }
        }

        @Test(arguments: [1, 2, 4])
        func `wake-ups are bounded by submissions`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let counter = try CompletionCounter()
                let rounds = scaled(2000)
                for _ in 0..<rounds {
                    try scheduler.submit(in: counter) {}
                    counter.wait()
                }
                // One for the operation; one more when the woken worker was the last one searching and wakes a
                // successor.
                #expect(scheduler.statistics.woken <= 2 * rounds + workers)
            }
        }

        @Test func `a bulk sends few wake-ups`() throws {
            try withScheduler(.workers(4)) { scheduler in
                #expect(eventually { scheduler.statistics.parked >= 4 })
                let before = scheduler.statistics.woken
                let counter = try CompletionCounter()
                try scheduler.submit(contentsOf: Array(repeating: {}, count: 1000), in: counter)
                counter.wait()
                #expect(scheduler.statistics.woken - before <= 100)
            }
        }
    }
}
