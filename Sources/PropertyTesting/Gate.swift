import Glibc

/// A gate that is closed until it is opened, once. Threads that wait at it sleep.
public final class Gate: @unchecked Sendable {
    // Unchecked: `isOpened` is read and written only under `mutex`.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let opened = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isOpened = false

    /// Creates a closed gate.
    public init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(opened, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(opened)
        pthread_mutex_destroy(mutex)
        opened.deallocate()
        mutex.deallocate()
    }

    /// Lets all threads through, now and later.
    public func open() {
        pthread_mutex_lock(mutex)
        isOpened = true
        pthread_cond_broadcast(opened)
        pthread_mutex_unlock(mutex)
    }

    /// Sleeps until the gate is open.
    public func wait() {
        pthread_mutex_lock(mutex)
        while !isOpened { pthread_cond_wait(opened, mutex) }
        pthread_mutex_unlock(mutex)
    }

    /// Sleeps until the gate is open, or the timeout expires, on the monotonic clock.
    ///
    /// - Returns: whether the gate is open.
    public func wait(timeout: Duration) -> Bool {
        var end = time(after: timeout)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !isOpened {
            if pthread_cond_timedwait(opened, mutex, &end) == ETIMEDOUT { return isOpened }
        }
        return true
    }
}

/// A time of the monotonic clock; a duration of more than a century counts as a century.
private func time(after duration: Duration) -> timespec {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    let (seconds, attoseconds) = max(.zero, min(duration, .seconds(100 * 365 * 86_400))).components
    let nanoseconds = time.tv_nsec + Int(attoseconds / 1_000_000_000)
    time.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
    time.tv_nsec = nanoseconds % 1_000_000_000
    return time
}
