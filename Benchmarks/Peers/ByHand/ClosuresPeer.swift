import BenchmarkCore
import Dispatch

/// Arrays of undo closures: what a Swift programmer would write first.
final class ClosuresPeer: HandWrittenPeer {
    static let name = "closures"
    static let source = "Benchmarks/Peers/ByHand/ClosuresPeer.swift"

    static func form(_ workload: String) -> String? {
        switch workload {
        case "W16-last", "W16-half":
            "do and catch, with an array of undo closures. No token, no notification, no proofs, no cancellation; an undo cannot fail."
        case "W21-execute", "W21-undo", "W21-redo", "W21-memory":
            "Two arrays of asynchronous closures. Overlapping calls interleave; a cancellation also reaches an undo in progress; no names, no merging, no limit, no clean mark, no failures."
        case "W21-now":
            "Two arrays of closures. Calls from inside a change interleave; no names, no limit, no clean mark, no failures."
        case "W21-invoker":
            "A closure for each command, on a serial dispatch queue. No token, no outcome, no cancellation, no notification, no capacity; commands may not await."
        default: nil
        }
    }

    init(threads: Int) {}

    func run(_ workload: String, n: Int) throws -> Sample {
        switch workload {
        case "W16-last", "W16-half": rollbacks(ClosureRollback.self, workload, steps: n)
        case "W21-now": try histories(SynchronousClosureHistory.self, changes: n)
        case "W21-invoker": commandsInOrder(QueueOfClosures.self, count: n)
        case "W21-memory": historyMemory(ClosureHistory.self, changes: n)
        case "W21-execute", "W21-undo", "W21-redo": histories(ClosureHistory.self, workload, changes: n)
        default: throw Self.unknown(workload)
        }
    }
}

private enum ClosureRollback: RollbackForm {
    static func run(steps: Int, failing: Int, _ ledger: Ledger) async throws {
        var undos: [@Sendable () async -> Void] = []
        do {
            for number in 0..<steps {
                let step = LedgerStep(ledger, number, failing: failing)
                try await step.perform()
                undos.append { await step.undo() }
            }
        } catch {
            for undo in undos.reversed() { await undo() }
            throw error
        }
    }
}

private final class ClosureHistory: HistoryForm {
    private struct Entry {
        let undo: () async throws -> Void
        let redo: () async throws -> Void
    }

    private var done: [Entry] = []
    private var undone: [Entry] = []

    func execute(_ change: LedgerStep) async throws {
        try await change.perform()
        done.append(Entry(undo: { await change.undo() }, redo: { try await change.perform() }))
        undone.removeAll()
    }

    func undo() async throws {
        guard let entry = done.popLast() else { return }
        try await entry.undo()
        undone.append(entry)
    }

    func redo() async throws {
        guard let entry = undone.popLast() else { return }
        try await entry.redo()
        done.append(entry)
    }
}

private final class SynchronousClosureHistory: SynchronousHistoryForm {
    private struct Entry {
        let undo: () throws -> Void
        let redo: () throws -> Void
    }

    private var done: [Entry] = []
    private var undone: [Entry] = []

    func execute(_ change: Int, _ ledger: Ledger) {
        ledger.add(change)
        done.append(Entry(undo: { ledger.takeBack(change) }, redo: { ledger.add(change) }))
        undone.removeAll()
    }

    func undo() throws {
        guard let entry = done.popLast() else { return }
        try entry.undo()
        undone.append(entry)
    }

    func redo() throws {
        guard let entry = undone.popLast() else { return }
        try entry.redo()
        done.append(entry)
    }
}

private final class QueueOfClosures: OrderForm {
    private let queue = DispatchQueue(label: "commands")

    func submit(_ number: Int, _ ledger: Ledger) { queue.async { ledger.add(number) } }

    func flush() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }
}
