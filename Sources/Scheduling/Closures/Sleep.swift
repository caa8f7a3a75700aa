internal import CScheduler
internal import Synchronization

extension Scheduler {
    /// Suspends the task for a while, on a timer of this scheduler.
    ///
    /// Like `Task.sleep(for:)`, at half its cost; the task resumes in its caller's isolation. (The scheduler cannot serve
    /// `Task.sleep` itself: the interface for that is not public in this toolchain.)
    ///
    /// ```swift
    /// try await scheduler.sleep(for: .milliseconds(100))
    /// ```
    ///
    /// - Parameter duration: measured on the monotonic clock; the call returns promptly if it is not positive.
    /// - Throws: `CancellationError` when the task is cancelled, or the scheduler is shut down.
    /// - Complexity: O(1), lock-free, two allocations.
    nonisolated(nonsending) public func sleep(for duration: Duration) async throws(CancellationError) {
        let sleep = Sleep()
        let outcome = await sleep.end(on: self, after: duration)
        sleep.cancel()
        switch outcome {
        case .over: break
        case .cancelled: throw CancellationError()
        case .refused:
            do { try await Task.sleep(for: min(max(.zero, duration), .longest)) } catch {
                throw CancellationError()
            }
        }
    }

    /// Suspends the task until an instant, on a timer of this scheduler.
    ///
    /// - Parameter deadline: the call returns promptly if it has passed. The deadline is converted to a duration now, so time
    ///   during which the machine is suspended does not count.
    /// - Throws: as ``sleep(for:)``.
    /// - Complexity: as ``sleep(for:)``.
    nonisolated(nonsending) public func sleep(until deadline: ContinuousClock.Instant)
        async throws(CancellationError)
    {
        try await sleep(for: ContinuousClock.now.duration(to: deadline))
    }
}

/// Suspends the task for a duration measured by `clock`. For the continuous clock, uses a timer of the shared scheduler.
///
/// - Throws: as the clock's `sleep(for:)`.
package func sleep(for duration: Duration, by clock: any Clock<Duration>) async throws {
    if clock is ContinuousClock {
        try await Scheduler.shared.sleep(for: duration)
    } else {
        try await clock.sleep(for: min(duration, .longest))
    }
}

/// One sleeping task. Its timer runs or cancels the operation, exactly once; either resumes the task.
@safe
private final class Sleep: Sendable {
    enum Outcome {
        case over
        case cancelled
        /// There was no memory for the timer, or no thread.
        case refused
    }

    // Sendable: written before the timer is set, read by the function that the timer calls.
    nonisolated(unsafe) private var continuation: UnsafeContinuation<Outcome, Never>?
    // The timer as a bit pattern, taken out by the thread that cancels and releases it. 0: not set yet; `ended`: taken out, or
    // to be cancelled as soon as it is set.
    private let timer = Atomic<UInt>(0)
    private static let ended: UInt = 1

    /// Begins the sleep, and waits for its end on the caller's actor. The closure has to use the `isolation` parameter, or it
    /// would leave the actor and return.
    func end(
        isolation: isolated (any Actor)? = #isolation, on scheduler: Scheduler, after duration: Duration
    ) async -> Outcome {
        await withTaskCancellationHandler {
            await unsafe withUnsafeContinuation(isolation: isolation) {
                unsafe begin(on: scheduler, for: duration, resuming: $0)
            }
        } onCancel: {
            cancel()
        }
    }

    private func begin(
        on scheduler: Scheduler, for duration: Duration,
        resuming continuation: UnsafeContinuation<Outcome, Never>
    ) {
        if timer.load(ordering: .relaxed) == Self.ended {
            unsafe continuation.resume(returning: .cancelled)
            return
        }
        unsafe self.continuation = continuation
        let reference = unsafe Unmanaged.passRetained(self)
        var operation = unsafe csched_operation(
            run: { context, _, disposition in
                let sleep = unsafe Unmanaged<Sleep>.fromOpaque(context!).takeRetainedValue()
                unsafe sleep.continuation!.resume(returning: disposition == .run ? .over : .cancelled)
            }, context: reference.toOpaque(), extra: nil, counter: nil)
        var set: OpaquePointer?
        let status = unsafe csched_call_after(scheduler.handle, &operation, duration.wholeNanoseconds, &set)
        guard status == .ok, let set = unsafe set else {
            unsafe reference.release()
            unsafe continuation.resume(returning: status == .closed ? .cancelled : .refused)
            return
        }
        let isKept = timer.compareExchange(
            expected: 0, desired: UInt(bitPattern: set), ordering: .acquiringAndReleasing
        ).exchanged
        if !isKept { unsafe giveBack(set) }
    }

    /// Called when the task is cancelled, and when it has resumed.
    func cancel() {
        let taken = timer.exchange(Self.ended, ordering: .acquiringAndReleasing)
        if taken != Self.ended, let set = unsafe OpaquePointer(bitPattern: taken) { unsafe giveBack(set) }
    }

    private func giveBack(_ set: OpaquePointer) {
        unsafe csched_timer_cancel(set)
        unsafe csched_timer_release(set)
    }
}
