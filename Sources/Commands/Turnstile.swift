// Turnstile.swift - one call at a time, in the order of their coming.
//
// Invariant I1, under the lock: who waits is in `waiting` until it is let in or is cancelled, one of the two. A turn that is
// over is handed to the first who waits; so nobody who comes later passes.

internal import CompositeOperations

/// Lets calls of an undo stack in, one at a time. Sendable, because a call that waits may be cancelled from anywhere.
final class Turnstile: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [(ticket: Ticket, continuation: CheckedContinuation<Void, any Error>)] = []
    }

    private final class Mark: Sendable {}

    private let state = Guarded(State())
    private let step = Mark()
    private let group = Mark()

    var isTaken: Bool { state.withLock { $0.isTaken } }

    /// - Throws: a `CancellationError` when it was cancelled first.
    nonisolated(nonsending) func enter() async throws {
        let ticket = Ticket()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer: Result<Void, any Error>? = state.withLock { state in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.isTaken {
                        state.waiting.append((ticket, continuation))
                        return nil
                    }
                    state.isTaken = true
                    return .success(())
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { state in
                state.waiting.firstIndex { $0.ticket === ticket }.map { state.waiting.remove(at: $0) }
            }
            waiting?.continuation.resume(throwing: CancellationError())
        }
    }

    /// The turn is free.
    func enterNow() { state.withLock { $0.isTaken = true } }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            if state.waiting.isEmpty {
                state.isTaken = false
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume()
    }

    /// Whether the calling code is a part of a step that runs.
    var isInStep: Bool { LaneRun.isInside(step) }
    /// Whether it is the body of a group.
    var isInGroup: Bool { LaneRun.isInside(group) }

    func inStep<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async rethrows -> Value {
        try await LaneRun.inTask(of: LaneRun.innermost + [step], body)
    }

    func inStepNow<Value>(_ body: () throws -> Value) rethrows -> Value {
        try LaneRun.onThread(of: step, body)
    }

    func inGroup<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async rethrows -> Value {
        try await LaneRun.inTask(of: LaneRun.innermost + [group], body)
    }
}
