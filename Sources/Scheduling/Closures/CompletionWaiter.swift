internal import CScheduler
internal import Synchronization

/// One task that waits for a generation, and may be cancelled meanwhile. Completion and cancellation race; the
/// winner resumes the task, once.
///
/// Takes no lock, because the last operation of a generation runs this code.
@safe
final class CompletionWaiter: Sendable {
    private enum State: UInt8, AtomicRepresentable {
        case idle
        case waiting
        case completed
        case cancelled
    }

    private let state = Atomic(State.idle)
    // Sendable: written before `state` becomes `waiting` (release), read by the thread that ends that state
    // (acquire).
    nonisolated(unsafe) private var continuation: CheckedContinuation<Bool, Never>?
    // The notification as a bit pattern. The call that creates it and the task's return race for this word. 0:
    // neither has happened. `withdrawn`: the task has returned.
    private let registration = Atomic<UInt>(0)
    private static let withdrawn: UInt = 1

    /// Waits on the caller's actor. Returns true when the generation is complete, false when the task was
    /// cancelled.
    func end(isolation: isolated (any Actor)? = #isolation, on counter: CompletionCounter) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: isolation) { wait(on: counter, resuming: $0) }
        } onCancel: {
            cancel()
        }
    }

    /// Resumes `continuation` with true when the generation is complete, with false after `cancel()`.
    private func wait(on counter: CompletionCounter, resuming continuation: CheckedContinuation<Bool, Never>)
    {
        unsafe self.continuation = continuation
        let (waits, seen) = state.compareExchange(
            expected: .idle, desired: .waiting, successOrdering: .releasing, failureOrdering: .relaxed)
        guard waits else {
            continuation.resume(returning: seen == .completed)
            return
        }
        let reference = unsafe Unmanaged.passRetained(self)
        let notify: csched_notify_function = {
            unsafe Unmanaged<CompletionWaiter>.fromOpaque($0!).takeRetainedValue().complete()
        }
        guard let made = unsafe csched_completion_notify(counter.handle, notify, reference.toOpaque()) else {
            fatalError("CompletionCounter.wait: memory is exhausted")
        }
        let registered = registration.compareExchange(
            expected: 0, desired: UInt(bitPattern: made), ordering: .acquiringAndReleasing
        ).exchanged
        if !registered { unsafe giveBack(made) }
    }

    /// Called when the task has resumed: cancels the notification, now or as soon as it is registered.
    func withdraw() {
        let made = registration.exchange(Self.withdrawn, ordering: .acquiringAndReleasing)
        if let made = unsafe OpaquePointer(bitPattern: made) { unsafe giveBack(made) }
    }

    private func giveBack(_ notification: OpaquePointer) {
        if unsafe csched_notification_cancel(notification) {
            unsafe Unmanaged.passUnretained(self).release()  // the reference that it would have consumed
        }
    }

    /// Called when the generation is complete.
    func complete() { finish(.completed) }

    /// Called when the task is cancelled.
    private func cancel() { finish(.cancelled) }

    /// Ends the wait, unless it has already ended.
    private func finish(_ outcome: State) {
        var seen = State.idle
        while seen == .idle || seen == .waiting {
            let (ends, now) = state.compareExchange(
                expected: seen, desired: outcome, ordering: .acquiringAndReleasing)
            if ends {
                if seen == .waiting { unsafe continuation?.resume(returning: outcome == .completed) }
                return
            }
            seen = now
        }
    }
}
