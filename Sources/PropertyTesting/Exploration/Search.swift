// Search.swift - the schedules to run, one after another: all within a bound, random ones, or one to replay.

/// Plays choices back, and continues in the usual order. Detects where they do not fit.
struct Playback: Chooser {
    /// The choices to play back, from the first decision on.
    var choices: ContiguousArray<UInt16> = []
    /// The number of alternatives at each decision; empty: any number fits.
    var counts: ContiguousArray<UInt16> = []
    /// The first decision with a different number of steps than before, or with too few.
    var misfit: Int?

    /// Like ``misfit``, after the schedule has ended: it may have had fewer decisions.
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

/// Gives each task a random priority, and takes the step of the task with the highest priority; at some random steps the
/// priority of the running task falls below all others. The passing of time has a priority too.
struct RandomPriorities: Chooser {
    private var random: SplitMix64
    private var priorities: [UInt64: UInt64] = [:]
    private var changes: [Int]
    private var lowest: UInt64 = 1 << 32

    /// - Parameters:
    ///   - changes: the number of priority drops.
    ///   - decisions: the expected number of decisions of the schedule.
    init(seed: UInt64, changes: Int, decisions: Int) {
        random = SplitMix64(seed: seed)
        self.changes = []
        for _ in 0..<changes { self.changes.append(Int.random(in: 0..<max(1, decisions), using: &random)) }
    }

    mutating func choose(among count: Int, in explorer: Explorer) -> Int {
        // A task that has yielded is placed behind all others, and so is time that has passed: otherwise the event that
        // they wait for may never happen.
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

/// Enumerates schedules one after another, and chooses their steps.
protocol Search: Chooser {
    /// The number of departures of the next schedule.
    var departures: Int { get }
    /// The choices at the beginning of the next schedule.
    var choices: ContiguousArray<UInt16> { get }

    /// Called before the next schedule is run or repeated.
    mutating func begin()
    /// Checks the schedule that has been run.
    ///
    /// - Returns: the first decision at which the steps differ from before; nil if none does.
    func misfit(in explorer: Explorer) -> Int?
    /// Advances to the next schedule.
    ///
    /// - Returns: false if there is none.
    mutating func advance(after explorer: Explorer) -> Bool
}

/// The schedules within a bound on departures, in depth-first order: each shares the longest possible prefix with the
/// previous one.
///
/// Source: the stateless search of Godefroid, Model Checking for Programming Languages using VeriSoft (1997).
struct BoundedSearch: Search {
    private let bound: Int
    private(set) var playback = Playback()
    private(set) var departures = 0
    /// Whether an alternative was left out, because the schedule would have had too many departures.
    private(set) var isCut = false

    /// - Parameter bound: the maximum number of departures.
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
