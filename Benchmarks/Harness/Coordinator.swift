public import BenchmarkCore
import Foundation

/// Runs a plan: one child process for each peer, all warm, measured in turn.
///
/// Interleaving in shuffled order makes the figures comparable on a machine whose speed drifts: a disturbance affects
/// neighbouring samples alike. A second child of ours, `ours-again`, takes part like a peer: its ratio should be 1.
public final class Coordinator {
    /// The name of the A/A row.
    public static let again = "ours-again"

    private let plan: Plan
    private let program: String
    private let types: [any Peer.Type]
    private let progress: Progress
    private var prediction = Prediction()
    private var recorder: Recorder

    /// Creates a coordinator.
    ///
    /// - Parameters:
    ///   - document: the document of the run: a new one, or that of an interrupted run.
    ///   - program: the path of the program that serves a peer when it is run with `child`.
    public init(
        plan: Plan, continuing document: RunDocument? = nil, program: String, types: [any Peer.Type],
        progress: Progress
    ) async {
        let absent = types.filter { $0.missing != nil && plan.peers.contains($0.name) }
        var plan = plan
        plan.peers.removeAll { name in absent.contains { $0.name == name } }
        self.plan = plan
        self.program = program
        self.types = types
        self.progress = progress
        if let document {
            recorder = Recorder(document)
        } else {
            recorder = Recorder(
                await Self.document(of: plan, types, absent: absent.compactMap { $0.missing }))
        }
        for series in recorder.document.results { prediction.note(series) }
    }

    private static func document(of plan: Plan, _ types: [any Peer.Type], absent: [String]) async
        -> RunDocument
    {
        let peers = types.filter { plan.peers.contains($0.name) }.map { type in
            RunDocument.PeerDescription(
                name: type.name, version: type.version, allocator: "jemalloc", threads: plan.threads,
                source: type.source,
                forms: Dictionary(
                    uniqueKeysWithValues: plan.workloads.compactMap { workload in
                        type.form(workload.id).map { (workload.id, $0) }
                    }),
                notApplicable: Dictionary(
                    uniqueKeysWithValues: plan.workloads.compactMap { workload in
                        type.notApplicable(workload.id).map { (workload.id, $0) }
                    }))
        }
        var build = await Machine.build()
        build["arguments"] = CommandLine.arguments.dropFirst().joined(separator: " ")
        var document = RunDocument(
            date: Date().formatted(.iso8601), seed: plan.options.seed, options: plan.options, build: build,
            machine: Machine.description(), peers: peers)
        document.absent = absent
        return document
    }

    /// Measures the units that the document lacks, in the order of the plan. When the task is cancelled, the run ends and
    /// keeps the units measured so far.
    ///
    /// - Throws: ``BenchmarkError`` when a result is wrong, or no child can be started.
    public func run() async throws -> RunDocument {
        let steal = Machine.stolenTicks()
        let measured = recorder.document.units ?? []
        let done = Set(measured.map(\.unit))
        let left = plan.units.filter { !done.contains($0) }
        var forecast = Forecast(units: plan.units, measured: measured)
        for restart in 0..<plan.restarts where !Task.isCancelled {
            let units = left.filter { $0.restart == restart }
            for threads in [nil] + (plan.options.threadSweep ?? []) where !Task.isCancelled {
                let some = units.filter { $0.threads == threads }
                if !some.isEmpty { try await measure(some, threads: threads, &forecast) }
            }
        }
        let now = Machine.stolenTicks()
        let share = (now.stolen - steal.stolen) / max(1, now.all - steal.all)
        recorder.note(
            machine: "steal", "\((share * 1000).rounded() / 10) % of the CPU time during the run")
        recorder.end(isPartial: Task.isCancelled)
        progress.end()
        return recorder.document
    }

    // MARK: One set of processes

