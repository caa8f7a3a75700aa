// S8: never more bodies at once than workers, even while the number of workers changes; a change loses
// nothing.

import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

/// The number of bodies running at once, and its maximum.
private final class Gauge: Sendable {
    private let inside = Count()
    private let highest = Count()

    var most: Int { highest.value }

    func pass() {
        highest.raise(to: inside.add())
        for _ in 0..<20 { _ = inside.value }
        inside.add(-1)
    }
}

extension Stress {
    @Suite(.inTurn) struct Width {
        @Test(arguments: [1, 2, 3, 7])
        func `never more bodies at once than workers`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let gauge = Gauge()
                let counter = try CompletionCounter()
                _ = concurrently(3) { _ in
                    for _ in 0..<scaled(2000) {
                        do { try scheduler.submit(in: counter) { gauge.pass() } } catch {
                            Issue.record(error)
                        }
                    }
                }
                counter.wait()
                #expect((1...workers).contains(gauge.most))
            }
        }

        /// As many bodies as workers meet at a gate: fewer would wait for ever.
        @Test(arguments: [1, 2, 8, 64])
        func `as many bodies at once as workers`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let gate = Gate()
                let inside = Count()
                let counter = try CompletionCounter()
                for _ in 0..<workers {
                    try scheduler.submit(in: counter) {
                        if inside.add() == workers { gate.open() }
                        gate.wait()
                    }
                }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
            }
        }

        @Test func `the width follows changes under load`() throws {
            let name = "width-t"
            try withScheduler(.init(workers: 2, name: name, spareWorkers: 0)) { scheduler in
                let stop = Count()
                let endless = try CompletionCounter()
                let gauge = Gauge()
                @Sendable func chain() {
                    gauge.pass()
                    if stop.value == 0 {
                        do { try scheduler.submit(in: endless, chain) } catch { Issue.record(error) }
                    }
                }
                for _ in 0..<8 { try scheduler.submit(in: endless, chain) }
                for (round, width) in [4, 1, 8, 2, 3, 1, 5, 1].enumerated() {
                    try scheduler.setWorkers(width)
                    #expect(scheduler.workers == width)
                    try #require(eventually { KernelThread.named(name).count == width }, "round \(round)")
                    let fresh = Gauge()
                    let counter = try CompletionCounter()
                    for _ in 0..<scaled(300) { try scheduler.submit(in: counter) { fresh.pass() } }
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                    try #require((1...width).contains(fresh.most))
                }
                #expect(gauge.most <= 8)
                stop.add()
                #expect(endless.wait(timeout: .seconds(20)) == .completed)
            }
        }

        @Test func `nothing is lost while workers come and go`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let each = scaled(3000)
                let runs = Runs(3 * each)
                let counter = try CompletionCounter()
                _ = concurrently(4) { thread in
                    do {
                        if thread == 3 {
                            for round in 0..<scaled(60) { try scheduler.setWorkers(1 + round * 7 % 5) }
                            return
                        }
                        for index in 0..<each where index.isMultiple(of: 3) {
                            try scheduler.submit(in: counter) {
                                for next in index..<min(index + 3, each) {
                                    do {
                                        try scheduler.submit(in: counter) { runs.note(thread * each + next) }
                                    } catch { Issue.record(error) }
                                }
                            }
                        }
                    } catch { Issue.record(error) }
                }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(runs.areExactlyOnce)
                let statistics = scheduler.statistics
                #expect(statistics.submitted == statistics.executed)
            }
        }

        /// Its body is the scheduler's only one; the workers that stay run what it leaves in its queue.
        @Test func `a leaving worker hands over its queue`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let started = Gate()
                let gate = Gate()
                let counter = try CompletionCounter()
                let runs = Runs(100)
                try scheduler.submit(in: counter) {
                    for index in 0..<100 {
                        do { try scheduler.submit(in: counter) { runs.note(index) } } catch {
                            Issue.record(error)
                        }
                    }
                    started.open()
                    gate.wait()
                }
                started.wait()
                try scheduler.setWorkers(2)
                try scheduler.setWorkers(1)
                gate.open()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(runs.areExactlyOnce)
            }
        }

        /// The worker that leaves finds the scheduler closed, so it stays, and runs its queue by itself.
        @Test func `work pushed by a worker runs on a worker, even if it leaves a closed scheduler`()
            throws
        {
            let name = "stay-t"
            for _ in 0..<scaled(40) {
                let scheduler = try Scheduler(.init(workers: 2, name: name, spareWorkers: 0))
                let lane = try SerialLane(on: scheduler)
                let started = try CompletionCounter()
                started.enter(2)
                let gate = Gate()
                let right = Count()
                let ran = Count()
                @Sendable func child() {
                    guard Scheduler.current === scheduler else { return }
                    guard code({ try scheduler.submit { ran.add() } }) == nil else { return }
                    guard code({ try scheduler.shutdown() }) == .wouldDeadlock else { return }
                    right.add()
                }
                for _ in 0..<2 {
                    try scheduler.submit {
                        // The worker with the highest index leaves.
                        let stays = KernelThread.named(name + "-0").contains {
                            $0.id == KernelThread.current.id
                        }
                        do {
                            if !stays {
                                for _ in 0..<20 { try scheduler.submit(child) }
                                for _ in 0..<200 { try lane.submit { ran.add() } }
                            }
                        } catch { Issue.record(error) }
                        started.leave()
                        gate.wait()
                    }
                }
                started.wait()
                try scheduler.setWorkers(1)
                _ = concurrently(2) { thread in
                    if thread == 0 {
                        do { try scheduler.shutdown() } catch { Issue.record(error) }
                    } else {
                        _ = eventually { code { try scheduler.submit {} } == .closed }
                        gate.open()
                    }
                }
                try #require(right.value == 20)
                try #require(ran.value == 220)
                let statistics = scheduler.statistics
                try #require(statistics.submitted == statistics.executed)
            }
        }

        @Test func `no worker counts as running after it has left`() throws {
            try withScheduler(.workers(4)) { scheduler in
                let started = try CompletionCounter()
                let gate = Gate()
                let counter = try CompletionCounter()
                started.enter(4)
                for _ in 0..<4 {
                    try scheduler.submit(in: counter) {
                        started.leave()
                        gate.wait()
                    }
                }
                started.wait()
                #expect(scheduler.statistics.running == 4)
                try scheduler.setWorkers(1)
                gate.open()
                counter.wait()
                #expect(eventually(within: .seconds(5)) { scheduler.statistics.running == 0 })
            }
        }

        @Test func `a body changes the number of workers`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) {
                    do { try scheduler.setWorkers(3) } catch { Issue.record(error) }
                }
                counter.wait()
                #expect(scheduler.workers == 3)
                try scheduler.submit(in: counter) {
                    do { try scheduler.setWorkers(1) } catch { Issue.record(error) }
                }
                counter.wait()
                for _ in 0..<100 { try scheduler.submit(in: counter) {} }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
            }
        }
    }
}
