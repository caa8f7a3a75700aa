import ArgumentParser
import BenchmarkHarness
import BenchmarkReport
import Foundation

/// Writes a run in the format of another program.
struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Convert a run for another program.")

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case csv
        case jmh
        case githubActionBenchmark = "github-action-benchmark"
    }

    @Argument(help: "The JSON of the run.") var file = ".benchmarks/latest.json"

    @Option(
        help:
            "csv: a line for each value. jmh: JMH's JSON. github-action-benchmark: its customSmallerIsBetter."
    )
    var format: Format

    @Option(help: "Where it goes; default: standard output.") var output: String?

    func run() throws {
        let run = try RunDocument(contentsOf: file)
        let text =
            switch format {
            case .csv: Exports.csv(run)
            case .jmh: String(decoding: try Exports.jmh(run), as: UTF8.self)
            case .githubActionBenchmark:
                String(decoding: try Exports.githubActionBenchmark(run), as: UTF8.self)
            }
        if let output { try writeWhole(text, to: output) } else { print(text, terminator: "") }
    }
}
