import BenchmarkCore
import Dispatch

/// W6: a chain of `steps` operations, each adds its mark to a value and submits the next. One is in flight at
/// a time, so that this is the time through the peer and not its throughput.
func chainOfSubmissions<P: Pool>(_ pool: P, steps: Int) -> Sample {
    let end = ChainEnd()
    let start = now_ns()
    pool.submit(ChainStep(pool: pool, step: 0, steps: steps, value: 0, end: end))
    end.wait()
    let stop = now_ns()
    return Sample(from: start, to: stop, operations: steps, checksum: end.value)
}

/// Whoever waits for the end keeps pool and end alive.
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

/// What the last operation leaves for the thread that waits.
///
/// Sendable: written before the semaphore is signalled, read after it was waited for.
final class ChainEnd: @unchecked Sendable {
    private(set) var value: UInt64 = 0
    private let reached = DispatchSemaphore(value: 0)

    func reach(_ value: UInt64) {
        self.value = value
        // The waiter may free this object as soon as it wakes, while the signal is still on its way.
        let reached = reached
        reached.signal()
    }

    func wait() { reached.wait() }
}
