import ArgumentParser
import BenchmarkHarness
import BenchmarkReport

/// The gates of CI.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a run's counts, slopes and ratios; exit 1 if one fails.")

    @Argument(help: "The JSON of the run.") var file = RunFiles.latest

    @Flag(help: "Only counts and slopes, which hold even while other programs run.")
    var counts = false

    @Flag(help: "Only what the run measured; by default, whatever a gate needs must be there.")
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
