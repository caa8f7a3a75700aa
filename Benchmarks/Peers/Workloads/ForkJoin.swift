import BenchmarkCore
import Synchronization

/// W9: the Fibonacci number of `n` by fork and join, every call an operation, without a cut-off.
///
/// No operation blocks: a node waits for its two children through a count of two, and the child that
/// completes the count completes the node. So the same code runs on pools whose threads cannot run
/// other operations while they wait.
func forkJoinByCounting(_ pool: some Pool, n: Int) -> Sample {
    let end = ChainEnd()
    let start = startClock()
    pool.submit(Call(pool: pool, n: n, parent: Join(parent: nil, end: end)))
    end.wait()
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: Workload.spawnsOfFibonacci(n), checksum: end.value)
}

private struct Call<P: Pool>: Job {
    unowned(unsafe) let pool: P  // the waiter keeps it alive
    let n: Int
    let parent: Join

    func run() {
        if n < 2 {
            parent.add(UInt64(n))
        } else {
            let join = Join(parent: parent, end: nil)
            pool.submit(Call(pool: pool, n: n - 1, parent: join))
            pool.submit(Call(pool: pool, n: n - 2, parent: join))
        }
    }
}

/// A sum of two numbers that arrive at any time, from any thread.
private final class Join: Sendable {
    // One word: the upper half counts, the lower half adds up; Fibonacci numbers up to n = 47 fit.
    private let state = Atomic<UInt64>(0)
    private let parent: Join?
    private let end: ChainEnd?

    /// A sum that is passed to `parent`; or, for a single number, to `end`.
    init(parent: Join?, end: ChainEnd?) {
        self.parent = parent
        self.end = end
    }

    func add(_ number: UInt64) {
        var join = self
        var number = number
        while true {
            if let end = join.end { return end.reach(number) }
            let state = join.state.add(1 << 32 | number, ordering: .acquiringAndReleasing).newValue
            guard state >> 32 == 2, let parent = join.parent else { return }
            number = state & 0xFFFF_FFFF
            join = parent
        }
    }
}
