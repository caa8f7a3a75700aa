// Diagnostics.swift - what a program should not do, or should look at, is told to whoever listens.

internal import Glibc
internal import Synchronization

/// Something that a program should not do, or should look at; nothing has been done about it.
public struct Diagnostic: Sendable, CustomStringConvertible {
    /// The operation concerned.
    public let operation: RunID?
    /// Its attempt.
    public let attempt: Int
    /// Its state, in a word.
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

/// Where diagnostics go: refused calls and registrations, failures that nobody looks at, loops that do not settle.
///
/// In a debug build each is a line on standard error until the program says otherwise, and so is an operation that nobody finishes
/// for 5 s; in a release build nobody listens. `Diagnostics.onReport(nil)` turns them off, and
/// ``Diagnostics/writeToStandardError()`` on.
public enum Diagnostics {
    /// An object, not a bare closure: each time that one is read through a generic lock, the compiler wraps what is there once more.
    private final class Listener: @unchecked Sendable {
        // Unchecked: `former` is under the lock of `listener`.
        let id = RunID.next()
        /// nil: standard error.
        let body: (@Sendable (Diagnostic) -> Void)?
        /// Hears again when this one has stopped.
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
    /// Not nil on a thread that calls the listener.
    private static let isTelling = ThreadValue()

    /// Whether the calling thread calls the listener, who is not told of what that gives cause to.
    static var areToldHere: Bool { isTelling.here != nil }

    /// Whether somebody listens: what only a diagnostic needs can be left out otherwise.
    package static var areHeard: Bool { hearing.load(ordering: .relaxed) != 0 }

    /// Whether they are lines for a person: doubts are told only there.
    package static var areOnStandardError: Bool {
        hearing.load(ordering: .relaxed) == Hearing.standardError.rawValue
    }

    /// Sets who hears of diagnostics.
    ///
    /// - Parameter listener: called on the thread concerned, of a failure that nobody has looked at on a worker of
    ///   `Scheduler.shared`, and under no lock; nil: nobody. It should be short. Of what it gives cause to itself, on its thread,
    ///   it is not told; of failures of what it begins elsewhere, it is.
    public static func onReport(_ listener: (@Sendable (Diagnostic) -> Void)?) {
        replace(by: listener.map { Listener($0) })
    }

    /// Has each diagnostic written to standard error, as one line of 4,096 bytes at most; also, unlike ``onReport(_:)``, of
    /// operations that nobody finishes for 5 s.
    ///
    /// Threads: as ``onReport(_:)``; a line waits as long as whatever reads standard error lets it.
    public static func writeToStandardError() { replace(by: Listener(nil)) }

    /// As ``onReport(_:)``, until ``stop(_:)``.
    ///
    /// - Returns: for that.
    package static func listen(_ body: @escaping @Sendable (Diagnostic) -> Void) -> RunID {
        let made = Listener(body)
        change { current in
            made.former = current
            current = made
            return nil
        }
        return made.id
    }

    /// That listener hears no more. The one before it does again, unless another one hears now.
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

    /// - Parameter body: gives what it has taken out.
    private static func change(_ body: (inout Listener?) -> Listener?) {
        let taken = listener.withLock { current in
            defer { hearing.store(Hearing(current).rawValue, ordering: .relaxed) }
            return body(&current)
        }
        withExtendedLifetime(taken) {}  // released under no lock
    }

    /// Under no lock.
    package static func report(_ diagnostic: Diagnostic) {
        guard !areToldHere, let listener = listener.withLock({ $0 }) else { return }
        isTelling.set(UnsafeRawPointer(bitPattern: 1))
        if let body = listener.body { body(diagnostic) } else { write(diagnostic) }
        isTelling.set(nil)
    }

    private static func write(_ diagnostic: Diagnostic) {
        let lines = diagnostic.description.split(whereSeparator: \.isNewline)
        let text = "CompositeOperations: " + lines.joined(separator: " ")
        // In one call, so that the lines of several threads do not mix.
        let line = Array(text.utf8.prefix(4_095)) + [UInt8(ascii: "\n")]
        _ = Glibc.write(STDERR_FILENO, line, line.count)
    }
}
