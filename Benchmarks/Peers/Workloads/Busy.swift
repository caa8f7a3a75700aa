import BenchmarkCore
import Synchronization

/// W4: `busy` operations keep the pool occupied, each resubmitting itself at its end; meanwhile an outside thread submits
/// others at fixed times. The latency is measured from the time when an operation was due (open loop).
func startsOnBusyPool<P: Pool>(_ pool: P, busy: Int) -> Sample {
    startsOnBusyPool(busy: busy) { occupation in
        for index in 0..<busy { pool.submit(Chunk(pool: pool, occupation: occupation, index: index)) }
    } submit: {
        pool.submit($0)
    }
}

/// - Parameters:
///   - occupy: makes the pool call ``Occupation/runOnce(_:)`` repeatedly until it returns false, for each index below
///     `busy`.
///   - submit: submits one of the others.
func startsOnBusyPool(
    busy: Int, occupy: (Occupation) -> Void, submit: (TimedMark) -> Void
) -> Sample {
    let count = Workload.submissionsWhileBusy
    let interval_ns = Workload.betweenSubmissions_ns
    let timed = TimedMarks(count: count)
    let occupation = Occupation(busy)
    let began = now_ns()
    occupy(occupation)
    occupation.waitUntilBusy()
    let start = now_ns() + interval_ns
    for index in 0..<count {
        // Not by polling the clock: that would take a CPU from the pool.
        sleep(until: start + index * interval_ns)
        submit(timed[index])
    }
    // An operation that has not started 50 ms later would not start while the pool is busy.
    _ = timed.wait(until: now_ns() + 50_000_000)
    occupation.end()
    timed.wait()
    occupation.wait()
    let stop = now_ns()
    var sample = Sample(from: began, to: stop, operations: count, checksum: timed.marks.checksum)
    sample.latencies_ns = timed.latencies { start + $0 * interval_ns }
    sample.extra["busy_operations_per_ms"] =
        Double(occupation.runs) / (Double(stop - began) / 1e6)
    return sample
}

/// The operations that keep a pool busy.
final class Occupation: Sendable {
    private let isOver = Atomic(false)
    private let runsOfEach: Slots
    private let begun: Countdown
    private let left: Countdown

    fileprivate init(_ count: Int) {
        runsOfEach = Slots(count: count)
        begun = Countdown(count)
        left = Countdown(count)
    }

    /// Runs one operation.
    ///
    /// - Returns: whether to submit it again; after false, this object must not be used.
    func runOnce(_ index: Int) -> Bool {
        let runs = runsOfEach.address(of: index)
        if Spin.steps(Workload.busy_ns) != 0 { runs.pointee += 1 }
        if runs.pointee == 1 { begun.leave() }
        if !isOver.load(ordering: .relaxed) { return true }
        left.leave()
        return false
    }

    fileprivate func waitUntilBusy() { begun.wait() }
    fileprivate func end() { isOver.store(true, ordering: .relaxed) }
    fileprivate func wait() { left.wait() }
    fileprivate var runs: UInt64 { runsOfEach.checksum }
}

private struct Chunk<P: Pool>: Job {
    unowned(unsafe) let pool: P
    let occupation: Occupation
    let index: Int

    func run() {
        if occupation.runOnce(index) { pool.submit(self) }
    }
}
