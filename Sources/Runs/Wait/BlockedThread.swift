// BlockedThread.swift - a thread that blocks in a wait list.

package import CompositeOperationsBasics
internal import Scheduling

extension Waiter {
    /// Blocks the calling thread until it is woken or the timeout expires. On a scheduler's worker, another worker takes
    /// its place in the meantime.
    ///
    /// - Parameters:
    ///   - timeout: nil waits without limit.
    ///   - register: in one critical section, appends the waiter to a list unless there is nothing to wait for.
    ///   - remove: in one critical section, removes the waiter from the list; returns whether it was still in the list.
    /// - Returns: false if the timeout expired first.
    @available(*, noasync)
    package static func block(
        timeout: Duration?, register: (Waiter) -> Registration, remove: (Waiter) -> Bool
    ) -> Bool {
        let counter: CompletionCounter
        do { counter = try CompletionCounter() } catch {
            fatalError("CompositeOperations: memory is exhausted, so a thread cannot wait")
        }
        counter.enter()
        let waiter = Waiter { _ in counter.leave() }
        // The counter is freed only after `leave()`. The thread that removes the waiter from the list calls it; if the
        // waiter was never appended, this thread does.
        guard case .waits = register(waiter) else {
            counter.leave()
            return true
        }
        guard let timeout else {
            counter.wait()
            return true
        }
        if counter.wait(timeout: timeout) == .timedOut, remove(waiter) {
            counter.leave()
            return false
        }
        return true
    }
}
