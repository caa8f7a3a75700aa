// InvokerStatistics.swift - what an invoker remembers: counts, and the last ends.

/// How many runs an invoker has had, by their ends.
public struct InvokerStatistics: Hashable, Sendable {
    /// Accepted, whatever became of them.
    public internal(set) var accepted = 0
    /// Returned a value.
    public internal(set) var finished = 0
    /// Threw, or took too long.
    public internal(set) var failed = 0
    /// Were cancelled.
    public internal(set) var cancelled = 0
    /// Were refused, at once or later.
    public internal(set) var rejected = 0
    /// Were left over when the invoker went.
    public internal(set) var abandoned = 0

    mutating func add(_ kind: CommandEnd.Kind) {
        switch kind {
        case .finished: finished += 1
        case .failed: failed += 1
        case .cancelled: cancelled += 1
        case .rejected: rejected += 1
        case .abandoned: abandoned += 1
        }
    }
}

/// The end of a run, as an invoker remembers it.
public struct CommandEnd: Hashable, Sendable {
    /// How it ended.
    public enum Kind: Hashable, Sendable {
        /// Returned a value.
        case finished
        /// Threw, or exceeded its time limit.
        case failed
        /// Cancelled.
        case cancelled
        /// Refused.
        case rejected
        /// Left over when the invoker went.
        case abandoned
    }

    /// Which run.
    public let transaction: CommandTransaction
    /// How it ended.
    public let kind: Kind

    init(transaction: CommandTransaction, _ badEnd: Outcome<Never>?) {
        self.transaction = transaction
        kind =
            switch badEnd {
            case nil: .finished
            case .failed(let error)?: isCancellation(error) ? .cancelled : .failed
            case .cancelled(let reason)?:
                switch reason.kind {
                case .queueFull, .shutDown, .batchStopped: .rejected
                case .abandoned: .abandoned
                case .timedOut: .failed
                default: .cancelled
                }
            }
    }
}

/// The last ends, in a ring.
struct History {
    static let limit = 64
    private var ends: [CommandEnd] = []
    private var oldest = 0

    mutating func add(_ end: CommandEnd) {
        if ends.count < Self.limit {
            ends.append(end)
        } else {
            ends[oldest] = end
            oldest = (oldest + 1) % Self.limit
        }
    }

    /// The oldest first.
    var all: [CommandEnd] { Array(ends[oldest...] + ends[..<oldest]) }
}
