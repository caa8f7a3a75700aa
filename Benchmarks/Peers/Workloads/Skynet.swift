import BenchmarkCore
import Synchronization

/// W10: a tree with ten branches at every node, down to `leaves` leaves, every node and leaf an operation. No
/// operation blocks: the last branch of a node to complete passes the sum up.
func skynetByCounting(_ pool: some Pool, leaves: Int) -> Sample {
    let end = ChainEnd()
    let start = startClock()
    pool.submit(SkynetNode(pool: pool, first: 0, leaves: leaves, parent: Tenfold(parent: nil, end: end)))
    end.wait()
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: leaves, checksum: end.value)
}

private struct SkynetNode<P: Pool>: Job {
    unowned(unsafe) let pool: P  // the waiter keeps it alive
    let first: Int
    let leaves: Int
    let parent: Tenfold

    func run() {
        if leaves == 1 { return parent.add(UInt64(first)) }
        let sum = Tenfold(parent: parent, end: nil)
        let part = leaves / 10
        for branch in 0..<10 {
            pool.submit(SkynetNode(pool: pool, first: first + branch * part, leaves: part, parent: sum))
        }
    }
}

/// A sum of ten numbers that arrive at any time, from any thread.
private final class Tenfold: Sendable {
    private let sum = Atomic<UInt64>(0)
    private let left = Atomic(10)
    private let parent: Tenfold?
    private let end: ChainEnd?

    /// A sum that is passed to `parent`; or, for a single number, to `end`.
    init(parent: Tenfold?, end: ChainEnd?) {
        self.parent = parent
        self.end = end
    }

    func add(_ number: UInt64) {
        var node = self
        var number = number
        while true {
            if let end = node.end { return end.reach(number) }
            node.sum.add(number, ordering: .relaxed)
            guard node.left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0,
                let parent = node.parent
            else { return }
            number = node.sum.load(ordering: .relaxed)
            node = parent
        }
    }
}
