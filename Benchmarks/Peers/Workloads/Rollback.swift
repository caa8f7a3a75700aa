import BenchmarkCore

/// A way to do steps one after another, and to take them back, last first, when one of them fails.
protocol RollbackForm: SendableMetatype {
    /// - Throws: what the failing step threw, when all before it were taken back.
    static func run(steps: Int, failing: Int, _ ledger: Ledger) async throws
}

/// W16: as many transactions as make a sample long enough, each of which fails.
func rollbacks<Form: RollbackForm>(_ form: Form.Type, _ workload: String, steps: Int) -> Sample {
    let failing = Workload.failingStep(workload, of: steps)
    let count = Workload.rollbacks(of: steps)
    return blocking {
        let ledger = Ledger()
        var failures = 0
        let start = startClock()
        for _ in 0..<count {
            do { try await Form.run(steps: steps, failing: failing, ledger) } catch { failures += 1 }
        }
        let stop = stopClock()
        // One that does not fail makes a wrong result.
        let missing = UInt64(count - failures)
        return Sample(
            from: start, to: stop, operations: count * failing, checksum: ledger.checksum &+ missing)
    }
}
