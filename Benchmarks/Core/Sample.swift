/// A peer's result of one run of a workload: the raw figures, from which every estimate is computed.
public struct Sample: Codable, Sendable {
    /// From the first submission until the last operation has run; the checks come after the clock has stopped.
    public var nanoseconds: UInt64
    /// How many operations ran in that time.
    public var operations: Int
    /// The checksum that the operations computed; a sample counts only if it equals
    /// ``Workload/expectedChecksum``.
    public var checksum: UInt64
    /// One latency per operation, in the order in which they were due; empty if latencies are not measured.
    public var latencies_ns: [UInt64]
    /// Costs other than time, by a name that ends in its unit.
    public var extra: [String: Double]

    /// Creates a sample.
    public init(
        nanoseconds: UInt64, operations: Int, checksum: UInt64, latencies_ns: [UInt64] = [],
        extra: [String: Double] = [:]
    ) {
        self.nanoseconds = nanoseconds
        self.operations = operations
        self.checksum = checksum
        self.latencies_ns = latencies_ns
        self.extra = extra
    }

    /// Reads a sample; a field that a child leaves out has its default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        nanoseconds = try container.decode(UInt64.self, forKey: .nanoseconds)
        operations = try container.decodeIfPresent(Int.self, forKey: .operations) ?? 1
        checksum = try container.decodeIfPresent(UInt64.self, forKey: .checksum) ?? 0
        latencies_ns = try container.decodeIfPresent([UInt64].self, forKey: .latencies_ns) ?? []
        extra = try container.decodeIfPresent([String: Double].self, forKey: .extra) ?? [:]
    }
}
