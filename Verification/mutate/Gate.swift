/// The rules that the matrix has to meet.
struct Gate {
    let matrix: Matrix
    /// The minimum number of mutants: fewer are an error.
    let least: Int
    /// All mutants, whether they were tried or not.
    let everything: Set<String>
    /// Whether some mutants were skipped that are not listed as equivalent.
    let isPart: Bool

    /// A sentence for each rule that is broken.
    var objections: [String] {
        let valid = matrix.outcomes.filter { $0.verdict != .invalid }
        let reasons = matrix.equivalents.reasons
        var found: [String] = []
        let debts = matrix.debts.mutants
        for outcome in valid
        where outcome.verdict == .survived && reasons[outcome.mutant] == nil
            && !debts.contains(outcome.mutant)
        {
            found.append("survived, and is not listed as equivalent: \(outcome.mutant)")
        }
        for outcome in valid where outcome.verdict == .killed && reasons[outcome.mutant] != nil {
            found.append(
                "is listed as equivalent, and \(outcome.kills[0].scenario) found it: \(outcome.mutant)")
        }
        for outcome in valid where outcome.verdict == .killed && debts.contains(outcome.mutant) {
            found.append("is listed as a debt, and \(outcome.kills[0].scenario) found it: \(outcome.mutant)")
        }
        for id in debts.sorted() where !everything.contains(id) {
            found.append("is listed as a debt, and does not exist: \(id)")
        }
        for id in reasons.keys.sorted() where !everything.contains(id) {
            found.append("is listed as equivalent, and does not exist: \(id)")
        }
        if !isPart && valid.count < least {
            found.append("there are \(valid.count) mutants, and there were \(least) at least.")
        }
        return found + (isPart ? [] : idle)
    }

    /// Scenarios that found no mutant.
    var idle: [String] {
        let busy = Set(matrix.outcomes.flatMap { $0.kills.map(\.scenario) })
        return matrix.scenarios
            .filter { !busy.contains($0) && !matrix.debts.scenarios.contains($0) }
            .map { "found no mutant: \($0)" }
    }
}
