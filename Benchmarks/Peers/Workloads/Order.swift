import BenchmarkCore

/// Runs work one at a time, in the order of its submission. Lives in one task.
protocol OrderForm: SendableMetatype {
    init()
    func submit(_ number: Int, _ ledger: Ledger)
    /// Returns when all that was submitted has run.
    func flush() async throws
}

/// W21-invoker: so many submissions, then the wait for the last; until there are enough for a sample.
func commandsInOrder<Form: OrderForm>(_ form: Form.Type, count: Int) -> Sample {
    let batches = Workload.histories(of: count)
    return blocking {
        let ledger = Ledger(), form = Form()
        let start = startClock()
        // An error leaves work out, which makes a wrong result.
        do {
            for _ in 0..<batches {
                for number in 0..<count { form.submit(number, ledger) }
                try await form.flush()
            }
        } catch {}
        let stop = stopClock()
        return Sample(from: start, to: stop, operations: batches * count, checksum: ledger.checksum)
    }
}
