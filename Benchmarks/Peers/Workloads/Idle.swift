import BenchmarkCore
import Dispatch
import Foundation

/// W12: an outside thread submits one operation every `interval_ns` to an idle peer. The latency is measured from the time
/// when the operation was due, not from its submission: a late submitter would hide it (open loop).
func wakeUp(interval_ns: Int, count: Int, submit: (TimedMark) -> Void) -> Sample {
    let timed = TimedMarks(count: count)
    let before = OthersUsage.now()
    let start = now_ns() + interval_ns
    for index in 0..<count {
        wait(until: start + index * interval_ns)
        submit(timed[index])
    }
    timed.wait()
    let stop = now_ns()
    let used = OthersUsage.now() - before
    var sample = Sample(from: start, to: stop, operations: count, checksum: timed.marks.checksum)
    sample.latencies_ns = timed.latencies { start + $0 * interval_ns }
    sample.extra = [
        "cpu_seconds": Double(used.cpu_ns) / 1e9,
        "wakeups_per_op": Double(used.switches) / Double(count),
    ]
    return sample
}

/// W13: one operation every 10 ms, `count` of them, then 0.3 s without any, starting when the other threads have gone to
/// sleep.
func idleCost(count: Int, submit: (TimedMark) -> Void) -> Sample {
    let interval_ns = 10_000_000
    let idle_ns = 300_000_000
    let timed = TimedMarks(count: count)
    let before = OthersUsage.now()
    let start = now_ns()
    for index in 0..<count {
        submit(timed[index])
        sleep(until: start + (index + 1) * interval_ns)
    }
    timed.wait()
    let stop = now_ns()
    let ticking = OthersUsage.now() - before
    // A worker that spins after the last operation, before it parks, costs time there. On a machine with other load the
    // worker may be late, and its parking would count as a switch of an idle worker.
    awaitQuiet(within: idle_ns)
    let idleStart = OthersUsage.now()
    sleep(until: now_ns() + idle_ns)
    let idle = OthersUsage.now() - idleStart
    var sample = Sample(from: start, to: stop, operations: count, checksum: timed.marks.checksum)
    sample.extra = [
        "idle_switches_per_s": Double(idle.switches) / (Double(idle_ns) / 1e9),
        "idle_cpu_percent": 100 * Double(idle.cpu_ns) / Double(idle_ns),
        "wakeups_per_op": Double(ticking.switches) / Double(count),
        "cpu_percent": 100 * Double(ticking.cpu_ns) / Double(stop - start),
    ]
    return sample
}

/// Waits until all other threads sleep, at most for `limit_ns`: threads of some peers never sleep.
private func awaitQuiet(within limit_ns: Int) {
    let end = now_ns() + limit_ns
    // The calling thread is one of the running threads.
    while threads().count(where: { state(ofThread: $0) == "R" }) > 1, now_ns() < end {
        sleep(until: now_ns() + 1_000_000)
    }
}

/// The threads of the process, by number.
private func threads() -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
}

/// The state according to proc(5); nil: the thread has ended.
private func state(ofThread number: String) -> Character? {
    let status = try? String(contentsOfFile: "/proc/self/task/\(number)/stat", encoding: .utf8)
    return status.flatMap { $0[($0.lastIndex(of: ")") ?? $0.startIndex)...].dropFirst(2).first }
}

/// Operations that record when they start, and that are waited for together.
struct TimedMarks {
    let marks: Slots
    let times: Slots
    private let group = DispatchGroup()

    init(count: Int) {
        marks = Slots(count: count)
        times = Slots(count: count)
        for _ in 0..<count { group.enter() }
    }

    subscript(index: Int) -> TimedMark {
        TimedMark(marks: marks, times: times, index: index, group: group)
    }

    func wait() { group.wait() }

    /// - Returns: whether all have started by then.
    func wait(until time_ns: Int) -> Bool {
        group.wait(timeout: .now() + .nanoseconds(max(0, time_ns - now_ns()))) == .success
    }

    /// How late each operation started; 0 if it was early.
    func latencies(_ due: (Int) -> Int) -> [UInt64] {
        times.values.enumerated().map { UInt64(max(0, Int($1) - due($0))) }
    }
}
