// WordLock.swift - a lock of one byte, small enough to be a part of every operation.
//
// Invariants:
//   I1  the byte is 0 when the lock is free, 1 when it is held, 2 when it is held and somebody may sleep.
//   I2  who sleeps has made the byte 2 before, and looks at it again under the bucket's mutex; who wakes takes
//       that mutex after it has made the byte 0. So no wake-up is lost.
//
// Orderings:
//   P1  unlock (release) -> lock (acquire): what was done under the lock is visible to the next one under it.
//
// Not `Mutex` of the standard library: its code is not instrumented, so that ThreadSanitizer does not know of it.
// Not pthread's: 40 bytes, in each operation.
//
// Source: Drepper, Futexes Are Tricky (2011), mutex 2; the sleepers are found by address, as in WebKit's
// ParkingLot.

internal import CScheduler.Internals
public import Synchronization

/// A lock that is not recursive. No code of a user runs under it.
///
/// Inlinable, as a call of another module costs as much as the lock does; and so public, as the compiler inlines nothing else
/// across modules: under an SPI, which hides it from users.
@_spi(Faces) public struct WordLock: ~Copyable, Sendable {
    @usableFromInline let word = Atomic<UInt8>(0)

    /// How often one that is held is looked at before a sleep.
    private static var looks: Int { 10 }
    /// Before each of them.
    private static var pauses: UInt32 { 64 }

    /// A free one.
    @inlinable public init() {}

    /// Waits until the lock is free, and holds it.
    ///
    /// - Parameter key: the same for each call on this lock, and no other lock's.
    @inlinable @inline(__always)
    public func lock(_ key: UnsafeRawPointer) {
        if !word.compareExchange(
            expected: 0, desired: 1, successOrdering: .acquiring, failureOrdering: .relaxed
        ).exchanged {
            lockContended(key)
        }
    }

    /// Lets another one hold it.
    ///
    /// - Parameter key: as for ``lock(_:)``.
    @inlinable @inline(__always)
    public func unlock(_ key: UnsafeRawPointer) {
        if word.exchange(0, ordering: .releasing) == 2 { Self.wakeOne(key) }
    }

    @usableFromInline @inline(never)
    static func wakeOne(_ key: UnsafeRawPointer) { ParkingLot.wakeOne(key) }

    @usableFromInline @inline(never)
    func lockContended(_ key: UnsafeRawPointer) {
        // Sections are shorter than a sleep. Between two looks there are some, of the holder's, who has the cache line to
        // himself meanwhile: with a look at every moment, two workers in one group took 1.3 times as long, and 1.4 times the
        // processor's time. It gives up after 2 to 30 microseconds, as the processor makes them: the holder may need
        // this one.
        for _ in 0..<Self.looks {
            csched_relax(Self.pauses)
            if word.load(ordering: .relaxed) == 0,
                word.compareExchange(
                    expected: 0, desired: 1, successOrdering: .acquiring, failureOrdering: .relaxed
                ).exchanged
            {
                return
            }
        }
        while word.exchange(2, ordering: .acquiring) != 0 {
            ParkingLot.park(key) { word.load(ordering: .relaxed) == 2 }
        }
    }
}
