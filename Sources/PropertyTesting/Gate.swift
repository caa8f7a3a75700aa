import Glibc

/// A gate that is closed until it is opened, once: threads that wait at it sleep.
public final class Gate: @unchecked Sendable {
    // Unchecked: `isOpened` is read and written under `mutex` alone.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let opened = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isOpened = false

    /// Creates a closed gate.
    public init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(opened, nil)
    }

    deinit {
        pthread_cond_destroy(opened)
        pthread_mutex_destroy(mutex)
        opened.deallocate()
        mutex.deallocate()
    }

    /// Lets everybody through, now and later.
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
}
