// A lock around a few words, for what threads share though a tree has one isolation: its observers, owners' contexts, and
// what is known of classes.

import Glibc

/// Not `Mutex`, which ThreadSanitizer does not see into.
final class Lock: @unchecked Sendable {
    // Unchecked: it is what others are safe by.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Calls `body`, which is ours, and releases nothing of anyone's.
    func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}

/// A table by objects, which all threads use.
final class LockedTable<Value>: @unchecked Sendable {
    // Unchecked: `values` is used under `lock` alone.
    private let lock = Lock()
    private var values: [ObjectIdentifier: Value] = [:]

    /// Calls `body`, as ``Lock/locked(_:)``.
    func locked<Result>(_ body: (inout [ObjectIdentifier: Value]) -> Result) -> Result {
        lock.locked { body(&values) }
    }
}
