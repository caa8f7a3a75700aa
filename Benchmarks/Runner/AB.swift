import ArgumentParser
import BenchmarkComparison
import BenchmarkHarness
import BenchmarkReport
import Foundation

/// Compares two commits side by side: the gate for pull requests.
struct AB: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ab",
        abstract: "Build two commits and measure them side by side; exit 3 if HEAD is worse.",
        discussion: """
            Both run in turn, in fresh processes, two of them for BASE. Rows that look changed are measured again, in more \
            processes, and count only if that confirms the change.

            Without options, this package is compared. With --package, --product or --command, it is any other package \
            whose program speaks the protocol of docs/benchmark-protocol.md.

            The status is 0 when nothing is worse, 3 when something is, 1 when a commit does not build or a row has no verdict, \
            2 when a result is wrong, 64 when an argument is wrong.
            """)

    @Argument(help: "The earlier commit: a branch, a tag, a hash.") var base: String
    @Argument(help: "The later commit.") var head = "HEAD"

    @Option(help: "The package's folder, in a git repository; default: this one's Benchmarks.")
    var package: String?
    @Option(help: "The product that serves requests; SwiftPM builds it.") var product: String?
    @Option(help: "Build with this shell command instead, in the package's folder.")
    var buildCommand: String?
    @Option(
        help: """
            Start a child with this command, in the package's folder; $BENCHMARK_PRODUCT is the path of the product. \
            Default: start the product.
            """)
    var command: String?
    @Option(help: "Workloads, separated by commas; NAME=N for another size; default: all.")
    var workloads: String?
    @Option(help: "The tolerated change: 0.02 is 2 %.") var threshold = 0.02
    @Option(help: "The probability of any false alarm.") var alpha = 0.05
    @Option(help: "Worker threads of ours; default: the number of CPUs.") var threads: Int?
    @Option(help: "The time limit of one sample, in seconds.") var limit = 60.0
    @Option(help: "The seed of every order; random by default, and stored in the JSON.") var seed: UInt64?
    @Option(help: "Where builds are kept for reuse.") var cache = ".benchmarks/ab"
    @Option(help: "Where the raw values go, as JSON.") var json: String?
    @Option(help: "Where the table goes, as Markdown.") var markdown: String?

    func run() async throws {
        let rule = try GateRule(threshold: threshold, alpha: alpha)
        guard limit > 0 else { throw BenchmarkError("The limit must be more than 0 seconds, not \(limit).") }
        let recipe = try recipe()
        let (command, seed) = (self, seed ?? .random(in: 1...999_999_999))
        let document = try await cancelledByInterrupt { try await command.measure(rule, recipe, seed: seed) }
        let table = ChangeTable(document)
        print(table.render(), terminator: "")
        if let json { try writeWhole(String(decoding: document.json(), as: UTF8.self) + "\n", to: json) }
        if let markdown { try writeWhole(table.markdown(), to: markdown) }
        if document.outcome != .passed { throw ExitCode(document.outcome.status) }
    }

    private func measure(_ rule: GateRule, _ recipe: Recipe, seed: UInt64) async throws -> GateDocument {
        let progress = Progress()
        defer { progress.end() }
        let builds = try Builds(in: cache)
        let (commits, hasChanges) = try await builds.commits([base, head], of: recipe)
        if hasChanges {
            writeToStandardError(
                "benchmarks: there are uncommitted changes; they are not measured.\n")
        }
        let before = try await builds.build(commits[0], recipe, progress: progress.show)
        let after = try await builds.build(commits[1], recipe, progress: progress.show)
        builds.removeOldest()
        let sideBySide = SideBySide(
            base: before, head: after, limit: .seconds(limit), seed: seed, progress: progress.show)
        let rows = try await sideBySide.rows(workloads.map(namesByComma))
        let trial = try await sideBySide.run(rule, rows.common)
        return GateDocument(trial, of: rows, base: commits[0], head: commits[1], seed: seed)
    }

    private func recipe() throws -> Recipe {
        if package == nil && product == nil && command == nil && buildCommand == nil {
            let threads = threads ?? ProcessInfo.processInfo.activeProcessorCount
            let own = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            return Recipe(
                package: own.path, product: "bench-runner", build: nil,
                command: "\"$BENCHMARK_PRODUCT\" child --peer ours --threads \(threads)")
        }
        guard threads == nil else {
            throw BenchmarkError(
                "'--threads' is for this package; for another one, put its options into '--command'.")
        }
        guard buildCommand == nil || command != nil else {
            throw BenchmarkError("'--build-command' requires '--command', which says what to start.")
        }
        guard product != nil || command != nil else {
            throw BenchmarkError("'--product' or '--command' must say which program serves requests.")
        }
        return Recipe(
            package: package ?? ".", product: product, build: buildCommand,
            command: command ?? "\"$BENCHMARK_PRODUCT\"")
    }
}
