import Foundation
import Glibc

/// Counts the interrupts that no thread has waited for yet: a signal handler may post a semaphore, but must not cancel a
/// task. Only the pointer is unsafe: all threads may use the semaphore.
private nonisolated(unsafe) let interrupts = {
    let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    sem_init(semaphore, 0, 0)
    return semaphore
}()

/// Runs `body`; Ctrl-C, or a termination signal, cancels its task, and a second one ends the process.
func cancelledByInterrupt<Value: Sendable>(_ body: sending @escaping () async throws -> Value) async throws
    -> Value
{
    _ = interrupts
    var set = sigset_t()
    sigemptyset(&set)
    for interrupt in [SIGINT, SIGTERM] {
        signal(interrupt) { _ in sem_post(interrupts) }
        sigaddset(&set, interrupt)
    }
    pthread_sigmask(SIG_UNBLOCK, &set, nil)  // the parent process may have blocked them
    signal(SIGPIPE, SIG_IGN)  // a killed child must not take the coordinator with it
    let task = Task(operation: body)
    Thread.detachNewThread {
        while sem_wait(interrupts) != 0 {}  // interrupted
        for interrupt in [SIGINT, SIGTERM] { signal(interrupt, SIG_DFL) }
        task.cancel()
    }
    return try await task.value
}
