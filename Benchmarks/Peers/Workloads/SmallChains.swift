import BenchmarkCore

/// A step of a small cascade: adds its mark to its slot if the previous step has left one in its own.
struct SmallStep: Job {
    // Unsafe: one step writes a slot, and only afterwards does the next step of its cascade read it.
    nonisolated(unsafe) private let slot: UnsafeMutablePointer<UInt64>
    private let isFirst: Bool
    private let mark: UInt64

    /// - Parameters:
    ///   - slots: one for each step of all cascades; the waiter keeps them alive.
    ///   - number: the index of the cascade.
    init(slots: Slots, number: Int, step: Int) {
        let place = number * Workload.stepsOfSmallOne + step
        slot = slots.address(of: place)
        isFirst = step == 0
        mark = Workload.mark(place)
    }

    @inline(__always)
    func run() {
        if isFirst || slot[-1] != 0 { slot.pointee &+= mark }
    }
}

/// W6-small by hand: one operation begins all chains, each step submits the next, and the last step counts down.
func smallChains<P: Pool>(_ pool: P, count: Int) -> Sample {
    let slots = Slots(count: count * Workload.stepsOfSmallOne)
    let ended = Countdown(count)
    let start = startClock()
    pool.submit(SmallChains(pool: pool, slots: slots, count: count, ended: ended))
    ended.wait()
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: count, checksum: slots.checksum)
}

private struct SmallChains<P: Pool>: Job {
    let pool: P
    let slots: Slots
    let count: Int
    let ended: Countdown

    func run() {
        for number in 0..<count {
            pool.submit(SmallLink(pool: pool, slots: slots, number: number, step: 0, ended: ended))
        }
    }
}

/// A step of one chain. The waiting thread keeps pool, slots and end alive.
private struct SmallLink<P: Pool>: Job {
    unowned(unsafe) let pool: P
    unowned(unsafe) let slots: Slots
    let number: Int
    let step: Int
    unowned(unsafe) let ended: Countdown

    func run() {
        SmallStep(slots: slots, number: number, step: step).run()
        if step + 1 == Workload.stepsOfSmallOne {
            ended.leave()
        } else {
            pool.submit(SmallLink(pool: pool, slots: slots, number: number, step: step + 1, ended: ended))
        }
    }
}
