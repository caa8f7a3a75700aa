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
internal import Glibc
internal import Synchronization

/// A lock that is not recursive. No code of a user runs under it.
package struct WordLock: ~Copyable, Sendable {
    private let word = Atomic<UInt8>(0)

    /// How often one that is held is looked at before a sleep.
    private static var looks: Int { 10 }
    /// Before each of them.
    private static var pauses: UInt32 { 64 }

    package init() {}

    /// - Parameter key: the same for each call on this lock, and no other lock's.
    @inline(__always)
    package func lock(_ key: UnsafeRawPointer) {
        if !word.compareExchange(
            expected: 0, desired: 1, successOrdering: .acquiring, failureOrdering: .relaxed
        ).exchanged {
            lockContended(key)
        }
    }

    @inline(__always)
    package func unlock(_ key: UnsafeRawPointer) {
        if word.exchange(0, ordering: .releasing) == 2 { Self.wakeOne(key) }
    }

    @inline(never)
    private static func wakeOne(_ key: UnsafeRawPointer) { ParkingLot.wakeOne(key) }

    @inline(never)
    private func lockContended(_ key: UnsafeRawPointer) {
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

/// Threads that sleep until somebody wakes them by a key. Allocates nothing but its buckets.
private enum ParkingLot {
    private static let buckets = (0..<64).map { _ in Bucket() }

    private static func bucket(of key: UnsafeRawPointer) -> Bucket {
        buckets[Int(((UInt(bitPattern: key) >> 4) &* 0x9E37_79B9_7F4A_7C15) >> 58)]
    }

    /// Sleeps until a ``wakeOne(_:)``, if `condition` still holds.
    static func park(_ key: UnsafeRawPointer, if condition: () -> Bool) {
        bucket(of: key).park(key, if: condition)
    }

    static func wakeOne(_ key: UnsafeRawPointer) { bucket(of: key).wakeOne(key) }

    /// On the stack of the thread that sleeps, and in its bucket's list until it is woken. Under the bucket's mutex.
    private struct Sleeper {
        let key: UnsafeRawPointer
        var next: UnsafeMutablePointer<Sleeper>?
        var isAwake = false
        var awoken = pthread_cond_t()
    }

    private final class Bucket: @unchecked Sendable {
        // Unchecked: what is below is used under `mutex` alone.
        private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        // In the order of their coming.
        private var first: UnsafeMutablePointer<Sleeper>?

        init() { pthread_mutex_init(mutex, nil) }

        func park(_ key: UnsafeRawPointer, if condition: () -> Bool) {
            withUnsafeTemporaryAllocation(of: Sleeper.self, capacity: 1) { memory in
                pthread_mutex_lock(mutex)
                defer { pthread_mutex_unlock(mutex) }
                guard condition() else { return }
                let sleeper = memory.baseAddress!
                sleeper.initialize(to: Sleeper(key: key))
                pthread_cond_init(&sleeper.pointee.awoken, nil)
                append(sleeper)
                while !sleeper.pointee.isAwake { pthread_cond_wait(&sleeper.pointee.awoken, mutex) }
                pthread_cond_destroy(&sleeper.pointee.awoken)
            }
        }

        private func append(_ sleeper: UnsafeMutablePointer<Sleeper>) {
            guard var last = first else {
                first = sleeper
                return
            }
            while let next = last.pointee.next { last = next }
            last.pointee.next = sleeper
        }

        func wakeOne(_ key: UnsafeRawPointer) {
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            var former: UnsafeMutablePointer<Sleeper>?
            var candidate = first
            while let sleeper = candidate {
                let next = sleeper.pointee.next
                if sleeper.pointee.key == key {
                    if let former { former.pointee.next = next } else { first = next }
                    sleeper.pointee.isAwake = true
                    pthread_cond_signal(&sleeper.pointee.awoken)
                    return
                }
                former = sleeper
                candidate = next
            }
        }
    }
}
