/// The result of an exploration.
public enum ExplorationOutcome: Sendable {
    /// Every schedule that was run held.
    case held(ExplorationCoverage)
    /// A schedule failed.
    case failed(FailingSchedule)
}

/// The schedules that were run, if all of them held.
public struct ExplorationCoverage: Sendable, CustomStringConvertible {
    /// The numbers of schedules that were run, by the number of their departures; all were different.
    public let schedules: [Int]
    /// The number of random schedules that were run in addition.
    public let random: Int
    /// Whether these are all schedules with at most that many departures.
    public let isCompleteWithinBound: Bool
    /// Whether these are all schedules.
    public let isComplete: Bool
    /// The maximum number of decisions in a schedule.
    public let decisions: Int
    /// The state that tasks were assumed to share: with ``Sharing/actors``, schedules that differ only in the order of local
    /// steps count as one.
    public let sharing: Sharing

    /// The coverage in one sentence.
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

/// A failing schedule, with as few departures as could be found.
public struct FailingSchedule: Sendable, CustomStringConvertible {
    /// The reason of a failure.
    public enum Reason: Hashable, Sendable {
        /// The body threw an error, or a check in it failed.
        case failed(String)
        /// No step is left, and the body has not ended: it waits for something that no other task does.
        case stuck
        /// There were more steps than ``ExplorationOptions/steps``.
        case endless(steps: Int)
        /// Another thread made a task ready: the explorer does not control how that task continues.
        case outside
        /// At this decision, the same schedule had a different number of possible steps than before.
        case notRepeatable(decision: Int)
        /// The schedule failed for that reason, and did not fail in the same way when it was repeated.
        case notRepeated(String)
        /// The schedule to replay does not fit the body: this decision has fewer steps.
        case doesNotFit(decision: Int)
    }

    /// Why the schedule failed.
    public let reason: Reason
    /// The schedule.
    public let schedule: Schedule
    /// Its steps, in order.
    public let steps: [ExploredStep]
    /// The number of schedules that held before this one.
    public let schedulesBefore: Int

    /// The reason, the steps, and the setting that replays the schedule.
    public var description: String {
        let text: String
        switch reason {
        case .failed(let message): text = message
        case .stuck:
            text = "Nothing can go on, and the body has not ended: a task waits for what no other one does."
        case .endless(let steps):
            text =
                "There is no end after \(steps) steps: tasks resume each other for ever, or far more steps are needed."
        case .outside:
            return """
                Another thread made a task ready, so its order is not explored: a task with an executor of its own, a \
                closure on a queue, a timer of another clock. Let the body's own tasks make them. (schedule \(schedule))
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
                "The schedule \(schedule) does not fit this body: there are fewer steps at decision \(decision)."
        }
        let count = schedule.departures.count
        return """
            \(text)
            schedule with \(count) departure\(count == 1 ? "" : "s"), after \(schedulesBefore) that hold:
            \(lines)
            replay with EXPLORE_REPLAY=\(schedule)
            """
    }

    /// The steps, one per line; consecutive steps that look alike share a line; at most the last 60 lines.
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

/// One step of a schedule: the work of a task, or an actor, from one scheduling point to the next.
public struct ExploredStep: Sendable, CustomStringConvertible {
    /// The kind of a step.
    public enum Kind: Hashable, Sendable {
        /// A task, outside actors.
        case task
        /// An actor that serves the task, and then, without a step in between, other tasks that wait for the same actor.
        case actor
        /// The main actor.
        case mainActor
        /// A task that slept: time has passed.
        case sleep(until: Duration)
    }

    /// The kind of the step.
    public let kind: Kind
    /// The number of the task, in the order in which tasks began; the body's task is 1.
    public let task: Int
    /// The function that continues in the step; nil if unknown.
    public let function: String?
    /// The names of the points that the step reached: see ``explorationPoint(_:)``.
    public internal(set) var points: [String] = []
    /// The number of steps that were possible at this point, including this one.
    public let alternatives: Int
    /// The index of this step among them; 0 is the usual one.
    public let choice: Int

    /// The step in one line.
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
