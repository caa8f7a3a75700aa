/// The part of a run that is measured whole or not at all: one workload, by one set of processes, with one number of
/// threads.
///
/// An interrupted run goes on with the first unit that it lacks.
public struct RunUnit: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The workload's identifier.
    public let workload: String
    /// Which set of processes, from 0.
    public let restart: Int
    /// How many worker threads, in a sweep over them; nil: as many as the run has.
    public let threads: Int?

    /// Creates a unit.
    public init(workload: String, restart: Int, threads: Int? = nil) {
        self.workload = workload
        self.restart = restart
        self.threads = threads
    }

    /// "W5/2"; of a sweep "W5/2@8".
    public var description: String { "\(workload)/\(restart)" + (threads.map { "@\($0)" } ?? "") }
}
