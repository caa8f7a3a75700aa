import BenchmarkCore
import BenchmarkHarness
import BenchmarkReport
import Testing

@Suite struct GateTests {
    private func document(_ series: [RunDocument.Series]) -> RunDocument {
        var document = RunDocument(
            date: "2026-01-01T00:00:00Z", seed: 7, build: [:], machine: [:],
            peers: ["ours", "ours-bare", "dispatch"].map {
                RunDocument.PeerDescription(name: $0, version: "", allocator: "jemalloc", threads: 2)
            })
        document.results = series
        return document
    }

    /// The records: 2 allocations per step of a cascade, 3.05 per step of a rollback.
    private func gates(_ run: RunDocument) -> Gates {
        var recorded = RecordedCounts()
        for (row, n, allocations) in [("W6-cascade ours", 3_000, 2), ("W16-last ours", 1_000, 3.05)] {
            recorded.rows[row] = OperationCounts(
                n: n, instructions: [:], allocations: allocations, retains: 0, releases: 0, atomics: 0,
                mutexes: 0)
        }
        recorded.pendingBytes = [
            "W20-leaf": 201, "W20-child": 152, "W20-composite": 537, "W20-queued": 288, "W21-memory": 217,
        ]
        return Gates(run, recorded: recorded)
    }

    private func series(
        _ workload: String, n: Int, peer: String = "ours", time: Double = 100, counts: [String: Double] = [:]
    ) -> RunDocument.Series {
        RunDocument.Series(
            workload: workload, params: ["n": n], peer: peer, unit: "ns/op",
            restarts: (0..<6).map { _ in RunDocument.Restart(rounds: [time]) }, counts: counts, checksum: 0,
            stopped: nil)
    }

    @Test(arguments: [(2.0, 1_000, true), (2.14, 1_000, true), (2.16, 1_000, false), (2.9, 10, true)])
    func `allocations may grow by a twentieth where one-time costs do not show`(
        allocations: Double, n: Int, holds: Bool
    ) {
        let run = document([series("W6-cascade", n: n, counts: ["allocations_per_op": allocations])])
        #expect(gates(run).countFailures().isEmpty == holds)
        #expect(gates(run).failures().isEmpty == holds)
    }

    @Test func `the bytes of a pending operation are compared at the size of their record`() {
        let counts = ["bytes_per_op": 10_000.0]
        for workload in ["W20-leaf", "W20-child", "W20-composite", "W20-queued", "W21-memory"] {
            #expect(gates(document([series(workload, n: 10_000, counts: counts)])).countFailures().count == 1)
            #expect(gates(document([series(workload, n: 1_000, counts: counts)])).countFailures().isEmpty)
        }
    }

    /// The record of a rollback: 3.05 allocations per step, at 1,000 steps.
    @Test(arguments: [(3.24, 1_000, true), (3.26, 1_000, false), (9.0, 10, true), (9.0, 10_000, true)])
    func `allocations of the libraries are compared at the size of their record`(
        allocations: Double, n: Int, holds: Bool
    ) {
        let run = document([series("W16-last", n: n, counts: ["allocations_per_op": allocations])])
        #expect(gates(run).countFailures().isEmpty == holds)
    }

    @Test func `a leaked byte fails, and so does an operation run after the cancellation`() {
        for workload in ["W14-0", "W14-1", "W14-50", "W20", "W20-queued", "W21-memory"] {
            let left = document([series(workload, n: 1_000_000, counts: ["bytes_left": 1])])
            #expect(gates(left).countFailures().count == 1)
            let clean = ["bytes_left": 0.0, "ran_after_cancel": 0]
            #expect(gates(document([series(workload, n: 1_000, counts: clean)])).countFailures().isEmpty)
        }
        let ran = document([series("W14-50", n: 1_000_000, counts: ["ran_after_cancel": 1])])
        #expect(gates(ran).countFailures().count == 1)
        // The peers' counts are not exact, so they must not fail a gate.
        let others = document([
            series("W20", n: 1_000, peer: "dispatch", counts: ["bytes_left": 999]),
            series("W14-50", n: 1_000, peer: "dispatch", counts: ["ran_after_cancel": 1, "bytes_left": 64]),
        ])
        #expect(gates(others).countFailures().isEmpty)
    }

