import ArgumentParser
import BenchmarkHarness
import BenchmarkPeers
import BenchmarkReport
import CJemalloc
import Foundation

/// The measuring program behind `swift run benchmarks`.
@main
struct BenchRunner: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "benchmarks",
        abstract: "Measures the scheduler side by side with what one would use instead.",
        subcommands: [Run.self, List.self, Compare.self, Report.self, Slopes.self, Check.self, Child.self],
        defaultSubcommand: Run.self)

    static func main() {
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let error as BenchmarkError {
            writeToStandardError("benchmarks: \(error)\n")
            Foundation.exit(64)
        } catch {
            exit(withError: error)
        }
    }
}

/// The jemalloc that this process runs on: asking it keeps the linker from leaving the library out.
func allocatorVersion() -> String {
    var version: UnsafePointer<CChar>?
    var size = MemoryLayout.size(ofValue: version)
    guard mallctl("version", &version, &size, nil, 0) == 0, let version else { return "unknown" }
    return String(cString: version)
}
