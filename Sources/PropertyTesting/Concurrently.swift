import Glibc
import Synchronization

/// Runs `body` on `count` kernel threads that start together, and returns what each of them returned.
///
/// Not a task group: its scheduling would order the bodies, and hide the very races a test looks for.
///
/// - Parameter body: called with 0 ..< `count`, each on a separate thread.
/// - Precondition: the system can create the threads.
public func concurrently<Result: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) -> Result
) -> [Result] {
    let arrived = Shared(0)
    let results = (0..<count).map { _ in Cell<Result>() }
    let threads = (0..<count).map { index in
        startThread(for: "concurrently") {
            arrived.value.add(1, ordering: .relaxed)
            // Relaxed, so that the barrier itself orders nothing; yielding, because there may be fewer CPUs
            // than threads.
            while arrived.value.load(ordering: .relaxed) < count { sched_yield() }
            results[index].set(body(index))
        }
    }
    for thread in threads { pthread_join(thread, nil) }
    return results.map { $0.take() }
}

/// A counter that threads share by reference.
private final class Shared: Sendable {
    let value: Atomic<Int>
    init(_ value: Int) { self.value = Atomic(value) }
}

/// Written by one thread, read after it was joined.
private final class Cell<Value: Sendable>: Sendable {
    nonisolated(unsafe) private var value: Value?
    func set(_ value: Value) { self.value = value }
    func take() -> Value {
        guard let value else { fatalError("concurrently: a thread ended without its result") }
        return value
    }
}
