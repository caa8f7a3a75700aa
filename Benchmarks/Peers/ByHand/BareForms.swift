import BenchmarkCore

/// The bare work of the workloads of Commands, Transactions and Actions, and nothing else: the peer `floor`.
enum BareForms {
    static func form(_ workload: String) -> String? {
        switch workload {
        case "W16-last", "W16-half": "The steps, and their undo steps, in two loops."
        case "W21-execute", "W21-undo", "W21-redo", "W21-now":
            "The changes, and their undo steps: the history is a number."
        case "W21-invoker": "The work, called immediately."
        case "W22-commit", "W22-rollback", "W22-members", "W22-threads":
            "Writes to an array in a class; a rollback writes once more."
        case "W23-open", "W23-closed":
            "A condition, and the work: nothing keeps two calls from running at once."
        default: nil
        }
    }

    static func notApplicable(_ workload: String) -> String? {
        switch workload {
        case "W21-memory": "Its history is a number."
        case "W22-readers": "Nothing keeps others from reading half a transaction."
        case "W23-contended": "Nothing keeps two calls from running at once."
        default: nil
        }
    }

    static func run(_ peer: some Peer, _ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W16-last", "W16-half": rollbacks(BareRollback.self, workload, steps: n)
        case "W21-execute", "W21-undo", "W21-redo": histories(BareHistory.self, workload, changes: n)
        case "W21-now": try histories(BareSynchronousHistory.self, changes: n)
        case "W21-invoker": commandsInOrder(BareOrder.self, count: n)
        case "W23-open", "W23-closed": actionCalls(BareGate.self, workload, threads: n)
        default: try peer.runModel(BareModel.self, workload, n: n)
        }
    }
}

private enum BareRollback: RollbackForm {
    static func run(steps: Int, failing: Int, _ ledger: Ledger) async throws {
        var done = 0
        do {
            while done < steps {
                try await LedgerStep(ledger, done, failing: failing).perform()
                done += 1
            }
        } catch {
            for number in (0..<done).reversed() { await LedgerStep(ledger, number).undo() }
            throw error
        }
    }
}

private final class BareHistory: HistoryForm {
    private var index = 0
    private var last: LedgerStep?

    private func step(_ number: Int) -> LedgerStep? { last.map { LedgerStep($0.ledger, number) } }

    func execute(_ change: LedgerStep) async throws {
        try await change.perform()
        last = change
        index += 1
    }

    func undo() async throws {
        index -= 1
        await step(index)?.undo()
    }

    func redo() async throws {
        try await step(index)?.perform()
        index += 1
    }
}

private final class BareSynchronousHistory: SynchronousHistoryForm {
    private var index = 0
    private var ledger: Ledger?

    func execute(_ change: Int, _ ledger: Ledger) {
        ledger.add(change)
        self.ledger = ledger
        index += 1
    }

    func undo() {
        index -= 1
        ledger?.takeBack(index)
    }

    func redo() {
        ledger?.add(index)
        index += 1
    }
}

private final class BareOrder: OrderForm {
    func submit(_ number: Int, _ ledger: Ledger) { ledger.add(number) }
    func flush() {}
}

private final class BareModel: ModelForm {
    private(set) var values: [UInt64]

    init(keys: Int) { values = (0..<keys).map { Workload.mark($0) } }

    @inline(never)
    private func add(_ mark: UInt64, to keys: ModelKeys) {
        for turn in 0..<keys.count { values[keys[turn]] &+= mark }
    }

    func transact(_ keys: ModelKeys, _ mark: UInt64, fails: Bool) {
        add(mark, to: keys)
        if fails { add(0 &- mark, to: keys) }
    }
}

private final class BareGate: ActionForm {
    private let isEnabled: Bool
    private let work: @Sendable (Int) -> Void

    init(isEnabled: Bool, _ work: @escaping @Sendable (Int) -> Void) {
        self.isEnabled = isEnabled
        self.work = work
    }

    func call(_ index: Int) -> Bool {
        if isEnabled { work(index) }
        return isEnabled
    }
}
