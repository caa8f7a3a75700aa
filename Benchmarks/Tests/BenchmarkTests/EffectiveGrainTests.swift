import BenchmarkHarness
import Foundation
import Testing

@Suite struct EffectiveGrainTests {
    /// A run of W17 in which each operation costs a peer `overhead_ns` in addition to its work, on two threads: an
    /// efficiency of e requires work of e / (1 - e) times the overhead.
    private func document(_ grains_ns: [Int], overhead_ns: Double) -> RunDocument {
        var document = RunDocument(date: "", seed: 1, build: [:], machine: [:], peers: [])
        for grain_ns in grains_ns {
            let took_ns = (Double(grain_ns) + overhead_ns) / 2
            // An outlier, which does not affect a median.
            let rounds = [took_ns, took_ns, 100 * took_ns]
            document.results.append(
                RunDocument.Series(
                    workload: "W17", params: ["n": grain_ns], peer: "ours", unit: "ns/op",
                    restarts: [RunDocument.Restart(rounds: rounds)],
                    counts: ["grain_ns": Double(grain_ns), "ideal_ns_per_op": Double(grain_ns) / 2],
                    checksum: 0,
                    stopped: nil))
        }
        return document
    }

    @Test(arguments: [(0.5, 400.0), (0.9, 3_600.0), (0.25, 400.0 / 3)])
    func `the grain follows from the overhead`(efficiency: Double, grain_ns: Double) throws {
        // Dense enough for linear interpolation between two neighbours to follow the curve closely.
        let grains = Array(stride(from: 100, through: 10_000, by: 20))
        let grain = document(grains.shuffled(), overhead_ns: 400).effectiveGrain(
            "ours", efficiency: efficiency)
        guard case .about(let ns) = try #require(grain) else {
            Issue.record("\(String(describing: grain))")
            return
        }
        #expect(abs(ns - grain_ns) < 0.01 * grain_ns)
    }

    @Test func `between two lengths the line is straight over the logarithm`() throws {
        let run = document([100, 10_000], overhead_ns: 300)  // efficiencies of 0.25 and 0.971
        let share = (0.5 - 0.25) / (10_000 / 10_300 - 0.25)
        guard case .about(let ns) = try #require(run.effectiveGrain("ours", efficiency: 0.5)) else {
            Issue.record("no length")
            return
        }
        #expect(abs(ns - 100 * pow(100, share)) < 1e-6)
    }

    @Test func `values outside the measured lengths are marked as such`() {
        let run = document([1_000, 10_000], overhead_ns: 400)
        #expect(run.effectiveGrain("ours", efficiency: 0.5) == .atMost(ns: 1_000))
        #expect(run.effectiveGrain("ours", efficiency: 0.99) == .moreThan(ns: 10_000))
        #expect(run.effectiveGrain("dispatch", efficiency: 0.5) == nil)
        #expect(run.efficiency("W17", n: 1_000, peer: "ours") == 1_000.0 / 1_400)
        #expect(run.efficiency("W1", n: 1_000, peer: "ours") == nil)
    }

    /// One long enough length does not suffice: the efficiency must also be reached at all greater lengths.
    @Test func `the curve is crossed for the last time`() throws {
        var run = document([100, 1_000, 10_000], overhead_ns: 100)
        // 1,000 ns: an efficiency of 0.25 between those of 0.5 and 0.99.
        run.results[1].restarts = [RunDocument.Restart(rounds: [2_000])]
        guard case .about(let ns) = try #require(run.effectiveGrain("ours", efficiency: 0.45)) else {
            Issue.record("no length")
            return
        }
        #expect(ns > 1_000 && ns < 10_000)
    }
}
