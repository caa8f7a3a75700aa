import ArgumentParser
import BenchmarkHarness
import Foundation

/// The requested measurements, as arguments.
struct Selection: ParsableArguments {
    @Option(help: "Workload identifiers, separated by commas, W14 for all W14-...; default: all.")
    var filter: String?

    @Option(help: "Peer names, separated by commas; default: all. Ours always takes part.")
    var peers: String?

    @Option(help: "Worker threads of every peer; default: the number of CPUs.")
    var threads: Int?

    @Option(help: "The seed of the order of the rounds; random by default, and printed.")
    var seed: UInt64?

    @Flag(help: "More sizes, restarts, rounds and thread counts: 45 minutes on 2 CPUs.")
    var thorough = false

    @Flag(help: "Every workload once, small; takes seconds.")
    var smoke = false

    @Option(help: "The time limit of one sample, in seconds; default: by the depth of the run.")
    var limit: Double?

    @Option(
        help: """
            The sizes of every workload, separated by commas; default: by the depth of the run. Not every workload takes \
            every size: use a filter.
            """)
    var sizes: String?

    @Option(
        help: """
            Worker thread counts, separated by commas, at which the workloads that scale are also measured; default: 1,2,4,8 \
            with --thorough, else none.
            """)
    var sweepThreads: String?

    /// Whether any argument was given.
    var isGiven: Bool {
        filter != nil || peers != nil || threads != nil || seed != nil || limit != nil || sizes != nil
            || sweepThreads != nil || thorough || smoke
    }

    /// Returns the options that the arguments request.
    ///
    /// - Throws: ``BenchmarkError`` that names an argument that is not a number, or that excludes
    ///   another.
    func options() throws -> PlanOptions {
        if thorough && smoke { throw BenchmarkError("'--thorough' and '--smoke' exclude each other.") }
        return try PlanOptions(
            filter: filter.map(namesByComma), peers: peers.map(namesByComma),
            threads: threads ?? ProcessInfo.processInfo.activeProcessorCount,
            seed: seed ?? .random(in: 1...999_999_999),
            depth: smoke ? .smoke : thorough ? .thorough : .quick, limit_s: limit,
            sizes: sizes.map { try Self.numbers($0, of: "size") },
            threadSweep: sweepThreads.map { try Self.numbers($0, of: "number of threads") }
                ?? (thorough ? [1, 2, 4, 8] : nil))
    }

    private static func numbers(_ text: String, of what: String) throws -> [Int] {
        try namesByComma(text).map { part in
            guard let number = Int(part) else { throw BenchmarkError("'\(part)' is not a \(what).") }
            return number
        }
    }
}

/// The parts of an option that takes several names.
func namesByComma(_ text: String) -> [String] {
    text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
}
