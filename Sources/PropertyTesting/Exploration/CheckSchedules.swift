import CTaskHooks

/// Runs a body once for each order in which the steps of its tasks may come, and tells the first order in which it fails.
///
/// A step is what a task does from one suspension to the next. These are explored: child tasks, `Task { }` and detached
/// tasks, actors and the main actor, continuations, async sequences, `Task.yield()`, and `Task.sleep`, whose time passes
/// at once, and which may end at any moment at which it is the next to end.
///
/// These are not: what happens within a step (a lock, an atomic variable: there `explorationPoint` makes a point at
/// which others may come between); threads and queues outside of Swift's tasks, and actors and tasks with executors of
/// their own, which are told; the turns of those that wait for the same actor, which come in their order and without a
/// step of another task in between; clocks that are read.
///
/// - Parameters:
///   - options: which schedules.
///   - verdict: asked after each schedule: why it is not as it should be, where the body has not thrown; nil: it is.
///   - body: begins anew each time, and shares nothing with the run before.
/// - Returns: what was found out. When the calling task is cancelled, what has been so far.
/// - Complexity: some microseconds a schedule. The calling thread is kept for milliseconds at a time.
///
/// Source: Flanagan, Godefroid, Dynamic Partial-Order Reduction (2005), for the search; Loom and Shuttle, for its use.
public func checkSchedules(
    options: ExplorationOptions = ExplorationOptions(), verdict: () -> String? = { nil },
    _ body: @escaping @Sendable () async throws -> Void
) async -> ExplorationOutcome {
    var exploration = Exploration(options: options)
    return await exploration.run(verdict: verdict, body)
}

/// A point at which steps of other tasks may come, in code that ``checkSchedules(options:verdict:_:)`` explores: it suspends
/// the calling task there. Elsewhere nothing happens.
///
/// - Parameter name: is told with the steps.
public func explorationPoint(_ name: StaticString) async {
    guard let explorer = Explorer.current else { return }
    explorer.note("\(name)")
    await Task.yield()
}

/// One call of `checkSchedules`.
private struct Exploration {
    let options: ExplorationOptions
    let explorer: Explorer
    /// How many schedules held, by their departures.
    var held: [Int] = []
    var random = 0
    var decisions = 0

    init(options: ExplorationOptions) {
        self.options = options
        explorer = Explorer(
            limit: options.steps, patienceWithOthers: .milliseconds(options.replay == nil ? 500 : 10))
    }

    typealias Body = @Sendable () async throws -> Void

    /// Why the schedule that `chooser` makes is not as it should be.
    private mutating func reason<C: Chooser>(
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
        if let schedule = options.replay { return replay(schedule, verdict, body) }
        var isComplete = false
        var isCut = false
        var bound = options.departures == nil ? Int.max : 0
        systematic: while true {
            var search = BoundedSearch(bound: bound)
            var isOver = false
            repeat {
                if total >= options.limit || Task.isCancelled {
                    isCut = true
                    break systematic
                }
                switch next(&search, &isOver, verdict, body) {
                case .some(let failure): return .failed(failure)
                case .none: await Task.yield()
                }
            } while !isOver
            if !search.isCut {
                isComplete = true
                break
            }
            if bound == options.departures { break }
            bound += 1
        }
        if !isComplete, !Task.isCancelled {
            if let failure = await drawn(verdict, body) { return .failed(failure) }
        }
        return .held(
            ExplorationCoverage(
                schedules: held, random: random, isCompleteWithinBound: !isCut, isComplete: isComplete,
                decisions: decisions))
    }

    private var total: Int { held.reduce(0, +) }

