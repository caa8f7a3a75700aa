// Helpers shared by the tests of stale calls, gates, queues, redos and stacks: races, and a target with a small stack.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting

/// Like `concurrently`, for asynchronous tests.
func race<Answer: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> Answer) async -> [Answer] {
    await withCheckedContinuation { continuation in
        elsewhere.async { continuation.resume(returning: concurrently(count, body)) }
    }
}

/// A target with one thread, whose stack is small.
final class SmallTarget: ExecutionTarget, @unchecked Sendable {
    // Unchecked: `work`, `head` and `isOver` are accessed only under `mutex`; `thread` is written once.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var work: [ExecutionWork?] = []
    private var head = 0
    private var isOver = false
    private var thread = pthread_t()

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(changed, nil)
        thread = startSmallThread { [self] in serve() }
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    func submit(_ piece: ExecutionWork) {
        pthread_mutex_lock(mutex)
        work.append(piece)
        pthread_cond_signal(changed)
        pthread_mutex_unlock(mutex)
    }

    var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    /// Lets the thread exit when it has nothing to do. The caller may be its last piece of work.
    func stop() {
        pthread_mutex_lock(mutex)
        isOver = true
        pthread_cond_signal(changed)
        pthread_mutex_unlock(mutex)
        pthread_detach(thread)
    }

    private func serve() { while let piece = take() { piece.run() } }

    private func take() -> ExecutionWork? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while head == work.count {
            work.removeAll(keepingCapacity: true)
            head = 0
            if isOver { return nil }
            pthread_cond_wait(changed, mutex)
        }
        defer {
            work[head] = nil
            head += 1
        }
        return work[head]
    }
}

/// Calls `body` with a target whose thread has a small stack. The target is the default queue during the call.
func withSmallTarget(_ body: (SmallTarget) async throws -> Void) async rethrows {
    let target = SmallTarget()
    defer { target.stop() }
    try await COQueues.withDefaultQueue(target) { try await body(target) }
}
