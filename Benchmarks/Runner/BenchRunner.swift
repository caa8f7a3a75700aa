import ArgumentParser
import BenchmarkHarness
import BenchmarkPeers
import BenchmarkReport
import Foundation

/// The measuring program behind `swift run benchmarks`.
@main
struct BenchRunner: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmarks",
        abstract: "Measures the scheduler side by side with what one would use instead.",
        subcommands: [
            Run.self, List.self, Compare.self, Report.self, Slopes.self, Check.self, Counts.self, Child.self,
        ],
        defaultSubcommand: Run.self)

    static func main() {
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let error as BenchmarkError {
            writeToStandardError("benchmarks: \(error)\n")
            Foundation.exit(error.status)
        } catch {
            exit(withError: error)
        }
    }
}