    /// Measures units of the same restart and number of threads.
    private func measure(_ units: [RunUnit], threads: Int?, _ forecast: inout Forecast) async throws {
        let children = Children(program: program, threads: threads ?? plan.threads)
        let results = threads.map { recorder.enter(threads: $0) }
        defer { if let threads, let results { recorder.leave(threads: threads, results: results) } }
        do {
            try await measure(units, isSweep: threads != nil, &forecast, children)
        } catch {
            await children.endAll()
            throw error
        }
        await children.endAll()
    }

    private func measure(
        _ units: [RunUnit], isSweep: Bool, _ forecast: inout Forecast, _ children: Children
    ) async throws {
        let names =
            isSweep
            ? plan.peers.filter { !Plan.withOwnThreads.contains($0) } : plan.peers + [Self.again]
        for name in names { _ = try await children.child(name, counting: .time) }
        if recorder.document.controls.idleSwitchesPerSecond.isEmpty { await checkThatTheyWait(children) }
        for unit in units {
            let before = recorder
            let began = ContinuousClock.now
            try await measure(unit, names, forecast, children)
            if unit.restart == 0, !isSweep { try await countAllocations(unit, forecast, children) }
            if Task.isCancelled {
                recorder = before  // a unit is recorded completely or not at all
                return
            }
            let seconds = (ContinuousClock.now - began) / .seconds(1)
            recorder.finish(unit, seconds: seconds)
            forecast.note(unit, seconds: seconds)
        }
    }

    private func measure(
        _ unit: RunUnit, _ names: [String], _ forecast: Forecast, _ children: Children
    ) async throws {
        let workload = plan.workload(of: unit)
        var random = SeededGenerator(seed: plan.options.seed, unit: unit)
        let sizes = plan.sizes(of: workload, restart: unit.restart)
        for n in unit.threads == nil ? sizes : sizes.suffix(1) {
            let rounds = rounds(names, workload, n: n)
            let most = rounds.values.map(\.rounds).max() ?? 0
            for round in -1..<most {  // -1 is the warm-up
                let asked = names.filter {
                    rounds[$0].map { round < $0.rounds && round >= $0.first } ?? false
                }
                for name in asked.shuffled(using: &random) {
                    if Task.isCancelled { return }
                    progress.show(
                        forecast, "\(workload.id) n=\(n) \(unit.restart + 1)/\(plan.restarts) \(name)")
                    try await measure(
                        name, workload, n: n, restart: unit.restart, isWarmUp: round < 0, children)
                }
            }
        }
    }

    /// By peer, the first round and the number of rounds at a size. Ours runs in all rounds: each peer is paired with it.
    private func rounds(_ names: [String], _ workload: Workload, n: Int) -> [String: (
        first: Int, rounds: Int
    )] {
        var rounds: [String: (first: Int, rounds: Int)] = [:]
        for name in names where isToBeAsked(name, workload, n: n) {
            if prediction.seconds(workload, name, n: n) > Plan.long_s {
                rounds[name] = (workload.fillsMemory ? -1 : 0, 1)
            } else {
                let logs = recorder.document.logRatios(workload.id, n: n, peer: name)
                rounds[name] = (-1, Rounds.count(after: logs, most: plan.rounds))
            }
        }
        let most = rounds.values.map(\.rounds).max() ?? 0
        if rounds["ours"]?.first == -1 { rounds["ours"] = (-1, most) }
        return rounds
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
        let index = recorder.index(of: name, workload, n: n)
        if recorder[index].stopped != nil { return false }
        if let largest = type.largest(workload.id), n > largest {
            recorder.leaveOut(index, "sizes above \(largest) would take too long")
            return false
        }
        let seconds = prediction.seconds(workload, name, n: n)
        if seconds > plan.limit / .seconds(1) {
            recorder.leaveOut(index, "predicted to take \(Int(seconds.rounded(.up))) s a sample")
            return false
        }
        return true
    }

