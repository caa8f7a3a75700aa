/// Makes a counterexample smaller by editing its tape: removes spans, sets choices to zero, halves them, and
/// moves the amount of one choice to a later one.
struct Shrinker<Value> {
    struct Candidate {
        let value: Value
        let reason: String
        let tape: Tape
        let spans: [Range<Int>]
    }

    let generator: Generator<Value>
    private(set) var best: Candidate
    private(set) var shrinks = 0
    private var runsLeft: Int

    init(generator: Generator<Value>, best: Candidate, limit: Int) {
        self.generator = generator
        self.best = best
        runsLeft = limit
    }

    /// Runs until no edit helps, or the limit is reached.
    nonisolated(nonsending) mutating func run(_ property: (Value) async -> String?) async {
        var improved = true
        while improved && runsLeft > 0 {
            improved = await removeSpans(property)
            improved = await lowerChoices(property) || improved
            improved = await moveChoices(property) || improved
        }
    }

    /// Whether the edited tape still makes a counterexample, and a simpler one; if so, that one becomes the
    /// best.
    private nonisolated(nonsending) mutating func accepts(
        _ choices: [UInt64], _ property: (Value) async -> String?
    ) async -> Bool {
        guard runsLeft > 0 else { return false }
        var source = Source(replaying: Tape(choices))
        guard let value = try? generator.value(from: &source) else { return false }
        let tape = source.tape  // the choices actually used: shorter if the generator needed fewer
        guard tape.isSimpler(than: best.tape) else { return false }
        runsLeft -= 1
        guard let reason = await runCase(value, tape, property) else { return false }
        best = Candidate(value: value, reason: reason, tape: tape, spans: source.spans)
        shrinks += 1
        return true
    }

    /// Removes the longest spans first, so a whole branch is removed in one step.
    private nonisolated(nonsending) mutating func removeSpans(_ property: (Value) async -> String?) async
        -> Bool
    {
        var improved = false
        var position = 0
        var spans = best.spans.sorted { $0.count > $1.count }
        while position < spans.count && runsLeft > 0 {
            var choices = best.tape.choices
            let span = spans[position].clamped(to: 0..<choices.count)
            choices.removeSubrange(span)
            if !span.isEmpty, await accepts(choices, property) {
                improved = true
                spans = best.spans.sorted { $0.count > $1.count }
                position = 0
            } else {
                position += 1
            }
        }
        return improved
    }

    /// Moves amounts between choices: otherwise a sum that must not decrease would keep many small parts.
    private nonisolated(nonsending) mutating func moveChoices(_ property: (Value) async -> String?) async
        -> Bool
    {
        var improved = false
        var from = 0
        while from < best.tape.choices.count && runsLeft > 0 {
            for to in (from + 1)...(from + 4) {
                // Tries the whole amount, then a half, a quarter, ...: the bound of the other choice is not
                // known here.
                var amount = from < best.tape.choices.count ? best.tape.choices[from] : 0
                while amount > 0, to < best.tape.choices.count, best.tape.choices[from] >= amount {
                    var choices = best.tape.choices
                    choices[to] = choices[to].addingReportingOverflow(amount).partialValue
                    choices[from] -= amount
                    let isAccepted = await accepts(choices, property)
                    improved = improved || isAccepted
                    if !isAccepted { amount /= 2 }
                }
            }
            from += 1
        }
        return improved
    }

    private nonisolated(nonsending) mutating func lowerChoices(_ property: (Value) async -> String?) async
        -> Bool
    {
        var improved = false
        var position = 0
        while position < best.tape.choices.count && runsLeft > 0 {
            improved = await lower(position, property) || improved
            position += 1
        }
        return improved
    }

    /// Tries zero first, then the smallest value that a binary search finds.
    private nonisolated(nonsending) mutating func lower(_ position: Int, _ property: (Value) async -> String?)
        async -> Bool
    {
        func edited(_ value: UInt64, _ choices: [UInt64]) -> [UInt64] {
            var choices = choices
            choices[position] = value
            return choices
        }
        let start = best.tape.choices[position]
        guard start > 0 else { return false }
        if await accepts(edited(0, best.tape.choices), property) { return true }
        var low: UInt64 = 0
        var improved = false
        while position < best.tape.choices.count, best.tape.choices[position] - low > 1, runsLeft > 0 {
            let middle = low + (best.tape.choices[position] - low) / 2
            if await accepts(edited(middle, best.tape.choices), property) {
                improved = true
            } else {
                low = middle
            }
        }
        return improved
    }
}
