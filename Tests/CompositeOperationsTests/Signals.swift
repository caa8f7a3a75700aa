// What the tests of stale calls, gates, queues, redos and stacks share: races, and threads whose stack is
// small.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting

/// As `concurrently`, for tests that are asynchronous.
func race<Answer: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> Answer) async -> [Answer] {
    await withCheckedContinuation { continuation in
        elsewhere.async { continuation.resume(returning: concurrently(count, body)) }
    }
}

/// What the stacks of the specification's tests have.
let smallStack = 512 << 10

private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

private func startSmallThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
    let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
    pthread_attr_init(attributes)
    defer {
        pthread_attr_destroy(attributes)
        attributes.deallocate()
    }
    guard pthread_attr_setstacksize(attributes, smallStack) == 0 else { fatalError("no stack of this size") }
    var thread = pthread_t()
    let code = pthread_create(
        &thread, attributes,
        { argument in
            Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue().run()
            return nil
        }, Unmanaged.passRetained(Body(body)).toOpaque())
    guard code == 0 else { fatalError("no thread: \(code)") }
    return thread
}

/// Calls `body` on a thread of its own, with a small stack.
func onSmallStack<Answer: Sendable>(_ body: @escaping @Sendable () -> Answer) async -> Answer {
    await withCheckedContinuation { continuation in
        let thread = startSmallThread { continuation.resume(returning: body()) }
        pthread_detach(thread)
    }
}

/// A target with one thread, whose stack is small.
final class SmallTarget: ExecutionTarget, @unchecked Sendable {
    // Unchecked: `work`, `head` and `isOver` are used under `mutex` alone; `thread` is written once.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var work: [COQueues.Work?] = []
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

    func submit(_ piece: COQueues.Work) {
        pthread_mutex_lock(mutex)
        work.append(piece)
        pthread_cond_signal(changed)
        pthread_mutex_unlock(mutex)
    }

    var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

    /// Lets the thread end when it has nothing to do. Its last work may be what calls this.
    func stop() {
        pthread_mutex_lock(mutex)
        isOver = true
        pthread_cond_signal(changed)
        pthread_mutex_unlock(mutex)
        pthread_detach(thread)
    }

    private func serve() { while let piece = take() { piece.run() } }

    private func take() -> COQueues.Work? {
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

/// Calls `body` with a target whose thread has a small stack, as the default queue.
func withSmallTarget(_ body: (SmallTarget) async throws -> Void) async rethrows {
    let target = SmallTarget()
    defer { target.stop() }
    try await COQueues.withDefaultQueue(target) { try await body(target) }
}

/// Runs the jobs of tasks when a test says so: up to where they wait.
final class SteppedExecutor: TaskExecutor {
    private let jobs = Locked<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs what there is, and what that brings, on the calling thread.
    func step() {
        while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
