// Support.swift - work that begins and ends under a test's control, and an ordered log of notifications.

import Actions
import Commands
import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

struct TestError: Error, Equatable {
    var number = 0
}

/// An ordered log of the messages delivered.
typealias Log = CompositeOperationsTestSupport.Log<String>

/// Work in flight; a test ends each call.
final class Works: Sendable {
    typealias End = Result<Int, any Error>

    private struct State {
        /// In the order in which the calls began.
        var begun: [(input: Int, continuation: CheckedContinuation<End, Never>)] = []
        var count = 0
        var most = 0
        var inFlight = 0
        var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Locked(State())

    /// The number of calls that have begun so far.
    var count: Int { state.withLock { $0.count } }
    /// The highest number of calls in flight at once.
    var most: Int { state.withLock { $0.most } }

    func run(_ input: Int) async throws -> Int {
        defer { state.withLock { $0.inFlight -= 1 } }
        let end = await withCheckedContinuation { continuation in
            let ready = state.withLock { state in
                state.begun.append((input, continuation))
                state.count += 1
                state.inFlight += 1
                state.most = max(state.most, state.inFlight)
                let ready = state.waiting.filter { $0.count <= state.count }
                state.waiting.removeAll { $0.count <= state.count }
                return ready
            }
            for waiting in ready { waiting.continuation.resume() }
        }
        return try end.get()
    }

    /// Waits until `count` calls have begun.
    func begun(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.count < count { state.waiting.append((count, continuation)) }
                return state.count >= count
            }
            if isReady { continuation.resume() }
        }
    }

    /// Ends the call with this input.
    func end(_ input: Int, _ end: End) {
        let continuation = state.withLock { state in
            state.begun.firstIndex { $0.input == input }.map { state.begun.remove(at: $0).continuation }
        }
        guard let continuation else {
            Issue.record("the work for \(input) is not under way")
            return
        }
        continuation.resume(returning: end)
    }
}

extension ActionSnapshot {
    /// Enabled, executing, running, waiting.
    var text: String { "\(isEnabled ? "on" : "off") \(isExecuting ? "busy" : "idle") \(running) \(waiting)" }
}

extension ActionEvent {
    var text: String {
        switch self {
        case .started: "started"
        case .value(_, let value): "value \(value)"
        case .finished: "finished"
        case .failed(_, let error): "failed \(error)"
        case .cancelled: "cancelled"
        case .rejected(_, let reason): "rejected \(reason)"
        }
    }
    var id: ExecutionID {
        switch self {
        case .started(let id), .value(let id, _), .finished(let id), .failed(let id, _), .cancelled(let id),
            .rejected(let id, _):
            id
        }
    }
    var isEnd: Bool {
        switch self {
        case .started, .value: false
        default: true
        }
    }
}

extension Outcome {
    var text: String {
        switch self {
        case .finished(let output): "finished \(output)"
        case .failed(let error): "failed \(error)"
        case .cancelled(let reason):
            switch reason.kind {
            case .precondition, .busy, .queueFull: "rejected \(reason.kind)"
            case .displaced: "rejected superseded"
            default: "cancelled"
            }
        }
    }
}
