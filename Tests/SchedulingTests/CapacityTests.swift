// The capacity: how many operations from outside may wait, and what happens to one more.

import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

/// A scheduler whose only worker is inside a body until `open` is called, with `waiting` operations that fill
/// it.
private func withFullScheduler(
    _ policy: Scheduler.CapacityPolicy, capacity: Int,
    _ body: (Scheduler, Gate) throws -> Void
) throws {
    let scheduler = try Scheduler(
        .init(workers: 1, capacity: capacity, whenFull: policy, spareWorkers: 0))  // full while it blocks
    let started = Gate()
    let gate = Gate()
    try scheduler.submit {
        started.open()
        gate.wait()
    }
    started.wait()
    for _ in 0..<capacity { try scheduler.submit {} }
    try body(scheduler, gate)
    gate.open()
    try scheduler.shutdown()
}

@Suite(.inTurn) struct CapacityTests {
    @Test(arguments: [1, 10])
    func `reject refuses submissions over capacity only`(capacity: Int) throws {
        try withFullScheduler(.reject, capacity: capacity) { scheduler, gate in
            let released = Count()
            let counter = try CompletionCounter()
            for _ in 0..<20 {
                let token = Token(released)
                #expect(
                    code { try scheduler.submit(in: counter) { withExtendedLifetime(token) {} } } == .full)
            }
            #expect(released.value == 20)
            #expect(counter.outstanding == 0)
            #expect(scheduler.statistics.pending == capacity + 1)
            gate.open()
            #expect(eventually { scheduler.statistics.pending == 0 })
            try scheduler.submit(in: counter) {}
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
        }
    }

    @Test func `runInCaller runs on the calling thread, before the submission returns`() throws {
        try withFullScheduler(.runInCaller, capacity: 2) { scheduler, _ in
            let here = KernelThread.current.id
            let ran = Slots(count: 1)
            let counter = try CompletionCounter()
            try scheduler.submit(in: counter) { ran[0] = Int(KernelThread.current.id) }
            #expect(ran[0] == Int(here))
            #expect(counter.outstanding == 0)
        }
    }

    @Test func `runInCaller counts its runs, and runs nothing while suspended`() throws {
        try withFullScheduler(.runInCaller, capacity: 2) { scheduler, gate in
            let ran = Count()
            let released = Count()
            let counter = try CompletionCounter()
            func submit() throws {
                let token = Token(released)
                try scheduler.submit(in: counter) {
                    ran.add()
                    withExtendedLifetime(token) {}
                }
            }
            scheduler.suspend()
            for _ in 0..<3 { #expect(code { try submit() } == .full) }
            #expect(
                code { try scheduler.submit(contentsOf: [{ ran.add() }, { ran.add() }], in: counter) }
                    == .full)
            #expect(ran.value == 0)
            #expect(released.value == 3)
            #expect(counter.outstanding == 0)
            #expect(scheduler.statistics.submitted == 3)
            scheduler.resume()
            for _ in 0..<4 { try submit() }
            #expect(ran.value == 4)
            // The worker is inside its first body.
            #expect(scheduler.statistics.submitted == 7)
            #expect(scheduler.statistics.executed == 4)
            gate.open()
            #expect(eventually { scheduler.statistics.executed == 7 })
        }
    }

    @Test func `suspend blocks until there is room`() throws {
        try withFullScheduler(.suspend, capacity: 3) { scheduler, gate in
            let submitter = Slots(count: 1)
            let known = Gate()
            let returned = Count()
            let ran = Count()
            let outcomes = concurrently(2) { thread -> Bool in
                if thread == 0 {
                    submitter[0] = Int(KernelThread.current.id)
                    known.open()
                    do { try scheduler.submit { ran.add() } } catch { Issue.record(error) }
                    returned.add()
                    return true
                }
                known.wait()
                let thread = KernelThread(id: Int32(submitter[0]))
                let slept = eventually { thread.isAsleep }
                let blocked = slept && returned.value == 0
                gate.open()
                return blocked
            }
            #expect(outcomes == [true, true])
            #expect(eventually { ran.value == 1 })
        }
    }

    @Test func `a shutdown releases a suspended submitter`() throws {
        try withFullScheduler(.suspend, capacity: 1) { scheduler, gate in
            let submitter = Slots(count: 1)
            let known = Gate()
            let codes = concurrently(3) { thread -> SchedulerError.Code? in
                switch thread {
                case 0:
                    submitter[0] = Int(KernelThread.current.id)
                    known.open()
                    let refusal = code { try scheduler.submit { Issue.record("ran") } }
                    gate.open()  // only now: the refusal must not need the worker
                    return refusal
                case 1:
                    known.wait()
                    _ = eventually { KernelThread(id: Int32(submitter[0])).isAsleep }
                    return code { try scheduler.shutdown() }
                default:
                    return nil
                }
            }
            #expect(codes == [.closed, nil, nil])
        }
    }

    @Test func `a bulk is accepted as a whole or not at all`() throws {
        let scheduler = try Scheduler(.init(workers: 1, capacity: 4, whenFull: .suspend))
        #expect(code { try scheduler.submit(contentsOf: Array(repeating: {}, count: 5)) } == .full)
        let runs = Runs(4)
        try scheduler.submit(contentsOf: (0..<4).map { index in { runs.note(index) } })
        try scheduler.shutdown()
        #expect(runs.areExactlyOnce)
        #expect(scheduler.statistics.submitted == 4)
    }

    @Test(arguments: Scheduler.CapacityPolicy.allCases)
    func `a worker's own submissions are exempt`(policy: Scheduler.CapacityPolicy) throws {
        try withScheduler(.init(workers: 1, capacity: 1, whenFull: policy)) { scheduler in
            let counter = try CompletionCounter()
            let runs = Runs(1000)
            try scheduler.submit(in: counter) {
                for index in 0..<1000 {
                    do { try scheduler.submit(in: counter) { runs.note(index) } } catch {
                        Issue.record(error)
                    }
                }
            }
            #expect(counter.wait(timeout: .seconds(20)) == .completed)
            #expect(runs.areExactlyOnce)
        }
    }
}

extension Stress {
    @Suite(.inTurn) struct Backpressure {
        @Test(arguments: Scheduler.CapacityPolicy.allCases, [1, 3])
        func `producers that are faster than the workers stay within the capacity`(
            policy: Scheduler.CapacityPolicy, workers: Int
        ) throws {
            let capacity = 16
            let each = scaled(1500)
            let accepted = Count()
            let rejected = Count()
            let started = Count()
            let most = Count()
            try withScheduler(.init(workers: workers, capacity: capacity, whenFull: policy)) { scheduler in
                _ = concurrently(4) { _ in
                    for _ in 0..<each {
                        switch code({ try scheduler.submit { started.add() } }) {
                        case nil: accepted.add()
                        case .full: rejected.add()
                        case let other: Issue.record("refused as \(String(describing: other))")
                        }
                        // `accepted` is read first: operations that start between the two reads can only make
                        // the difference smaller.
                        let acceptedBefore = accepted.value
                        most.raise(to: acceptedBefore - started.value)
                    }
                }
            }
            #expect(accepted.value + rejected.value == 4 * each)
            #expect(started.value == accepted.value)
            #expect(most.value <= capacity + workers)  // plus those taken but not begun
            if policy != .reject { #expect(rejected.value == 0) }
        }
    }
}
