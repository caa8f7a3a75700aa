import Dispatch
import Synchronization

/// Signals that a known number of operations have run, for peers that cannot wait for a batch themselves.
final class Countdown: Sendable {
    private let left: Atomic<Int>
    private let zero = DispatchSemaphore(value: 0)

    init(_ count: Int) {
        left = Atomic(count)
        if count == 0 { zero.signal() }
    }

    @inline(__always)
    func leave() {
        // The acquire of the last decrement makes the writes of all operations visible to the waiter that it wakes.
        if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { zero.signal() }
    }

    func wait() { zero.wait() }

    /// Frees the thread for other tasks while waiting.
    func waitInTask() async {
        while left.load(ordering: .acquiring) > 0 { await Task.yield() }
    }
}
