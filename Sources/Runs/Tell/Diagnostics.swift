// Diagnostics.swift - reports of misuse and of suspicious events, for a listener.

internal import Glibc
internal import Synchronization

/// A report of misuse, or of something suspicious; the package has taken no action on it.
public struct Diagnostic: Sendable, CustomStringConvertible {
    /// The operation concerned.
    public let operation: RunID?
    /// The number of the operation's attempt.
    public let attempt: Int
    /// The state of the operation, in a word.
    public let state: String?
    /// The finding, as a sentence.
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

/// The destination of diagnostics: refused calls and registrations, failures that are never read, loops that do not settle.
///
/// In a debug build, each diagnostic is a line on standard error by default, and so is a report of each operation that is not
/// finished within 5 s. In a release build there is no listener by default. `Diagnostics.onReport(nil)` turns diagnostics off, and
/// ``Diagnostics/writeToStandardError()`` turns them on.
public enum Diagnostics {
    /// An object, not a bare closure: the compiler wraps a closure once more each time that it is read through a generic lock.
    private final class Listener: @unchecked Sendable {
        // Unchecked: `former` is guarded by the lock of `listener`.
        let id = RunID.next()
        /// nil for standard error.
        let body: (@Sendable (Diagnostic) -> Void)?
        /// The listener that is reinstated when this one stops.
        var former: Listener?

        init(_ body: (@Sendable (Diagnostic) -> Void)?) { self.body = body }
    }

    private enum Hearing: UInt8 {
        case nobody
        case listener
        case standardError

        init(_ listener: Listener?) {
            self = listener.map { $0.body == nil ? .standardError : .listener } ?? .nobody
        }
    }

    #if DEBUG
        private static let first = Hearing.standardError
    #else
        private static let first = Hearing.nobody
    #endif

    private static let listener = Guarded<Listener?>(first == .nobody ? nil : Listener(nil))
    private static let hearing = Atomic<UInt8>(first.rawValue)
    /// Not nil on a thread that is calling the listener.
    private static let isTelling = ThreadValue()

    /// Whether the calling thread is inside the listener, which is not notified of diagnostics that it causes itself.
    static var areToldHere: Bool { isTelling.here != nil }

    /// Whether there is a listener: if not, work that only a diagnostic needs can be skipped.
    package static var areHeard: Bool { hearing.load(ordering: .relaxed) != 0 }

    /// Whether diagnostics go to standard error, for a person to read: only then are doubtful findings reported.
    package static var areOnStandardError: Bool {
        hearing.load(ordering: .relaxed) == Hearing.standardError.rawValue
    }

    /// Sets the listener for diagnostics.
    ///
    /// - Parameter listener: called under no lock, on the thread concerned, or, for an unread failure, on a worker of
    ///   `Scheduler.shared`; nil for no listener. The listener should return quickly. It is not notified of diagnostics that it
    ///   causes itself on its thread, but it is notified of failures of work that it starts elsewhere.
    public static func onReport(_ listener: (@Sendable (Diagnostic) -> Void)?) {
        replace(by: listener.map { Listener($0) })
    }

    /// Writes each diagnostic to standard error, as one line of at most 4,096 bytes; unlike ``onReport(_:)``, also reports
    /// operations that are not finished within 5 s.
    ///
    /// Threads: as ``onReport(_:)``; writing a line blocks while the reader of standard error does not keep up.
    public static func writeToStandardError() { replace(by: Listener(nil)) }

    /// As ``onReport(_:)``, until ``stop(_:)``.
    ///
    /// - Returns: the ID to pass to ``stop(_:)``.
    package static func listen(_ body: @escaping @Sendable (Diagnostic) -> Void) -> RunID {
        let made = Listener(body)
        change { current in
            made.former = current
            current = made
            return nil
        }
        return made.id
    }

    /// Removes a listener. Its predecessor is reinstated, unless a later listener is active.
    package static func stop(_ id: RunID) {
        change { current in
            var (later, one): (Listener?, Listener?) = (nil, current)
            while let next = one, next.id != id { (later, one) = (next, next.former) }
            if let later { later.former = one?.former } else { current = one?.former }
            return one
        }
    }

    private static func replace(by made: Listener?) {
        change { current in
            defer { current = made }
            return current
        }
    }

    /// - Parameter body: returns the listener that it removed, if any.
    private static func change(_ body: (inout Listener?) -> Listener?) {
        let taken = listener.withLock { current in
            defer { hearing.store(Hearing(current).rawValue, ordering: .relaxed) }
            return body(&current)
        }
        withExtendedLifetime(taken) {}  // released under no lock
    }

    /// Call under no lock.
    package static func report(_ diagnostic: Diagnostic) {
        guard !areToldHere, let listener = listener.withLock({ $0 }) else { return }
        isTelling.set(UnsafeRawPointer(bitPattern: 1))
        if let body = listener.body { body(diagnostic) } else { write(diagnostic) }
        isTelling.set(nil)
    }

    private static func write(_ diagnostic: Diagnostic) {
        let lines = diagnostic.description.split(whereSeparator: \.isNewline)
        let text = "CompositeOperations: " + lines.joined(separator: " ")
        // One call, so that lines of several threads do not mix.
        let line = Array(text.utf8.prefix(4_095)) + [UInt8(ascii: "\n")]
        _ = Glibc.write(STDERR_FILENO, line, line.count)
    }
}
