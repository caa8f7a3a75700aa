import BenchmarkCore
import BenchmarkHarness
import Foundation

/// A synthetic, deterministic run: all workloads and peers, with rows that are lost, stopped or not applicable, or
/// that disagree with themselves, on a machine that changes its speed.
struct SyntheticRun {
    var restarts = 6
    var rounds = 3
    /// The peers that were not installed.
    var absent: Set<String> = []
    /// The workloads in which ours disagrees with itself.
    var unlikeItself: Set<String> = ["W9", "W24-actor", "W22-readers"]
    /// The typical ratio of a peer's time to ours, in place of the one in `usual`.
    var factors: [String: Double] = [:]

    private static let usual: [String: Double] = [
        "dispatch": 3.2, "operationqueue": 14, "taskgroup": 3.6, "nio": 4.8, "pthread": 1.9, "tbb": 1.25,
        "closures": 0.3, "snapshot": 0.09, "old-values": 0.12, "mutex": 0.05, "flag": 0.012, "actor": 0.6,
        "ours-bare": 0.22, "ours-preferred": 1.15, "ours-recorded": 1.9, "serial": 0.3, "floor": 0.09,
        "ours-again": 1,
    ]
    private static let byHand = ["closures", "snapshot", "old-values", "mutex", "flag", "actor"]
    private static let pools = ["dispatch", "operationqueue", "taskgroup", "nio", "pthread", "tbb"]
    private static let names =
        ["ours"] + pools + byHand + [
            "undomanager", "ours-bare", "ours-preferred", "ours-recorded", "serial", "floor",
        ]

    /// - Parameter threads: the numbers of threads of a sweep, in addition to 2; with 2 CPUs, more of them make
    ///   nothing faster.
    func document(sweeping threads: [Int]) -> RunDocument {
        var document = document()
        document.threadSweep = threads.flatMap { threads in
            document.results.filter { series in
                ["W1", "W9", "R1"].contains(series.workload) && Self.pools.dropFirst().contains(series.peer)
                    || series.peer == "ours" && series.workload == "R1"
            }.map { series in
                var series = series
                series.params["threads"] = threads
                let factor = 2.0 / Double(min(threads, 2))
                for index in series.restarts.indices {
                    series.restarts[index].rounds = series.restarts[index].rounds.map { $0 * factor }
                }
                return series
            }
        }
        return document
    }

    func document() -> RunDocument {
        var document = RunDocument(
            date: "2026-01-02T03:04:05Z", seed: 7,
            build: [
                "commit": "0123456789abcdef0123456789abcdef01234567, with changes",
                "configuration": "release",
                "compiler": "Swift version 6.3.1", "assertions": "off", "arguments": "run --seed 7",
                "allocator": "jemalloc 5.3.0, lg_extent_max_active_fit 64, oversize_threshold 0",
            ],
            machine: [
                "processor": "Synthetic CPU @ 2.00GHz", "cpus": "2", "kernel": "6.1.0", "virtual": "yes",
                "memory": "8000000 kB", "governor": "none", "quota": "max 100000",
                "steal": "0.3 % of the CPU time during the run",
            ],
            peers: Self.names.map { name in
                RunDocument.PeerDescription(
                    name: name, version: "1.0", allocator: "jemalloc", threads: 2,
                    source: "Benchmarks/Peers/\(name).swift", forms: ["W16-last": "do and catch"],
                    notApplicable: Dictionary(
                        uniqueKeysWithValues: workloads.compactMap { workload in
                            reason(name, workload).map { (workload.id, $0) }
                        }))
            })
        document.isPartial = false
        for workload in workloads where workload.id != "W0" {
            for n in workload.quick {
                for name in Self.names + ["ours-again"] where reason(name, workload) == nil {
                    document.results.append(series(workload, n: n, peer: name))
                }
            }
        }
        return document
    }

