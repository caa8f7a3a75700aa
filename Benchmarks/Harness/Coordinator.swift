public import BenchmarkCore
import Foundation

/// Runs a plan: one child process for each peer, all warm, asked in turn.
///
/// Interleaving in shuffled order is what makes the figures comparable on a machine whose speed drifts:
/// whatever happens, it happens to neighbours. A second child of ours, `ours-again`, takes part like a peer:
/// its ratio should be 1.
public final class Coordinator {
    /// The name of the A/A row.
    public static let again = "ours-again"

    private let plan: Plan
    private let program: String
    private let types: [any Peer.Type]
    private let progress: Progress
    private let isInterrupted: () -> Bool
    private var document: RunDocument
    private var prediction = Prediction()
    private var random: SeededGenerator

    /// Creates a coordinator.
    ///
    /// - Parameters:
    ///   - program: the path of the program that serves a peer when it is called with `child`.
    ///   - isInterrupted: asked between samples; when true the run ends, and what there is stands.
    public init(
        plan: Plan, program: String, types: [any Peer.Type], progress: Progress,
        isInterrupted: @escaping () -> Bool
    ) {
        self.plan = plan
        self.program = program
        self.types = types
        self.progress = progress
        self.isInterrupted = isInterrupted
        self.random = SeededGenerator(seed: plan.seed)
        let peers = types.filter { plan.peers.contains($0.name) }.map { type in
            RunDocument.PeerDescription(
                name: type.name, version: type.version, allocator: "jemalloc", threads: plan.threads,
                source: type.source,
                forms: Dictionary(
                    uniqueKeysWithValues: plan.workloads.compactMap { workload in
                        type.form(workload.id).map { (workload.id, $0) }
                    }))
        }
        var build = Machine.build()
        build["arguments"] = CommandLine.arguments.dropFirst().joined(separator: " ")
        document = RunDocument(
            date: Date().formatted(.iso8601), seed: plan.seed, build: build, machine: Machine.description(),
            peers: peers)
    }

    /// Measures.
    ///
    /// - Throws: ``BenchmarkError`` when a result is wrong, or no child can be started.
    public func run() throws -> RunDocument {
        let steal = Machine.stolenTicks()
        for restart in 0..<plan.restarts where !isInterrupted() {
            try runOnce(restart: restart)
        }
        if !isInterrupted() { try countAllocations() }
        let now = Machine.stolenTicks()
        let share = (now.stolen - steal.stolen) / max(1, now.all - steal.all)
        document.machine["steal"] = "\((share * 1000).rounded() / 10) % of the CPU time during the run"
        document.isPartial = isInterrupted()
        progress.end()
        return document
    }

    // MARK: One set of processes

    private func runOnce(restart: Int) throws {
        let children = Children(program: program, threads: plan.threads)
        defer { children.endAll() }
        let names = plan.peers + [Self.again]
        for name in names { _ = try children.child(name, counting: .time) }
        if restart == 0 { checkThatTheyWait(children) }
        for workload in plan.workloads where plan.includes(workload, restart: restart) {
            for n in plan.sizes(of: workload) {
                let asked = names.filter { isToBeAsked($0, workload, n: n) }
                let long = asked.filter { prediction.seconds(workload, $0, n: n) > Plan.long_s }
                for round in -1..<plan.rounds {  // -1: to warm up
                    let names = round == 0 ? asked : asked.filter { !long.contains($0) }
                    for name in names.shuffled(using: &random) {
                        if isInterrupted() { return }
                        progress.show("\(workload.id) n=\(n) restart \(restart + 1)/\(plan.restarts) \(name)")
                        try measure(name, workload, n: n, restart: restart, isWarmUp: round < 0, children)
                    }
                }
            }
        }
    }

    private func type(of name: String) -> any Peer.Type {
        let name = name == Self.again ? "ours" : name
        guard let type = types.first(where: { $0.name == name }) else {
            fatalError("no peer \(name)")
        }
        return type
    }

    private func isToBeAsked(_ name: String, _ workload: Workload, n: Int) -> Bool {
        let type = type(of: name)
        if type.notApplicable(workload.id) != nil { return false }
        let index = index(of: name, workload, n: n)
        if document.results[index].stopped != nil { return false }
        if let largest = type.largest(workload.id), n > largest {
            leaveOut(index, "more than \(largest) would take too long")
            return false
        }
        let seconds = prediction.seconds(workload, name, n: n)
        if seconds > plan.limit / .seconds(1) {
            leaveOut(index, "predicted to take \(Int(seconds.rounded(.up))) s a sample")
            return false
        }
        return true
    }

    private func leaveOut(_ index: Int, _ reason: String) {
        document.results[index].stopped = reason
        document.results[index].isLeftOut = true
    }

    private func measure(
        _ name: String, _ workload: Workload, n: Int, restart: Int, isWarmUp: Bool, _ children: Children
    ) throws {
        let index = index(of: name, workload, n: n)
        guard document.results[index].stopped == nil else { return }
        let request = Request(workload: workload.id, n: n)
        // Twice the limit: a slow sample is still a value, a hanging one is not.
        let child = try children.child(name, counting: workload.unit == "bytes/op" ? .liveBytes : .time)
        switch child.ask(request, limit: plan.limit * 2) {
        case .timedOut: document.results[index].stopped = "killed after \(plan.limit * 2)"
        case .died: document.results[index].stopped = "the process ended"
        case .answered(let response):
            guard let sample = response.sample else {
                document.results[index].stopped = response.error ?? "the process did not answer"
                return
            }
            try check(sample, of: name, workload, n: n)
            prediction.note(workload, name, n: n, seconds: Double(sample.nanoseconds) / 1e9)
            if !isWarmUp { record(sample, response.costs, at: index, workload, restart: restart) }
        }
    }

