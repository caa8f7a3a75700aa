// COQueues.swift - the default queue, scopes of it, and the sink of diagnostics.

package import Scheduling
internal import Synchronization

/// The queue that operations run on when they are not given one, and what the module has to tell about misuse.
public enum COQueues {
    // MARK: The default queue

    private static let global = Guarded<(any ExecutionTarget)?>(nil)
    /// So that creating an operation reads one word, as long as nobody has set a default queue.
    private static let isSet = Atomic(false)

    /// A default queue for a part of the program.
    final class Scope: Sendable {
        let target: any ExecutionTarget
        init(_ target: any ExecutionTarget) {
            self.target = target
            haveBeenUsed.store(true, ordering: .relaxed)
            hasSurroundings.store(true, ordering: .relaxed)
        }
    }

    /// The one in force here; nil: the built-in scheduler.
    static var inForce: (any ExecutionTarget)? {
        scoped?.target ?? unscoped
    }

    /// Somebody has set a default queue, or has made one for a part of the program. Stays: a word to look at, where a
    /// task-local value would have to be looked for.
    static var areInUse: Bool { haveBeenUsed.load(ordering: .relaxed) }
    private static let haveBeenUsed = Atomic(false)

    /// There has been a queue, or a default queue for a part of the program: blocks may have surroundings.
    static var haveSurroundings: Bool { hasSurroundings.load(ordering: .relaxed) }
    static let hasSurroundings = Atomic(false)

    static var unscoped: (any ExecutionTarget)? {
        isSet.load(ordering: .acquiring) ? global.withLock { $0 } : nil
    }

    /// The queue that an operation made here runs on when it is not given one: that of the innermost
    /// `withDefaultQueue`, else the one that was set, else the built-in scheduler.
    public static var defaultQueue: any ExecutionTarget { inForce ?? Scheduler.shared }

    /// Sets the default queue of the process, as often as you like; operations that exist keep theirs.
    ///
    /// - Parameter target: nil: the built-in scheduler.
    /// - Returns: the one that it replaces.
    @discardableResult
    public static func setDefaultQueue(_ target: (any ExecutionTarget)?) -> any ExecutionTarget {
        let former = global.withLock { global in
            defer {
                global = target
                haveBeenUsed.store(true, ordering: .relaxed)
                isSet.store(target != nil, ordering: .releasing)
            }
            return global
        }
        return former ?? Scheduler.shared
    }

    /// Calls `body` with another default queue: for the operations that it makes, and in their blocks.
    public static func withDefaultQueue<R, E: Error>(
        _ target: any ExecutionTarget, _ body: () throws(E) -> R
    ) throws(E) -> R {
        let result: Result<R, E> = $scoped.withValue(Scope(target)) {
            do throws(E) { return .success(try body()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Calls `body` with another default queue: for the operations that it makes, and in their blocks.
    public static func withDefaultQueue<R, E: Error>(
        _ target: any ExecutionTarget, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws(E) -> R
    ) async throws(E) -> R {
        let result = await $scoped.withValue(
            Scope(target),
            operation: { () async -> Result<R, E> in
                do throws(E) { return .success(try await body()) } catch { return .failure(error) }
            }, isolation: isolation)
        return try result.get()
    }

    // MARK: Work

    /// A piece of work for a target.
    public struct Work: Sendable {
        private let piece: Piece

        init(_ body: @escaping @Sendable () -> Void, abandoned: @escaping @Sendable () -> Void) {
            piece = Piece(body, abandoned)
        }

        /// Does it. A second call does nothing.
        public func run() { piece.run() }
    }

    private final class Piece: Sendable {
        private let isTaken = Atomic(false)
        private let body: @Sendable () -> Void
        private let abandoned: @Sendable () -> Void

        init(_ body: @escaping @Sendable () -> Void, _ abandoned: @escaping @Sendable () -> Void) {
            self.body = body
            self.abandoned = abandoned
        }

        func run() { if !isTaken.exchange(true, ordering: .acquiringAndReleasing) { body() } }

        deinit { if !isTaken.load(ordering: .acquiring) { abandoned() } }
    }

    /// Has `body` run on a target; on the built-in scheduler without one, or when the target gives it up.
    ///
    /// - Parameter priority: on the built-in scheduler; nil: that of the running body.
    package static func run(
        on target: (any ExecutionTarget)?, priority: Scheduler.Priority? = nil,
        _ body: @escaping @Sendable () -> Void
    ) {
        guard let target else { return runOnShared(priority, body) }
        target.submit(Work(body, abandoned: { runOnShared(priority, body) }))
    }

    private static func runOnShared(_ priority: Scheduler.Priority?, _ body: @escaping @Sendable () -> Void) {
        do {
            try Scheduler.shared.submit(priority: priority ?? Scheduler.currentPriority, body)
        } catch {
            fatalError("CompositeOperations: the built-in scheduler did not accept a handler: \(error)")
        }
    }

    // MARK: Diagnostics

    /// Something that a program should not do, or should look at; nothing has been done about it.
    public struct Diagnostic: Sendable, CustomStringConvertible {
        /// The operation concerned.
        public let operation: OperationID?
        /// Its attempt.
        public let attempt: Int
        /// Its state.
        public let state: OperationState?
        /// What it is, as a sentence.
        public let message: String

        /// The operation, its attempt and state, and the message.
        public var description: String {
            let subject = operation.map { "operation \($0)" } ?? "no operation"
            return "\(subject), attempt \(attempt), \(state.map { "\($0)" } ?? "no state"): \(message)"
        }
    }

    private static let sink = Guarded<(@Sendable (Diagnostic) -> Void)?>(nil)
    private static let isListening = Atomic(false)

    static var hasSink: Bool { isListening.load(ordering: .relaxed) }

    /// Sets who hears of refused calls, refused registrations, and failures that nobody looks at.
    ///
    /// - Parameter sink: called on the thread concerned, under no lock; nil: nobody. It should be short.
    public static func onDiagnostic(_ sink: (@Sendable (Diagnostic) -> Void)?) {
        let former = self.sink.withLock { current in
            defer {
                current = sink
                isListening.store(sink != nil, ordering: .relaxed)
            }
            return current
        }
        withExtendedLifetime(former) {}  // released under no lock
    }

    /// Tells of something that concerns no operation.
    package static func tell(_ message: String) {
        tell(Diagnostic(operation: nil, attempt: 0, state: nil, message: message))
    }

    static func tell(_ diagnostic: Diagnostic) { sink.withLock { $0 }?(diagnostic) }
}

/// A value under a ``WordLock``. No code of a user runs under it.
///
/// Inlinable, because other modules look the types up at each call else, which takes longer than the section.
package final class Guarded<Value>: @unchecked Sendable {
    // Unchecked: `value` is used under `lock` alone.
    @usableFromInline let lock = WordLock()
    @usableFromInline var value: Value

    @inlinable package init(_ value: Value) { self.value = value }

    @inlinable package func withLock<Answer>(_ body: (inout Value) throws -> Answer) rethrows -> Answer {
        let key = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        lock.lock(key)
        defer { lock.unlock(key) }
        return try body(&value)
    }

    /// Empties it.
    @inlinable package func take<Wrapped>() -> Wrapped? where Value == Wrapped? {
        withLock { value in
            defer { value = nil }
            return value
        }
    }
}
