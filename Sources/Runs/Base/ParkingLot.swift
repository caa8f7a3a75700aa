// ParkingLot.swift - sleeping threads, found by the address of their lock, so that a lock needs only a byte.
//
// Source: WebKit's ParkingLot.

internal import Glibc

/// Threads that sleep until another thread wakes their key. Allocates only its buckets.
enum ParkingLot {
    private static let buckets = (0..<64).map { _ in Bucket() }

    private static func bucket(of key: UnsafeRawPointer) -> Bucket {
        buckets[Int(((UInt(bitPattern: key) >> 4) &* 0x9E37_79B9_7F4A_7C15) >> 58)]
    }

    /// Sleeps until ``wakeOne(_:)``, if `condition` still holds under the bucket's mutex.
    static func park(_ key: UnsafeRawPointer, if condition: () -> Bool) {
        bucket(of: key).park(key, if: condition)
    }

    static func wakeOne(_ key: UnsafeRawPointer) { bucket(of: key).wakeOne(key) }

    /// On the stack of the sleeping thread, and in its bucket's list until it is woken. Guarded by the bucket's
    /// mutex.
    private struct Sleeper {
        let key: UnsafeRawPointer
        var next: UnsafeMutablePointer<Sleeper>?
        var isAwake = false
        var awoken = pthread_cond_t()
    }

    private final class Bucket: @unchecked Sendable {
        // Unchecked: the state is accessed only under `mutex`.
        private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        // In arrival order.
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
