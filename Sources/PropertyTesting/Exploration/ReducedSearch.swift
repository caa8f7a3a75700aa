// ReducedSearch.swift - the schedules that differ when tasks share only actors.
//
// A step is local when it shares nothing with other tasks (`SharingOfStep`). Two rules leave schedules out. Each omitted
// schedule differs from one that is run only in the order of local steps relative to other steps.
//   R1  After a local step no alternative to it is tried: any step that could have come before it can come after it.
//   R2  A step that was tried at a decision sleeps when the next alternative is tried, until a step that is not local has been
//       run: before that, it would lead to schedules that were already run. The alternatives never all sleep: only a local
//       step wakes none, and after a local step its task is ready to continue.
// The rules cannot be combined with a bound on departures: of equivalent schedules, the one that is run may have more
// departures than another.
//
// Source: Godefroid, Partial-Order Methods for the Verification of Concurrent Systems (1996): R1 is a persistent set of one
// step, R2 is sleep sets, where all steps that are not local depend on each other.

struct ReducedSearch: Search {
    /// The alternatives at one point.
    private struct Decision {
        /// The alternatives, by `Explorer.number(of:)`.
        let numbers: [Int]
        /// The alternatives that sleep: they were tried before the decision, or at it.
        var asleep: Set<Int>
        var choice: Int
    }

    /// The decisions of the schedule; the first `kept` are fixed before it is run.
    private var decisions: [Decision] = []
    private var kept = 0
    /// The alternatives that sleep at the next step.
    private var asleep: Set<Int> = []
    private var sharedSteps = 0
    private var misfit: Int?

    var departures: Int { decisions[..<kept].count { $0.choice != 0 } }
    var choices: ContiguousArray<UInt16> {
        ContiguousArray(decisions[..<kept].map { UInt16(truncatingIfNeeded: $0.choice) })
    }

    mutating func begin() {
        decisions.removeSubrange(kept...)
        asleep = []
        sharedSteps = 0
        misfit = nil
    }

    mutating func choose(among count: Int, in explorer: Explorer) -> Int {
        if explorer.sharedSteps != sharedSteps { asleep = [] }
        sharedSteps = explorer.sharedSteps
        let place = explorer.choices.count
        if place < kept {
            if decisions[place].numbers.count != count, misfit == nil { misfit = place }
            asleep = decisions[place].asleep
            return min(decisions[place].choice, count - 1)
        }
        let numbers = (0..<count).map { explorer.number(of: $0) }
        guard let choice = numbers.firstIndex(where: { !asleep.contains($0) }) else {
            fatalError("explore: all steps sleep")
        }
        decisions.append(Decision(numbers: numbers, asleep: asleep, choice: choice))
        return choice
    }

    func misfit(in explorer: Explorer) -> Int? {
        misfit ?? (explorer.choices.count < kept ? explorer.choices.count : nil)
    }

    mutating func advance(after explorer: Explorer) -> Bool {
        while var decision = decisions.popLast() {
            if explorer.wasLocal[decisions.count] { continue }  // R1
            decision.asleep.insert(decision.numbers[decision.choice])  // R2
            let later = decision.numbers[(decision.choice + 1)...]
            guard let choice = later.firstIndex(where: { !decision.asleep.contains($0) }) else { continue }
            decision.choice = choice
            decisions.append(decision)
            kept = decisions.count
            return true
        }
        return false
    }
}
