import BenchmarkCore
import Dispatch

/// Preallocated memory in which each operation writes its own word: the proof that it ran, or the time when
/// it did. There is no atomic, no lock and no shared word; the checksum is computed after the clock has
/// stopped.
///
/// Sendable: an operation writes only its own slot, and the slots are read after the peer has reported
/// completion.
final class Slots: @unchecked Sendable {
    private let words: UnsafeMutableBufferPointer<UInt64>

    /// Sets all slots to zero, which touches their pages, so that no operation pays for a page fault.
    init(count: Int) {
        words = .allocate(capacity: count)
        words.initialize(repeating: 0)
    }

    deinit { words.deallocate() }

    var count: Int { words.count }

    /// The address of a slot, valid while the slots are kept alive.
    func address(of index: Int) -> UnsafeMutablePointer<UInt64> {
        words.baseAddress.unsafelyUnwrapped + index
    }

    /// The sum of all slots, modulo 2⁶⁴.
    var checksum: UInt64 { words.reduce(0, &+) }

    /// All slots, in order.
    var values: [UInt64] { Array(words) }
}

/// Adds its mark to its slot, so that a second run shows in the sum.
///
/// It holds a pointer: a reference would be retained by every operation, on one word that all threads write.
/// The submitter of marks keeps the slots alive until they have run.
struct Mark: Job {
    nonisolated(unsafe) private let slot: UnsafeMutablePointer<UInt64>
    private let mark: UInt64

    init(slots: Slots, index: Int) {
        slot = slots.address(of: index)
        mark = Workload.mark(index)
    }

    @inline(__always)
    func run() { slot.pointee &+= mark }
}

/// Adds its mark to its slot, and records its start time in another.
struct TimedMark: Job {
    let marks: Slots
    let times: Slots
    let index: Int
    let group: DispatchGroup

    func run() {
        times.address(of: index).pointee = UInt64(now_ns())
        marks.address(of: index).pointee &+= Workload.mark(index)
        group.leave()
    }
}
