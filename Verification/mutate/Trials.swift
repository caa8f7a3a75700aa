import Dispatch
import Foundation
import Synchronization

/// Examines many mutants, several at a time, and keeps the results.
final class Trials: Sendable {
    private let laboratory: Laboratory
    private let known: KnownKills?
    private let effort: Effort
    private let seconds: Int
    private let state: String?

    private struct Shared {
        var next = 0
        var outcomes: [Outcome?]
        var failure: (any Error)?
    }

    /// A line of the state file. A killed mutant stays killed under any effort; a survivor is tried again under
    /// another effort.
    private struct Line: Codable {
        var key: String
        var effort: Effort
        var outcome: Outcome

        func outcome(under effort: Effort) -> Outcome? {
            let isWholeEnough = self.effort.isWhole || !effort.isWhole
            let stands = outcome.verdict == .survived ? self.effort == effort : isWholeEnough
            return stands ? outcome : nil
        }
    }

    init(_ laboratory: Laboratory, known: KnownKills?, _ effort: Effort, seconds: Int, state: String?) {
        self.laboratory = laboratory
        self.known = known
        self.effort = effort
        self.seconds = seconds
        self.state = state
    }

    /// - Throws: the first failure of an examination, after all examinations in progress have ended.
    func run(_ mutants: [Mutant], jobs: Int) throws -> [Outcome] {
        let known = readState()
        if let state, !FileManager.default.fileExists(atPath: state) {
            try Data().write(to: URL(fileURLWithPath: state))
        }
        let shared = Mutex(Shared(outcomes: mutants.map { known[key(of: $0)]?.outcome(under: effort) }))
        DispatchQueue.concurrentPerform(iterations: jobs) { _ in work(on: mutants, shared) }
        return try shared.withLock { shared in
            if let failure = shared.failure { throw failure }
            return shared.outcomes.compactMap { $0 }
        }
    }

    private func work(on mutants: [Mutant], _ shared: borrowing Mutex<Shared>) {
        while true {
            let index: Int? = shared.withLock { shared in
                while shared.next < mutants.count, shared.outcomes[shared.next] != nil { shared.next += 1 }
                guard shared.next < mutants.count, shared.failure == nil else { return nil }
                defer { shared.next += 1 }
                return shared.next
            }
            guard let index else { return }
            do {
                let mutant = mutants[index]
                let outcome = try laboratory.examine(
                    mutant, as: index, known: known?.kills[mutant.id] ?? [], effort: effort, seconds: seconds)
                try shared.withLock { shared in
                    shared.outcomes[index] = outcome
                    try keep(outcome, of: mutant)
                }
            } catch {
                shared.withLock { $0.failure = error }
            }
        }
    }

    /// A changed text of the core or of the mutant makes a different trial. The scenarios are not part of the
    /// key: a state file is invalid once a scenario changes.
    private func key(of mutant: Mutant) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325  // FNV-1a
        for byte in mutant.text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "\(mutant.id) \(String(hash, radix: 16))"
    }

    private func readState() -> [String: Line] {
        guard let state, let text = try? String(contentsOfFile: state, encoding: .utf8) else { return [:] }
        let lines = text.split(separator: "\n").compactMap {
            try? JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        return Dictionary(lines.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
    }

    private func keep(_ outcome: Outcome, of mutant: Mutant) throws {
        print(
            "\(outcome.verdict.rawValue): \(outcome.mutant)\(outcome.kills.first.map { " (\($0.scenario))" } ?? "")"
        )
        guard let state, let file = FileHandle(forWritingAtPath: state) else { return }
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(
            contentsOf: JSONEncoder().encode(Line(key: key(of: mutant), effort: effort, outcome: outcome))
                + Data("\n".utf8))
    }
}
