// Observer.swift - somebody who is told, until that is cancelled.

import CompositeOperationsBasics
@_spi(Faces) import Runs

/// Is told in its mailbox; not any more once it is cancelled.
final class Observer<Value: Sendable>: Sendable {
    let mailbox: Mailbox
    /// Where it is registered; open until it is cancelled, or told of the end.
    let registration = Registration()
    private let body: @Sendable (Value) -> Void
    private let onEnd: @Sendable () -> Void
    private let instance = Instance(.observers)

    init(
        _ mailbox: Mailbox, onEnd: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable (Value) -> Void
    ) {
        self.mailbox = mailbox
        self.onEnd = onEnd
        self.body = body
    }

    func tell(_ value: Value) { if registration.isOpen { body(value) } }

    func cancel() { registration.end() }

    /// Nothing comes any more: told once, unless it was cancelled.
    func end() { if registration.end() { onEnd() } }
}
