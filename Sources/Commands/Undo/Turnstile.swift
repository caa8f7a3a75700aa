// Turnstile.swift - one call at a time, in order of arrival.
//
// Invariants:
//   I1  a turn that ends is passed to the first waiter, so no later call overtakes that waiter.
//   I2  `isTaken` is read and written only by the stack, in its isolation. The waiters are under a lock, because a waiting call
//       may be cancelled from any thread.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// Admits calls of an undo stack one at a time.
final class Turnstile: @unchecked Sendable {
    // Unchecked, and so is the exclusivity of `isTaken` (I2) and of `replaced`.

    private final class Mark: Sendable {}

    @exclusivity(unchecked) private(set) var isTaken = false
    /// The objects that a step in its own task has replaced: written by that task, and taken by the call that awaits it.
    @exclusivity(unchecked) var replaced: (any Sendable)?
    private let waiters = Guarded(WaitList())
    private let step = Mark()
    private let group = Mark()

    private func takeIfFree() -> Bool {
        if isTaken { return false }
        isTaken = true
        return true
    }

    /// Takes a turn. Waiters are queued in call order, because no call suspends before it is queued.
    ///
    /// - Throws: a `CancellationError` if the task is cancelled before its turn; ``CommandUsageError/reentrant`` if the task
    ///   would wait for a call that may be waiting for the task.
    nonisolated(nonsending) func enter() async throws {
        if try enterIfFree() { return }
        if isBegunInTurn { throw CommandUsageError.reentrant }
        let wakening = await Waiter.wait { waiter in
            takeIfFree() ? .isOver : waiters.withLock { $0.append(waiter) }
        } orCancelledBy: { [waiters] waiter in
            waiters.withLock { $0.remove(waiter) }
        }
        if wakening == .cancelled { throw CancellationError() }
    }

    /// Takes a turn unless another call has it.
    ///
    /// - Returns: whether the caller has the turn.
    /// - Throws: a `CancellationError` if the task is cancelled.
    func enterIfFree() throws -> Bool {
        try Task.checkCancellation()
        return takeIfFree()
    }

    /// Takes the turn, which must be free.
    func enterNow() { isTaken = true }

    func leave() {
        let next = waiters.withLock { $0.popFirst() }
        isTaken = next != nil
        next?.wake()
    }

    /// Whether the caller is part of a running step.
    var isInStep: Bool { ReentrancyMark.isInside(step) }
    /// Whether the caller is part of a group's body.
    var isInGroup: Bool { ReentrancyMark.isInside(group) }
    /// Whether the calling task was started in a running step or group. Its turn would come only after that step or group, which
    /// may be waiting for the task.
    var isBegunInTurn: Bool { ReentrancyMark.isBegunInside(group) || ReentrancyMark.isBegunInside(step) }

    func inStep(
        isolation: isolated (any Actor)? = #isolation,
        _ body: nonisolated(nonsending) () async throws -> Void
    ) async rethrows {
        try await ReentrancyMark.inTask(of: ReentrancyMark.innermost.with(step), isolation: isolation, body)
    }

    func takeReplaced() -> (any Sendable)? {
        defer { replaced = nil }
        return replaced
    }

    /// A mark for a task that runs a step.
    func stepOfNewTask() -> ReentrancyMark { ReentrancyMark(ofNewTask: ReentrancyMark.innermost.with(step)) }

    func inStepNow<Value>(_ body: () throws -> Value) rethrows -> Value {
        try ReentrancyMark.onThread(of: step, body)
    }

    func inGroup<Value>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value {
        try await ReentrancyMark.inTask(of: ReentrancyMark.innermost.with(group), isolation: isolation, body)
    }
}
