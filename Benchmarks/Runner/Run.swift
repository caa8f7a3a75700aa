import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import BenchmarkReport
import Foundation

/// Measures, then prints the table and writes the page.
struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Measure (the default).")

    @OptionGroup var selection: Selection

    @Argument(help: "Units of the run, as 'units' prints them: W5/0; default: all.")
    var units: [String] = []

    @Option(
        help: "The name of the run: its files are .benchmarks/runs/NAME.json and .html; default: its date.")
    var name: String?

    @Flag(help: "Continue an interrupted run: the last one, or that of --name.")
    var resume = false

    @Option(help: "Where the raw values go, instead.")
    var json: String?

    @Option(help: "Where the page goes, instead.")
    var html: String?

    @Flag(help: "Measure even with a debug build; the numbers mean nothing.")
    var allowDebug = false

    func run() async throws {
        if Machine.isDebug && !allowDebug {
            throw BenchmarkError(
                "This is a debug build, whose numbers mean nothing; use 'swift run benchmarks'.")
        }
        let earlier = resume ? try await interrupted() : nil
        let options = try earlier?.options ?? selection.options()
        let plan = try plan(options, only: units)
        let files = RunFiles(
            name: try earlier?.name ?? RunFiles.newName(name, date: .now), json: json, html: html)
        let document = try await cancelledByInterrupt {
            try await Coordinator(
                plan: plan, continuing: earlier?.document, program: "/proc/self/exe", types: peerTypes,
                progress: Progress()
            ).run()
        }
        if !document.isPartial && !document.missing.isEmpty { try refuse(document, files) }
        try write(document, files)
        print(TerminalReport(document).render(), terminator: "")
        print("\nRaw values: \(files.json)\nPage:       \(files.html)")
        if document.isPartial {
            writeToStandardError("benchmarks: interrupted; 'swift run benchmarks run --resume' continues.\n")
            throw ExitCode(128 + SIGINT)
        }
    }

    /// The run to resume: its options are in its file.
    private func interrupted() async throws -> (document: RunDocument, options: PlanOptions, name: String) {
        if selection.isGiven || !units.isEmpty {
            throw BenchmarkError(
                "'--resume' continues with the options of the run, and takes none that say what to measure.")
        }
        let path = json ?? name.map(RunFiles.json(ofRun:)) ?? RunFiles.latest
        var document = try RunDocument(contentsOf: path)
        guard let options = document.options, document.isPartial else {
            throw BenchmarkError("The run in '\(path)' was not interrupted: there is nothing to resume.")
        }
        let (build, machine) = (await Machine.build(), Machine.description())
        for (what, then, now) in [
            ("commit", document.build["commit"], build["commit"]),
            ("compiler", document.build["compiler"], build["compiler"]),
            ("processor", document.machine["processor"], machine["processor"]),
            ("number of CPUs", document.machine["cpus"], machine["cpus"]),
        ] where then != now {
            throw BenchmarkError(
                """
                The run in '\(path)' began with another \(what) ('\(then ?? "unknown")', now '\(now ?? "unknown")'): \
                start a new run.
                """)
        }
        document.isPartial = true
        let file = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        return (document, options, file.deletingPathExtension().lastPathComponent)
    }

    /// Writes the values to a separate file and fails. The links still lead to the last complete run.
    private func refuse(_ document: RunDocument, _ files: RunFiles) throws -> Never {
        try document.write(to: files.failed)
        throw BenchmarkError(
            """
            Ours was not measured in all workloads, so there is no result; the values so far are in \(files.failed).
              \(document.missing.joined(separator: "\n  "))
            """, kind: .notMeasured)
    }

    private func write(_ document: RunDocument, _ files: RunFiles) throws {
        try document.write(to: files.json)
        let page = Page(document)
        try writeWhole(page.render(), to: files.html)
        let folder = URL(fileURLWithPath: html ?? RunFiles.page).deletingLastPathComponent()
        for (name, drawing) in page.pictures() {
            try writeWhole(drawing, to: folder.appendingPathComponent(name).path)
        }
        try files.link()
    }
}

/// Peers that exist to be caught by tests.
let controls: Set = ["wrong", "hang", "stall", "absent"]

/// The peers that users see.
var visiblePeers: [any Peer.Type] { peerTypes.filter { !controls.contains($0.name) } }

/// A plan of the available peers.
///
/// - Parameter units: the only units to measure; all if it is empty.
func plan(_ options: PlanOptions, only units: [String] = []) throws -> Plan {
    try Plan(
        options, known: visiblePeers.map { $0.name },
        hidden: peerTypes.map { $0.name }.filter(controls.contains), only: units)
}
