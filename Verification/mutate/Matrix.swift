import Foundation

/// Mutants against scenarios.
struct Matrix {
    let outcomes: [Outcome]
    let equivalents: Equivalents
    let debts: Debts
    let scenarios: [String]
    /// Equivalent mutants that were not tried.
    let skipped: Int

    private var valid: [Outcome] { outcomes.filter { $0.verdict != .invalid } }

    var summary: String {
        let killed = valid.filter { $0.verdict == .killed }.count
        let survivors = valid.filter { $0.verdict == .survived }
        let listed = survivors.filter { equivalents.reasons[$0.mutant] != nil }.count
        return
            "\(valid.count) mutants: \(killed) killed, \(listed) equivalent, \(survivors.count - listed) survived; "
            + "\(outcomes.count - valid.count) are no C"
            + (skipped == 0 ? "" : "; \(skipped) that are listed were left out")
            + (debts.mutants.isEmpty ? "" : "; \(debts.mutants.count) are debts, which no scenario finds yet")
    }

    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(valid)).map { String(decoding: $0, as: UTF8.self) + "\n" } ?? ""
    }

    /// By file and operator, then by scenario, then the equivalents with their reasons.
    var table: String {
        var text = "# Mutants of the core\n\n\(summary).\n\n## By file\n\n"
        let operators = Set(valid.map(Self.operation)).sorted()
        text += "Killed of those that were tried; equivalents among them count as not killed.\n\n"
        text +=
            "| file | \(operators.joined(separator: " | ")) |\n|---|\(operators.map { _ in "--:" }.joined(separator: "|"))|\n"
        for file in Set(valid.map(Self.file)).sorted() {
            let cells = operators.map { operation in
                let here = valid.filter { Self.file($0) == file && Self.operation($0) == operation }
                return here.isEmpty ? "" : "\(here.filter { $0.verdict == .killed }.count)/\(here.count)"
            }
            text += "| `\(file)` | \(cells.joined(separator: " | ")) |\n"
        }
        text += "\n## By scenario\n\n| scenario | finds | and no other one does |\n|---|--:|--:|\n"
        for scenario in scenarios {
            let found = valid.filter { $0.kills.contains { $0.scenario == scenario } }
            text += "| \(scenario) | \(found.count) | \(found.filter { $0.kills.count == 1 }.count) |\n"
        }
        for outcome in valid where outcome.verdict == .survived && equivalents.reasons[outcome.mutant] == nil
        {
            text += "\nSurvived, and not listed: `\(outcome.mutant)`.\n"
        }
        text += "\n## Equivalent\n"
        for (reason, ids) in Dictionary(grouping: equivalents.reasons.keys, by: { equivalents.reasons[$0]! })
            .sorted(by: { ($1.value.count, $0.key) < ($0.value.count, $1.key) })
        {
            text += "\n\(ids.count), \(reason)\n\n" + ids.sorted().map { "- `\($0)`\n" }.joined()
        }
        return text
    }

    private static func file(_ outcome: Outcome) -> String { String(outcome.mutant.prefix { $0 != ":" }) }

    private static func operation(_ outcome: Outcome) -> String {
        let parts = outcome.mutant.split(separator: ": ", maxSplits: 2)
        return parts.count > 1 ? String(parts[1]) : ""
    }
}
