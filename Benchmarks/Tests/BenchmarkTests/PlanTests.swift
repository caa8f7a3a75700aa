import BenchmarkCore
import BenchmarkHarness
import Foundation
import Testing

@Suite struct PlanTests {
    private func plan(
        filter: [String]? = nil, peers: [String]? = nil, threads: Int = 2, sizes: [Int]? = nil,
        depth: Plan.Depth = .quick
    ) throws -> Plan {
        let options = PlanOptions(
            filter: filter, peers: peers, threads: threads, seed: 1, depth: depth, sizes: sizes)
        return try Plan(options, known: ["ours", "dispatch"])
    }

    @Test func `an unknown workload, peer or number of threads is named`() {
        #expect { try plan(filter: ["W99"]) } throws: {
            "\($0)".hasPrefix("There is no workload 'W99'; there are W0")
        }
        #expect(throws: BenchmarkError("There is no peer 'gcd'; there are ours, dispatch.")) {
            try plan(peers: ["gcd"])
        }
        #expect(throws: BenchmarkError("The number of threads must be from 1 to 256, not 0.")) {
            try plan(threads: 0)
        }
    }

    @Test func `ours always takes part`() throws {
        #expect(try plan(peers: ["dispatch"]).peers == ["ours", "dispatch"])
    }

    @Test func `a family is chosen by the beginning of its identifiers`() throws {
        #expect(try plan(filter: ["W14"]).workloads.map(\.id) == ["W14-0", "W14-1", "W14-50"])
        #expect(try plan(filter: ["W1"]).workloads.map(\.id) == ["W1"])
        #expect(try plan(filter: ["W6-cascade"]).workloads.map(\.id) == ["W6-cascade"])
        #expect(throws: BenchmarkError.self) { try plan(filter: ["W14-"]) }
    }

    @Test func `sizes replace the depth's, and are run in ascending order`() throws {
        let chosen = try plan(filter: ["W5", "W14"], sizes: [800, 700])
        #expect(chosen.workloads.allSatisfy { chosen.sizes(of: $0) == [700, 800] })
        let usual = try plan(filter: ["W5"])
        #expect(usual.sizes(of: usual.workloads[0]) == usual.workloads[0].quick)
        #expect(throws: BenchmarkError("A size must be at least 1, not 0.")) { try plan(sizes: [10, 0]) }
        for workload in BenchmarkCore.workloads {
            for sizes in [workload.smoke, workload.quick, workload.thorough] {
                #expect(sizes == sizes.sorted())
            }
        }
    }

    @Test func `an invalid size of a workload is refused, and named`() throws {
        for (workload, size, sentence) in [
            ("W14-1", 10, "W14-1 takes sizes of at least 100, not 10."),
            ("W9", 1_000_000, "W9 takes sizes from 2 to 40, not 1000000."),
            ("W10", 300_000, "W10 takes powers of 10, from 10 on, not 300000."),
            ("W22-threads", 3, "W22-threads takes divisors of 1600, not 3."),
        ] {
            #expect(throws: BenchmarkError(sentence)) {
                try plan(filter: ["W5", workload], sizes: [size])
            }
        }
        for workload in BenchmarkCore.workloads {
            #expect((workload.quick + workload.smoke + workload.thorough).allSatisfy(workload.sizes.contain))
        }
    }

    @Test func `each workload is measured by each set of processes, costs by the first two`() throws {
        let units = try plan(filter: ["W5", "W13"]).units
        #expect(units.filter { $0.workload == "W5" }.map(\.restart) == Array(0..<6))
        #expect(units.filter { $0.workload == "W13" }.map(\.restart) == [0, 1])
        #expect(units.map(\.restart) == units.map(\.restart).sorted())
    }

    @Test func `a thread sweep measures scaling workloads, and the run's count only once`() throws {
        let options = PlanOptions(
            filter: ["W5", "W6", "W13"], threads: 2, seed: 1, depth: .quick, threadSweep: [1, 2, 8])
        let units = try Plan(options, known: ["ours"]).units
        let swept = units.filter { $0.threads != nil }
        #expect(swept.map(\.description) == (0..<3).flatMap { ["W5/\($0)@1", "W5/\($0)@8"] })
        #expect(units.count { $0.workload == "W5" } == 6 + 6)
        var wrong = options
        wrong.threadSweep = [1, 300]
        #expect(throws: BenchmarkError("The number of threads must be from 1 to 256, not 300.")) {
            try Plan(wrong, known: ["ours"])
        }
    }

    @Test func `sizes that only make a curve are measured by three sets of processes`() throws {
        for (depth, wanted) in [(Plan.Depth.quick, [2, 2, 2, 1, 1, 1]), (.thorough, [4, 4, 4, 1, 1, 1])] {
            let plan = try plan(filter: ["W1"], depth: depth)
            let sizes = (0..<6).map { plan.sizes(of: plan.workloads[0], restart: $0) }
            #expect(sizes.map(\.count) == wanted)
            #expect(sizes.allSatisfy { $0.last == plan.sizes(of: plan.workloads[0]).last })
        }
    }
}

