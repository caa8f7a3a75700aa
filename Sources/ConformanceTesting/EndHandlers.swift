// EndHandlers.swift - handlers of an operation's end, for libraries that take one alone.

import PropertyTesting

/// The handlers of an operation's end, where a library takes one alone, before the operation is started: that one tells them.
///
/// Threads: any may call anything. A handler is called by the thread that tells the end, or that adds it after that.
public final class EndHandlers: Sendable {
    /// Is called with an end.
    public typealias Handler = @Sendable (TestedOperation.End) -> Void

    private let state = Locked((end: TestedOperation.End?.none, handlers: [Handler]()))

    /// Creates it without handlers.
    public init() {}

    /// Has a handler called at the end; at once, when there is one.
    public func add(_ handler: @escaping Handler) {
        let end = state.withLock { state in
            state.handlers.append(handler)
            return state.end
        }
        if let end { handler(end) }
    }

    /// Calls all handlers; each time that it is called, so that a law sees how often an end is told.
    public func tell(_ end: TestedOperation.End) {
        let handlers = state.withLock { state in
            state.end = end
            return state.handlers
        }
        for handler in handlers { handler(end) }
    }
}
