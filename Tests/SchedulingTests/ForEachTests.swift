// Ranges: every index once, on the workers; a shutdown cuts a range short and says so.

import CScheduler
import Glibc
import PropertyTesting
import Scheduling
import PropertyTestingSupport
import Testing

/// The threads that have arrived.
private final class Meeting: Sendable {
    private let threads = Locked<Set<Int32>>([])

    /// Returns the number of threads, including this one.
    func join(_ thread: Int32) -> Int {
        threads.withLock { threads in
            threads.insert(thread)
            return threads.count
        }
    }
}

@Suite(.inTurn) struct ForEachTests {
    @Test(arguments: [0..<0, 0..<1, -5..<5, 7..<1007, 0..<20_000], [1, 3])
    func `every index is called once`(range: Range<Int>, workers: Int) async throws {
        let scheduler = try Scheduler(.workers(workers))
        let blocking = Runs(range.count)
        let waiting = Runs(range.count)
        let counting = Runs(range.count)
        try block(on: scheduler) { try scheduler.forEach(range) { blocking.note($0 - range.lowerBound) } }
        #expect(blocking.areExactlyOnce)
        try await scheduler.forEach(range) { waiting.note($0 - range.lowerBound) }
        #expect(waiting.areExactlyOnce)
        let counter = try CompletionCounter()
        try scheduler.submit(range, in: counter) { counting.note($0 - range.lowerBound) }
        try await counter.wait()
        #expect(counting.areExactlyOnce)
        try await scheduler.shutdown()
    }

    private func block(on scheduler: Scheduler, _ body: () throws -> Void) rethrows { try body() }

    @Test func `a range within a range within a body`() throws {
        try withScheduler(.workers(2)) { scheduler in
            let runs = Runs(400)
            try scheduler.forEach(0..<20) { row in
                do {
                    try scheduler.forEach(0..<20) { runs.note(row * 20 + $0) }
                } catch { Issue.record(error) }
            }
            #expect(runs.areExactlyOnce)
        }
    }

    /// The workers meet inside the range, which is cut into pieces for them.
    @Test func `a range is shared by the workers`() throws {
        try withScheduler(.init(workers: 3, spareWorkers: 0)) { scheduler in
            let gate = Gate()
            let met = Meeting()
            try scheduler.forEach(0..<1000) { _ in
                if met.join(KernelThread.current.id) == 3 { gate.open() }
                gate.wait()
            }
            #expect(met.join(0) == 4)
        }
    }

    @Test func `writes by the calls are visible after the range`() throws {
        try withScheduler(.workers(3)) { scheduler in
            let slots = Slots(count: 5000)
            try scheduler.forEach(0..<5000) { slots[$0] = 1 }
            #expect(slots.sum == 5000)
        }
    }

    @Test(arguments: [1, 3])
    func `a shutdown that cancels cuts a range short`(workers: Int) async throws {
        let scheduler = try Scheduler(.workers(workers))
        let runs = Runs(100_000)
        let gate = Gate()
        let started = Gate()
        // Not in the test's own pool: its threads may all be blocked in tests like this one.
        let asynchronous = Task(executorPreference: Scheduler.shared) { () -> SchedulerError.Code? in
            do throws(SchedulerError) {
                try await scheduler.forEach(0..<100_000) { index in
                    runs.note(index)
                    started.open()
                    gate.wait()
                }
                return nil
            } catch { return error.code }
        }
        let codes = cutShort(scheduler, started: started, gate: gate)
        #expect(codes == [.closed, nil, nil])
        #expect(await asynchronous.value == .closed)
        #expect(runs.areAtMostOnce)
        #expect(runs.total < 100_000)
        #expect(scheduler.statistics.pending == 0)
    }

    private func cutShort(_ scheduler: Scheduler, started: Gate, gate: Gate) -> [SchedulerError.Code?] {
        let shuttingDown = Gate()
        return concurrently(3) { thread in
            started.wait()
            switch thread {
            case 0:
                return code { try scheduler.forEach(0..<100_000) { _ in gate.wait() } }
            case 1:
                _ = eventually { scheduler.statistics.submitted >= 2 }  // both ranges
                shuttingDown.open()
                return code { try scheduler.shutdown(.cancelPending) }
            default:
                shuttingDown.wait()
                _ = eventually { code { try scheduler.submit {} } == .closed }  // and so the policy is set
                gate.open()
                return nil
            }
        }
    }

