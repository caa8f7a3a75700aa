// InspectionLock.swift - a lock around a few words, for what is kept for dumps.

internal import Glibc

/// Used in place of `Mutex`, which ThreadSanitizer cannot see into.
package final class InspectionLock: @unchecked Sendable {
    // Unchecked: this is the lock that makes other types safe.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    /// Not locked.
    package init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Calls `body`, which must be code of this package, and must release no user object.
    package func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
