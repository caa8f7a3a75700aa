/// Something of a scheduler that has gone on for too long.
public struct Stall: Hashable, Sendable, CustomStringConvertible {
    /// The kind of stall.
    public enum Kind: Hashable, Sendable {
        /// A body on a worker; its stack, when that is asked for.
        case body(worker: SchedulerState.Worker, stack: ThreadStack?)
        /// The wait of an operation: in which queue, and how many are there.
        case wait(queue: String, waiting: Int)
    }

    /// The kind of stall.
    public let kind: Kind
    /// The name of the scheduler.
    public let scheduler: String
    /// For how long at least.
    public let duration: Duration

    /// As a sentence; of a body with its stack.
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
