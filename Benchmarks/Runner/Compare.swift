import ArgumentParser
import BenchmarkComparison
import BenchmarkHarness
import BenchmarkReport
import Foundation

/// Compares two runs.
struct Compare: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what changed between two runs; exit 3 if something is worse.",
        discussion: """
            Runs are not side by side, so ours is compared relative to the peers of each run. 'benchmarks ab' compares two \
            commits side by side, and detects smaller changes. The status is 0 when nothing is worse, 3 when something is, \
            1 when the runs are inconclusive, 64 when they cannot be compared.
            """)

    @Argument(help: "The JSON of the earlier run.") var before: String
    @Argument(help: "The JSON of the later run.") var after: String

    @Option(help: "Workloads, separated by commas; default: all. Fewer need fewer restarts.")
    var workloads: String?
    @Option(help: "The tolerated change: 0.02 is 2 %.") var threshold = 0.02
    @Flag(help: "Also compare runs of different machines, thread counts or configurations.")
    var anyMachine = false
    @Option(help: "Where the figures go, as JSON.") var json: String?
    @Option(help: "Where the table goes, as Markdown.") var markdown: String?

    func run() throws {
        let comparison = try RunComparison(
            before: RunDocument(contentsOf: before), after: RunDocument(contentsOf: after),
            workloads: workloads.map(namesByComma), threshold: threshold, anyMachine: anyMachine,
            isWithinBand: Summary.isWithinBand)
        let table = ChangeTable(comparison)
        print(table.render(), terminator: "")
        if let json { try writeWhole(String(decoding: comparison.json(), as: UTF8.self) + "\n", to: json) }
        if let markdown { try writeWhole(table.markdown(), to: markdown) }
        if comparison.outcome != .passed { throw ExitCode(comparison.outcome.status) }
    }
}
