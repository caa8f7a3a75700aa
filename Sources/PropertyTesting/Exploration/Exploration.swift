// Exploration.swift - one call of `checkSchedules`: runs the schedules one after another, and counts them.

/// One call of `checkSchedules`.
struct Exploration {
    let options: ExplorationOptions
    let explorer: Explorer
    /// The number of schedules that held, by their departures.
    var held: [Int] = []
    var random = 0
    /// Whether a schedule had too many steps, and was continued in the usual order.
    var hasGivenUp = false
    var decisions = 0

    init(options: ExplorationOptions) {
        self.options = options
        explorer = .kept(
            limit: options.steps, patienceWithOthers: .milliseconds(options.replay == nil ? 500 : 10),
            sharing: options.sharing)
    }

    typealias Body = @Sendable () async throws -> Void

    /// Runs the schedule that `chooser` makes, and returns the reason why it fails; nil if it holds.
    mutating func reason<C: Chooser>(
        _ chooser: inout C, recording: Bool = false, verdict: () -> String?, _ body: @escaping Body
    ) -> FailingSchedule.Reason? {
        let ending = explorer.run(&chooser, recording: recording, body)
        decisions = max(decisions, explorer.choices.count)
        let message = verdict()
        if explorer.hasOutside { return .outside }
        switch ending {
        case .ended: return message.map { .failed($0) }
        case .threw(let error): return .failed(message ?? error)
        case .endless: return .endless(steps: options.steps)
        case .stuck: return explorer.waitsForOutside() ? .outside : .stuck
        }
    }

    mutating func run(verdict: () -> String?, _ body: @escaping Body) async -> ExplorationOutcome {
        var failure: FailingSchedule?
        if let schedule = options.replay { return replay(schedule, verdict, body) }
        var (isOver, isComplete) = (true, false)
        if options.sharing == .actors {
            var search = ReducedSearch()
            (failure, isOver) = await go(through: &search, countingFrom: 0, verdict, body)
            isComplete = isOver
        } else if let most = options.departures {
            for bound in 0...max(0, most) {
                var search = BoundedSearch(bound: bound)
                // Schedules with fewer departures were run before.
                (failure, isOver) = await go(through: &search, countingFrom: bound, verdict, body)
                isComplete = isOver && !search.isCut
                if failure != nil || !isOver || isComplete { break }
            }
        } else {
            var search = BoundedSearch(bound: .max)
            (failure, isOver) = await go(through: &search, countingFrom: 0, verdict, body)
            isComplete = isOver
        }
        if let failure { return .failed(failure) }
        if !isComplete, !Task.isCancelled {
            if let failure = await drawn(verdict, body) { return .failed(failure) }
        }
        return .held(
            ExplorationCoverage(
                schedules: held, random: random, isCompleteWithinBound: isOver && !hasGivenUp,
                isComplete: isComplete && !hasGivenUp,
                decisions: decisions, sharing: options.sharing))
    }

    /// Runs the schedules of a search, up to the limit.
    ///
    /// - Parameter least: schedules with at least this many departures are counted.
    /// - Returns: the first schedule that fails; and whether all were run.
    private mutating func go<S: Search>(
        through search: inout S, countingFrom least: Int, _ verdict: () -> String?, _ body: @escaping Body
    ) async -> (FailingSchedule?, isOver: Bool) {
        var isOver = false
        while !isOver {
            if total >= options.limit || Task.isCancelled { return (nil, false) }
            if let failure = next(&search, &isOver, countingFrom: least, verdict, body) {
                return (failure, false)
            }
            await Task.yield()
        }
        return (nil, true)
    }

    var total: Int { held.reduce(0, +) }

    /// Runs some of the schedules of a search, for a few milliseconds.
    private mutating func next<S: Search>(
        _ search: inout S, _ isOver: inout Bool, countingFrom least: Int, _ verdict: () -> String?,
        _ body: @escaping Body
    ) -> FailingSchedule? {
        var steps = 0
        while steps < 10_000, total < options.limit {
            let departures = search.departures
            let reason = repeating(&search, verdict, body)
            if let misfit = search.misfit(in: explorer) { return misfitting(search.choices, at: misfit) }
            if let reason { return smallest(reason, verdict, body) }
            if explorer.hasGivenUp { hasGivenUp = true }
            if departures >= least {
                while held.count <= departures { held.append(0) }
                held[departures] += 1
            }
            if !search.advance(after: explorer) {
                isOver = true
                return nil
            }
            steps += explorer.steps
        }
        return nil
    }

    /// Runs a schedule, and returns the reason why it fails. The schedule is repeated a few times if its steps differ
    /// from before and tasks slept: the moment at which they read the clock may have caused the difference.
    private mutating func repeating<S: Search>(
        _ search: inout S, _ verdict: () -> String?, _ body: @escaping Body
    ) -> FailingSchedule.Reason? {
        var tries = 0
        while true {
            search.begin()
            let reason = reason(&search, verdict: verdict, body)
            tries += 1
            if search.misfit(in: explorer) == nil || !explorer.hasSleepers || tries == 4 { return reason }
        }
    }

    /// The failure of a schedule that, when repeated, had different steps than before.
    private func misfitting(_ former: ContiguousArray<UInt16>, at decision: Int) -> FailingSchedule {
        FailingSchedule(
            reason: .notRepeatable(decision: decision), schedule: Schedule(choices: former),
            steps: [],
            schedulesBefore: total)
    }

    private mutating func drawn(_ verdict: () -> String?, _ body: @escaping Body) async -> FailingSchedule? {
        var seeds = SplitMix64(seed: options.seed)
        while random < options.random, !Task.isCancelled {
            var chooser = RandomPriorities(
                seed: seeds.next(), changes: max(0, options.depth - 1), decisions: decisions)
            if let reason = reason(&chooser, verdict: verdict, body) {
                return smallest(reason, verdict, body)
            }
            random += 1
            await Task.yield()
        }
        return nil
    }

    /// Runs one schedule.
    private mutating func replay(
        _ schedule: Schedule, _ verdict: () -> String?, _ body: @escaping Body
    ) -> ExplorationOutcome {
        var playback = Playback(choices: ContiguousArray(schedule.choices))
        let reason = reason(&playback, recording: true, verdict: verdict, body)
        if let misfit = playback.misfit(in: explorer) {
            return .failed(
                FailingSchedule(
                    reason: .doesNotFit(decision: misfit), schedule: schedule, steps: [], schedulesBefore: 0))
        }
        guard let reason else {
            return .held(
                ExplorationCoverage(
                    schedules: [1], random: 0, isCompleteWithinBound: false, isComplete: false,
                    decisions: decisions, sharing: options.sharing))
        }
        return .failed(
            FailingSchedule(
                reason: reason, schedule: schedule, steps: explorer.recorded, schedulesBefore: 0))
    }
}
