/// The user's request for a run, kept in the run's file, so that an interrupted run is resumed with the
/// same options.
public struct PlanOptions: Codable, Sendable, Hashable {
    /// Identifiers of workloads, or prefixes of them up to a hyphen; nil: all.
    public var filter: [String]?
    /// Names of peers; nil: all known peers.
    public var peers: [String]?
    /// The worker threads of every peer.
    public var threads: Int
    /// The seed of the order of the rounds.
    public var seed: UInt64
    /// How much time the run takes.
    public var depth: Plan.Depth
    /// The longest that one sample may take, in seconds; nil: determined by the depth.
    public var limit_s: Double?
    /// The sizes of every workload; nil: determined by the depth.
    public var sizes: [Int]?
    /// Other numbers of worker threads at which the workloads that scale are also measured.
    public var threadSweep: [Int]?

    /// Creates a request; by default it covers all workloads and peers.
    public init(
        filter: [String]? = nil, peers: [String]? = nil, threads: Int, seed: UInt64, depth: Plan.Depth,
        limit_s: Double? = nil, sizes: [Int]? = nil, threadSweep: [Int]? = nil
    ) {
        self.filter = filter
        self.peers = peers
        self.threads = threads
        self.seed = seed
        self.depth = depth
        self.limit_s = limit_s
        self.sizes = sizes
        self.threadSweep = threadSweep
    }
}
