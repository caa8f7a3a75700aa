import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import BenchmarkReport
import Foundation
import Synchronization

/// Measures, then prints the table and writes the page.
struct Run: ParsableCommand {
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

    @Option(help: "Where the raw values go.")
    var json = ".benchmarks/latest.json"

    @Option(help: "Where the page goes.")
    var html = ".benchmarks/report.html"

    @Flag(help: "Measure although this is a debug build; the numbers mean nothing.")
    var allowDebug = false

    func run() throws {
        if Machine.isDebug && !allowDebug {
            throw BenchmarkError(
                "This is a debug build, whose numbers mean nothing; use 'swift run benchmarks'.")
        }
        if thorough && smoke { throw BenchmarkError("'--thorough' and '--smoke' exclude each other.") }
        let plan = try Plan(
            filter: filter.map(Self.list), peers: peers.map(Self.list), known: visiblePeers.map { $0.name },
            hidden: peerTypes.map { $0.name }.filter(controls.contains),
            threads: threads ?? ProcessInfo.processInfo.activeProcessorCount,
            seed: seed ?? .random(in: 1...999_999_999),
            depth: smoke ? .smoke : thorough ? .thorough : .quick, limit: limit.map { .seconds($0) },
            sizes: sizes.map(Self.numbers))
        Interruption.install()
        let coordinator = Coordinator(
            plan: plan, program: "/proc/self/exe", types: peerTypes, progress: Progress(),
            isInterrupted: { Interruption.happened })
        let document = try coordinator.run()
        if !document.isPartial && !document.missing.isEmpty { try refuse(document) }
        try write(document)
        print(TerminalReport(document).render(), terminator: "")
        print("\nRaw values: \(json)\nPage:       \(html)")
    }

    /// What was measured is kept, beside the file of the last run that was whole.
    private func refuse(_ document: RunDocument) throws -> Never {
        let folder = URL(fileURLWithPath: json).deletingLastPathComponent()
        let file = folder.appendingPathComponent("failed.json").relativePath
        try document.write(to: file)
        throw BenchmarkError(
            """
            Ours was not measured in all workloads, so there is no result; what there is is in \(file).
              \(document.missing.joined(separator: "\n  "))
            """, kind: .notMeasured)
    }

    private func write(_ document: RunDocument) throws {
        try document.write(to: json)
        let page = Page(document)
        try writeText(page.render(), to: html)
        let folder = URL(fileURLWithPath: html).deletingLastPathComponent()
        for (name, drawing) in page.pictures() {
            try writeText(drawing, to: folder.appendingPathComponent(name).path)
        }
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

/// Ctrl-C: the run ends after the sample that is being measured, and what there is stands.
enum Interruption {
    private static let flag = Atomic(false)

    static var happened: Bool { flag.load(ordering: .relaxed) }

    static func install() {
        var interrupt = sigset_t()
        sigemptyset(&interrupt)
        sigaddset(&interrupt, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &interrupt, nil)  // whoever started this may have blocked it
        signal(SIGINT) { _ in Interruption.flag.store(true, ordering: .relaxed) }
        signal(SIGPIPE, SIG_IGN)  // a child that was killed must not take the coordinator along
    }
}
