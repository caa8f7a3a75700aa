import BenchmarkCore

/// W26: background operations of 100 us arrive at a given share of the capacity of `threads` threads;
/// meanwhile one operation of high priority is due every millisecond. The latency is measured from the time
/// when the operation was due (open loop).
func startsUnderFlood(
    percent: Int, threads: Int, background: (FloodOperation) -> Void, urgent: (TimedMark) -> Void
) -> Sample {
    let interval_ns = 1_000_000
    let count = Workload.urgentOperations
    /// How many background operations have arrived when the urgent operation `index` is due.
    func arrived(_ index: Int) -> Int {
        index * threads * (interval_ns / FloodOperation.duration_ns) * percent / 100
    }
    let left = Countdown(arrived(count))
    let ran = Slots(count: arrived(count))
    let timed = TimedMarks(count: count)
    let start = now_ns() + interval_ns
    for index in 0..<count {
        wait(until: start + index * interval_ns)
        urgent(timed[index])
        for operation in arrived(index)..<arrived(index + 1) {
            background(FloodOperation(mark: Mark(slots: ran, index: operation), left: left))
        }
    }
    timed.wait()
    let late = ran.values.count { $0 == 0 }
    left.wait()
    let stop = now_ns()
    var sample = Sample(from: start, to: stop, operations: count, checksum: timed.marks.checksum)
    sample.latencies_ns = timed.latencies { start + $0 * interval_ns }
    sample.extra["background_behind_percent"] = 100 * Double(late) / Double(max(1, ran.count))
    return sample
}

/// One of many operations without urgency.
struct FloodOperation: Job {
    static let duration_ns = 100_000

    let mark: Mark
    let left: Countdown

    func run() {
        let end = now_ns() + Self.duration_ns
        while now_ns() < end {}
        mark.run()
        left.leave()
    }
}
