// Turnstile.swift - one call at a time, in the order of their coming.
//
// Invariants:
//   I1  a turn that is over is handed to the first who waits; so nobody who comes later passes.
//   I2  whether the turn is taken is the stack's to read and to write, in its isolation. Who waits is under a lock, because a
//       call that waits may be cancelled from anywhere.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// Lets calls of an undo stack in, one at a time.
final class Turnstile: @unchecked Sendable {
    // Unchecked, and so is the exclusivity of `isTaken`: I2.

    private final class Mark: Sendable {}

    @exclusivity(unchecked) private(set) var isTaken = false
    private let waiters = Guarded(WaitList())
    private let step = Mark()
    private let group = Mark()

    private func takeIfFree() -> Bool {
        if isTaken { return false }
        isTaken = true
        return true
    }

    /// Takes a turn. Those who wait are in the order of their calls: there is no suspension before.
    ///
    /// - Throws: a `CancellationError` when it was cancelled first; ``CommandUsageError/reentrant`` when it would wait for what may
    ///   wait for it.
    nonisolated(nonsending) func enter() async throws {
        try Task.checkCancellation()
        if takeIfFree() { return }
        if isBegunInTurn { throw CommandUsageError.reentrant }
        let wakening = await Waiter.wait { waiter in
            takeIfFree() ? .isOver : waiters.withLock { $0.append(waiter) }
        } orCancelledBy: { [waiters] waiter in
            waiters.withLock { $0.remove(waiter) }
        }
        if wakening == .cancelled { throw CancellationError() }
    }

    /// The turn is free.
    func enterNow() { isTaken = true }

    func leave() {
        let next = waiters.withLock { $0.popFirst() }
        isTaken = next != nil
        next?.wake()
    }

    /// Whether the calling code is a part of a step that runs.
    var isInStep: Bool { ReentrancyMark.isInside(step) }
    /// Whether it is the body of a group.
    var isInGroup: Bool { ReentrancyMark.isInside(group) }
    /// Whether it is a task that was begun in one of them: its turn would come when that has ended, which may wait for it.
    var isBegunInTurn: Bool { ReentrancyMark.isBegunInside(group) || ReentrancyMark.isBegunInside(step) }

    func inStep<Value>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value {
        try await ReentrancyMark.inTask(of: ReentrancyMark.innermost.with(step), isolation: isolation, body)
    }

    /// As ``inStep(isolation:_:)``, in a task that nobody cancels; what does not await is done on this stack. Priority and task-local
    /// values are the caller's.
    func inShieldedStep<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let holders = ReentrancyMark.innermost.with(step)
        return try await Task.immediate { try await ReentrancyMark.inTask(of: holders) { try await body() } }
            .value
    }

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
