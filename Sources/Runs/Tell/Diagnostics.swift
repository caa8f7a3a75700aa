// Diagnostics.swift - what a program should not do, or should look at, is told to whoever listens.

internal import Synchronization

/// Something that a program should not do, or should look at; nothing has been done about it.
public struct Diagnostic: Sendable, CustomStringConvertible {
    /// The operation concerned.
    public let operation: RunID?
    /// Its attempt.
    public let attempt: Int
    /// Its state, in a word.
    public let state: String?
    /// What it is, as a sentence.
    public let message: String

    package init(operation: RunID? = nil, attempt: Int = 0, state: String? = nil, _ message: String) {
        self.operation = operation
        self.attempt = attempt
        self.state = state
        self.message = message
    }

    /// The operation, its attempt and state, and the message.
    public var description: String {
        guard let operation else { return message }
        return "operation \(operation), attempt \(attempt), \(state ?? "no state"): \(message)"
    }
}

/// Where diagnostics go: refused calls and registrations, failures that nobody looks at, loops that do not settle.
public enum Diagnostics {
    /// Not a bare closure: each time that one is read through a generic lock, the compiler wraps what is there once more.
    private struct Listener: Sendable { let body: @Sendable (Diagnostic) -> Void }

    private static let listener = Guarded<Listener?>(nil)
    private static let isSet = Atomic(false)
    /// Not nil on a thread that calls the listener.
    private static let isTelling = ThreadValue()

    /// Whether somebody listens: what only a diagnostic needs can be left out otherwise.
    package static var areHeard: Bool { isSet.load(ordering: .relaxed) }

    /// Sets who hears of diagnostics.
    ///
    /// - Parameter listener: called on the thread concerned, under no lock; nil: nobody. It should be short. Of what it gives
    ///   cause to itself, on its thread, it is not told.
    public static func onReport(_ listener: (@Sendable (Diagnostic) -> Void)?) {
        let former = self.listener.withLock { current in
            defer {
                current = listener.map { Listener(body: $0) }
                isSet.store(listener != nil, ordering: .relaxed)
            }
            return current
        }
        withExtendedLifetime(former) {}  // released under no lock
    }

    /// Under no lock.
    package static func report(_ diagnostic: Diagnostic) {
        guard isTelling.here == nil, let listener = listener.withLock({ $0 }) else { return }
        isTelling.set(UnsafeRawPointer(bitPattern: 1))
        listener.body(diagnostic)
        isTelling.set(nil)
    }
}
