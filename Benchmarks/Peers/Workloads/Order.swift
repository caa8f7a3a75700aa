import BenchmarkCore

/// Runs work items one at a time, in submission order. Confined to one task.
protocol OrderForm: SendableMetatype {
    init()
    func submit(_ number: Int, _ ledger: Ledger)
    /// Returns when everything submitted has run.
    func flush() async throws
}

/// W21-invoker: `count` submissions, then a wait for the last; repeated until they form a sample.
func commandsInOrder<Form: OrderForm>(_ form: Form.Type, count: Int) -> Sample {
    let batches = Workload.histories(of: count)
    return blocking {
        let ledger = Ledger(), form = Form()
        let start = startClock()
        // An error skips work, which makes the checksum wrong.
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
