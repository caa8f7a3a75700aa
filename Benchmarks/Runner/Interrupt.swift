import Foundation
import Glibc

/// Counts the interrupts that nobody has waited for: posting is allowed in a signal handler, cancelling a task is not.
private nonisolated(unsafe) let interrupts = {
    let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    sem_init(semaphore, 0, 0)
    return semaphore
}()

/// Runs `body`; Ctrl-C cancels its task, and a second one ends the process.
func cancelledByInterrupt<Value: Sendable>(_ body: sending @escaping () async throws -> Value) async throws
    -> Value
{
    _ = interrupts
    signal(SIGINT) { _ in sem_post(interrupts) }
    var interrupt = sigset_t()
    sigemptyset(&interrupt)
    sigaddset(&interrupt, SIGINT)
    pthread_sigmask(SIG_UNBLOCK, &interrupt, nil)  // whoever started this may have blocked it
    signal(SIGPIPE, SIG_IGN)  // a child that was killed must not take the coordinator along
    let task = Task(operation: body)
    Thread.detachNewThread {
        while sem_wait(interrupts) != 0 {}  // interrupted
        signal(SIGINT, SIG_DFL)
        task.cancel()
    }
    return try await task.value
}
