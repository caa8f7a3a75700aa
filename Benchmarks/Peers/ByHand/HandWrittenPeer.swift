import BenchmarkCore

/// Hand-written code that does what Commands, Transactions or Actions do, since there is no library to compare with. It
/// does less than ours; its form says what it leaves out.
protocol HandWrittenPeer: Peer {}

extension HandWrittenPeer {
    static var version: String { "by hand" }

    static func notApplicable(_ workload: String) -> String? {
        if form(workload) != nil { return nil }
        return Workload.isOfLibraries(workload)
            ? "A program by hand would not have this form." : "It schedules nothing."
    }

    static func unknown(_ workload: String) -> PeerError {
        PeerError("The peer '\(name)' has no workload '\(workload)'.")
    }

    func shutdown() {}
}
