// Subject+Pools.swift - a typical hand-written thread pool, and one with a fault.

public import ConformanceTesting
import Glibc
import PropertyTesting

extension Subject {
    /// Three threads, a queue under a mutex, and a condition variable.
    public static let plainPool = pool("a plain pool", countsRunning: true)
    /// The same pool, but its drain checks only the queue: closures that were dequeued may still be
    /// running.
    public static let brokenPool = pool("a broken pool", countsRunning: false)

    private static func pool(_ name: String, countsRunning: Bool) -> Subject {
        Subject(name) {
            let pool = Pool(threads: 3, countsRunning: countsRunning)
            var instance = Instance(claims: [.asynchronous, .fair, .runsAllAtShutdown]) {
                pool.submit($0)
            } end: {
                pool.shutDown()
            }
            instance.width = 3
            instance.drain = { pool.drain() }
            instance.shutDown = { pool.shutDown() }
            return instance
        }
    }
}

private final class Pool: @unchecked Sendable {
    // Unchecked: all fields are used under the mutex.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let hasWork = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let isQuiet = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var bodies: [Instance.Body] = []
    private var first = 0
    private var running = 0
    private var isOver = false
    private var threads: [pthread_t] = []
    private let countsRunning: Bool

    init(threads count: Int, countsRunning: Bool) {
        self.countsRunning = countsRunning
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(hasWork, nil)
        pthread_cond_init(isQuiet, nil)
        // The threads retain the pool until its shutdown.
        threads = (0..<count).map { _ in startThread(for: "Pool") { self.work() } }
    }

    deinit {
        pthread_cond_destroy(isQuiet)
        pthread_cond_destroy(hasWork)
        pthread_mutex_destroy(mutex)
        isQuiet.deallocate()
        hasWork.deallocate()
        mutex.deallocate()
    }

    private func work() {
        pthread_mutex_lock(mutex)
        while true {
            while first == bodies.count, !isOver { pthread_cond_wait(hasWork, mutex) }
            guard let body = take() else { break }
            running += 1
            if !countsRunning, first == bodies.count { pthread_cond_broadcast(isQuiet) }
            pthread_mutex_unlock(mutex)
            call(body)
            pthread_mutex_lock(mutex)
            running -= 1
            if first == bodies.count, running == 0 { pthread_cond_broadcast(isQuiet) }
        }
        pthread_mutex_unlock(mutex)
    }

    /// The closure is released before it counts as ended.
    private func call(_ body: consuming @escaping Instance.Body) { body() }

    private func take() -> Instance.Body? {
        guard first < bodies.count else { return nil }
        defer {
            bodies[first] = {}
            first += 1
            if first == bodies.count {
                bodies.removeAll(keepingCapacity: true)
                first = 0
            }
        }
        return bodies[first]
    }

    func submit(_ body: @escaping Instance.Body) {
        pthread_mutex_lock(mutex)
        bodies.append(body)
        pthread_cond_signal(hasWork)
        pthread_mutex_unlock(mutex)
    }

    func drain() {
        pthread_mutex_lock(mutex)
        while first < bodies.count || (countsRunning && running > 0) { pthread_cond_wait(isQuiet, mutex) }
        pthread_mutex_unlock(mutex)
    }

    func shutDown() {
        pthread_mutex_lock(mutex)
        isOver = true
        pthread_cond_broadcast(hasWork)
        let threads = threads
        self.threads = []
        pthread_mutex_unlock(mutex)
        for thread in threads { pthread_join(thread, nil) }
    }
}
