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
        abstract: "Measures the scheduler side by side with its alternatives.",
        subcommands: [
            Run.self, List.self, Units.self, MergeParts.self, AB.self, Compare.self, Counts.self,
            Trace.self, Report.self, Export.self, Slopes.self, Check.self, Child.self,
        ],
        defaultSubcommand: Run.self)

    /// Not asynchronous: the process that serves a peer measures tasks on the main actor, and runs that actor's jobs
    /// itself, on the main thread.
    static func main() {
        ending {
            var command = try parseAsRoot()
            guard let asynchronous = command as? any AsyncParsableCommand else { return try command.run() }
            // Used only by the task: this thread does not touch it again.
            nonisolated(unsafe) var running = asynchronous
            Task {
                do {
                    try await running.run()
                    Foundation.exit(0)
                } catch {
                    ending { throw error }
                }
            }
            dispatchMain()
        }
    }

    /// Runs `body`. An error is printed, and determines the exit status of the process.
    private static func ending(_ body: () throws -> Void) {
        do {
            try body()
        } catch let error as BenchmarkError {
            writeToStandardError("benchmarks: \(error)\n")
            Foundation.exit(error.status)
        } catch {
            exit(withError: error)
        }
    }
}
