// A lock for the few fields that threads share although a tree has one isolation: its observers, the contexts of
// owners, the hooks of classes, and the graph of waiters.

import Glibc

/// Not `Mutex`, which ThreadSanitizer does not see into.
final class Lock: @unchecked Sendable {
    // Unchecked: a mutex may be used by any thread.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Calls `body`, which runs no user code and releases no user objects.
    func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}

/// A table keyed by objects, shared by all threads.
final class LockedTable<Value>: @unchecked Sendable {
    // Unchecked: `values` is used only under `lock`.
    private let lock = Lock()
    private var values: [ObjectIdentifier: Value] = [:]

    /// Calls `body`, as ``Lock/locked(_:)``.
    func locked<Result>(_ body: (inout [ObjectIdentifier: Value]) -> Result) -> Result {
        lock.locked { body(&values) }
    }
}