    private func reason(_ name: String, _ workload: Workload) -> String? {
        if ["ours", "ours-again"].contains(name) { return nil }
        if absent.contains(name) { return "It was built where it is not installed." }
        if name == "undomanager" { return "Foundation has no UndoManager on Linux." }
        let isTasks = workload.id.hasPrefix("W24")
        if name == "ours-preferred" { return isTasks ? nil : "Only tasks prefer an executor." }
        if name == "ours-recorded" {
            return ["W1", "W3", "W6", "W9"].contains(workload.id) ? nil : "It is ours, with the recorder on."
        }
        if isTasks { return name == "taskgroup" ? nil : "It runs no Swift tasks." }
        if name == "ours-bare" { return workload.subject == .operations ? nil : "No layer is measured here." }
        if name == "floor" { return workload.metric == .throughput ? nil : "Nothing waits there." }
        if name == "serial" {
            return workload.subject != .libraries && workload.metric == .throughput
                ? nil : "Nothing waits there."
        }
        if workload.subject == .libraries {
            if !Self.byHand.contains(name) { return "A program by hand would not have this form." }
            return random(name, workload.id) % 3 != 0 ? nil : "It keeps no history."
        }
        if Self.byHand.contains(name) { return "It schedules nothing." }
        return name != "operationqueue" && random(name, workload.id) % 11 == 0
            ? "It has nothing of the kind." : nil
    }

    private func series(_ workload: Workload, n: Int, peer: String) -> RunDocument.Series {
        let middle = 60 * exp(3 * uniform("base", workload.id)) * factor(peer, workload)
        // Operation queues grow faster than n, as they do in reality.
        let growth = peer == "operationqueue" ? pow(Double(n) / 1_000, 0.3) : 1
        let isStopped = peer == "operationqueue" && workload.id == "W6" && n >= 10_000
        let isCost = workload.metric == .cost
        let seed = random("noise", peer, workload.id, number: n)
        let all = (0..<(isStopped ? 0 : restarts)).map { restart in
            RunDocument.Restart(
                rounds: (0..<rounds).map { round in
                    let drift = 1 + 0.08 * sin(Double(restart))
                    let noise = exp(
                        0.04 * (Self.share(of: Self.mix(seed &+ UInt64(restart * 100 + round))) - 0.5))
                    if workload.id == "W13" {
                        return peer == "ours" || peer == "ours-again" ? 0 : middle / 10
                    }
                    return isCost ? middle : middle * growth * drift * noise
                })
        }
        var counts = [
            "cpu_ns_per_op": middle * 1.7,
            "voluntary_switches_per_op": uniform("switches", peer, workload.id) / 100,
            "involuntary_switches_per_op": 0, "peak_resident_bytes": 2e7,
        ]
        if workload.metric == .throughput {
            counts["allocations_per_op"] = peer == "serial" ? 0 : Double(1 + random(peer, workload.id) % 5)
            counts["allocated_bytes_per_op"] =
                peer == "serial" ? 0 : Double(16 + random(peer, workload.id) % 500)
        }
        if workload.metric == .latency {
            for (place, p) in [50.0, 90, 99, 99.9, 100].enumerated() {
                counts["latency_p\(p)_ns"] = middle * 100 * pow(2.2, Double(place))
            }
        }
        if isStopped { counts = [:] }
        var series = RunDocument.Series(
            workload: workload.id, params: ["n": n], peer: peer, unit: workload.unit, restarts: all,
            counts: counts,
            checksum: workload.id == "W9" ? 1 : 2,
            stopped: isStopped ? "predicted to take 41 s a sample" : nil)
        series.isLeftOut = isStopped ? true : nil
        return series
    }

    private func factor(_ peer: String, _ workload: Workload) -> Double {
        if peer == "ours-again" { return unlikeItself.contains(workload.id) ? 1.27 : 1 }
        guard let usual = factors[peer] ?? Self.usual[peer] else { return 1 }
        if ["serial", "floor"].contains(peer) {
            return usual * exp(0.4 * (uniform(peer, workload.id) - 0.5))
        }
        // Swift tasks cost the same wherever they run.
        let middle = workload.id.hasPrefix("W24") && peer == "taskgroup" ? 1.6 : usual
        return middle * exp(1.5 * (uniform(peer, workload.id) - 0.5))
    }

    // MARK: Deterministic noise

    /// FNV-1a of the words.
    private func random(_ words: String..., number: Int = 0) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325 &+ UInt64(number)
        for word in words {
            for byte in word.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            hash = hash &* 0x100_0000_01B3
        }
        return Self.mix(hash)
    }

    private static func mix(_ word: UInt64) -> UInt64 {
        let mixed = (word ^ (word >> 33)) &* 0xFF51_AFD7_ED55_8CCD
        let again = (mixed ^ (mixed >> 33)) &* 0xC4CE_B9FE_1A85_EC53
        return (again ^ (again >> 33)) >> 8
    }

    private static func share(of word: UInt64) -> Double { Double(word % 1_000_000) / 1_000_000 }

    private func uniform(_ words: String...) -> Double {
        Self.share(of: random(words.joined(separator: " ")))
    }
}
