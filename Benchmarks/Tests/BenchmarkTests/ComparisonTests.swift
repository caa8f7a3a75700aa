import BenchmarkComparison
import BenchmarkHarness
import BenchmarkReport
import Foundation
import Testing

@Suite struct TailTests {
    /// All 2^n ways in which a coin falls.
    @Test(arguments: 1...12) func `the sign test matches counting every case`(count: Int) {
        for successes in 0...count {
            let cases = (0..<(1 << count)).count { $0.nonzeroBitCount >= successes }
            #expect(abs(Tails.sign(successes, of: count) - Double(cases) / Double(1 << count)) < 1e-12)
        }
    }

    /// All orders of m and n values: the bits of a number say which places belong to the second sample.
    @Test(arguments: 1...5, 1...5) func `the Mann-Whitney test matches counting every order`(
        m: Int, n: Int
    ) {
        let pairs = (0..<(1 << (m + n))).filter { $0.nonzeroBitCount == n }.map { order in
            (0..<(m + n)).filter { order >> $0 & 1 == 1 }.map { place in
                (0..<place).count { order >> $0 & 1 == 0 }
            }.reduce(0, +)
        }
        for least in 0...(m * n) {
            let expected = Double(pairs.count { $0 >= least }) / Double(pairs.count)
            #expect(abs(Tails.mannWhitney(least, m, n) - expected) < 1e-12)
        }
    }

    @Test func `the interval of a shift is that of the Mann-Whitney test`() throws {
        let six = try #require(Interval.shift(from: [1, 2, 3, 4, 5, 6], to: [11, 12, 13, 14, 15, 16]))
        // There are 36 differences; the table of the Mann-Whitney test drops five at each end.
        #expect(six.median == 10 && six.low == 7 && six.high == 13)
        #expect(six.coverage >= 0.95 && six.coverage < 0.98)
        #expect(Interval.shift(from: [], to: [1]) == nil)
    }

    @Test func `Holm relaxes the threshold after each rejection`() {
        var holm = SequentialHolm(alpha: 0.04, looks: 1, count: 4)
        holm.look([0: 0.013, 1: 0.009, 2: 0.021, 3: 0.5])
        #expect(holm.rejected == [0, 1])  // 0.009 <= 0.01, 0.013 <= 0.0133, but 0.021 > 0.02
        var twice = SequentialHolm(alpha: 0.04, looks: 2, count: 1)
        twice.look([0: 0.03])
        #expect(twice.rejected.isEmpty)
        twice.look([0: 0.02])
        #expect(twice.rejected == [0])
    }
}

/// The rule of `ab` over synthetic noise, with fixed seeds: the result does not depend on the machine that runs the
/// tests.
@Suite struct GateTrialTests {
    private func verdicts(_ trial: Trial) -> [Verdict] { trial.rows.map(trial.verdict) }

    @Test func `of 40 runs of a commit against itself, none objects`() throws {
        let rule = try GateRule()
        for seed in 1...40 {
            var machine = NoisyMachine(seed: UInt64(seed))
            let trial = machine.trial(rule)
            #expect(GateOutcome(verdicts(trial)) == .passed, "seed \(seed)")
            #expect(!verdicts(trial).contains(.better), "seed \(seed)")
        }
    }

    @Test func `at least 38 of 40 losses of 5 percent in one row of 20 are found, and nothing else`() throws {
        let rule = try GateRule()
        var found = 0
        for seed in 1...40 {
            var machine = NoisyMachine(seed: UInt64(seed))
            let lost = seed % 20
            let trial = machine.trial(rule, head: { $0 == lost ? 1.05 : 1 })
            let worse = trial.rows.indices.filter { verdicts(trial)[$0] == .worse }
            if worse == [lost] { found += 1 }
            #expect(worse.isEmpty || worse == [lost], "seed \(seed)")
        }
        #expect(found >= 38)
    }

    @Test func `a gain differs from a loss, and an unchanged row from both`() throws {
        var machine = NoisyMachine(seed: 1)
        let trial = try machine.trial(GateRule(), rows: 3, head: { [0.9, 1, 1.1][$0] })
        #expect(verdicts(trial) == [.better, .same, .worse])
        #expect(GateOutcome(verdicts(trial)).status == 3)
    }

    /// The worst case that alpha allows: a true change of exactly the tolerated size, in all rows.
    @Test func `changes of exactly the threshold are rarely called a loss`() throws {
        let rule = try GateRule()
        let alarms = (1...100).count { seed in
            var machine = NoisyMachine(seed: UInt64(seed))
            return verdicts(machine.trial(rule, rows: 8, head: { _ in 1 + rule.threshold })).contains(.worse)
        }
        #expect(alarms <= 10)  // 5 are expected at most; more than 10 have a probability of 1.1 %
    }

