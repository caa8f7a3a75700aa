import BenchmarkCore
import Dispatch
import Foundation

/// W1: one outside thread submits `count` operations and waits.
func submitFromOutside(_ pool: some Pool, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    let start = now_ns()
    let batch = try pool.batch(of: count)
    for index in 0..<count { pool.submit(Mark(slots: slots, index: index), in: batch) }
    pool.wait(for: batch)
    let end = now_ns()
    return Sample(from: start, to: end, operations: count, checksum: slots.checksum)
}

/// W2: `threads` outside threads submit `count` operations together, each with a batch of its own. The time
/// is from their common start until all have run.
func submitFromOutside(_ pool: some Pool, threads: Int, count: Int) -> Sample {
    let slots = Slots(count: count)
    let line = StartLine(threads)
    let done = DispatchGroup()
    for thread in 0..<threads {
        done.enter()
        Thread.detachNewThread {
            line.arrive()
            let mine = thread * count / threads..<(thread + 1) * count / threads
            // A batch needs memory and nothing else; without it the checksum is wrong, which ends the run.
            if let batch = try? pool.batch(of: mine.count) {
                for index in mine { pool.submit(Mark(slots: slots, index: index), in: batch) }
                pool.wait(for: batch)
            }
            done.leave()
        }
    }
    let start = line.go()
    done.wait()
    let end = now_ns()
    return Sample(from: start, to: end, operations: count, checksum: slots.checksum)
}

/// W3: one operation submits `count` others. The time is from its submission until all have run.
func spawnFromInside<P: Pool>(_ pool: P, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    let start = now_ns()
    let batch = try pool.batch(of: count + 1)
    pool.submit(Root(pool: pool, batch: batch, slots: slots), in: batch)
    pool.wait(for: batch)
    let end = now_ns()
    return Sample(from: start, to: end, operations: count, checksum: slots.checksum)
}

/// Submits an operation for every slot.
private struct Root<P: Pool>: Job {
    let pool: P
    let batch: P.Batch
    let slots: Slots

    func run() {
        for index in 0..<slots.count { pool.submit(Mark(slots: slots, index: index), in: batch) }
    }
}

/// Where threads wait until all of them are there.
private final class StartLine: Sendable {
    private let ready = DispatchGroup()
    private let signal = DispatchSemaphore(value: 0)
    private let threads: Int

    init(_ threads: Int) {
        self.threads = threads
        for _ in 0..<threads { ready.enter() }
    }

    func arrive() {
        ready.leave()
        signal.wait()
    }

    /// Lets the threads go when all have arrived, and tells the time just before.
    func go() -> Int {
        ready.wait()
        let start = now_ns()
        for _ in 0..<threads { signal.signal() }
        return start
    }
}
