// Observer.swift - somebody who is told, until that is cancelled.

import CompositeOperationsBasics
import Synchronization

/// Is told in its mailbox; not any more once it is cancelled.
final class Observer<Value: Sendable>: Sendable {
    let mailbox: Mailbox
    private let body: @Sendable (Value) -> Void
    private let onEnd: @Sendable () -> Void
    private let isOver = Atomic(false)
    private let instance = Instance(.observers)

    init(
        _ mailbox: Mailbox, onEnd: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable (Value) -> Void
    ) {
        self.mailbox = mailbox
        self.onEnd = onEnd
        self.body = body
    }

    func tell(_ value: Value) { if !isOver.load(ordering: .acquiring) { body(value) } }

    func cancel() { isOver.store(true, ordering: .releasing) }

    /// Nothing comes any more: told once, unless it was cancelled.
    func end() { if !isOver.exchange(true, ordering: .acquiringAndReleasing) { onEnd() } }
}
