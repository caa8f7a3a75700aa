import BenchmarkCore
import Glibc

/// Returns a wrong result: the run must report that as an error, not as a fast peer. For the tests of the program.
final class WrongPeer: Peer {
    static let name = "wrong"
    static let version = "control"
    static let source = "Benchmarks/Peers/Controls.swift"

    static func notApplicable(_ workload: String) -> String? { nil }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample {
        guard let expected = workloads.first(where: { $0.id == workload })?.expectedChecksum(n) else {
            throw PeerError("The peer '\(Self.name)' has no workload '\(workload)'.")
        }
        return Sample(nanoseconds: 1, operations: max(1, n), checksum: ~expected, latencies_ns: [1])
    }

    func shutdown() {}
}

/// Never returns: the run must stop it at its time limit and continue. For the tests of the program.
final class HangingPeer: Peer {
    static let name = "hang"
    static let version = "control"
    static let source = "Benchmarks/Peers/Controls.swift"

    static func notApplicable(_ workload: String) -> String? { nil }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample {
        while true { pause() }
    }

    func shutdown() {}
}

/// Returns correct results at once, except in its fifth sample, which it announces on standard error and from which
/// it never returns: a run that is interrupted then is in the middle of its second workload. For the tests of the
/// program.
final class StallingPeer: Peer {
    static let name = "stall"
    static let version = "control"
    static let source = "Benchmarks/Peers/Controls.swift"

    static func notApplicable(_ workload: String) -> String? { nil }

    private var samples = 0

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample {
        samples += 1
        if samples == 5 {
            _ = write(STDERR_FILENO, "stalled\n", 8)
            while true { pause() }
        }
        guard let expected = workloads.first(where: { $0.id == workload })?.expectedChecksum(n) else {
            throw PeerError("The peer '\(Self.name)' has no workload '\(workload)'.")
        }
        return Sample(nanoseconds: 1, operations: max(1, n), checksum: expected, latencies_ns: [1])
    }

    func shutdown() {}
}

/// Is never part of a build: a run must report that and continue. For the tests of the program.
final class AbsentPeer: Peer {
    static let name = "absent"
    static let version = "control"
    static let source = "Benchmarks/Peers/Controls.swift"
    static let missing: String? = "The control 'absent' is in no build; leave it out."

    static func notApplicable(_ workload: String) -> String? { missing }

    init(threads: Int) throws { throw PeerError("The control 'absent' cannot be started.") }

    func run(_ workload: String, n: Int) throws -> Sample {
        throw PeerError("The control 'absent' cannot run.")
    }

    func shutdown() {}
}
