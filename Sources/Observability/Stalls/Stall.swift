/// A body that has run, or an operation that has waited, for too long.
public struct Stall: Hashable, Sendable, CustomStringConvertible {
    /// The kind of stall.
    public enum Kind: Hashable, Sendable {
        /// A body on a worker, with its stack if that is requested.
        case body(worker: SchedulerState.Worker, stack: ThreadStack?)
        /// A waiting operation: in which queue, and how many operations wait there.
        case wait(queue: String, waiting: Int)
    }

    /// The kind of stall.
    public let kind: Kind
    /// The name of the scheduler.
    public let scheduler: String
    /// How long the stall has lasted, at least.
    public let duration: Duration

    /// A sentence; for a body, with its stack.
    public var description: String {
        switch kind {
        case .body(let worker, let stack):
            "a body on worker \(worker.index) of scheduler '\(scheduler)', thread \(worker.thread), "
                + "\(worker.activity.rawValue) for \(duration.short) at least"
                + (stack.map { ":\n" + $0.indented } ?? "")
        case .wait(let queue, let waiting):
            "an operation in \(queue) of scheduler '\(scheduler)' has waited for a worker for \(duration.short) at "
                + "least; \(waiting) \(waiting == 1 ? "is" : "are") there"
        }
    }
}

extension ThreadStack {
    fileprivate var indented: String {
        description.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n")
    }
}
