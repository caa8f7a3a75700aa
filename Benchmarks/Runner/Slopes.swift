import ArgumentParser
import BenchmarkCore
import BenchmarkHarness

/// Prints how time grows with the size.
struct Slopes: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the power of n with which each workload's time grows, and its CPU time.")

    @Argument(help: "The JSON of the run.") var file = RunFiles.latest

    func run() throws {
        let document = try RunDocument(contentsOf: file)
        func rounded(_ slope: Double?) -> String { slope.map { "\(($0 * 100).rounded() / 100)" } ?? "-" }
        for workload in workloads where workload.metric == .throughput {
            for peer in document.peers {
                guard let slope = document.slope(workload.id, peer: peer.name) else { continue }
                let cpu = document.slopeOfCPUTime(workload.id, peer: peer.name)
                print("\(workload.id)\t\(peer.name)\t\(rounded(slope))\tCPU \(rounded(cpu))")
            }
        }
    }
}
