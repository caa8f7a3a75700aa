// InspectionLock.swift - a lock around a few words, for what is kept for dumps.

internal import Glibc

/// Not `Mutex`, which ThreadSanitizer does not see into.
package final class InspectionLock: @unchecked Sendable {
    // Unchecked: it is what others are safe by.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    /// Not locked.
    package init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Calls `body`, which is ours, and releases nothing of anyone's.
    package func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
