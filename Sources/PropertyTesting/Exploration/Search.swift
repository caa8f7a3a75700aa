// Search.swift - which schedules are run, one after the other: all within a bound, random ones, or one to replay; and how
// one that fails gets fewer departures.

/// Plays choices back, and goes on in the usual order. Says where they do not fit.
struct Playback: Chooser {
    /// The first choice.
    var choices: ContiguousArray<UInt16> = []
    /// Among how many; empty: anything will do.
    var counts: ContiguousArray<UInt16> = []
    /// The first decision with another number of steps than before, or with too few.
    var misfit: Int?

    /// As ``misfit``, when the schedule has ended: it may have had fewer decisions.
    func misfit(in explorer: Explorer) -> Int? {
        misfit ?? (explorer.choices.count < choices.count ? explorer.choices.count : nil)
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
        // A task that has yielded is behind all others, and so is time that has passed: else what they wait for may never be
        // done.
        let priorities = (0..<count).map { priority(of: $0, explorer) }
        let highestOfOthers =
            (0..<count).filter { !explorer.hasYielded($0) }.map { priorities[$0] }.max() ?? 0
        let before = (0..<count).filter { explorer.hasYielded($0) && priorities[$0] > highestOfOthers }
        for choice in before.sorted(by: { priorities[$0] > priorities[$1] }) { lower(choice, explorer) }
        var best = highest(among: count, explorer)
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

    private mutating func priority(of choice: Int, _ explorer: Explorer) -> UInt64 {
        let key = key(choice, explorer)
        if let priority = priorities[key] { return priority }
        let priority = random.next() | 1 << 33
        priorities[key] = priority
        return priority
    }

    private mutating func highest(among count: Int, _ explorer: Explorer) -> Int {
        var best = 0
        var highest: UInt64 = 0
        for choice in 0..<count {
            let priority = priority(of: choice, explorer)
            if priority > highest { (best, highest) = (choice, priority) }
        }
        return best
    }
}

/// Goes through schedules, one after the other, and chooses their steps.
protocol Search: Chooser {
    /// How many departures the next schedule has.
    var departures: Int { get }
    /// The beginning of the next schedule.
    var choices: ContiguousArray<UInt16> { get }

    /// The next schedule is run, or is run once more.
    mutating func begin()
    /// Checks the schedule that has been run.
    ///
    /// - Returns: the first decision at which it had other steps than before; nil: it had none.
    func misfit(in explorer: Explorer) -> Int?
    /// Goes on to the schedule after it.
    ///
    /// - Returns: false: there is none.
    mutating func advance(after explorer: Explorer) -> Bool
}

/// The schedules with at most so many departures, each after the one before it that has most in common with it.
///
/// Source: the search without states of Godefroid, Model Checking for Programming Languages using VeriSoft (1997).
struct BoundedSearch: Search {
    private let bound: Int
    private(set) var playback = Playback()
    private(set) var departures = 0
    /// Whether an alternative was left out, because the schedule would have had too many departures.
    private(set) var isCut = false

    /// - Parameter bound: how many departures a schedule may have.
    init(bound: Int) { self.bound = bound }

    var choices: ContiguousArray<UInt16> { playback.choices }

    mutating func begin() { playback.misfit = nil }

    mutating func choose(among count: Int, in explorer: Explorer) -> Int {
        playback.choose(among: count, in: explorer)
    }

    func misfit(in explorer: Explorer) -> Int? { playback.misfit(in: explorer) }

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
