internal import CScheduler
internal import Synchronization

/// One task that waits for a generation, and may be cancelled meanwhile: whoever comes first resumes it,
/// once.
final class CompletionWaiter: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Bool, Never>)
        case finished(Bool)
    }

    /// The notification, between the call that makes it and the task's return: either may come first.
    private enum Registration {
        case none
        case made(Notification)
        case withdrawn
    }

    @safe private struct Notification: Sendable {
        // Sendable: given back once, by whichever of the two comes second.
        nonisolated(unsafe) let handle: OpaquePointer
    }

    private let state = Mutex(State.idle)
    private let registration = Mutex(Registration.none)

    /// Resumes `continuation` with true when the generation is complete, with false after `finish(false)`.
    func wait(on counter: CompletionCounter, resuming continuation: CheckedContinuation<Bool, Never>) {
        let early: Bool? = state.withLock { state in
            if case .finished(let outcome) = state { return outcome }
            state = .waiting(continuation)
            return nil
        }
        if let early {
            continuation.resume(returning: early)
            return
        }
        let reference = unsafe Unmanaged.passRetained(self)
        let notify: csched_notify_function = {
            unsafe Unmanaged<CompletionWaiter>.fromOpaque($0!).takeRetainedValue().finish(true)
        }
        let made = unsafe csched_completion_notify(counter.handle, notify, reference.toOpaque())
        guard let made = unsafe made else {
            preconditionFailure("CompletionCounter.wait: memory is exhausted")
        }
        unsafe register(Notification(handle: made))
    }

    private func register(_ notification: Notification) {
        let withdrawn = registration.withLock { registration in
            if case .withdrawn = registration { return true }
            registration = .made(notification)
            return false
        }
        if withdrawn { giveBack(notification) }
    }

    /// The task goes on: what was registered is given back, now or as soon as it is.
    func withdraw() {
        let made: Notification? = registration.withLock { registration in
            defer { registration = .withdrawn }
            if case .made(let notification) = registration { return notification }
            return nil
        }
        if let made { giveBack(made) }
    }

    private func giveBack(_ notification: Notification) {
        if unsafe csched_notification_cancel(notification.handle) {
            unsafe Unmanaged.passUnretained(self).release()  // the reference that the call would have taken
        }
    }

    /// Ends the wait with `outcome`, unless it has ended.
    func finish(_ outcome: Bool) {
        let continuation: CheckedContinuation<Bool, Never>? = state.withLock { state in
            defer { if case .finished = state {} else { state = .finished(outcome) } }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume(returning: outcome)
    }
}
