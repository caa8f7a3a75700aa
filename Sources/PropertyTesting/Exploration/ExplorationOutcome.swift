/// The result of an exploration.
public enum ExplorationOutcome: Sendable {
    /// Every schedule that was run ended as it should.
    case held(ExplorationCoverage)
    /// A schedule did not.
    case failed(FailingSchedule)
}

/// Which schedules were run, where all of them held.
public struct ExplorationCoverage: Sendable, CustomStringConvertible {
    /// How many schedules were run, by the number of their departures; each was another one.
    public let schedules: [Int]
    /// How many random ones were run beside them.
    public let random: Int
    /// Whether these are all that there are with so many departures.
    public let isCompleteWithinBound: Bool
    /// Whether these are all that there are.
    public let isComplete: Bool
    /// The most decisions that a schedule had.
    public let decisions: Int
    /// The state that tasks were taken to share: with ``Sharing/actors``, schedules that differ in the order of local steps alone
    /// count as one.
    public let sharing: Sharing

    /// One sentence.
    public var description: String {
        let count = schedules.reduce(0, +)
        if count + random == 0 { return "no schedule" }
        let bound = max(0, schedules.count - 1)
        var text =
            if isComplete {
                "all \(count) schedules\(sharing == .actors ? " that differ" : "")"
            } else if isCompleteWithinBound {
                "all \(count) schedules with at most \(bound) departures"
            } else {
                "the first \(count) schedules, of at most \(bound) departures"
            }
        if random > 0 { text += ", and \(random) random ones" }
        return "\(text); at most \(decisions) decisions"
    }
}

/// A schedule that does not end as it should, with as few departures as could be found.
public struct FailingSchedule: Sendable, CustomStringConvertible {
    /// Why it is not as it should be.
    public enum Reason: Hashable, Sendable {
        /// The body threw an error, or a check in it failed.
        case failed(String)
        /// No step is left, and the body has not ended: it waits for what no other task does.
        case stuck
        /// There were more steps than ``ExplorationOptions/steps``.
        case endless(steps: Int)
        /// Another thread made a task ready: how it goes on is not decided here.
        case outside
        /// The same schedule came to another number of possible steps than before, at this decision.
        case notRepeatable(decision: Int)
        /// The schedule failed, for that reason, and did not fail like that when it was run once more.
        case notRepeated(String)
        /// The schedule to replay does not fit to the body: at this decision there are not so many steps.
        case doesNotFit(decision: Int)
    }

    /// Why.
    public let reason: Reason
    /// The schedule.
    public let schedule: Schedule
    /// Its steps, in their order.
    public let steps: [ExploredStep]
    /// How many schedules held before.
    public let schedulesBefore: Int

    /// The reason, the steps, and what replays the schedule.
    public var description: String {
        let text: String
        switch reason {
        case .failed(let message): text = message
        case .stuck:
            text = "Nothing can go on, and the body has not ended: a task waits for what no other one does."
        case .endless(let steps):
            text =
                "There is no end after \(steps) steps: tasks ask each other for ever, or there are many more steps than that."
        case .outside:
            return """
                Another thread made a task ready, so that its order is not explored: a task with an executor of its own, a \
                closure on a queue, a timer of another clock. Let them be made by the body's own tasks. (schedule \(schedule))
                """
        case .notRepeatable(let decision):
            return """
                The body does not repeat itself: at decision \(decision) of the schedule \(schedule) there were other steps than \
                before. Look for clocks, random numbers, hashes of new objects, and state that one schedule leaves for the next.
                """
        case .notRepeated(let former):
            return """
                The body does not repeat itself: the schedule \(schedule) failed (\(former)), and then did not. Look for clocks, random \
                numbers, hashes of new objects, and state that one schedule leaves for the next.
                """
        case .doesNotFit(let decision):
            return
                "The schedule \(schedule) does not fit to this body: there are not so many steps at decision \(decision)."
        }
        let count = schedule.departures.count
        return """
            \(text)
            schedule with \(count) departure\(count == 1 ? "" : "s"), after \(schedulesBefore) that hold:
            \(lines)
            replay with EXPLORE_REPLAY=\(schedule)
            """
    }

    /// The steps, a line each; steps that look alike and follow each other, in one; at most the last 60.
    private var lines: String {
        var lines: [(text: String, count: Int)] = []
        for text in steps.lazy.map(\.description) {
            if lines.last?.text == text { lines[lines.count - 1].count += 1 } else { lines.append((text, 1)) }
        }
        let left = lines.count > 60 ? ["   (\(lines.count - 60) lines before)"] : []
        let last = lines.suffix(60).map { $0.count == 1 ? $0.text : "\($0.text) (\($0.count) times)" }
        return (left + last).joined(separator: "\n")
    }
}

/// One step of a schedule: what a task, or an actor, did from one point at which others may come to the next.
public struct ExploredStep: Sendable, CustomStringConvertible {
    /// The kind of thing that took the step.
    public enum Kind: Hashable, Sendable {
        /// A task, outside of actors.
        case task
        /// An actor, which serves the task; and those that wait for the same actor, without a step in between.
        case actor
        /// The main actor.
        case mainActor
        /// A task that slept: time has passed.
        case sleep(until: Duration)
    }

    /// Of what.
    public let kind: Kind
    /// The task, in the order in which they began; the body's is 1.
    public let task: Int
    /// The function that goes on in it; nil where it is not known.
    public let function: String?
    /// The names of the points that it came to: see ``explorationPoint(_:)``.
    public internal(set) var points: [String] = []
    /// How many steps could have been taken in its place, itself among them.
    public let alternatives: Int
    /// Which of them, the usual one being 0.
    public let choice: Int

    /// One line.
    public var description: String {
        var text = (choice == 0 ? "   " : "-> ") + "task \(task)"
        switch kind {
        case .task: break
        case .actor: text += ", in an actor"
        case .mainActor: text += ", in the main actor"
        case .sleep(let time): text += ", slept until \(time)"
        }
        if let function { text += ": \(function)" }
        if !points.isEmpty { text += " (\(points.joined(separator: ", ")))" }
        return text
    }
}
