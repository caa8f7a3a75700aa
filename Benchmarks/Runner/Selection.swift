import ArgumentParser
import BenchmarkHarness
import Foundation

/// The requested measurements, as arguments.
struct Selection: ParsableArguments {
    @Option(help: "Workloads by identifier, separated by commas, W14 for all W14-...; all without it.")
    var filter: String?

    @Option(help: "Peers by name, separated by commas; all without it. Ours always takes part.")
    var peers: String?

    @Option(help: "Worker threads of every peer; the number of CPUs without it.")
    var threads: Int?

    @Option(help: "The seed of the order of the rounds; random without it, and printed.")
    var seed: UInt64?

    @Flag(help: "More sizes, restarts, rounds and numbers of threads: 45 minutes on 2 CPUs.")
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
        help: """
            Numbers of worker threads, separated by commas, with which the workloads that scale are measured, too; 1,2,4,8 with \
            --thorough, none without it.
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
            guard let number = Int(part) else { throw BenchmarkError("'\(part)' is no \(what).") }
            return number
        }
    }
}

/// The parts of an option that takes several names.
func namesByComma(_ text: String) -> [String] {
    text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
}