    @Test func `a row in which BASE differs from itself has no verdict, and the run is not passed`() throws {
        var machine = NoisyMachine(seed: 1)
        let trial = try machine.trial(GateRule(), rows: 3, again: { $0 == 1 ? 1.06 : 1 })
        #expect(verdicts(trial) == [.same, .controlOff, .same])
        #expect(GateOutcome(verdicts(trial)).status == 1)
    }

    @Test func `data that chose a row never judges it`() throws {
        var trial = try Trial(GateRule(), rows: [Row(workload: "a", n: 1)])
        let even = Restart(base: [1, 1, 1], again: [1, 1, 1], head: [1, 1, 1])
        let slow = Restart(base: [1, 1, 1], again: [1, 1, 1], head: [2, 2, 2])
        for _ in 0..<trial.rule.screening { trial.add([trial.rows[0]: slow]) }
        #expect(trial.isConfirming && trial.next == trial.rows)
        var restarts = 0
        while !trial.next.isEmpty {
            trial.add([trial.rows[0]: even])
            restarts += 1
        }
        #expect(restarts == trial.rule.looks[0])  // no longer than the first look, which drops the row
        #expect(trial.verdict(of: trial.rows[0]) == .same && trial.change(of: trial.rows[0])?.median == 1)
    }

    @Test func `a row that failed is not measured again, and has no verdict`() throws {
        let rows = [Row(workload: "a", n: 1), Row(workload: "b", n: 1)]
        var trial = try Trial(GateRule(), rows: rows)
        trial.fail(rows[0], "HEAD ended")
        #expect(trial.next == [rows[1]])
        #expect(trial.verdict(of: rows[0]) == .failed)
    }

    @Test func `an invalid threshold is named`() {
        #expect(
            throws: BenchmarkError("The threshold must be more than 0 and less than 1, not 5.0; 0.02 is 2 %.")
        ) { try GateRule(threshold: 5) }
    }
}

@Suite struct RunComparisonTests {
    /// A run of one or several workloads, in which each peer takes `slowness` times its given factor.
    private func run(
        _ factors: [String: Double], slowness: Double = 1, restarts: Int = 15, workloads: Int = 1,
        cpus: String = "2",
        peers: [String]? = nil
    ) -> RunDocument {
        let names = peers ?? factors.keys.sorted()
        var document = RunDocument(
            date: "2026-01-01T00:00:00Z", seed: 1, build: ["configuration": "release"],
            machine: ["cpus": cpus, "processor": "one"],
            peers: names.map {
                RunDocument.PeerDescription(name: $0, version: "1", allocator: "jemalloc", threads: 2)
            })
        for workload in 0..<workloads {
            for (name, factor) in factors {
                let salt = name.utf8.reduce(workload) { $0 &* 31 &+ Int($1) }
                document.results.append(
                    RunDocument.Series(
                        workload: "W\(workload)", params: ["n": 10], peer: name, unit: "ns/op",
                        restarts: (0..<restarts).map { restart in
                            // A percent of noise, and a machine that becomes slower and slower.
                            let noise = 1 + Double((salt &+ restart &* 7919).magnitude % 100) / 10_000
                            return RunDocument.Restart(
                                rounds: (1...3).map { slowness * factor * noise * Double(restart + $0) })
                        }, counts: [:], checksum: 0, stopped: nil))
            }
        }
        return document
    }

    private func compare(
        _ before: RunDocument, _ after: RunDocument, workloads: [String]? = nil, anyMachine: Bool = false
    ) throws -> RunComparison {
        try RunComparison(
            before: before, after: after, workloads: workloads, threshold: 0.02, anyMachine: anyMachine,
            isWithinBand: Summary.isWithinBand)
    }

    private let three = ["ours": 1.0, "dispatch": 3, "tbb": 2]

    @Test func `a machine that is twice as slow in the later run makes nothing worse`() throws {
        let comparison = try compare(run(three, workloads: 5), run(three, slowness: 2, workloads: 5))
        #expect(comparison.outcome == .passed)
        #expect(abs(try #require(comparison.drift) - 2) < 1e-9)
        #expect(comparison.rows.allSatisfy { $0.verdict == .same && $0.peers == 2 })
        #expect(ChangeTable(comparison).render().contains("all peers took 2.00× their time"))
    }

    @Test func `a loss beyond the peers' spread is found, and a gain is no loss`() throws {
        let slower = run(["ours": 1.1, "dispatch": 3, "tbb": 2], slowness: 2)
        #expect(try compare(run(three), slower).outcome.status == 3)
        let gain = try compare(slower, run(three))
        #expect(gain.outcome == .passed && gain.rows[0].verdict == .better)
        // A peer that changed as much, without a new version, makes the result inconclusive.
        let noisy = try compare(run(three), run(["ours": 1.1, "dispatch": 3, "tbb": 2.5]))
        #expect(noisy.outcome == .passed && noisy.rows[0].verdict == .unclear)
        #expect(try #require(noisy.band) > 0.2)
    }

