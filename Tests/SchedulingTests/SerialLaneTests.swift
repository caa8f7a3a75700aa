// S9: a lane runs its operations one at a time, in the order of their submission, each after what the one
// before wrote.

import PropertyTesting
import Scheduling
import Testing

extension Stress {
    @Suite struct Lanes {
        /// The counter is plain memory: bodies at once are a data race under ThreadSanitizer, and lose
        /// increments.
        @Test(arguments: [1, 2, 4])
        func `operations of many submitters run one at a time`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let lane = try SerialLane(on: scheduler)
                let counter = try CompletionCounter()
                let each = scaled(2000)
                let slots = Slots(count: 1)
                _ = concurrently(4) { _ in
                    for _ in 0..<each {
                        do { try lane.submit(in: counter) { slots[0] += 1 } } catch { Issue.record(error) }
                    }
                }
                counter.wait()
                #expect(slots[0] == 4 * each)
            }
        }

        @Test(arguments: [1, 2, 4])
        func `operations of one submitter run in their order`(workers: Int) throws {
            try withScheduler(.workers(workers)) { scheduler in
                let lane = try SerialLane(on: scheduler)
                let submitters = 3
                let each = scaled(2000)
                let next = Slots(count: submitters)
                let outOfOrder = Count()
                _ = concurrently(submitters) { thread in
                    for index in 0..<each {
                        do {
                            try lane.submit {
                                if next[thread] != index { outOfOrder.add() }
                                next[thread] = index + 1
                            }
                        } catch { Issue.record(error) }
                    }
                }
                try lane.drain()
                #expect(next.sum == submitters * each)
                #expect(outOfOrder.value == 0)
            }
        }

        @Test func `lanes do not wait for each other`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let first = try SerialLane(on: scheduler)
                let second = try SerialLane(on: scheduler)
                let gate = Gate()
                try first.submit { gate.wait() }
                try second.submit { gate.open() }
                try first.drain()
                try second.drain()
            }
        }

        /// With one worker: an endless lane leaves room for others.
        @Test func `a lane that never empties starves nobody`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let lane = try SerialLane(on: scheduler)
                let stop = Count()
                @Sendable func again() {
                    if stop.value == 0 {
                        do { try lane.submit(again) } catch { Issue.record(error) }
                    }
                }
                try lane.submit(again)
                let counter = try CompletionCounter()
                try scheduler.submit(in: counter) {}
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                stop.add()
            }
        }

        @Test func `what a shutdown meets on a lane ran in order, or was released`() throws {
            for round in 0..<scaled(40) {
                let scheduler = try Scheduler(.workers(2))
                let lane = try SerialLane(on: scheduler)
                let released = Count()
                let accepted = Count()
                let next = Slots(count: 3)
                let outOfOrder = Count()
                _ = concurrently(4) { thread in
                    do {
                        if thread == 3 {
                            try scheduler.shutdown(round.isMultiple(of: 2) ? .drain : .cancelPending)
                            return
                        }
                        for index in 0..<500 {
                            let token = Token(released)
                            try lane.submit {
                                withExtendedLifetime(token) {}
                                if next[thread] != index { outOfOrder.add() }
                                next[thread] = index + 1
                            }
                            accepted.add()
                        }
                    } catch let error as SchedulerError {
                        if error.code != .closed { Issue.record(error) }
                    } catch { Issue.record(error) }
                }
                try #require(outOfOrder.value == 0)
                try #require(released.value >= accepted.value)
                if round.isMultiple(of: 2) { try #require(next.sum == accepted.value) }
            }
        }
    }
}

@Suite struct SerialLaneTests {
    @Test func `an operation of a lane knows its lane`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let lane = try SerialLane(on: scheduler)
            let other = try SerialLane(on: scheduler)
            let right = Count()
            #expect(!lane.isCurrent)
            try lane.submit {
                if lane.isCurrent, !other.isCurrent, lane.scheduler === Scheduler.current { right.add() }
            }
            try lane.drain()
            #expect(right.value == 1)
        }
    }

    @Test func `an operation of a lane submits to it, after itself`() throws {
        try withScheduler(.workers(2)) { scheduler in
            let lane = try SerialLane(on: scheduler)
            let counter = try CompletionCounter()
            let order = Slots(count: 2)
            try lane.submit(in: counter) {
                do {
                    try lane.submit(in: counter) { order[1] = order[0] }
                } catch { Issue.record(error) }
                order[0] = 7
            }
            counter.wait()
            #expect(order[1] == 7)
        }
    }

    @Test func `draining a lane on itself would deadlock, and says so`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let lane = try SerialLane(on: scheduler)
            let refused = Count()
            try lane.submit {
                if code({ try lane.drain() }) == .wouldDeadlock { refused.add() }
            }
            try lane.drain()
            #expect(refused.value == 1)
        }
    }

    @Test func `a lane of a scheduler that is shut down refuses`() async throws {
        let scheduler = try Scheduler(.workers(1))
        let lane = try SerialLane(on: scheduler)
        try await scheduler.shutdown()
        let released = Count()
        func submit() throws {
            let token = Token(released)
            try lane.submit { withExtendedLifetime(token) {} }
        }
        #expect(throws: SchedulerError.self) { try submit() }
        #expect(released.value == 1)
    }

    @Test func `a lane may go before what was submitted to it`() throws {
        let runs = Runs(100)
        try withScheduler(.workers(2)) { scheduler in
            scheduler.suspend()
            do {
                let lane = try SerialLane(on: scheduler)
                for index in 0..<100 { try lane.submit { runs.note(index) } }
            }
            scheduler.resume()
        }
        #expect(runs.areExactlyOnce)
    }
}
