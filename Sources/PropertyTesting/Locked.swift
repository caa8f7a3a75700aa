import Glibc

/// A value that only one thread at a time can access.
///
/// Not `Mutex`: the standard library is not instrumented, so ThreadSanitizer does not see its lock, and reports
/// races on the data under it. ThreadSanitizer knows pthread's mutexes.
public final class Locked<Value>: @unchecked Sendable {
    // Unchecked: `value` is used only under `mutex`.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    /// Creates an unlocked value.
    public init(_ value: Value) {
        self.value = value
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Accesses the value while no other thread does. Not re-entrant.
    public func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}
