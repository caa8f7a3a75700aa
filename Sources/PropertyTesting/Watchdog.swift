// Watchdog: ends a process that hangs, and reports what hung.
//
// Each watched scope has a dedicated thread, which sleeps at a gate until the scope ends or its time limit
// expires. The scopes form a tree, so the report of a scope can name the scopes active inside it.

import CompositeOperationsBasics
import Glibc

/// Ends the process when something takes too long, and reports it on standard error.
///
/// Most defects of lock-free code show up as a hang, and a time limit that only records an issue leaves the
/// process hanging. The process ends with `_exit`, because code that runs at an ordinary exit may wait for the
/// thing that hangs. Child processes, for instance exit tests, are killed.
///
/// The environment variable `WATCHDOG_SCALE` multiplies every limit: sanitizers and emulators are slow. 0
/// switches the watchdogs off, for a debugger.
public enum Watchdog {
    /// The innermost scope that the current task, or thread, is in.
    @TaskLocal package static var innermost: WatchedScope?

    /// Runs `body`, and ends the process if `body` has not ended within `limit`.
    ///
    /// Scopes may be nested, and may run concurrently on any threads; the first whose limit expires ends the
    /// process. Costs a thread, which has ended when the function returns.
    ///
    /// - Parameters:
    ///   - what: the name of the work, for the report.
    ///   - limit: how long the work may take, before scaling by `WATCHDOG_SCALE`.
    ///   - status: the exit status of the process; 70 is `EX_SOFTWARE` of sysexits.h.
    ///   - state: describes the state of the work. Called on another thread, only when the limit expires. If the
    ///     call hangs too, the process exits without its answer, 10 s later.
    public static func run<Success, Failure>(
        _ what: String, limit: Duration, status: CInt = 70, state: @escaping @Sendable () -> String = { "" },
        _ body: () throws(Failure) -> Success
    ) throws(Failure) -> Success {
        let scope = WatchedScope(what, state: state)
        let guardian = Guardian(of: scope, limit: limit, status: status)
        defer { guardian.dismiss() }
        return try inside(scope, body)
    }

    /// Runs `body`, and ends the process if `body` has not ended within `limit`.
    ///
    /// Like the other `run`, for a body that suspends.
    public static func run<Success, Failure>(
        _ what: String, limit: Duration, status: CInt = 70, state: @escaping @Sendable () -> String = { "" },
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Success
    ) async throws(Failure) -> Success {
        let scope = WatchedScope(what, state: state)
        let guardian = Guardian(of: scope, limit: limit, status: status)
        defer { guardian.dismiss() }
        return try await inside(scope, isolation: isolation, body)
    }

    /// Runs `body` without a separate limit: an enclosing watchdog that fires reports that this was in progress.
    ///
    /// Costs neither a thread nor the description, unless a watchdog fires.
    ///
    /// - Parameter what: describes the work; called on another thread, only when the limit of an enclosing scope
    ///   expires.
    public static func noting<Success, Failure>(
        _ what: @escaping @Sendable () -> String, _ body: () throws(Failure) -> Success
    ) throws(Failure) -> Success {
        try inside(WatchedScope("", state: what), body)
    }

    /// Runs `body` without a separate limit: an enclosing watchdog that fires reports that this was in progress.
    ///
    /// Like the other `noting`, for a body that suspends.
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

/// A scope of work between its beginning and its end, inside another scope unless it is the outermost.
package final class WatchedScope: Sendable {
    /// All active scopes, oldest first. The lock is held for an insertion, a removal or a copy: no user code
    /// runs under it.
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

/// The thread that waits until a scope ends or its limit expires.
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
        // Created in advance: when the limit expires, an allocation may be what hangs.
        let sentence =
            "watchdog: '\(scope.what)' has not ended within \(limit); the process exits with status \(status).\n"
        thread = withoutSignals { [ended] in
            startThread(for: "Watchdog") {
                nameThisThread("watchdog")
                if !ended.wait(timeout: limit) { bark(sentence, about: scope, status: status) }
            }
        }
    }

    /// When the scope ends just as its limit expires, the process still exits.
    func dismiss() {
        ended.open()
        if let thread { pthread_join(thread, nil) }
    }
}

/// Threads inherit the signal mask: a watchdog must not receive a test's signals.
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
        fatalError("WATCHDOG_SCALE must be a non-negative number, and is '\(text)'")
    }
    return scale
}()
