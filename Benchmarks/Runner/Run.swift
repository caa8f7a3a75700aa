import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import BenchmarkReport
import Foundation

/// Measures, then prints the table and writes the page.
struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Measure (the default).")

    @Option(help: "Workloads by identifier, separated by commas, W14 for all W14-...; all without it.")
    var filter: String?

    @Option(help: "Peers by name, separated by commas; all without it. Ours always takes part.")
    var peers: String?

    @Option(help: "Worker threads of every peer; the number of CPUs without it.")
    var threads: Int?

    @Option(help: "The seed of the order of the rounds; random without it, and printed.")
    var seed: UInt64?

    @Flag(help: "More sizes, restarts and rounds: about an hour.")
    var thorough = false

    @Flag(help: "Every workload once, small: seconds.")
    var smoke = false

    @Option(help: "The longest that one sample may take, in seconds; by the depth of the run without it.")
    var limit: Double?

    @Option(
        help: """
            The sizes of every workload, separated by commas; by the depth of the run without it. Not every workload takes \
            every size: choose some by a filter.
            """)
    var sizes: String?

    @Option(
        help: "The name of the run: its files are .benchmarks/runs/NAME.json and .html; its date without it.")
    var name: String?

    @Flag(help: "Go on with a run that was interrupted: the last one, or that of --name.")
    var resume = false

    @Option(help: "Where the raw values go, instead.")
    var json: String?

    @Option(help: "Where the page goes, instead.")
    var html: String?

    @Flag(help: "Measure although this is a debug build; the numbers mean nothing.")
    var allowDebug = false

    func run() async throws {
        if Machine.isDebug && !allowDebug {
            throw BenchmarkError(
                "This is a debug build, whose numbers mean nothing; use 'swift run benchmarks'.")
        }
        let earlier = resume ? try await interrupted() : nil
        let options = try earlier?.options ?? options()
        let plan = try Plan(
            options, known: visiblePeers.map { $0.name },
            hidden: peerTypes.map { $0.name }.filter(controls.contains))
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
            writeToStandardError("benchmarks: interrupted; 'swift run benchmarks run --resume' goes on.\n")
            throw ExitCode(128 + SIGINT)
        }
    }

    /// What the arguments ask for.
    private func options() throws -> PlanOptions {
        if thorough && smoke { throw BenchmarkError("'--thorough' and '--smoke' exclude each other.") }
        return try PlanOptions(
            filter: filter.map(Self.list), peers: peers.map(Self.list),
            threads: threads ?? ProcessInfo.processInfo.activeProcessorCount,
            seed: seed ?? .random(in: 1...999_999_999),
            depth: smoke ? .smoke : thorough ? .thorough : .quick, limit_s: limit,
            sizes: sizes.map(Self.numbers))
    }

    /// The run to go on with: what it asks for is in its file.
    private func interrupted() async throws -> (document: RunDocument, options: PlanOptions, name: String) {
        let isAsked =
            filter != nil || peers != nil || threads != nil || seed != nil || limit != nil || sizes != nil
            || thorough || smoke
        if isAsked {
            throw BenchmarkError(
                "'--resume' goes on as the run began: no option that says what to measure goes with it.")
        }
        let path = json ?? name.map(RunFiles.json(ofRun:)) ?? RunFiles.latest
        var document = try RunDocument(contentsOf: path)
        guard let options = document.options, document.isPartial else {
            throw BenchmarkError("The run in '\(path)' was not interrupted: there is nothing to go on with.")
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
                measure anew.
                """)
        }
        document.isPartial = true
        let file = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        return (document, options, file.deletingPathExtension().lastPathComponent)
    }

    /// What was measured is kept, and the last run that was whole stays the latest.
    private func refuse(_ document: RunDocument, _ files: RunFiles) throws -> Never {
        try document.write(to: files.failed)
        throw BenchmarkError(
            """
            Ours was not measured in all workloads, so there is no result; what there is is in \(files.failed).
              \(document.missing.joined(separator: "\n  "))
            """, kind: .notMeasured)
    }

    private func write(_ document: RunDocument, _ files: RunFiles) throws {
        try document.write(to: files.json)
        let page = Page(document)
        try writeText(page.render(), to: files.html)
        let folder = URL(fileURLWithPath: html ?? RunFiles.page).deletingLastPathComponent()
        for (subject, drawing) in page.forests() {
            let name = subject == .operations ? "forest.svg" : "forest-libraries.svg"
            try writeText(drawing, to: folder.appendingPathComponent(name).path)
        }
        try files.link()
    }

    private static func numbers(_ text: String) throws -> [Int] {
        try list(text).map { part in
            guard let number = Int(part) else { throw BenchmarkError("'\(part)' is no size.") }
            return number
        }
    }

    private static func list(_ text: String) -> [String] {
        text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    }
}

/// Peers that are there to be caught by tests.
let controls: Set = ["wrong", "hang"]

/// The peers that users see.
var visiblePeers: [any Peer.Type] { peerTypes.filter { !controls.contains($0.name) } }

/// Writes a file whole or not at all.
func writeText(_ text: String, to path: String) throws {
    let url = URL(fileURLWithPath: path)
    do {
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url, options: .atomic)
    } catch {
        throw BenchmarkError("The file '\(path)' cannot be written: \(error.localizedDescription)")
    }
}
