// WordLock.swift - a lock of one word, small enough to be a part of every operation.
//
// Invariants:
//   I1  the word is 0 when the lock is free, 1 when it is held, 2 when it is held and somebody may sleep.
//   I2  who sleeps has made the word 2 before, and looks at it again under the bucket's mutex; who wakes takes
//       that mutex after it has made the word 0. So no wake-up is lost.
//
// Orderings:
//   P1  unlock (release) -> lock (acquire): what was done under the lock is visible to the next one under it.
//
// Not `Mutex` of the standard library: its code is not instrumented, so that ThreadSanitizer does not know of it.
// Not pthread's: 40 bytes, in each operation.
//
// Source: Drepper, Futexes Are Tricky (2011), mutex 2; the sleepers are found by address, as in WebKit's
// ParkingLot.

internal import Glibc
internal import Synchronization

/// A lock that is not recursive. No code of a user runs under it.
struct WordLock: ~Copyable, Sendable {
    private let word = Atomic<UInt32>(0)

    /// - Parameter key: the same for each call on this lock; others may have it too.
    @inline(__always)
    func lock(_ key: UnsafeRawPointer) {
        if !word.compareExchange(
            expected: 0, desired: 1, successOrdering: .acquiring, failureOrdering: .relaxed
        ).exchanged {
            lockContended(key)
        }
    }

    @inline(__always)
    func unlock(_ key: UnsafeRawPointer) {
        if word.exchange(0, ordering: .releasing) == 2 { ParkingLot.wakeOne(key) }
    }

    @inline(never)
    private func lockContended(_ key: UnsafeRawPointer) {
        // Sections are shorter than a sleep. It gives up soon: the holder may need this processor.
        for _ in 0..<100 {
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

/// Threads that sleep until somebody wakes them by a key.
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

    private final class Bucket: @unchecked Sendable {
        // Unchecked: `sleepers` is used under `mutex` alone.
        private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        private var sleepers: [Sleeper] = []

        init() { pthread_mutex_init(mutex, nil) }

        func park(_ key: UnsafeRawPointer, if condition: () -> Bool) {
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            guard condition() else { return }
            let sleeper = Sleeper(key)
            sleepers.append(sleeper)
            while !sleeper.isAwake { pthread_cond_wait(sleeper.awoken, mutex) }
        }

        func wakeOne(_ key: UnsafeRawPointer) {
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            guard let first = sleepers.firstIndex(where: { $0.key == key }) else { return }
            let sleeper = sleepers.remove(at: first)
            sleeper.isAwake = true
            pthread_cond_signal(sleeper.awoken)
        }
    }

    private final class Sleeper {
        let key: UnsafeRawPointer
        let awoken = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
        var isAwake = false

        init(_ key: UnsafeRawPointer) {
            self.key = key
            pthread_cond_init(awoken, nil)
        }

        deinit {
            pthread_cond_destroy(awoken)
            awoken.deallocate()
        }
    }
}
