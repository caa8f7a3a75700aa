// Observer.swift - an observer, until it is cancelled.

import CompositeOperationsBasics
@_spi(Faces) import Runs

/// An observer, notified through its mailbox until it is cancelled.
final class Observer<Value: Sendable>: Sendable {
    let mailbox: Mailbox
    /// The registration; open until the observer is cancelled, or notified of the end.
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

    /// Notifies the observer that nothing more will come; once, unless it was cancelled.
    func end() { if registration.end() { onEnd() } }
}