    private func check(_ sample: Sample, of name: String, _ workload: Workload, n: Int) throws {
        let expected = workload.expectedChecksum(n)
        guard sample.checksum == expected else {
            throw BenchmarkError(
                "The peer '\(name)' computed \(sample.checksum) in \(workload.id) with n = \(n); \(expected) is right.",
                kind: .wrongResult)
        }
    }

    private func record(_ sample: Sample, _ costs: Costs?, at index: Int, _ workload: Workload, restart: Int)
    {
        while document.results[index].restarts.count <= restart {
            document.results[index].restarts.append(RunDocument.Restart(rounds: []))
        }
        let before = Double(document.results[index].values.count)
        document.results[index].restarts[restart].rounds.append(Measurement.value(of: sample, in: workload))
        document.results[index].checksum = sample.checksum
        for (key, value) in Measurement.counts(of: sample, costs: costs) {
            let mean = document.results[index].counts[key] ?? 0
            document.results[index].counts[key] = mean + (value - mean) / (before + 1)
        }
    }

    /// Where the series of a peer is; it is made when it is not there.
    private func index(of name: String, _ workload: Workload, n: Int) -> Int {
        if let index = document.results.firstIndex(where: {
            $0.workload == workload.id && $0.n == n && $0.peer == name
        }) {
            return index
        }
        document.results.append(
            RunDocument.Series(
                workload: workload.id, params: ["n": n], peer: name, unit: workload.unit, restarts: [],
                counts: [:],
                checksum: 0, stopped: nil))
        return document.results.count - 1
    }

    // MARK: Controls and costs

    /// Children that wait for their turn must not take CPU from the one that is measured.
    private func checkThatTheyWait(_ children: Children) {
        progress.show("do waiting processes wait?")
        // An empty sample each: who has answered has started.
        for child in children.all { _ = child.ask(Request(workload: "W0", n: 1), limit: plan.limit) }
        let before = children.switches()
        let clock = ContinuousClock()
        let elapsed = clock.measure { poll(nil, 0, 200) } / .seconds(1)
        let after = children.switches()
        for (name, count) in before {
            let perSecond = Double((after[name] ?? count) - count) / elapsed
            document.controls.idleSwitchesPerSecond[name] = perSecond
            if perSecond > 50 {
                document.controls.warnings.append(
                    "The process of '\(name)' switches \(Int(perSecond)) times a second while it waits for its turn."
                )
            }
        }
    }

    /// A pass of its own, because counting slows every allocation down.
    private func countAllocations() throws {
        let children = Children(program: program, threads: plan.threads)
        defer { children.endAll() }
        for workload in plan.workloads
        where workload.metric == .throughput || Workload.findsLeftovers(workload.id) {
            for index in document.results.indices
            where document.results[index].workload == workload.id && !document.results[index].values.isEmpty {
                if isInterrupted() { return }
                let series = document.results[index]
                let findsLeftovers = Workload.findsLeftovers(workload.id) && series.peer == "ours"
                if workload.metric == .cost && !findsLeftovers { continue }
                progress.show("\(workload.id) n=\(series.n) allocations \(series.peer)")
                let request = Request(
                    workload: workload.id, n: series.n, findsLeftovers: findsLeftovers)
                let child = try children.child(series.peer, counting: .allocations)
                guard case .answered(let response) = child.ask(request, limit: plan.limit * 10),
                    let sample = response.sample
                else {
                    document.controls.warnings.append(
                        "The allocations of '\(series.peer)' in \(workload.id) with n = \(series.n) were not counted: the process ended, or took too long."
                    )
                    continue
                }
                guard let allocations = response.allocations else { return }  // no jemalloc with hooks
                if let left = response.bytesLeft { document.results[index].counts["bytes_left"] = left }
                let operations = Double(max(1, sample.operations))
                document.results[index].counts["allocations_per_op"] = allocations / operations
                document.results[index].counts["allocated_bytes_per_op"] =
                    (response.allocatedBytes ?? 0) / operations
            }
        }
    }
}

/// The processes of one restart, by peer and what they count; one that died is started anew when it is asked again.
private final class Children {
    enum Count { case time, allocations, liveBytes }

    private struct Key: Hashable {
        let name: String
        let count: Count
    }

    private let program: String
    private let threads: Int
    private var children: [Key: ChildProcess] = [:]

    init(program: String, threads: Int) {
        self.program = program
        self.threads = threads
    }

    func child(_ name: String, counting count: Count) throws -> ChildProcess {
        let key = Key(name: name, count: count)
        if let child = children[key], child.isAlive { return child }
        let peer = name == Coordinator.again ? "ours" : name
        var arguments = ["child", "--peer", peer, "--threads", "\(threads)"]
        if count == .allocations { arguments.append("--count-allocations") }
        // jemalloc takes what a thread's cache holds for live.
        let theirs = ProcessInfo.processInfo.environment["MALLOC_CONF"].map { $0 + "," } ?? ""
        let environment = count == .liveBytes ? ["MALLOC_CONF": theirs + "tcache:false"] : [:]
        let child = try ChildProcess(program: program, arguments: arguments, environment: environment)
        children[key] = child
        return child
    }

    var all: [ChildProcess] { Array(children.values) }

    /// Of the processes that are timed, by peer.
    func switches() -> [String: Int] {
        Dictionary(
            uniqueKeysWithValues: children.compactMap { key, child in
                guard key.count == .time, let switches = voluntarySwitches(ofProcess: child.pid) else {
                    return nil
                }
                return (key.name, switches)
            })
    }

    func endAll() { children.values.forEach { $0.end() } }
}

/// SplitMix64: the order of the rounds can be had again from the printed seed.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
