// Watchdog: a hang ends the process, and says what hung.
//
// A scope that is watched has a thread of its own, which sleeps at a gate until the scope ends or its time is
// over. The scopes form a tree, so that the report of one can name what was going on inside it.

import CompositeOperationsBasics
import Glibc

/// Ends the process when something takes too long, and says on standard error what it was.
///
/// A hang is how most defects of lock-free code show, and a time limit that only records an issue leaves the
/// process hanging. The process is left with `_exit`, because whatever runs at an ordinary exit may wait for the
/// very thing that hangs; children of the process, exit tests for instance, are killed.
///
/// `WATCHDOG_SCALE` of the environment multiplies every limit: sanitizers and emulators are slow. 0 switches
/// the watchdogs off, for a debugger.
public enum Watchdog {
    /// The innermost scope that the current task, or thread, is in.
    @TaskLocal package static var innermost: WatchedScope?

    /// Runs `body`, and ends the process when it has not ended after `limit`.
    ///
    /// Scopes may be nested, and run at the same time on any threads; the first whose time is over ends the
    /// process. Costs a thread, which has ended when the function returns.
    ///
    /// - Parameters:
    ///   - what: what runs, for the report.
    ///   - limit: how long it may take, before `WATCHDOG_SCALE`.
    ///   - status: what the process exits with; 70 is `EX_SOFTWARE` of sysexits.h.
    ///   - state: says more about the state of what runs. It is called on another thread, only when the time
    ///     is over. If it hangs too, the process exits without its answer, 10 s later.
    public static func run<Success, Failure>(
        _ what: String, limit: Duration, status: CInt = 70, state: @escaping @Sendable () -> String = { "" },
        _ body: () throws(Failure) -> Success
    ) throws(Failure) -> Success {
        let scope = WatchedScope(what, state: state)
        let guardian = Guardian(of: scope, limit: limit, status: status)
        defer { guardian.dismiss() }
        return try inside(scope, body)
    }

    /// Runs `body`, and ends the process when it has not ended after `limit`.
    ///
    /// As the other `run`, for a body that suspends.
    public static func run<Success, Failure>(
        _ what: String, limit: Duration, status: CInt = 70, state: @escaping @Sendable () -> String = { "" },
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Success
    ) async throws(Failure) -> Success {
        let scope = WatchedScope(what, state: state)
        let guardian = Guardian(of: scope, limit: limit, status: status)
        defer { guardian.dismiss() }
        return try await inside(scope, isolation: isolation, body)
    }

    /// Runs `body`, which has no limit of its own: a watchdog around it that fires says that this was going on.
    ///
    /// Costs neither a thread nor the description, unless a watchdog fires.
    ///
    /// - Parameter what: what goes on; called on another thread, only when the time of a scope around is over.
    public static func noting<Success, Failure>(
        _ what: @escaping @Sendable () -> String, _ body: () throws(Failure) -> Success
    ) throws(Failure) -> Success {
        try inside(WatchedScope("", state: what), body)
    }

    /// Runs `body`, which has no limit of its own: a watchdog around it that fires says that this was going on.
    ///
    /// As the other `noting`, for a body that suspends.
    public static func noting<Success, Failure>(
        _ what: @escaping @Sendable () -> String, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws(Failure) -> Success
    ) async throws(Failure) -> Success {
        try await inside(WatchedScope("", state: what), isolation: isolation, body)
    }

    private static func inside<Success, Failure>(
        _ scope: WatchedScope, _ body: () throws(Failure) -> Success
    ) throws(Failure) -> Success {
        scope.begin()
        defer { scope.end() }
        return try $innermost.withValue(scope) { Result(catching: body) }.get()
    }

    private static func inside<Success, Failure>(
        _ scope: WatchedScope, isolation: isolated (any Actor)?, _ body: () async throws(Failure) -> Success
    ) async throws(Failure) -> Success {
        scope.begin()
        defer { scope.end() }
        let result = await $innermost.withValue(
            scope,
            operation: { () async -> Result<Success, Failure> in
                do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
            }, isolation: isolation)
        return try result.get()
    }
}

/// Something that goes on, between its beginning and its end; inside of another, unless it is the outermost.
package final class WatchedScope: Sendable {
    /// All that go on now, the oldest first. Held for an insertion, a removal or a copy: no code of a user runs
    /// under it.
    private static let all = Locked<[WatchedScope]>([])

    package static var current: [WatchedScope] { all.withLock { $0 } }

    /// Its name; empty when `state` says everything.
    package let what: String
    let state: @Sendable () -> String
    package let outer: WatchedScope?
    let began = ContinuousClock.now

    init(_ what: String, state: @escaping @Sendable () -> String) {
        self.what = what
        self.state = state
        outer = Watchdog.innermost
    }

    func begin() { Self.all.withLock { $0.append(self) } }

    func end() { Self.all.withLock { all in all.removeAll { $0 === self } } }

    func isInside(_ other: WatchedScope) -> Bool {
        var scope = outer
        while let candidate = scope {
            if candidate === other { return true }
            scope = candidate.outer
        }
        return false
    }
}

/// The thread that waits for a scope's end, or for the end of its time.
private struct Guardian {
    private let ended = Gate()
    private let thread: pthread_t?

    init(of scope: WatchedScope, limit: Duration, status: CInt) {
        demand(limit > .zero, "Watchdog: the limit must be greater than zero")
        guard timeScale > 0 else {
            thread = nil
            return
        }
        let limit = limit * timeScale
        // Made now: when the time is over, an allocation may be what hangs.
        let sentence =
            "watchdog: '\(scope.what)' has not ended within \(limit); the process exits with status \(status).\n"
        thread = withoutSignals { [ended] in
            startThread(for: "Watchdog") {
                nameThisThread("watchdog")
                if !ended.wait(timeout: limit) { bark(sentence, about: scope, status: status) }
            }
        }
    }

    /// When the scope ends in the moment in which its time does, the process exits all the same.
    func dismiss() {
        ended.open()
        if let thread { pthread_join(thread, nil) }
    }
}

/// Threads inherit the mask: a test's signals are not for a watchdog.
private func withoutSignals<Result>(_ body: () -> Result) -> Result {
    var (all, before) = (sigset_t(), sigset_t())
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    return body()
}

private let timeScale: Double = {
    guard let text = getenv("WATCHDOG_SCALE").map({ String(cString: $0) }) else { return 1 }
    guard let scale = Double(text), scale >= 0, scale.isFinite else {
        fatalError("WATCHDOG_SCALE must be a number that is not negative, and it is '\(text)'")
    }
    return scale
}()
