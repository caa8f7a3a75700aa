import BenchmarkCore

/// W1: one outside thread submits `count` operations and waits.
func submitFromOutside(_ pool: some Pool, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    let start = startClock()
    let batch = try pool.batch(of: count)
    for index in 0..<count { pool.submit(Mark(slots: slots, index: index), in: batch) }
    pool.wait(for: batch)
    let end = stopClock()
    return Sample(from: start, to: end, operations: count, checksum: slots.checksum)
}

/// W2: `threads` outside threads submit `count` operations together, each with its own batch. The time is
/// from their common start until all have run.
func submitFromOutside(_ pool: some Pool, threads: Int, count: Int) -> Sample {
    let slots = Slots(count: count)
    let (start, end) = onThreads(threads) { thread in
        let mine = thread * count / threads..<(thread + 1) * count / threads
        // A batch needs only memory; without it the checksum is wrong, which ends the run.
        if let batch = try? pool.batch(of: mine.count) {
            for index in mine { pool.submit(Mark(slots: slots, index: index), in: batch) }
            pool.wait(for: batch)
        }
    }
    return Sample(from: start, to: end, operations: count, checksum: slots.checksum)
}

/// W3: one operation submits `count` others. The time is from its submission until all have run.
func spawnFromInside<P: Pool>(_ pool: P, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    let start = startClock()
    let batch = try pool.batch(of: count + 1)
    pool.submit(Root(pool: pool, batch: batch, slots: slots), in: batch)
    pool.wait(for: batch)
    let end = stopClock()
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
