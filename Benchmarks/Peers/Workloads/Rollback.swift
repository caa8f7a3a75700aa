import BenchmarkCore

/// A way to run steps one after another, and to undo them, last first, if one of them fails.
protocol RollbackForm: SendableMetatype {
    /// - Throws: the error of the failing step, after all steps before it were undone.
    static func run(steps: Int, failing: Int, _ ledger: Ledger) async throws
}

/// W16: as many transactions as make the sample long enough; each of them fails.
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
        // A transaction that does not fail makes the result wrong.
        let missing = UInt64(count - failures)
        return Sample(
            from: start, to: stop, operations: count * failing, checksum: ledger.checksum &+ missing)
    }
}
