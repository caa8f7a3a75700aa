internal import CScheduler

extension Scheduler {
    /// Runs two closures, in parallel when a worker is free, and returns both results.
    ///
    /// ```swift
    /// func sort(_ keys: Keys) {
    ///     guard keys.count > 2_000 else { return keys.sortInPlace() }
    ///     let (low, high) = keys.partition()
    ///     _ = Scheduler.join({ sort(low) }, { sort(high) })
    /// }
    /// ```
    ///
    /// On a worker, `second` is queued on that worker, where other workers may steal it, while the caller runs
    /// `first`. The caller then runs `second` itself, unless it was stolen. If it was stolen, the caller runs
    /// branches that `second` has forked, nested on its stack, and no other operations. When there are none to
    /// run, its thread sleeps and another worker takes its place. On any other thread, both closures run on the
    /// workers of ``shared`` while the caller blocks; if memory is exhausted, they run in the caller.
    ///
    /// `second` is part of the joining operation: neither a suspension nor a shutdown cancels it. Both closures
    /// run to completion even if one throws; the error of `first` takes precedence over that of `second`.
    ///
    /// - Complexity: O(1), lock-free, one small allocation.
    /// - SeeAlso: Frigo, Leiserson, Randall: The Implementation of the Cilk-5 Multithreaded Language (1998).
    @available(*, noasync, message: "Blocks the thread; use a task group.")
    @inlinable
    public static func join<First, Second, Failure: Error>(
        _ first: @Sendable () throws(Failure) -> First, _ second: @Sendable () throws(Failure) -> Second
    ) throws(Failure) -> (First, Second) {
        // Each is written by one branch and read after both.
        nonisolated(unsafe) var firstResult: Result<First, Failure>?
        nonisolated(unsafe) var secondResult: Result<Second, Failure>?
        runBoth(
            { unsafe firstResult = outcome(of: first) },
            { unsafe secondResult = outcome(of: second) })
        guard let firstResult = unsafe firstResult, let secondResult = unsafe secondResult else {
            fatalError("Scheduler.join: a branch has not run")
        }
        return (try firstResult.get(), try secondResult.get())
    }

    @inlinable
    static func outcome<Value, Failure: Error>(of body: () throws(Failure) -> Value) -> Result<Value, Failure>
    {
        do throws(Failure) {
            return .success(try body())
        } catch {
            return .failure(error)
        }
    }

    @usableFromInline
    static func runBoth(_ first: @Sendable () -> Void, _ second: @Sendable () -> Void) {
        withoutActuallyEscaping(second) { second in
            var body = Body(second)
            unsafe withUnsafeMutablePointer(to: &body) { body in
                var fork = unsafe csched_fork()
                guard unsafe csched_fork_begin(&fork, branch(body)) else {
                    return unsafe runBothElsewhere(first, branch(body))
                }
                first()
                if unsafe csched_fork_end(&fork) { second() }
            }
        }
    }

    /// On a thread that is not a worker, both run on the workers of ``shared``. On a worker with little stack
    /// left, they run one after the other.
    private static func runBothElsewhere(_ first: @Sendable () -> Void, _ second: csched_branch) {
        withoutActuallyEscaping(first) { first in
            var body = Body(first)
            unsafe withUnsafeMutablePointer(to: &body) { body in
                let first = unsafe branch(body)
                let scheduler = unsafe csched_scheduler_current() ?? shared.handle
                if unsafe csched_join(scheduler, first, second) != .ok {
                    unsafe first.function(first.context)
                    unsafe second.function(second.context)
                }
            }
        }
    }

    private static func branch(_ body: UnsafeMutablePointer<Body>) -> csched_branch {
        unsafe csched_branch(
            function: { unsafe $0!.assumingMemoryBound(to: Body.self).pointee.run() }, context: body)
    }
}