    private func measure(
        _ name: String, _ workload: Workload, n: Int, restart: Int, isWarmUp: Bool, _ children: Children
    ) async throws {
        let index = recorder.index(of: name, workload, n: n)
        guard recorder[index].stopped == nil else { return }
        let request = Request(workload: workload.id, n: n)
        // Twice the limit: a slow sample is still a value, a sample that hangs is not.
        let child = try await children.child(name, counting: workload.unit == "bytes/op" ? .liveBytes : .time)
        switch await child.ask(request, limit: plan.limit * 2) {
        case .timedOut: recorder.stop(index, "killed after \(plan.limit * 2)")
        case .died: recorder.stop(index, "the process ended")
        case .answered(let response):
            guard let sample = response.sample else {
                recorder.stop(index, response.error ?? "the process did not answer")
                return
            }
            try check(sample, of: name, workload, n: n)
            prediction.note(workload, name, n: n, seconds: Double(sample.nanoseconds) / 1e9)
            if !isWarmUp { recorder.add(sample, response.costs, at: index, workload, restart: restart) }
        }
    }

    private func check(_ sample: Sample, of name: String, _ workload: Workload, n: Int) throws {
        let expected = workload.expectedChecksum(n)
        guard sample.checksum == expected else {
            throw BenchmarkError(
                "The peer '\(name)' computed \(sample.checksum) in \(workload.id) with n = \(n); the right result is \(expected).",
                kind: .wrongResult)
        }
    }

    // MARK: Controls and costs

    /// Checks that idle children do not take CPU from the child that is measured.
    private func checkThatTheyWait(_ children: Children) async {
        progress.show(nil, "checking that waiting processes sleep")
        // An empty sample for each: a child that has answered has started.
        for child in children.all {
            _ = await child.ask(Request(workload: "W0", n: 1), limit: plan.limit)
        }
        let before = children.switches()
        let began = ContinuousClock.now
        try? await Task.sleep(for: .milliseconds(200))
        let elapsed = (ContinuousClock.now - began) / .seconds(1)
        let after = children.switches()
        for (name, count) in before {
            let perSecond = Double((after[name] ?? count) - count) / elapsed
            recorder.noteIdleSwitches(of: name, perSecond: perSecond)
            if perSecond > 50 {
                recorder.warn(
                    "The process of '\(name)' switches \(Int(perSecond)) times a second while it waits for its turn."
                )
            }
        }
    }

    /// Counts in separate processes, because counting slows down every allocation. Ours is counted at all sizes, a peer at
    /// the size that is compared.
    private func countAllocations(_ unit: RunUnit, _ forecast: Forecast, _ children: Children) async throws {
        let workload = plan.workload(of: unit)
        guard workload.metric == .throughput || Workload.findsLeftovers(workload.id) else { return }
        let largest = recorder.document.sizes(workload.id).last
        for (index, series) in recorder.document.results.enumerated()
        where series.workload == workload.id && !series.values.isEmpty && series.peer != Self.again
            && (series.peer == "ours" || series.n == largest)
        {
            if Task.isCancelled { return }
            let findsLeftovers = Workload.findsLeftovers(workload.id) && series.peer == "ours"
            if workload.metric == .cost && !findsLeftovers { continue }
            // The hooks make long workloads several times slower still. The command 'counts' counts ours.
            let isLong = prediction.seconds(workload, series.peer, n: series.n) > Plan.long_s
            if isLong && !findsLeftovers { continue }
            progress.show(forecast, "\(workload.id) n=\(series.n) allocations \(series.peer)")
            let request = Request(workload: workload.id, n: series.n, findsLeftovers: findsLeftovers)
            let child = try await children.child(series.peer, counting: .allocations)
            guard case .answered(let response) = await child.ask(request, limit: plan.limit * 10),
                let sample = response.sample
            else {
                recorder.warn(
                    "The allocations of '\(series.peer)' in \(workload.id) with n = \(series.n) were not counted: the process ended, or took too long."
                )
                continue
            }
            guard let allocations = response.allocations else { return }  // a jemalloc without hooks
            if let left = response.bytesLeft { recorder.count("bytes_left", left, at: index) }
            let operations = Double(max(1, sample.operations))
            recorder.count("allocations_per_op", allocations / operations, at: index)
            recorder.count(
                "allocated_bytes_per_op", (response.allocatedBytes ?? 0) / operations, at: index)
        }
    }
}
