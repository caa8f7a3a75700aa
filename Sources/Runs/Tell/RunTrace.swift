// RunTrace.swift - a run that has a span: its context and its events, for an installed tracer.
//
// While no tracer is installed, `inspection_traces()` is false, and nothing here is called.
//
// Invariants:
//   I1  a span is ended once: by `end`, or, for a run that is dropped, by `deinit`.
//   I2  the tracer is user code, so it is called under no lock. Events, which are added under a tree's lock, are therefore stored
//       here, and reported with the end.
//   I3  a span has at most 128 events, the limit of OpenTelemetry; further events are only counted.

internal import CInspection
internal import CompositeOperationsBasics
internal import Glibc
package import Scheduling

/// Makes spans for runs: the interface to a user's tracer.
package protocol RunTracer: Sendable {
    /// Begins the span of a run. Called where the run begins, so that the current span is the enclosing one.
    func begin(_ kind: RunTrace.Kind, _ name: String, number: UInt64) -> any RunSpan
}

/// The span of a run.
package protocol RunSpan: BoundValue {
    /// Calls `body` with the span as the current one.
    nonisolated(nonsending) func bind<Value>(
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value
    /// Ends the span, when the run has ended.
    func end(_ events: [RunTrace.Event], leftOut: Int, _ end: RunTrace.End, _ error: (any Error)?)
}

/// A run with a span.
package final class RunTrace: Sendable {
    /// The kinds of runs that have spans.
    package enum Kind: String, Sendable { case operation, command, durableRun = "durable run" }

    /// How a run ended, in a word.
    package enum End: String, Sendable {
        case finished, failed, cancelled

        package init(_ bad: Outcome<Never>?) {
            self = bad == nil ? .finished : bad?.isFailed == true ? .failed : .cancelled
        }
    }

    /// The end of a run inside a run that has a span.
    package struct Event: Sendable {
        package let name: String
        package let number: UInt64
        package let attempt: Int
        package let end: End
        /// Nanoseconds since 1970.
        package let time_ns: UInt64

        package init(name: String, number: UInt64, attempt: Int = 1, end: End) {
            (self.name, self.number, self.attempt, self.end) = (name, number, attempt, end)
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            time_ns = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
        }
    }

    private struct State {
        var events: [Event] = []
        var leftOut = 0
        var isOver = false
    }

    /// The innermost run with a span that the caller is part of.
    @TaskLocal package static var current: RunTrace?

    package let kind: Kind
    private let span: any RunSpan
    private let state = Guarded(State())

    private init(_ kind: Kind, _ span: any RunSpan) { (self.kind, self.span) = (kind, span) }

    deinit { end(.cancelled(CancelReason(.abandoned))) }

    // MARK: The tracer

    private struct Installed: Sendable { let tracer: any RunTracer }
    private static let installed = Guarded<Installed?>(nil)

    /// Installs a tracer for runs that begin from now on; nil for none.
    package static func install(_ tracer: (any RunTracer)?) {
        let former = installed.withLock { current in
            defer { current = tracer.map { Installed(tracer: $0) } }
            return current
        }
        inspection_turn_traces(tracer != nil)
        withExtendedLifetime(former) {}  // released under no lock
    }

    /// Begins the trace of a run. Call under no lock.
    ///
    /// - Returns: nil if the tracer has been removed.
    package static func begin(_ kind: Kind, _ name: @autoclosure () -> String, number: UInt64) -> RunTrace? {
        guard let tracer = installed.withLock({ $0?.tracer }) else { return nil }
        return RunTrace(kind, tracer.begin(kind, name(), number: number))
    }

    // MARK: The run

    /// Whether runs of commands called inside this run are recorded as its events.
    package var takesCommands: Bool { kind != .operation && !state.withLock { $0.isOver } }

    /// Adds an event for a run inside this one. May be called under a tree's lock.
    package func add(_ event: Event) {
        state.withLock { state in
            if state.isOver { return }
            if state.events.count < 128 { state.events.append(event) } else { state.leftOut += 1 }  // I3
        }
    }

    /// Calls `body` as part of the run. Call under no lock.
    package func bind(_ body: () -> Void) { Self.$current.withValue(self) { span.bind(body) } }

    /// As the overload for work that does not await.
    package nonisolated(nonsending) func bind<Value>(
        _ body: nonisolated(nonsending) () async throws -> Value
    ) async rethrows -> Value {
        try await Self.$current.withValue(self) { try await span.bind(body) }
    }

    /// Ends the trace of the run. Call under no lock.
    ///
    /// - Parameter bad: nil if the run finished.
    package func end(_ bad: Outcome<Never>?) {
        let ended: State? = state.withLock { state in
            if state.isOver { return nil }  // I1
            defer { state = State(isOver: true) }
            return state
        }
        guard let ended else { return }
        span.end(ended.events, leftOut: ended.leftOut, End(bad), bad?.error ?? bad?.reason)
    }
}
