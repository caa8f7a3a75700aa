// InvokerStatistics.swift - an invoker's statistics: counts, and how the last runs ended.

/// The number of runs of an invoker, by how they ended.
public struct InvokerStatistics: Hashable, Sendable {
    /// Accepted, however they ended.
    public internal(set) var accepted = 0
    /// Returned a value.
    public internal(set) var finished = 0
    /// Threw, or exceeded their time limit.
    public internal(set) var failed = 0
    /// Were cancelled.
    public internal(set) var cancelled = 0
    /// Were refused, at once or later.
    public internal(set) var rejected = 0
    /// Were left over when the invoker was deallocated.
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

/// The end of a run, as recorded by an invoker.
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
        /// Left over when the invoker was deallocated.
        case abandoned
    }

    /// The run that ended.
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

/// How the last runs ended, in a ring buffer.
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

    /// Oldest first.
    var all: [CommandEnd] { Array(ends[oldest...] + ends[..<oldest]) }
}
