import BenchmarkCore
import Dispatch

/// W6: a chain of `steps` operations; each adds its mark to a value and submits the next. Only one is in
/// flight at a time, so this measures the peer's latency, not its throughput.
func chainOfSubmissions<P: Pool>(_ pool: P, steps: Int) -> Sample {
    let end = ChainEnd()
    let start = startClock()
    pool.submit(ChainStep(pool: pool, step: 0, steps: steps, value: 0, end: end))
    end.wait()
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: steps, checksum: end.value)
}

/// A step of the chain. The thread that waits for the end keeps pool and end alive.
private struct ChainStep<P: Pool>: Job {
    unowned(unsafe) let pool: P
    let step: Int
    let steps: Int
    let value: UInt64
    unowned(unsafe) let end: ChainEnd

    func run() {
        let value = value &+ Workload.mark(step)
        if step + 1 == steps {
            end.reach(value)
        } else {
            pool.submit(ChainStep(pool: pool, step: step + 1, steps: steps, value: value, end: end))
        }
    }
}

/// W6 in a serial place: all steps are submitted at once, and the place keeps them in order.
func chainInOnePlace(_ pool: some ThreadPool, steps: Int) throws -> Sample {
    let end = ChainEnd()
    let place = try pool.lanes(1)[0]
    let state = Slots(count: 2)
    let start = startClock()
    for step in 0..<steps { place.submit(SerialStep(state: state, step: step, steps: steps, end: end)) }
    end.wait()
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: steps, checksum: end.value)
}

/// Adds its mark if all earlier steps have run. The waiter keeps state and end alive.
struct SerialStep: Job {
    nonisolated(unsafe) private let state: UnsafeMutablePointer<UInt64>
    private let step: Int
    private let steps: Int
    unowned(unsafe) private let end: ChainEnd?

    /// - Parameters:
    ///   - state: the number of steps that have run, and the sum of their marks.
    ///   - end: reached by the last step; nil: the end is signalled elsewhere.
    init(state: Slots, step: Int, steps: Int, end: ChainEnd?) {
        self.state = state.address(of: 0)
        self.step = step
        self.steps = steps
        self.end = end
    }

    @inline(__always)
    func run() {
        if state[0] == UInt64(step) { state[1] &+= Workload.mark(step) }
        state[0] += 1
        if step + 1 == steps { end?.reach(state[1]) }
    }
}

/// The result that the last operation leaves for the waiting thread.
///
/// Sendable: written before the semaphore is signalled, read after the wait for it has returned.
final class ChainEnd: @unchecked Sendable {
    private(set) var value: UInt64 = 0
    private let reached = DispatchSemaphore(value: 0)

    func reach(_ value: UInt64) {
        self.value = value
        // The waiter may free this object as soon as it wakes, while the signal call has not returned yet.
        let reached = reached
        reached.signal()
    }

    func wait() { reached.wait() }
}
