// Inspection.swift - what is left after a kill: the journal, the ledger and the answers must agree.

import CommandJournal
import Foundation

/// Inspects a folder after each kill.
struct Inspection {
    private let folder: String
    /// The last record at the time the program was started.
    private var before: Int64 = 0
    private var last: (runs: [JournalRun], ledger: [String])?

    init(_ folder: String) { self.folder = folder }

    /// - Parameter wasRecovered: whether the killed process had completed its recovery.
    /// - Returns: the phases of the members of open runs.
    mutating func look(wasRecovered: Bool) throws -> [JournalRecord.Phase] {
        let store = try SQLiteStore(path: "\(folder)/journal")
        let records = try store.records(after: 0, limit: .max)
        store.close()
        var log = JournalLog()
        var runs: [Int64: JournalRun] = [:]
        for record in records {
            do { try log.apply(record) } catch {
                throw Violation("record \(error.sequence): \(error.reason)")
            }
            try runs[record.run, default: JournalRun(number: record.run)].apply(record)
        }
        if log.isTorn { throw Violation("a commit was torn") }
        if Int64(records.count) < before { throw Violation("records are lost") }
        let all = runs.values.sorted { $0.number < $1.number }
        try compare(all)
        if wasRecovered {
            for run in all where run.number <= before && run.outcome == nil {
                guard run.members.contains(where: { $0.isInDoubt && $0.key == nil }) else {
                    throw Violation("run \(run.number) was left by a recovery")
                }
            }
        }
        before = Int64(records.count)
        return all.filter { $0.outcome == nil }.flatMap { $0.members.compactMap(\.phase) }
    }

    private mutating func compare(_ runs: [JournalRun]) throws {
        let ledger = Ledger.lines(of: "\(folder)/ledger")
        last = (runs, ledger)
        let places = Dictionary(grouping: ledger.indices) { ledger[$0] }
        if let twice = places.first(where: { $0.value.count > 1 }) {
            throw Violation("'\(twice.key)' happened twice")
        }
        var known: Set<String> = []
        for run in runs {
            var order: [(done: Int, undone: Int?)] = []
            for member in run.members {
                let name = try JSONDecoder().decode(Name.self, from: member.payload).name
                known.formUnion(["+ \(name)", "- \(name)"])
                let (done, undone) = (places["+ \(name)"]?[0], places["- \(name)"]?[0])
                func demand(_ condition: Bool, _ sentence: String) throws {
                    if !condition { throw Violation("\(name), in run \(run.number): \(sentence)") }
                }
                try demand(
                    undone == nil || done != nil && done! < undone!, "it was undone, and not done before")
                switch member.phase {
                case nil: try demand(done == nil, "it was not begun, and has an effect")
                case .failed: try demand(done == nil, "it failed, and has an effect")
                case .done: try demand(done != nil && undone == nil, "it was done, and has no effect")
                case .undone: try demand(undone != nil, "it was undone, and has an effect")
                case .undoing: try demand(done != nil, "it is being undone, and was not done")
                default: try demand(undone == nil, "its undo was not begun")
                }
                switch run.outcome {
                case .finished?: try demand(member.phase == .done, "its run succeeded without it")
                case .rolledBack?, .failed?:
                    try demand(member.phase != .done, "its run was taken back without it")
                case .incomplete?, .rolledBackExceptIrreversible?:
                    try demand(false, "all of it can be taken back")
                case nil: break
                }
                if let done { order.append((done, undone)) }
            }
            // Done in order, undone in reverse: a member that is undone was the last done of those
            // still in effect.
            let isOrdered = zip(order, order.dropFirst()).allSatisfy { first, second in
                guard let undone = first.undone else { return first.done < second.done }
                return first.done < second.done && second.undone ?? .max < undone
            }
            if !isOrdered { throw Violation("run \(run.number) was not taken back in reverse") }
        }
        if let other = ledger.first(where: { !known.contains($0) }) {
            throw Violation("'\(other)' happened, and nothing says that it began")
        }
        try compareAnswers(runs)
    }

    /// Checks that the answers given to callers are durable.
    private func compareAnswers(_ runs: [JournalRun]) throws {
        var outcomes: [String: JournalOutcome] = [:]
        for run in runs {
            guard let outcome = run.outcome, let member = run.members.first else { continue }
            let job = try JSONDecoder().decode(Name.self, from: member.payload).job
            if outcomes.updateValue(outcome, forKey: job) != nil {
                throw Violation("job \(job) has two runs")
            }
        }
        for line in Ledger.lines(of: "\(folder)/answers") {
            let words = line.split(separator: " ").map(String.init)
            guard outcomes[words[0]]?.rawValue == words[1] else {
                throw Violation(
                    "the caller of \(words[0]) was told \(words[1]), and the journal says otherwise")
            }
        }
    }

    /// At the end, everything has ended except what is in doubt.
    func finish(into totals: inout Campaign.Totals) throws {
        guard let last else { return }
        totals.effects += last.ledger.count
        for run in last.runs {
            if let outcome = run.outcome {
                totals.ended[outcome, default: 0] += 1
            } else if run.members.contains(where: { $0.isInDoubt && $0.key == nil }) {
                totals.inDoubt += 1
            } else {
                throw Violation("run \(run.number) has not ended")
            }
        }
    }

    /// The part of a command that names it.
    private struct Name: Decodable {
        let job: String
        let number: Int
        var name: String { "\(job).\(number)" }
    }
}
