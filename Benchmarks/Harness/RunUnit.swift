/// The part of a run that is measured completely or not at all: one workload, by one set of processes, with one
/// number of threads.
///
/// An interrupted run is resumed with the first unit that it lacks.
public struct RunUnit: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The workload's identifier.
    public let workload: String
    /// The index of the set of processes, from 0.
    public let restart: Int
    /// The number of worker threads, in a sweep over them; nil: as many as the run has.
    public let threads: Int?

    /// Creates a unit.
    public init(workload: String, restart: Int, threads: Int? = nil) {
        self.workload = workload
        self.restart = restart
        self.threads = threads
    }

    /// "W5/2"; in a sweep "W5/2@8".
    public var description: String { "\(workload)/\(restart)" + (threads.map { "@\($0)" } ?? "") }
}
