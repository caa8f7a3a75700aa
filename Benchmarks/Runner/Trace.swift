import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import Foundation
import Observability

/// Writes what the threads of ours do in a workload, event by event.
struct Trace: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Record a workload of ours, and write a trace that Perfetto opens (ui.perfetto.dev).")

    @Argument(help: "The workload, such as W10.") var workload: String

    @Option(help: "Its size; default: a small one.") var n: Int?

    @Option(help: "Ours, in one of its forms.") var peer = "ours"

    @Option(help: "How many workers; default: the number of CPUs.") var threads: Int?

    @Option(help: "The file to write.") var output = "trace.json"

    func run() throws {
        guard let workload = workloads.first(where: { $0.id == workload }) else {
            throw BenchmarkError(
                "There is no workload '\(workload)'; 'swift run benchmarks list' shows them.")
        }
        guard let type = peerTypes.first(where: { $0.name == peer }),
            peer == "ours" || peer.hasPrefix("ours-")
        else { throw BenchmarkError("'\(peer)' is not a form of ours; only those can be recorded.") }
        if let reason = type.notApplicable(workload.id) {
            throw BenchmarkError("\(workload.id) does not apply to '\(peer)': \(reason)")
        }
        let size = n ?? workload.smoke[0]
        let threads = threads ?? ProcessInfo.processInfo.activeProcessorCount
        guard size > 0, threads > 0 else {
            throw BenchmarkError("The size and the number of workers must be at least 1.")
        }
        let runner = try type.init(threads: threads)
        _ = try runner.run(workload.id, n: size)  // triggers lazy loading
        Recorder.start(eventsPerThread: 1 << 17)
        let sample = try runner.run(workload.id, n: size)
        Recorder.stop()
        let recording = Recorder.recording()
        runner.shutdown()
        try Data(recording.chromeTrace().utf8).write(to: URL(fileURLWithPath: output))
        let events = recording.tracks.reduce(0) { $0 + $1.events.count }
        let lost = recording.tracks.reduce(0) { $0 + $1.lost }
        print("\(workload.id), n = \(size): \(sample.operations) operations, \(events) events, \(lost) lost.")
        print("waits  \(recording.waits)")
        print("bodies \(recording.runs)")
        print("\(output): open it in ui.perfetto.dev.")
    }
}
