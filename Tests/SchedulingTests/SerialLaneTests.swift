// S9: a lane runs its operations one at a time, in the order of their submission, and each sees what its predecessor wrote.

import CScheduler
import Glibc
import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

extension Stress {
    @Suite(.inTurn) struct Lanes {
        /// The counter is plain memory: concurrent bodies are a data race under ThreadSanitizer, and lose increments.
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

        /// With one worker: an endless lane still lets other operations run.
        @Test func `a lane that never empties starves none`() throws {
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

        /// A turn ends after 64 operations by submitting a drain, which may be stolen, and may begin, before the turn has ended.
        @Test(arguments: [1, 3], [2, 4])
        func `lanes of several turns lose nothing while their workers are held up`(lanes: Int, workers: Int)
            throws
        {
            let name = "turns-t"
            try disturbing(name) {
                try withScheduler(.init(workers: workers, name: name)) { scheduler in
                    for round in 0..<scaled(1000) {
                        let each = 200
                        let counter = try CompletionCounter()
                        let next = Slots(count: lanes)
                        let outOfOrder = Count()
                        let all = try (0..<lanes).map { _ in try SerialLane(on: scheduler) }
                        scheduler.suspend()
                        for index in 0..<each {
                            for (number, lane) in all.enumerated() {
                                try lane.submit(in: counter) {
                                    if next[number] != index { outOfOrder.add() }
                                    next[number] = index + 1
                                }
                            }
                        }
                        scheduler.resume()
                        try #require(counter.wait(timeout: .seconds(20)) == .completed, "round \(round)")
                        try #require(next.sum == lanes * each)
                        try #require(outOfOrder.value == 0)
                    }
                }
            }
        }

        /// A worker that runs a lane's drain is stuck in an operation of that lane: the drains behind it are stolen.
        @Test func `lanes of several turns, some of them stuck, run in order`() throws {
            try withScheduler(.workers(4)) { scheduler in
                for _ in 0..<scaled(30) {
                    let each = 300
                    let lanes = try (0..<8).map { _ in try SerialLane(on: scheduler) }
                    let next = Slots(count: lanes.count)
                    let outOfOrder = Count()
                    let counter = try CompletionCounter()
                    let gate = Gate()
                    try scheduler.submit(in: counter) {
                        do {
                            for index in 0..<each {
                                for (number, lane) in lanes.enumerated() {
                                    try lane.submit(in: counter) {
                                        if next[number] != index { outOfOrder.add() }
                                        next[number] = index + 1
                                        // Two of the lanes wait, in their second turn, for the end of all others.
                                        if number < 2 && index == 100 { gate.wait() }
                                        if number == 7 && index == each - 1 { gate.open() }
                                    }
                                }
                            }
                        } catch { Issue.record(error) }
                    }
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                    try #require(next.sum == lanes.count * each)
                    try #require(outOfOrder.value == 0)
                }
            }
        }

        /// In its own process, because its memory is measured.
        @Test(.enabled(if: !isThreadSanitized && !isAddressSanitized))
        func `refused submissions to a lane leave no memory behind`() async {
            await #expect(processExitsWith: .success) { try refuseOften() }
        }

        @Test func `at a shutdown a lane's operations ran in order or were freed`() throws {
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

@Suite(.inTurn) struct SerialLaneTests {
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

    @Test func `a lane may be freed before its operations`() throws {
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

    /// The other lane's operation needs a spare worker, because the job that runs it is not one that the wait waits for. On a
    /// busy machine that worker may start early, and take the operation that the wait would have run. That operation is then on
    /// another thread, where draining the lane would block.
    @Test func `operations run by a wait inside a lane's operation are not of the lane`() throws {
        try withScheduler(.init(workers: 1)) { scheduler in
            let lane = try SerialLane(on: scheduler)
            let other = try SerialLane(on: scheduler)
            let below = Count()
            for round in 1...100 {
                let right = Count()
                let counter = try CompletionCounter()
                try lane.submit(in: counter) {
                    let thread = UInt(pthread_self())
                    do {
                        let inner = try CompletionCounter()
                        try scheduler.submit(in: inner) {
                            if !lane.isCurrent { right.add() }
                            guard UInt(pthread_self()) == thread else {
                                right.add()
                                return
                            }
                            if code({ try lane.drain() }) == .wouldDeadlock { right.add() }
                            below.add()
                        }
                        try other.submit(in: inner) {
                            if other.isCurrent, !lane.isCurrent { right.add() }
                        }
                        inner.wait()
                    } catch { Issue.record(error) }
                    if lane.isCurrent, !other.isCurrent { right.add() }
                }
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(right.value == 4)
                if below.value > 0 || right.value != 4 { break }
                try #require(round < 100, "a wait runs nothing of its own")
            }
        }
    }

    @Test func `a notification run by a wait in a lane's operation is not of the lane`() throws {
        try withScheduler(.workers(1)) { scheduler in
            let lane = try SerialLane(on: scheduler)
            let right = Count()
            let counter = try CompletionCounter()
            try lane.submit(in: counter) {
                do {
                    let inner = try CompletionCounter()
                    try scheduler.submit(in: inner) {}
                    try inner.notify { if !lane.isCurrent { right.add() } }
                    inner.wait()
                } catch { Issue.record(error) }
                if lane.isCurrent { right.add() }
            }
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
            #expect(right.value == 2)
        }
    }
}

private func refuseOften() throws {
    var configuration = csched_configuration_default()
    configuration.workers = 1
    var created: OpaquePointer?
    try #require(csched_scheduler_create(&configuration, &created) == .ok)
    let scheduler = try #require(created)
    let lane = try #require(csched_lane_create(scheduler))
    try #require(csched_scheduler_shutdown(scheduler, UInt64.max) == .ok)
    let operation = csched_operation(run: { _, _, _ in }, context: nil, extra: nil, counter: nil)
    func refuse(_ times: Int) -> Int {
        (0..<times).count { _ in csched_lane_submit(lane, operation) == .closed }
    }
    _ = refuse(100)
    let before = try memoryInUse()
    #expect(refuse(100_000) == 100_000)
    let growth = try memoryInUse() - before
    #expect(growth < 64 << 10)
    csched_lane_release(lane)
    csched_scheduler_destroy(scheduler)
}
