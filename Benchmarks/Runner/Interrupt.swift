import Foundation
import Glibc

/// Counts the interrupts that nobody has waited for: posting is allowed in a signal handler, cancelling a task is not. Unsafe
/// is only the pointer: a semaphore is for all threads.
private nonisolated(unsafe) let interrupts = {
    let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    sem_init(semaphore, 0, 0)
    return semaphore
}()

/// Runs `body`; Ctrl-C, or a termination, cancels its task, and a second one ends the process.
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
    pthread_sigmask(SIG_UNBLOCK, &set, nil)  // whoever started this may have blocked them
    signal(SIGPIPE, SIG_IGN)  // a child that was killed must not take the coordinator along
    let task = Task(operation: body)
    Thread.detachNewThread {
        while sem_wait(interrupts) != 0 {}  // interrupted
        for interrupt in [SIGINT, SIGTERM] { signal(interrupt, SIG_DFL) }
        task.cancel()
    }
    return try await task.value
}
