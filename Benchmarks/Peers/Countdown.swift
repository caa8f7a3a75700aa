import Dispatch
import Synchronization

/// Tells that a known number of operations has run, for peers that have nothing of their own for it.
final class Countdown: Sendable {
    private let left: Atomic<Int>
    private let zero = DispatchSemaphore(value: 0)

    init(_ count: Int) {
        left = Atomic(count)
        if count == 0 { zero.signal() }
    }

    @inline(__always)
    func leave() {
        // The last one's acquire makes what the others wrote visible to whoever it wakes.
        if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { zero.signal() }
    }

    func wait() { zero.wait() }

    /// Gives the thread to other tasks meanwhile.
    func waitInTask() async {
        while left.load(ordering: .acquiring) > 0 { await Task.yield() }
    }
}
