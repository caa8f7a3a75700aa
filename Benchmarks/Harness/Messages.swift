public import BenchmarkCore

/// What the coordinator asks of a child, one line of JSON each.
public struct Request: Codable, Sendable {
    /// The workload's identifier.
    public var workload: String
    /// The size.
    public var n: Int
    /// Whether a child that counts allocations is to tell what is left of them: it runs the workload once before, and
    /// gives everything time to be freed.
    public var findsLeftovers: Bool

    /// Creates a request.
    public init(workload: String, n: Int, findsLeftovers: Bool = false) {
        self.workload = workload
        self.n = n
        self.findsLeftovers = findsLeftovers
    }
}

/// What a child answers, one line of JSON each.
public struct Response: Codable, Sendable {
    /// The sample; nil after an error.
    public var sample: Sample?
    /// What the sample cost.
    public var costs: Costs?
    /// The allocations of the sample, when they were counted.
    public var allocations: Double?
    /// The bytes allocated, when they were counted.
    public var allocatedBytes: Double?
    /// The bytes allocated and not freed since, when they were counted.
    public var bytesLeft: Double?
    /// What went wrong.
    public var error: String?

    /// Creates the answer to a request that was carried out.
    public init(
        sample: Sample, costs: Costs, allocations: Double?, allocatedBytes: Double?, bytesLeft: Double? = nil
    ) {
        self.sample = sample
        self.costs = costs
        self.allocations = allocations
        self.allocatedBytes = allocatedBytes
        self.bytesLeft = bytesLeft
    }

    /// Creates the answer to a request that failed.
    public init(error: String) { self.error = error }
}
