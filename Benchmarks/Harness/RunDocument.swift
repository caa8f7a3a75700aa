import BenchmarkCore
import Foundation

/// The file of one run: what was measured, on which machine, with which raw values. Estimates are computed from
/// it, never stored.
public struct RunDocument: Codable, Sendable {
    /// The version of the format that this program writes and reads.
    public static let currentSchema = 1

    /// The version of the format.
    public var schema: Int = currentSchema
    /// When the run began, ISO 8601.
    public var date: String
    /// The seed of the order of the rounds.
    public var seed: UInt64
    /// Whether the run was stopped early; its contents are valid.
    public var isPartial: Bool
    /// The options of the request; nil: the run predates this field.
    public var options: PlanOptions?
    /// The units that were measured, in this order; nil: the run predates this field.
    public var units: [Measured]?
    /// How the programs were built.
    public var build: [String: String]
    /// The machine on which they ran.
    public var machine: [String: String]
    /// The peers that were measured.
    public var peers: [PeerDescription]
    /// Why peers are missing from this build, a sentence each; nil: the run predates this field.
    public var absent: [String]?
    /// The raw values.
    public var results: [Series]
    /// The raw values of a sweep over numbers of threads, each at the largest size; nil: there was none.
    public var threadSweep: [Series]?
    /// How far the measurement itself can be trusted.
    public var controls: Controls

    /// A unit that was measured completely.
    public struct Measured: Codable, Sendable, Hashable {
        /// The unit.
        public var unit: RunUnit
        /// How long that took, all peers together.
        public var seconds: Double

        package init(unit: RunUnit, seconds: Double) {
            self.unit = unit
            self.seconds = seconds
        }
    }

    /// A peer that was measured.
    public struct PeerDescription: Codable, Sendable, Hashable {
        /// The name, as in the results.
        public var name: String
        /// The version of the library.
        public var version: String
        /// The allocator of the process.
        public var allocator: String
        /// The number of worker threads.
        public var threads: Int
        /// Its file, relative to the root of the repository; nil: the run predates this field.
        public var source: String?
        /// Its form in a workload, by the identifier of the workload, where its name and its file do not reveal it.
        public var forms: [String: String]?
        /// Why it does not take part, by the identifier of the workload; nil: the run predates this field.
        public var notApplicable: [String: String]?

        package init(
            name: String, version: String, allocator: String, threads: Int, source: String? = nil,
            forms: [String: String]? = nil, notApplicable: [String: String]? = nil
        ) {
            self.name = name
            self.version = version
            self.allocator = allocator
            self.threads = threads
            self.source = source
            self.forms = forms
            self.notApplicable = notApplicable
        }
    }

    /// All values of one peer in one workload at one size.
    public struct Series: Codable, Sendable {
        /// The workload's identifier.
        public var workload: String
        /// The parameters: n; in a sweep over threads, also their number.
        public var params: [String: Int]
        /// The peer's name.
        public var peer: String
        /// The unit of the values.
        public var unit: String
        /// The values: by restart of the processes, by round.
        public var restarts: [Restart]
        /// The costs by name, each the mean over all samples.
        public var counts: [String: Double]
        /// The checksum of every sample.
        public var checksum: UInt64
        /// Why there are fewer values than planned; nil: none are missing.
        public var stopped: String?
        /// Whether the size was skipped because it would take too long; nil: the run predates this field.
        public var isLeftOut: Bool?

        package init(
            workload: String, params: [String: Int], peer: String, unit: String, restarts: [Restart],
            counts: [String: Double], checksum: UInt64, stopped: String?
        ) {
            self.workload = workload
            self.params = params
            self.peer = peer
            self.unit = unit
            self.restarts = restarts
            self.counts = counts
            self.checksum = checksum
            self.stopped = stopped
        }

        /// As synthesised, except that `stopped` is written even if it is nil.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(workload, forKey: .workload)
            try container.encode(params, forKey: .params)
            try container.encode(peer, forKey: .peer)
            try container.encode(unit, forKey: .unit)
            try container.encode(restarts, forKey: .restarts)
            try container.encode(counts, forKey: .counts)
            try container.encode(checksum, forKey: .checksum)
            try container.encode(stopped, forKey: .stopped)
            try container.encodeIfPresent(isLeftOut, forKey: .isLeftOut)
        }

        /// The size.
        public var n: Int { params["n"] ?? 0 }
        /// The worker threads, in a sweep over them.
        public var threads: Int? { params["threads"] }
        /// All values.
        public var values: [Double] { restarts.flatMap(\.rounds) }
    }

    /// The values of one set of processes.
    public struct Restart: Codable, Sendable {
        /// One value for each round.
        public var rounds: [Double]

        package init(rounds: [Double]) { self.rounds = rounds }
    }

    /// Figures about the measurement itself.
    public struct Controls: Codable, Sendable {
        /// Voluntary context switches per second of children that are idle between samples, by peer.
        public var idleSwitchesPerSecond: [String: Double]
        /// Sentences about problems with the measurement.
        public var warnings: [String]
    }

    /// A sentence for each size of a workload at which the peer `ours` should have been measured and was not, or
    /// not completely. A size that would take too long may be skipped if another size was measured.
    public var missing: [String] {
        let ours = results.filter { $0.peer == "ours" }
        let measured = Set(ours.lazy.filter { !$0.values.isEmpty }.map(\.workload))
        return ours.filter { series in
            series.isLeftOut == true
                ? !measured.contains(series.workload) : series.stopped != nil || series.values.isEmpty
        }.map { "\($0.workload) with n = \($0.n): \($0.stopped ?? "no value")." }
    }

    /// Reads a file.
    ///
    /// - Throws: ``BenchmarkError`` that names the file, when it cannot be read or has another schema.
    public init(contentsOf path: String) throws {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw BenchmarkError("The file '\(path)' cannot be read.")
        }
        struct Header: Decodable { var schema: Int }
        guard let header = try? JSONDecoder().decode(Header.self, from: data) else {
            throw BenchmarkError("The file '\(path)' is not the JSON of a benchmark run.")
        }
        guard header.schema == Self.currentSchema else {
            throw BenchmarkError(
                "The file '\(path)' has schema \(header.schema); this program reads schema \(Self.currentSchema)."
            )
        }
        do {
            self = try JSONDecoder().decode(Self.self, from: data)
        } catch {
            throw BenchmarkError("The file '\(path)' is not the JSON of a benchmark run: \(error).")
        }
    }

    /// Creates a document without results.
    public init(
        date: String, seed: UInt64, options: PlanOptions? = nil, build: [String: String],
        machine: [String: String], peers: [PeerDescription]
    ) {
        self.date = date
        self.seed = seed
        self.options = options
        self.isPartial = true
        self.build = build
        self.machine = machine
        self.peers = peers
        self.results = []
        self.controls = Controls(idleSwitchesPerSecond: [:], warnings: [])
    }

    /// Writes the file, atomically.
    ///
    /// - Throws: ``BenchmarkError`` that names the file.
    public func write(to path: String) throws {
        try writeWhole(readableJSON(self), to: path)
    }

    /// The series of a peer, if there is one.
    public func series(_ workload: String, n: Int, peer: String) -> Series? {
        results.first { $0.workload == workload && $0.n == n && $0.peer == peer }
    }

    /// The sizes that were measured in a workload, ascending.
    public func sizes(_ workload: String) -> [Int] {
        Set(results.lazy.filter { $0.workload == workload }.map(\.n)).sorted()
    }
}
