import BenchmarkCore

/// W14 by hand: a group whose first operations have begun, and are in flight without a thread, is cancelled. The
/// others are in the pool, which cannot remove them: they check the group, and do nothing.
func stormByHand(_ pool: some PausablePool, count: Int, begun: Int) throws -> Sample {
    let slots = Slots(count: count)
    let group = HandMadeGroup(count: count)
    let first = try pool.batch(of: begun)
    for index in 0..<begun {
        pool.submit(group.child(Mark(slots: slots, index: index), endsLater: true), in: first)
    }
    pool.wait(for: first)
    pool.pause()
    let others = try pool.batch(of: count - begun)
    for index in begun..<count {
        pool.submit(group.child(Mark(slots: slots, index: index)), in: others)
    }
    let start = startClock()
    group.cancel(begun: begun)
    let cancelled = now_ns()
    pool.unpause()
    pool.wait(for: others)
    let stop = stopClock()
    withExtendedLifetime(group) {}
    return storm(from: start, cancelled: cancelled, to: stop, slots, begun: begun)
}

/// The sample of a storm: operations that had begun have run once, the others never.
func storm(from start: Int, cancelled: Int, to stop: Int, _ slots: Slots, begun: Int) -> Sample {
    let values = slots.values
    var sample = Sample(
        from: start, to: stop, operations: slots.count, checksum: values[..<begun].reduce(0, &+))
    sample.extra = [
        "ran_after_cancel": Double(values[begun...].count { $0 != 0 }),
        "cancel_call_ns_per_op": Double(cancelled - start) / Double(slots.count),
    ]
    return sample
}

/// W15: operations that are queued in a paused pool, until it is resumed.
func resumption(_ pool: some PausablePool, count: Int) throws -> Sample {
    let slots = Slots(count: count)
    pool.pause()
    let batch = try pool.batch(of: count)
    for index in 0..<count { pool.submit(Mark(slots: slots, index: index), in: batch) }
    let start = startClock()
    pool.unpause()
    pool.wait(for: batch)
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
}

/// W15 where redoing means running the work again: one chain of all steps of all runs.
func runsByChain(_ pool: some Pool, runs: Int) throws -> Sample {
    var sample = try pool.chain(steps: runs * Workload.stepsOfOneRun)
    sample.operations = runs
    return sample
}
