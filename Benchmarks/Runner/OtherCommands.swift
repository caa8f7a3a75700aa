import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import BenchmarkReport
import Foundation

/// Says what can be measured.
struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show workloads and peers, and what is not applicable.")

    func run() {
        print("Workloads")
        for workload in workloads { print("  \(workload.id)\t\(workload.title): \(workload.sentence)") }
        print("\nPeers")
        for peer in visiblePeers {
            print("  \(peer.name)\t\(peer.version), \(peer.source)")
            for (ids, form) in grouped(peer.form) { print("    \(ids): \(form)") }
            for (ids, reason) in grouped(peer.notApplicable) { print("    n/a \(ids): \(reason)") }
        }
    }

    /// What is said of workloads, and of which, in the order of the first of them.
    private func grouped(_ say: (String) -> String?) -> [(ids: String, sentence: String)] {
        var sentences: [String] = []
        var ids: [String: [String]] = [:]
        for workload in workloads {
            guard let sentence = say(workload.id) else { continue }
            if ids[sentence] == nil { sentences.append(sentence) }
            ids[sentence, default: []].append(workload.id)
        }
        return sentences.map { (ids[$0, default: []].joined(separator: ", "), $0) }
    }
}

/// Compares two runs.
struct Compare: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Show what changed between two runs.")

    @Argument(help: "The JSON of the earlier run.") var before: String
    @Argument(help: "The JSON of the later run.") var after: String

    func run() throws {
        let table = try ChangeTable(
            before: RunDocument(contentsOf: before), after: RunDocument(contentsOf: after))
        print(table.render(), terminator: "")
    }
}

/// Draws the page again.
struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Draw the page of a run again.")

    @Argument(help: "The JSON of the run.") var file: String
    @Option(help: "Where the page goes.") var html = ".benchmarks/report.html"

    func run() throws {
        let document = try RunDocument(contentsOf: file)
        try writeText(Page(document).render(), to: html)
        print(TerminalReport(document).render(), terminator: "")
        print("\nPage: \(html)")
    }
}

/// How time grows with the size.
struct Slopes: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the power of n with which each workload's time grows, and its CPU time.")

    @Argument(help: "The JSON of the run.") var file = ".benchmarks/latest.json"

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

    @Argument(help: "The JSON of the run.") var file = ".benchmarks/latest.json"

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
