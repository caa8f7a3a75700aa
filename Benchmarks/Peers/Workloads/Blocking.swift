import BenchmarkCore
import Foundation
import Synchronization

/// W19: `blockers` operations block a thread each; meanwhile one operation is due every 10 ms. The latency is
/// measured from the time when the operation was due (open loop).
///
/// A pool of a few threads would take minutes for all blockers, so a blocker that has not begun when the
/// blocking time has passed returns at once. An operation that is still queued at that moment counts as late
/// by at least the time since it was due.
func startsWhileBlocked(
    blockers: Int, block: (Blocker) -> Void, start: (TimedMark) -> Void
) -> Sample {
    let count = Workload.startsWhileBlocked(blockers)
    let threads = threadsOfProcess()
    let time = BlockingTime(blockers: blockers)
    let timed = TimedMarks(count: count)
    let began = now_ns()
    for index in 0..<blockers { block(Blocker(time: time, mark: Mark(slots: time.marks, index: index))) }
    let first = now_ns() + Workload.betweenStarts_ns
    for index in 0..<count {
        wait(until: first + index * Workload.betweenStarts_ns)
        start(timed[index])
    }
    sleep(until: first + count * Workload.betweenStarts_ns)
    let more = threadsOfProcess() - threads
    time.end()
    timed.wait()
    time.waitForBlockers()
    let stop = now_ns()
    var sample = Sample(
        from: began, to: stop, operations: count,
        checksum: timed.marks.checksum &+ time.marks.checksum)
    sample.latencies_ns = timed.latencies { first + $0 * Workload.betweenStarts_ns }
    sample.extra["more_threads"] = Double(more)
    if Workload.countsThreadsLater(blockers: blockers) {
        sleep(until: now_ns() + 1_000_000_000)
        sample.extra["more_threads_1s_later"] = Double(threadsOfProcess() - threads)
    }
    return sample
}

/// Blocks its thread without announcing that to the pool.
struct Blocker: Job {
    let time: BlockingTime
    let mark: Mark

    func run() {
        time.block()
        mark.run()
        time.leave()
    }
}

/// How long the blockers of one sample block, and whether that time has passed.
final class BlockingTime: Sendable {
    let marks: Slots
    private let each_ns: Int
    private let isOver = Atomic(false)
    private let left: Countdown

    init(blockers: Int) {
        marks = Slots(count: blockers)
        each_ns = Workload.blocking_ns(blockers: blockers)
        left = Countdown(blockers)
    }

    func block() {
        if !isOver.load(ordering: .relaxed) { sleep(until: now_ns() + each_ns) }
    }

    func end() { isOver.store(true, ordering: .relaxed) }

    func leave() { left.leave() }

    func waitForBlockers() { left.wait() }
}

private func threadsOfProcess() -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task"))?.count ?? 0
}
