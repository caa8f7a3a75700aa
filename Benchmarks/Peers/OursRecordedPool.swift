import BenchmarkCore
import Observability

/// Ours with the recorder on: the difference is its cost, in workloads of small operations.
final class OursRecordedPool: Peer {
    static let name = "ours-recorded"
    static let version = "this package"
    static let source = "Benchmarks/Peers/OursRecordedPool.swift"

    static func form(_ workload: String) -> String? { "As ours, after Recorder.start()." }

    static func notApplicable(_ workload: String) -> String? {
        ["W1", "W3", "W6", "W9"].contains(workload) ? nil : "It is ours, with the recorder on."
    }

    private let pool: OursPool

    init(threads: Int) throws {
        pool = try OursPool(threads: threads)
        Recorder.start()
    }

    func run(_ workload: String, n: Int) throws -> Sample { try pool.run(workload, n: n) }

    func shutdown() {
        Recorder.stop()
        pool.shutdown()
    }
}