@Suite struct RoundsTests {
    @Test func `rows with agreeing rounds get one, others all`() {
        #expect(Rounds.count(after: [], most: 3) == 3)
        #expect(Rounds.count(after: [0.1, 0.1], most: 3) == 3)
        #expect(Rounds.count(after: [0.01, -0.02, 0.02], most: 3) == 1)
        #expect(Rounds.count(after: [0.01, -0.03, 0.03], most: 3) == 3)
        #expect(Rounds.count(after: [1.0, 1.1, 1.2], most: 5) == 1)
        #expect(Rounds.count(after: [-1.0, -1.1, -1.2], most: 5) == 1)
        #expect(Rounds.count(after: [0.8, 1.0, 1.2], most: 5) == 5)
        #expect(Rounds.count(after: [-0.2, 1.0, 1.2], most: 5) == 5)
    }

    /// The claim of ``Rounds``: the interval covers the true median as often as without the rule. The noise is typical of
    /// such a machine: phases of half speed that last for some rounds, and a heavy tail.
    @Test(arguments: [0.0, 0.05, 0.7])
    func `the interval covers as often as stated`(truth: Double) throws {
        var random = Random(seed: 7)
        var (covered, spared) = (0, 0)
        let runs = 4_000
        for _ in 0..<runs {
            let spread = [0.01, 0.05, 0.3][Int(random.next() % 3)]
            var logs: [Double] = []
            var values: [Double] = []
            for _ in 0..<6 {
                let rounds = Rounds.count(after: logs, most: 3)
                spared += 3 - rounds
                let offset = spread * random.symmetric()  // varies between processes
                let restart = (0..<rounds).map { _ in
                    truth + offset + spread * random.symmetric()
                        + (random.next() % 8 == 0 ? (random.next() % 2 == 0 ? 0.7 : -0.7) : 0)
                }
                logs += restart
                values.append(try #require(Estimate.median(restart)))
            }
            let estimate = try #require(Estimate(values))
            if estimate.low <= truth && truth <= estimate.high { covered += 1 }
        }
        // 31 of 32 are promised; three standard deviations of a binomial count are 0.8 %.
        #expect(Double(covered) / Double(runs) > 31.0 / 32 - 0.01)
        #expect(spared > runs)  // and the rule saves time
    }

    private struct Random: RandomNumberGenerator {
        var state: UInt64
        init(seed: UInt64) { state = seed }
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) ^ (state >> 11)
        }
        /// About -1 to 1, more often near 0.
        mutating func symmetric() -> Double {
            (0..<3).map { _ in Double(next() % 2_001) / 1_000 - 1 }.reduce(0, +) / 3
        }
    }
}

@Suite struct ProgressTests {
    @Test func `without a terminal there is a line every 15 seconds`() {
        var (lines, now) = ([String](), ContinuousClock.now)
        let progress = Progress(isTerminal: false, write: { lines.append($0) }, now: { now })
        for second in 0..<60 {
            progress.show(share: Double(second) / 60, left_s: 60.0 - Double(second), "W5")
            now += .seconds(1)
        }
        progress.end()
        #expect(
            lines == [
                "benchmarks: 25 %, about 45 s left: W5\n", "benchmarks: 50 %, about 30 s left: W5\n",
                "benchmarks: 75 %, about 15 s left: W5\n",
            ])
    }

    @Test func `a terminal shows one line, removed at end`() {
        var lines: [String] = []
        let progress = Progress(isTerminal: true, write: { lines.append($0) }, now: { .now })
        progress.show(share: 0, left_s: nil, "waiting")
        progress.show(share: 0.999, left_s: 61.2, "W5")
        progress.end()
        #expect(
            lines == [
                "\r\u{1B}[K0 %: waiting", "\r\u{1B}[K99 %, about 1 min 2 s left: W5", "\r\u{1B}[K",
            ])
    }

    @Test func `the forecast uses a unit's earlier times, or the others'`() throws {
        let units = (0..<3).flatMap { restart in
            ["W1", "W5", "W6"].map { RunUnit(workload: $0, restart: restart) }
        }
        var forecast = Forecast(units: units, measured: [])
        #expect(forecast.left == nil && forecast.share == 0)
        forecast.note(units[0], seconds: 1)
        forecast.note(units[1], seconds: 3)
        #expect(forecast.left == 14.0)  // 2 × 1 and 2 × 3 as before, and 3 × 2 like the others
        forecast.note(units[3], seconds: 1)
        #expect(forecast.left == 13.0 && forecast.share == 5.0 / 18)
        for unit in units { forecast.note(unit, seconds: 2) }
        #expect(forecast.left == 0 && forecast.share == 1)
    }
}
