import BenchmarkCore

/// Foundation's `UndoManager`, the usual choice on platforms that have it.
final class UndoManagerPeer: HandWrittenPeer {
    static let name = "undomanager"
    static let version = "not in Foundation for Linux"
    static let source = "Benchmarks/Peers/ByHand/UndoManagerPeer.swift"

    static func notApplicable(_ workload: String) -> String? {
        workload.hasPrefix("W21-") && workload != "W21-invoker"
            ? "Foundation has no UndoManager on Linux: swift-corelibs-foundation leaves it out."
            : "It keeps a history, and nothing else."
    }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample { throw Self.unknown(workload) }
}
