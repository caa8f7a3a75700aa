import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import BenchmarkReport
import Foundation

/// Draws the page again.
struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Draw the page of a run again.")

    @Argument(help: "The JSON of the run.") var file: String
    @Option(help: "Where the page goes.") var html = RunFiles.page
    @Flag(help: "Print all rows, verdicts and costs.") var all = false

    func run() throws {
        let document = try RunDocument(contentsOf: file)
        try writeText(Page(document).render(), to: html)
        print(all ? FullReport(document).render() : TerminalReport(document).render(), terminator: "")
        print("\nPage: \(html)")
    }
}

/// How time grows with the size.
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

/// The gates of CI.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a run's counts, slopes and ratios; exit 1 if one fails.")

    @Argument(help: "The JSON of the run.") var file = RunFiles.latest

    @Flag(help: "Only counts and slopes, which hold also where other programs run.")
    var counts = false

    @Flag(help: "Only what the run measured: without it what a gate needs must be there.")
    var present = false

    func run() throws {
        let gates = try Gates(
            RunDocument(contentsOf: file), recorded: RecordedCounts(contentsOf: RecordedCounts.path))
        let missing = present ? [] : gates.missing(onlyCounts: counts)
        let failures = counts ? gates.countFailures() : gates.failures()
        for sentence in missing { print("MISSING \(sentence)") }
        for failure in failures { print("FAILED \(failure)") }
        if !failures.isEmpty || !missing.isEmpty { throw ExitCode(1) }
        print("All gates hold.")
    }
}

/// Serves one peer to a coordinator.
struct Child: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve one peer (used by 'run').", shouldDisplay: false)

    @Option var peer: String
    @Option var threads: Int
    @Flag var countAllocations = false

    func run() throws {
        guard let type = peerTypes.first(where: { $0.name == peer }) else {
            throw BenchmarkError("There is no peer '\(peer)'.")
        }
        try ChildServer(type, threads: threads, countsAllocations: countAllocations).run()
    }
}
