import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import CScheduler.Internals

/// Serves one peer to a coordinator.
struct Child: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve one peer (used by 'run').", shouldDisplay: false)

    @Option var peer: String
    @Option var threads: Int
    @Flag var countAllocations = false
    /// Whether fair turns depend on counts of operations rather than on time: for a child that runs in a simulator.
    @Flag var fairByCount = false

    func run() throws {
        if fairByCount { csched_fair_by_count() }
        guard let type = peerTypes.first(where: { $0.name == peer }) else {
            throw BenchmarkError("There is no peer '\(peer)'.")
        }
        try ChildServer(type, threads: threads, countsAllocations: countAllocations).run()
    }
}