    @Test func `too few restarts for so many rows are no pass, and fewer rows are enough`() throws {
        let worse = ["ours": 1.5, "dispatch": 3.0, "tbb": 2]
        let (before, after) = (run(three, restarts: 6, workloads: 60), run(worse, restarts: 6, workloads: 60))
        let all = try compare(before, after)
        #expect(!all.canShow && all.outcome.status == 1)
        #expect(
            ChangeTable(all).render().contains(
                "With so few restarts nothing can be shown for 60 rows together"))
        #expect(try compare(before, after, workloads: ["W7"]).outcome == .worse)
    }

    @Test func `runs without a common peer give no result, as noted`() throws {
        let comparison = try compare(run(["ours": 1]), run(["ours": 2]))
        #expect(comparison.outcome == .notMeasured && comparison.band == nil)
        #expect(ChangeTable(comparison).render().contains("have no peer in common"))
        // A peer of another version is no common peer either.
        var other = run(three)
        for index in other.peers.indices { other.peers[index].version = "2" }
        #expect(try compare(run(three), other).outcome == .notMeasured)
    }

    @Test func `a row where ours differed from itself has no verdict`() throws {
        var off = three
        off["ours-again"] = 1.3
        let names = ["ours", "dispatch", "tbb"]
        let comparison = try compare(run(three), run(off, peers: names))
        #expect(comparison.rows.map(\.verdict) == [.controlOff] && comparison.outcome.status == 1)
    }

    @Test func `another number of CPUs is refused by default`() throws {
        #expect {
            try compare(run(three), run(three, cpus: "4"))
        } throws: {
            "\($0)".contains("the number of CPUs is '2' in the earlier one, '4' in the later one")
                && ($0 as? BenchmarkError)?.status == 64
        }
        #expect(try compare(run(three), run(three, cpus: "4"), anyMachine: true).outcome == .passed)
        #expect { try compare(run(three), run(three), workloads: ["W9"]) } throws: {
            "\($0)" == "The files do not both have 'W9' of ours; they have W0."
        }
    }

    // MARK: Exports, as other programs read them

    private var document: RunDocument {
        var document = run(three, restarts: 2)
        document.results[0].unit = "ns, \"each\""
        return document
    }

    @Test func `CSV has a line for each value`() throws {
        let lines = Exports.csv(document).split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.first == "workload,n,peer,restart,round,value,unit" && lines.last == "")
        #expect(lines.count == 1 + 3 * 2 * 3 + 1)
        let series = document.results[0]
        let last = "W0,10,\(series.peer),2,3,\(series.restarts[1].rounds[2]),\"ns, \"\"each\"\"\""
        #expect(lines[6] == last)
    }

    @Test func `JMH's viewers find a benchmark for each series, with all values`() throws {
        struct Benchmark: Decodable {
            struct Metric: Decodable {
                let score: Double
                let scoreError: Double
                let scoreConfidence: [Double]
                let scorePercentiles: [String: Double]
                let scoreUnit: String
                let rawData: [[Double]]
            }
            let benchmark: String
            let mode: String
            let threads: Int
            let forks: Int
            let params: [String: String]
            let primaryMetric: Metric
        }
        let benchmarks = try JSONDecoder().decode([Benchmark].self, from: Exports.jmh(document))
        #expect(Set(benchmarks.map(\.benchmark)) == ["W0.ours", "W0.dispatch", "W0.tbb"])
        for (benchmark, series) in zip(benchmarks, document.results) {
            #expect(benchmark.mode == "avgt" && benchmark.threads == 2 && benchmark.forks == 2)
            #expect(benchmark.params == ["n": "10"] && benchmark.primaryMetric.scoreUnit == series.unit)
            #expect(benchmark.primaryMetric.rawData == series.restarts.map(\.rounds))
            #expect(benchmark.primaryMetric.scorePercentiles["100.0"] == series.values.max())
            #expect(benchmark.primaryMetric.scorePercentiles["0.0"] == series.values.min())
        }
    }

    @Test func `github-action-benchmark finds a name, a unit and a value for each series`() throws {
        struct Entry: Decodable {
            let name: String
            let unit: String
            let value: Double
        }
        let entries = try JSONDecoder().decode([Entry].self, from: Exports.githubActionBenchmark(document))
        #expect(Set(entries.map(\.name)) == ["W0 n=10 ours", "W0 n=10 dispatch", "W0 n=10 tbb"])
        #expect(entries.allSatisfy { $0.value > 0 })
    }
}
