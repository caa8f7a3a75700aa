// COQueues.swift - the default queue, and its scopes.

@_spi(Faces) public import Runs
internal import Scheduling
internal import Synchronization

/// The queue that operations run on when they are not given one.
public enum COQueues {
    // MARK: The default queue

    private static let global = Guarded<(any ExecutionTarget)?>(nil)
    /// While no default queue is set, creating an operation reads this one word only.
    private static let isSet = Atomic(false)

    /// A default queue for a part of the program.
    final class Scope: Sendable {
        let target: any ExecutionTarget

        init(_ target: any ExecutionTarget) {
            self.target = target
            haveBeenUsed.store(true, ordering: .relaxed)
            beginSurroundings()
        }

        /// The surroundings of code that is called here with another default queue.
        static func here(_ target: any ExecutionTarget) -> Surroundings {
            let scope = Scope(target)
            var here = surroundings ?? Surroundings()
            here.scope = scope
            return here
        }
    }

    /// The default queue in force here; nil: the built-in scheduler.
    static var inForce: (any ExecutionTarget)? {
        scoped?.target ?? unscoped
    }

    /// Whether a default queue other than the built-in scheduler is in force here. Under no lock.
    @inline(__always)
    static var oneIsInForce: Bool { areInUse && inForce != nil }

    /// Whether a default queue has ever been set, for the process or for a part of the program. Never reset. Reading
    /// this one word saves a search for a task-local value.
    static var areInUse: Bool { haveBeenUsed.load(ordering: .relaxed) }
    private static let haveBeenUsed = Atomic(false)

    /// Whether a queue, or a default queue for a part of the program, was ever created: if so, blocks may have
    /// surroundings.
    static var haveSurroundings: Bool { hasSurroundings.load(ordering: .relaxed) }
    private static let hasSurroundings = Atomic(false)

    /// From now on blocks may have surroundings.
    static func beginSurroundings() {
        if hasSurroundings.load(ordering: .acquiring) { return }
        BlockCalls.callApart()
        hasSurroundings.store(true, ordering: .releasing)
    }

    static var unscoped: (any ExecutionTarget)? {
        isSet.load(ordering: .acquiring) ? global.withLock { $0 } : nil
    }

    /// The queue that an operation created here runs on when it is not given one: that of the innermost
    /// `withDefaultQueue`, else the one that was set, else the built-in scheduler.
    public static var defaultQueue: any ExecutionTarget { inForce ?? Scheduler.shared }

    /// Sets the default queue of the process. May be called any number of times; existing operations keep theirs.
    ///
    /// - Parameter target: nil: the built-in scheduler.
    /// - Returns: the previous one.
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

    /// Calls `body` with another default queue: for the operations that it creates, and within their blocks.
    public static func withDefaultQueue<R, E: Error>(
        _ target: any ExecutionTarget, _ body: () throws(E) -> R
    ) throws(E) -> R {
        let result: Result<R, E> = $surroundings.withValue(Scope.here(target)) {
            do throws(E) { return .success(try body()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Calls `body` with another default queue: for the operations that it creates, and within their blocks.
    public static func withDefaultQueue<R, E: Error>(
        _ target: any ExecutionTarget, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws(E) -> R
    ) async throws(E) -> R {
        let result = await $surroundings.withValue(
            Scope.here(target),
            operation: { () async -> Result<R, E> in
                do throws(E) { return .success(try await body()) } catch { return .failure(error) }
            }, isolation: isolation)
        return try result.get()
    }
}
