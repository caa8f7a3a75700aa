/// The part of a run that is measured whole or not at all: one workload, by one set of processes.
///
/// An interrupted run goes on with the first unit that it lacks.
public struct RunUnit: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The workload's identifier.
    public let workload: String
    /// Which set of processes, from 0.
    public let restart: Int

    /// Creates a unit.
    public init(workload: String, restart: Int) {
        self.workload = workload
        self.restart = restart
    }

    /// "W5/2".
    public var description: String { "\(workload)/\(restart)" }
}