    @Test(arguments: grains)
    func `every index of a range is called once, whatever its grain`(count: Int, grain: UInt64) throws {
        try withCScheduler(workers: 2) { scheduler in
            let record = RangeRecord(count)
            let counter = try #require(csched_completion_create())
            defer { csched_completion_release(counter) }
            try #require(
                csched_submit_range(
                    scheduler, UInt64(count), grain, RangeRecord.body, RangeRecord.finally, record.context,
                    counter) == .ok)
            #expect(csched_completion_wait(counter, 20_000_000_000) == .completed)
            #expect(record.runs.areExactlyOnce)
            #expect(record.ends.each == [0, 1])
        }
    }

    /// Too many indices to call: the range is cancelled while its first index runs.
    @Test(arguments: hugeRanges)
    func `a range may have as many indices as there are`(count: UInt64, grain: UInt64) throws {
        try withCScheduler(workers: 1) { scheduler in
            let record = RangeRecord(1)
            record.holds = true
            let counter = try #require(csched_completion_create())
            defer { csched_completion_release(counter) }
            try #require(
                csched_submit_range(
                    scheduler, count, grain, RangeRecord.body, RangeRecord.finally, record.context, counter)
                    == .ok)
            try #require(record.started.wait(timeout: .seconds(20)))
            // Unsafe: the C side synchronises every call.
            nonisolated(unsafe) let shared = scheduler
            _ = concurrently(2) { thread in
                if thread == 0 {
                    if csched_scheduler_shutdown(shared, 0) != .ok { Issue.record("not shut down") }
                } else {
                    let operation = csched_operation(
                        run: { _, _, _ in }, context: nil, extra: nil, counter: nil)
                    _ = eventually { csched_submit(shared, operation) == .closed }
                    record.gate.open()
                }
            }
            #expect(csched_completion_wait(counter, 0) == .completed)
            #expect(record.runs.each == [1])
            #expect(record.ends.each == [1, 0])
        }
    }
}

/// Counts and grains; with a grain of 0, the scheduler chooses.
private let grains: [(Int, UInt64)] = [
    (1000, .max), (1000, .max - 998), (1000, .max - 999), (1000, 1_000_000_000_000), (1, .max), (1000, 999),
    (1000, 1000), (1000, 1001), (1000, 1),
]

private let hugeRanges: [(UInt64, UInt64)] = [
    (.max, .max), (.max, 0), (.max, 1), (.max, 0x1_0000_0000), (.max - 1, .max), (0x8000_0000_0000_0000, 3),
    (0xFFFF_FFFF, 1), (0x1_0000_0000, 1), (0x1_0000_0001, 1),
]

/// The record of a range that was submitted through the C interface.
private final class RangeRecord: @unchecked Sendable {
    // Unchecked: `holds` is written before the range is submitted.
    let runs: Runs
    /// How often the range ended incomplete, and how often complete.
    let ends = Runs(2)
    var holds = false
    let started = Gate()
    let gate = Gate()

    init(_ count: Int) { runs = Runs(count) }

    /// The caller keeps the record alive.
    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static let body: csched_index_function = { context, index in
        let record = Unmanaged<RangeRecord>.fromOpaque(context!).takeUnretainedValue()
        record.runs.note(Int(index))
        guard record.holds else { return }
        record.started.open()
        record.gate.wait()
    }

    static let finally: csched_range_function = { context, complete in
        Unmanaged<RangeRecord>.fromOpaque(context!).takeUnretainedValue().ends.note(complete ? 1 : 0)
    }
}

private func withCScheduler(workers: UInt32, _ body: (OpaquePointer) throws -> Void) throws {
    var configuration = csched_configuration_default()
    configuration.workers = workers
    configuration.spares = 0  // an index that is held keeps the others from running
    var created: OpaquePointer?
    try #require(csched_scheduler_create(&configuration, &created) == .ok)
    let scheduler = try #require(created)
    defer { csched_scheduler_destroy(scheduler) }
    try body(scheduler)
}
