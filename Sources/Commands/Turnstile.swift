// Turnstile.swift - one call at a time, in the order of their coming.
//
// Invariant I1, under the lock: who waits is let in or is cancelled, one of the two: whichever writes its `answer`. A turn
// that is over is handed to the first in `waiting` without one; so nobody who comes later passes. Who is cancelled stays in
// `waiting` until that: each call costs O(1), amortised.

internal import CompositeOperationsBasics
internal import Runs

/// Lets calls of an undo stack in, one at a time. Sendable, because a call that waits may be cancelled from anywhere.
final class Turnstile: Sendable {
    private struct State {
        var isTaken = false
        var waiting = FIFO<Waiting>()
    }

    /// A call that waits. `continuation` and `answer` are under the lock: either may come first.
    private final class Waiting: @unchecked Sendable {
        var continuation: CheckedContinuation<Void, any Error>?
        var answer: Result<Void, any Error>?
    }

    private final class Mark: Sendable {}

    private let state = Guarded(State())
    private let step = Mark()
    private let group = Mark()

    var isTaken: Bool { state.withLock { $0.isTaken } }

    /// Takes a turn, or a place among those who wait. Never awaits: so places are in the order of the calls.
    private func queueUp() -> Waiting? {
        state.withLock { state in
            if state.isTaken {
                let place = Waiting()
                state.waiting.append(place)
                return place
            }
            state.isTaken = true
            return nil
        }
    }

    /// - Throws: a `CancellationError` when it was cancelled first.
    nonisolated(nonsending) func enter() async throws {
        try Task.checkCancellation()
        guard let place = queueUp() else { return }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer = state.withLock { _ in
                    if place.answer == nil { place.continuation = continuation }
                    return place.answer
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            let continuation = state.withLock { _ -> CheckedContinuation<Void, any Error>? in
                if place.answer != nil { return nil }
                place.answer = .failure(CancellationError())
                return place.continuation
            }
            continuation?.resume(throwing: CancellationError())
        }
    }

    /// The turn is free.
    func enterNow() { state.withLock { $0.isTaken = true } }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            while let next = state.waiting.popFirst() {
                if next.answer != nil { continue }
                next.answer = .success(())
                return next.continuation
            }
            state.isTaken = false
            return nil
        }
        next?.resume()
    }

    /// Whether the calling code is a part of a step that runs.
    var isInStep: Bool { LaneRun.isInside(step) }
    /// Whether it is the body of a group.
    var isInGroup: Bool { LaneRun.isInside(group) }

    func inStep<Value>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value {
        try await LaneRun.inTask(of: LaneRun.innermost.with(step), isolation: isolation, body)
    }

    func inStepNow<Value>(_ body: () throws -> Value) rethrows -> Value {
        try LaneRun.onThread(of: step, body)
    }

    func inGroup<Value>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value {
        try await LaneRun.inTask(of: LaneRun.innermost.with(group), isolation: isolation, body)
    }
}
