// Search.swift - which schedules are run, one after the other: all within a bound, random ones, or one to replay; and how
// one that fails gets fewer departures.

/// Plays choices back, and goes on in the usual order. Says where they do not fit.
struct Playback: Chooser {
    /// What is chosen first.
    var choices: ContiguousArray<UInt16> = []
    /// Among how many; empty: anything will do.
    var counts: ContiguousArray<UInt16> = []
    /// The first decision with another number of steps than before, or with too few.
    var misfit: Int?

    /// To be called when the schedule has ended: it may have had fewer decisions.
    mutating func end(in explorer: Explorer) {
        if misfit == nil, explorer.choices.count < choices.count { misfit = explorer.choices.count }
    }

    mutating func choose(among count: Int, in explorer: Explorer) -> Int {
        let decision = explorer.choices.count
        guard decision < choices.count else { return 0 }
        if decision < counts.count, counts[decision] != UInt16(truncatingIfNeeded: count), misfit == nil {
            misfit = decision
        }
        let choice = Int(choices[decision])
        if choice < count { return choice }
        if misfit == nil { misfit = decision }
        return 0
    }
}

/// Gives each task a random priority, and takes the step of the highest one; at some random steps the priority of the task
/// that is running falls below all others. That time passes has a priority too.
struct RandomPriorities: Chooser {
    private var random: SplitMix64
    private var priorities: [UInt64: UInt64] = [:]
    private var changes: [Int]
    private var lowest: UInt64 = 1 << 32

    /// - Parameters:
    ///   - changes: so many priorities fall.
    ///   - decisions: about so many decisions the schedule is expected to have.
    init(seed: UInt64, changes: Int, decisions: Int) {
        random = SplitMix64(seed: seed)
        self.changes = []
        for _ in 0..<changes { self.changes.append(Int.random(in: 0..<max(1, decisions), using: &random)) }
    }

    mutating func choose(among count: Int, in explorer: Explorer) -> Int {
        var best = highest(among: count, explorer)
        // A task that has yielded is behind all others, and so is time that has passed: else what they wait for may never be
        // done.
        for _ in 0..<count where explorer.hasYielded(best) {
            lower(best, explorer)
            best = highest(among: count, explorer)
        }
        if changes.contains(explorer.choices.count) {
            lower(best, explorer)
            best = highest(among: count, explorer)
        }
        if explorer.isSleeper(best) { lower(best, explorer) }
        return best
    }

    private mutating func lower(_ choice: Int, _ explorer: Explorer) {
        lowest -= 1
        priorities[key(choice, explorer)] = lowest
    }

    private func key(_ choice: Int, _ explorer: Explorer) -> UInt64 {
        explorer.isSleeper(choice) ? .max : explorer.task(of: choice)
    }

    private mutating func highest(among count: Int, _ explorer: Explorer) -> Int {
        var best = 0
        var highest: UInt64 = 0
        for choice in 0..<count {
            let key = key(choice, explorer)
            let priority = priorities[key] ?? (random.next() | 1 << 33)
            priorities[key] = priority
            if priority > highest { (best, highest) = (choice, priority) }
        }
        return best
    }
}

/// The schedules with at most so many departures, each after the one before it that has most in common with it.
///
/// Source: the search without states of Godefroid, Model Checking for Programming Languages using VeriSoft (1997).
struct BoundedSearch {
    let bound: Int
    /// The next schedule.
    var playback = Playback()
    /// How many departures `playback` has.
    private(set) var departures = 0
    /// Whether an alternative was left out, because the schedule would have had too many departures.
    private(set) var isCut = false

    init(bound: Int) { self.bound = bound }

    /// Goes on to the next schedule after one that was run.
    ///
    /// - Returns: false: there is none.
    mutating func advance(after explorer: Explorer) -> Bool {
        let choices = explorer.choices
        let counts = explorer.counts
        var used = choices.reduce(0) { $1 == 0 ? $0 : $0 + 1 }
        for decision in choices.indices.reversed() {
            let choice = choices[decision]
            if choice != 0 { used -= 1 }
            guard choice + 1 < counts[decision] else { continue }
            guard used < bound else {
                isCut = true
                continue
            }
            playback.choices.replaceSubrange(0..., with: choices[..<decision])
            playback.choices.append(choice + 1)
            playback.counts.replaceSubrange(0..., with: counts[...decision])
            departures = used + 1
            return true
        }
        return false
    }
}
