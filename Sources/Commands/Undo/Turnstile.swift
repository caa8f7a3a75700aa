// Turnstile.swift - one call at a time, in the order of their coming.
//
// Invariant I1, under the lock: a turn that is over is handed to the first who waits; so nobody who comes later passes.

internal import CompositeOperationsBasics
@_spi(Faces) internal import Runs

/// Lets calls of an undo stack in, one at a time. Sendable, because a call that waits may be cancelled from anywhere.
final class Turnstile: Sendable {
    private struct State {
        var isTaken = false
        var waiters = WaitList()

        mutating func takeIfFree() -> Bool {
            if isTaken { return false }
            isTaken = true
            return true
        }
    }

    private final class Mark: Sendable {}

    private let state = Guarded(State())
    private let step = Mark()
    private let group = Mark()

    var isTaken: Bool { state.withLock { $0.isTaken } }

    /// Takes a turn. Those who wait are in the order of their calls: there is no suspension before.
    ///
    /// - Throws: a `CancellationError` when it was cancelled first; ``CommandUsageError/reentrant`` when it would wait for what may
    ///   wait for it.
    nonisolated(nonsending) func enter() async throws {
        try Task.checkCancellation()
        if state.withLock({ $0.takeIfFree() }) { return }
        if isBegunInTurn { throw CommandUsageError.reentrant }
        let wakening = await Waiter.wait { waiter in
            state.withLock { $0.takeIfFree() ? .isOver : $0.waiters.append(waiter) }
        } orCancelledBy: { [state] waiter in
            state.withLock { $0.waiters.remove(waiter) }
        }
        if wakening == .cancelled { throw CancellationError() }
    }

    /// The turn is free.
    func enterNow() { state.withLock { $0.isTaken = true } }

    func leave() {
        let next = state.withLock { state in
            let next = state.waiters.popFirst()
            state.isTaken = next != nil
            return next
        }
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
