import ConformanceTesting
import Foundation
import PropertyTesting

/// The verdict of each law about each subject.
struct Matrix: Sendable {
    /// A law and a subject.
    struct Entry: Sendable {
        let law: Law
        let subject: String
        let verdict: Verdict
    }

    let laws: [Law]
    let subjects: [String]
    let seed: UInt64
    private(set) var entries: [Entry] = []
    private(set) var seconds = 0.0

    /// Checks each law for each subject, one after another: concurrent work would disturb a case. A line on standard error shows
    /// the progress.
    static func ask(_ laws: [Law], of subjects: [Subject], seed: UInt64, budget: Time, shard: Shard) async
        -> Matrix
    {
        var matrix = Matrix(laws: laws, subjects: subjects.map(\.name), seed: seed)
        let began = ContinuousClock.now
        let pairs = subjects.flatMap { subject in laws.map { (law: $0, subject: subject) } }
            .enumerated().filter { $0.offset % shard.count == shard.number - 1 }.map(\.element)
        for (number, pair) in pairs.enumerated() {
            progress("verify: \(pair.law.id) of \(pair.subject.name) (\(number + 1) of \(pairs.count))")
            // Unused time goes to the following pairs.
            let left = budget.duration - (ContinuousClock.now - began)
            let share = max(.zero, left / (pairs.count - number))
            let verdict = await check(
                pair.law, of: pair.subject,
                options: LawOptions(seed: seed, cases: .max, budget: share))
            matrix.entries.append(Entry(law: pair.law, subject: pair.subject.name, verdict: verdict))
        }
        progress("")
        matrix.seconds = (ContinuousClock.now - began) / .seconds(1)
        return matrix
    }

    private static func progress(_ text: String) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        let line = "\r\u{1B}[K\(text)"
        _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }

    func entry(_ law: Law, _ subject: String) -> Entry? {
        entries.first { $0.law.id == law.id && $0.subject == subject }
    }

    var isGood: Bool { entries.allSatisfy(\.verdict.isGood) }
    var cases: Int { entries.map(\.verdict.cases).reduce(0, +) }

    /// The counts in a line.
    var counts: String {
        func count(_ word: String) -> Int { entries.count { $0.verdict.word == word } }
        return """
            \(count("holds")) hold, \(count("violated")) violated, \(count("blind")) blind, \(count("failed")) failed, \
            \(count("not claimed")) not claimed
            """
    }

    /// As text: a row for each law, and below it the laws that do not hold.
    var summary: String {
        var lines = [""]
        for (number, subject) in subjects.enumerated() { lines.append("  \(number + 1)  \(subject)") }
        lines.append("")
        let numbers = subjects.indices.map { "\($0 + 1)".leftPadded(to: 7) }.joined()
        lines.append("law   \(numbers)")
        for law in laws {
            let row = subjects.map { subject in
                (entry(law, subject)?.verdict.short ?? "").leftPadded(to: 7)
            }
            lines.append(
                "\(law.id.padding(toLength: 6, withPad: " ", startingAt: 0))\(row.joined())  \(law.sentence)")
        }
        for entry in entries where !entry.verdict.isGood {
            lines.append("\n\(entry.law.id) of \(entry.subject): \(entry.law.sentence)")
            lines.append("  " + entry.verdict.description.replacing("\n", with: "\n  "))
            if case .violated(let found) = entry.verdict {
                lines.append(
                    "  verify replay --subject '\(entry.subject)' --law \(entry.law.id) \(found.tape)")
            }
        }
        lines.append(
            "\n\(counts); \(cases) cases in \(seconds.formatted(.number.precision(.fractionLength(0)))) s, seed \(seed)."
        )
        lines.append("A number: how many cases held, after the law detected its saboteur. -: not claimed.")
        return lines.joined(separator: "\n")
    }

    func json() throws -> Data {
        struct Row: Encodable {
            let law, sentence, saboteur, subject, verdict: String
            let cases: Int
            let reason, replay, trace: String?
        }
        struct File: Encodable {
            let schema: Int
            let seed: UInt64
            let seconds: Double
            let results: [Row]
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let rows = entries.map { entry in
            let found = entry.verdict.counterexample
            return Row(
                law: entry.law.id, sentence: entry.law.sentence, saboteur: entry.law.saboteur.name,
                subject: entry.subject, verdict: entry.verdict.word, cases: entry.verdict.cases,
                reason: found?.reason ?? entry.verdict.description, replay: found?.tape.description,
                trace: found?.trace?.description)
        }
        return try encoder.encode(File(schema: 1, seed: seed, seconds: seconds, results: rows))
    }
}

extension Verdict {
    var cases: Int {
        switch self {
        case .held(let cases, _): cases
        case .violated(let found): found.casesBefore + 1
        case .blind, .notClaimed, .failed: 0
        }
    }

    var counterexample: LawCounterexample? {
        if case .violated(let found) = self { found } else { nil }
    }

    var word: String {
        switch self {
        case .held: "holds"
        case .violated: "violated"
        case .blind: "blind"
        case .notClaimed: "not claimed"
        case .failed: "failed"
        }
    }

    var short: String {
        switch self {
        case .held(let cases, _): "\(cases)"
        case .violated: "FAILS"
        case .blind: "blind"
        case .notClaimed: "-"
        case .failed: "error"
        }
    }
}

extension String {
    fileprivate func leftPadded(to width: Int) -> String {
        String(repeating: " ", count: max(0, width - count)) + self
    }
}
