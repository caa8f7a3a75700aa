// EndHandlers.swift - handlers of an operation's end, for libraries that take only one.

import PropertyTesting

/// The handlers of an operation's end, for a library that takes only one handler, and only before the
/// operation is started. That one handler notifies these.
///
/// Threads: any thread may call any method. A handler is called by the thread that reports the end, or by the
/// thread that adds the handler after the end.
public final class EndHandlers: Sendable {
    /// A closure that is called with an end.
    public typealias Handler = @Sendable (TestedOperation.End) -> Void

    private let state = Locked((end: TestedOperation.End?.none, handlers: [Handler]()))

    /// Creates a list without handlers.
    public init() {}

    /// Adds a handler to be called at the end; at once, if the end was already reported.
    public func add(_ handler: @escaping Handler) {
        let end = state.withLock { state in
            state.handlers.append(handler)
            return state.end
        }
        if let end { handler(end) }
    }

    /// Calls all handlers, at every call: so a law sees how often an end is reported.
    public func tell(_ end: TestedOperation.End) {
        let handlers = state.withLock { state in
            state.end = end
            return state.handlers
        }
        for handler in handlers { handler(end) }
    }
}
