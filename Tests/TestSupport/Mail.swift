// Mail.swift - messages from a block to the test that waits for them.

import PropertyTesting

/// A mailbox: one side sends letters; the other waits for them, even when it is cancelled, and gets them in the order of
/// sending.
package final class Mail<Letter: Sendable>: Sendable {
    private struct State {
        var letters: [Letter] = []
        var waiting: [CheckedContinuation<Letter, Never>] = []
    }

    private let state = Locked(State())

    package init() {}

    package func send(_ letter: Letter) {
        let waiting = state.withLock { state -> CheckedContinuation<Letter, Never>? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.letters.append(letter)
            return nil
        }
        waiting?.resume(returning: letter)
    }

    package func next() async -> Letter {
        await withCheckedContinuation { continuation in
            let letter = state.withLock { state -> Letter? in
                if !state.letters.isEmpty { return state.letters.removeFirst() }
                state.waiting.append(continuation)
                return nil
            }
            if let letter { continuation.resume(returning: letter) }
        }
    }
}