    /// Runs some of the schedules of a search: for milliseconds.
    private mutating func next(
        _ search: inout BoundedSearch, _ isOver: inout Bool, _ verdict: () -> String?, _ body: @escaping Body
    ) -> FailingSchedule? {
        var steps = 0
        while steps < 10_000, total < options.limit {
            let departures = search.departures
            let reason = repeating(&search.playback, verdict, body)
            if let misfit = search.playback.misfit { return misfitting(search.playback, at: misfit) }
            if let reason { return smallest(reason, verdict, body) }
            // Those with fewer departures were run before.
            if departures == search.bound || search.bound == .max {
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

    /// Why a schedule is not as it should be. It is run a few times more if there were other steps than before and tasks
    /// slept: the moment at which they read the clock may have done that.
    private mutating func repeating(
        _ playback: inout Playback, _ verdict: () -> String?, _ body: @escaping Body
    ) -> FailingSchedule.Reason? {
        var tries = 0
        while true {
            playback.misfit = nil
            let reason = reason(&playback, verdict: verdict, body)
            playback.end(in: explorer)
            tries += 1
            if playback.misfit == nil || !explorer.hasSleepers || tries == 4 { return reason }
        }
    }

    /// A schedule came to other steps than before.
    private func misfitting(_ former: Playback, at decision: Int) -> FailingSchedule {
        FailingSchedule(
            reason: .notRepeatable(decision: decision), schedule: Schedule(choices: former.choices),
            steps: [],
            schedulesBefore: total)
    }

    private mutating func drawn(_ verdict: () -> String?, _ body: @escaping Body) async -> FailingSchedule? {
        var seeds = SplitMix64(seed: options.seed)
        while random < options.random, !Task.isCancelled {
            var chooser = RandomPriorities(
                seed: seeds.next(), changes: options.depth - 1, decisions: decisions)
            if let reason = reason(&chooser, verdict: verdict, body) {
                return smallest(reason, verdict, body)
            }
            random += 1
            await Task.yield()
        }
        return nil
    }

    /// The schedule that was run last, which fails, with as few departures as one by one can be left out.
    private mutating func smallest(
        _ reason: FailingSchedule.Reason, _ verdict: () -> String?, _ body: @escaping Body
    ) -> FailingSchedule {
        var best = explorer.choices
        var failure = reason
        if reason == .outside {
            return FailingSchedule(
                reason: reason, schedule: Schedule(choices: best), steps: [], schedulesBefore: total + random)
        }
        var isSmaller = true
        while isSmaller {
            isSmaller = false
            for decision in best.indices.reversed() where decision < best.count && best[decision] != 0 {
                var playback = Playback(choices: best)
                playback.choices[decision] = 0
                guard let reason = self.reason(&playback, verdict: verdict, body), reason != .outside else {
                    continue
                }
                let found = explorer.choices
                guard departures(found) < departures(best) else { continue }
                (best, failure, isSmaller) = (found, reason, true)
            }
        }
        var playback = Playback(choices: best)
        if let reason = self.reason(&playback, recording: true, verdict: verdict, body) { failure = reason }
        return FailingSchedule(
            reason: failure, schedule: Schedule(choices: best), steps: explorer.recorded,
            schedulesBefore: total + random)
    }

    private func departures(_ choices: ContiguousArray<UInt16>) -> Int { choices.count { $0 != 0 } }

    /// Runs one schedule.
    private mutating func replay(
        _ schedule: Schedule, _ verdict: () -> String?, _ body: @escaping Body
    ) -> ExplorationOutcome {
        var playback = Playback(choices: ContiguousArray(schedule.choices))
        let reason = reason(&playback, recording: true, verdict: verdict, body)
        playback.end(in: explorer)
        if let misfit = playback.misfit {
            return .failed(
                FailingSchedule(
                    reason: .doesNotFit(decision: misfit), schedule: schedule, steps: [], schedulesBefore: 0))
        }
        guard let reason else {
            return .held(
                ExplorationCoverage(
                    schedules: [1], random: 0, isCompleteWithinBound: false, isComplete: false,
                    decisions: decisions))
        }
        return .failed(
            FailingSchedule(
                reason: reason, schedule: schedule, steps: explorer.recorded, schedulesBefore: 0))
    }
}
