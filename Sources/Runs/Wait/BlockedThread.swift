// BlockedThread.swift - a thread that waits in a wait list.

package import CompositeOperationsBasics
internal import Scheduling

extension Waiter {
    /// Blocks the calling thread until it is woken, or the time is over. On a worker of a scheduler, another one takes its
    /// place meanwhile.
    ///
    /// - Parameters:
    ///   - timeout: nil: however long it takes.
    ///   - register: in one section, appends the waiter to a list, unless there is nothing to wait for.
    ///   - remove: in one section, removes it from the list; whether it was there.
    /// - Returns: whether there is nothing to wait for any more.
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
        // A counter that is not left is never freed: whoever takes the waiter out leaves it.
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