    @Test func `time that grows faster than n fails`() {
        let some = ["W5", "W6-cascade", "W10", "W16-last", "W21-undo", "W22-members", "W27-set"]
        for workload in some + BenchmarkCore.workloads.map(\.id).filter({ $0.hasPrefix("W24-") }) {
            let linear = [1_000, 10_000, 100_000].map { series(workload, n: $0) }
            #expect(gates(document(linear)).countFailures().isEmpty)
            // Each size takes 1.5 times as long per operation as the previous one: total time grows as n^1.18.
            let steep = [(1_000, 100.0), (10_000, 150), (100_000, 225)].map {
                series(workload, n: $0.0, time: $0.1)
            }
            #expect(gates(document(steep)).countFailures().count == 1)
            // Another program took CPU time during the long samples. Ours used as much CPU time per operation
            // as in the short ones.
            let loaded = steep.map {
                series(workload, n: $0.n, time: $0.values[0], counts: ["cpu_ns_per_op": 100])
            }
            #expect(gates(document(loaded)).countFailures().isEmpty)
        }
    }

    @Test func `promises against peers are a gate of times, not of counts`() {
        func run(bare: Double) -> RunDocument {
            document([
                series("W6-cascade", n: 1_000), series("W6-cascade", n: 1_000, peer: "ours-bare", time: bare),
            ])
        }
        #expect(gates(run(bare: 60)).failures().isEmpty)
        #expect(gates(run(bare: 40)).failures().count == 1)
        #expect(gates(run(bare: 40)).countFailures().isEmpty)
    }

    @Test(arguments: [(50.0, 0), (100, 0), (200, 1)])
    func `the headline counts the workloads in which ours is ahead, and no others`(theirs: Double, won: Int)
        throws
    {
        let run = document([series("W1", n: 1_000), series("W1", n: 1_000, peer: "dispatch", time: theirs)])
        #expect(try Page(run).render().contains("Ours is faster than every peer in \(won) of 1 workloads"))
    }

    @Test(arguments: [(105.0, 1), (150, 0)])
    func `a row where ours differs from itself has no verdict`(again: Double, won: Int) throws {
        let run = document([
            series("W1", n: 1_000), series("W1", n: 1_000, peer: "ours-again", time: again),
            series("W1", n: 1_000, peer: "dispatch", time: 200),
        ])
        let text = FullReport(run).render()
        #expect(text.contains("No verdict: a second process of ours takes 1.50× our time.") == (won == 0))
        #expect(
            text.contains("A/A: ours against ours is 1 within its band in each of 1 workloads.") == (won == 1)
        )
        #expect(try Page(run).render().contains("Ours is faster than every peer in \(won) of 1 workloads"))
    }

    /// For the larger of two sizes: how many values it has, why measuring stopped, whether it was skipped, and
    /// how many sizes are then missing.
    @Test(
        arguments: [
            (6, nil, nil, 0), (0, "predicted to take 9 s a sample", true, 0),
            (0, "the process ended", nil, 1),
            (3, "the process ended", nil, 1), (0, nil, nil, 1),
        ] as [(Int, String?, Bool?, Int)])
    func `a size in which ours ended is missing, one that takes too long is not`(
        values: Int, stopped: String?, isLeftOut: Bool?, missing: Int
    ) {
        var large = series("W1", n: 10_000)
        large.restarts = Array(large.restarts.prefix(values))
        large.stopped = stopped
        large.isLeftOut = isLeftOut
        #expect(document([series("W1", n: 1_000), large]).missing.count == missing)
        #expect(document([large]).missing.count == (isLeftOut == true ? 1 : missing))
    }

    @Test func `a row not compared with itself has no verdict, and an empty run has no text`()
        throws
    {
        let run = document([
            series("W1", n: 1_000), series("W1", n: 1_000, peer: "dispatch", time: 200),
            series("W3", n: 1_000), series("W3", n: 1_000, peer: "ours-again"),
        ])
        #expect(FullReport(run).render().contains("W1  No verdict: ours was not compared with itself."))
        #expect(try Page(run).render().contains("Ours is faster than every peer in 0 of 2 workloads"))
        #expect(FullReport(document([])).render().contains("A/A: ours was not compared with itself."))
    }

    @Test func `our scheduler without the layer never wins or loses`() {
        let run = document([series("W5", n: 1_000), series("W5", n: 1_000, peer: "ours-bare", time: 25)])
        let text = FullReport(run).render()
        #expect(text.contains("No peer to compare with."))
        #expect(text.contains("Our scheduler without the layer takes 0.25× our time."))
    }
}
