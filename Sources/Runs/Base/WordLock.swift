// WordLock.swift - a one-byte lock, small enough to be part of every operation.
//
// Invariants:
//   I1  the byte is 0 when the lock is free, 1 when it is held, 2 when it is held and a thread may be sleeping.
//   I2  a sleeping thread has first set the byte to 2, and checked it again under the bucket's mutex; a waking thread takes
//       that mutex after setting the byte to 0. So no wake-up is lost.
//
// Orderings:
//   P1  unlock (release) -> lock (acquire): everything done under the lock is visible to the next holder.
//
// Not the standard library's `Mutex`: its code is not instrumented, so ThreadSanitizer does not know about it. Not a pthread
// mutex: 40 bytes in each operation.
//
// Source: Drepper, Futexes Are Tricky (2011), mutex 2; sleepers are found by address, as in WebKit's ParkingLot.

internal import CScheduler.Internals
public import Synchronization

/// A non-recursive lock. No user code runs under it.
///
/// Inlinable, as a call into another module costs as much as the lock itself; hence public, as the compiler inlines nothing
/// else across modules. An SPI hides it from users.
@_spi(Faces) public struct WordLock: ~Copyable, Sendable {
    @usableFromInline let word = Atomic<UInt8>(0)

    /// How many times a held lock is polled before the thread sleeps.
    private static var looks: Int { 10 }
    /// The length of the pause before each poll.
    private static var pauses: UInt32 { 64 }

    /// Creates a free lock.
    @inlinable public init() {}

    /// Waits until the lock is free, and acquires it.
    ///
    /// - Parameter key: the same for all calls on this lock, and different from that of any other lock.
    @inlinable @inline(__always)
    public func lock(_ key: UnsafeRawPointer) {
        if !word.compareExchange(
            expected: 0, desired: 1, successOrdering: .acquiring, failureOrdering: .relaxed
        ).exchanged {
            lockContended(key)
        }
    }

    /// Releases the lock.
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
        // Critical sections are shorter than a sleep. Between two polls, the holder completes several sections with the cache
        // line to itself: with continuous polling, two workers in one group took 1.3 times as long, and 1.4 times the
        // processor time. Polling ends after 2 to 30 microseconds, depending on the processor, since the holder may need this
        // processor.
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
