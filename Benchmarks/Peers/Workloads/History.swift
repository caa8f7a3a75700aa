import BenchmarkCore

/// A history of changes that may await. It is confined to one task.
protocol HistoryForm: SendableMetatype {
    init()
    func execute(_ change: LedgerStep) async throws
    func undo() async throws
    func redo() async throws
}

/// A history of changes that never await.
protocol SynchronousHistoryForm {
    init()
    func execute(_ change: Int, _ ledger: Ledger) throws
    func undo() throws
    func redo() throws
}

/// W21: successive histories, each of `changes` entries. Only the calls that the workload names are timed.
func histories<Form: HistoryForm>(_ form: Form.Type, _ workload: String, changes: Int) -> Sample {
    let count = Workload.histories(of: changes)
    return blocking {
        let ledger = Ledger()
        var time = 0
        // An error leaves changes out, which makes the result wrong.
        do {
            for _ in 0..<count {
                let history = Form()
                var start = workload == "W21-execute" ? startClock() : 0
                for change in 0..<changes { try await history.execute(LedgerStep(ledger, change)) }
                if workload == "W21-execute" {
                    time += stopClock() - start
                    continue
                }
                start = workload == "W21-undo" ? startClock() : 0
                for _ in 0..<changes { try await history.undo() }
                if workload == "W21-undo" {
                    time += stopClock() - start
                    continue
                }
                start = startClock()
                for _ in 0..<changes { try await history.redo() }
                time += stopClock() - start
            }
        } catch {}
        return Sample(from: 0, to: time, operations: count * changes, checksum: ledger.checksum)
    }
}

/// W21 for changes that never await: all three calls.
func histories<Form: SynchronousHistoryForm>(_ form: Form.Type, changes: Int) throws -> Sample {
    let count = Workload.histories(of: changes)
    let ledger = Ledger()
    let start = startClock()
    for _ in 0..<count {
        let history = Form()
        for change in 0..<changes { try history.execute(change, ledger) }
        for _ in 0..<changes { try history.undo() }
        for _ in 0..<changes { try history.redo() }
    }
    let stop = stopClock()
    return Sample(from: start, to: stop, operations: 3 * count * changes, checksum: ledger.checksum)
}

/// W21: the memory that a history holds when all changes are done, and what remains when the history is gone.
func historyMemory<Form: HistoryForm>(_ form: Form.Type, changes: Int) -> Sample {
    blocking(beginsHere: true) {
        let ledger = Ledger()
        var memory = LiveBytes()
        let start = startClock()
        memory = await fill(form, ledger, changes: changes, memory)
        let stop = stopClock()
        memory.noteDrained()
        return memory.sample(from: start, to: stop, operations: changes, checksum: ledger.checksum)
    }
}

/// The history is deallocated when this returns.
private func fill<Form: HistoryForm>(
    _ form: Form.Type, _ ledger: Ledger, changes: Int, _ memory: LiveBytes
) async -> LiveBytes {
    var memory = memory
    let history = Form()
    do {
        for change in 0..<changes { try await history.execute(LedgerStep(ledger, change)) }
        memory.notePending()
        for _ in 0..<changes { try await history.undo() }
    } catch {}
    return memory
}
