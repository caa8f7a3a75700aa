public import BenchmarkCore

/// A request of the coordinator to a child, in one line of JSON: docs/benchmark-protocol.md. A missing field has its
/// default, and an unknown field is ignored, so that programs of different ages understand each other.
public struct Request: Codable, Sendable {
    /// The version that this program speaks.
    public static let currentProtocol = 1

    /// The version of the protocol.
    public var `protocol` = currentProtocol
    /// Whether the child should list its workloads, and run none.
    public var list = false
    /// The workload's identifier.
    public var workload: String
    /// The size.
    public var n: Int
    /// Whether a child that counts allocations should report how many remain: it runs the workload once before, and
    /// allows time for everything to be freed.
    public var findsLeftovers: Bool

    /// Creates a request.
    public init(workload: String, n: Int, findsLeftovers: Bool = false) {
        self.workload = workload
        self.n = n
        self.findsLeftovers = findsLeftovers
    }

    /// The request to list workloads.
    public static var list: Request {
        var request = Request(workload: "", n: 0)
        request.list = true
        return request
    }

    /// Reads a request.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.protocol = try container.decodeIfPresent(Int.self, forKey: .protocol) ?? 1
        list = try container.decodeIfPresent(Bool.self, forKey: .list) ?? false
        workload = try container.decodeIfPresent(String.self, forKey: .workload) ?? ""
        n = try container.decodeIfPresent(Int.self, forKey: .n) ?? 0
        findsLeftovers = try container.decodeIfPresent(Bool.self, forKey: .findsLeftovers) ?? false
    }
}

/// A child's description of one of its workloads.
public struct ListedWorkload: Codable, Sendable, Hashable {
    /// The figure that samples are compared by; less is better.
    public enum Metric: String, Codable, Sendable {
        /// The time, divided by the operations.
        case time
        /// The 99th percentile of the latencies.
        case latency_p99
    }

    /// The identifier.
    public var workload: String
    /// The sizes to measure it at.
    public var n: [Int]
    /// The figure that samples are compared by.
    public var metric: Metric

    /// Creates a description.
    public init(workload: String, n: [Int], metric: Metric = .time) {
        self.workload = workload
        self.n = n
        self.metric = metric
    }

    /// Reads a description.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        workload = try container.decode(String.self, forKey: .workload)
        n = try container.decode([Int].self, forKey: .n)
        metric = try container.decodeIfPresent(Metric.self, forKey: .metric) ?? .time
    }
}

/// A child's answer, in one line of JSON.
public struct Response: Codable, Sendable {
    /// The sample; nil after an error.
    public var sample: Sample?
    /// The costs of the sample.
    public var costs: Costs?
    /// The allocations of the sample, when they were counted.
    public var allocations: Double?
    /// The bytes allocated, when they were counted.
    public var allocatedBytes: Double?
    /// The bytes allocated and not freed since, when they were counted.
    public var bytesLeft: Double?
    /// The workloads, if they were requested.
    public var workloads: [ListedWorkload]?
    /// The version of the protocol, sent with the workloads.
    public var `protocol`: Int?
    /// The failure, in words.
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

    /// Creates the answer to the request to list workloads.
    public init(workloads: [ListedWorkload]) {
        self.workloads = workloads
        self.protocol = Request.currentProtocol
    }

    /// Creates the answer to a request that failed.
    public init(error: String) { self.error = error }
}
