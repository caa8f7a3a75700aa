// SmallStack.swift - threads on which no recursion gets far.

package import Glibc
import PropertyTesting

/// The size of the stacks in the specification's tests, in bytes: one sixteenth of the 8 MiB that threads have.
package let smallStack = 512 << 10

/// Starts a thread with a small stack, which the caller joins or detaches.
package func startSmallThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
    startThread(for: "startSmallThread", stackSize: smallStack, body)
}

/// Calls `body` on a separate thread, with a small stack.
package func onSmallStack<Answer: Sendable>(_ body: @escaping @Sendable () -> Answer) async -> Answer {
    await withCheckedContinuation { continuation in
        pthread_detach(startSmallThread { continuation.resume(returning: body()) })
    }
}
