// ActionTimeTests.swift - random programs on one thread. Work advances step by step, time advances under the program's control,
// and triggers, cancellations, conditions and limit changes are interleaved. A pure model predicts the notifications, their
// order, and the jobs and sleepers after each step. An interleaving can be replayed from one line.

import Actions
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// The work of a trigger. For each nap it sleeps (unless the nap is 0) and reports; then it ends.
private struct Plan: Sendable, CustomStringConvertible {
    var naps: [Int]
    var ending: Ending

    enum Ending: Sendable { case value, error, cancellation }

    static let any = Generator<([Int], Ending)>.zip(
        .array(of: .int(in: 0...3), count: 0...2), .element(of: [.value, .value, .error, .cancellation])
    ).map { Plan(naps: $0, ending: $1) }

    var description: String { "\(naps), \(ending)" }
}

private enum Step: Sendable, CustomStringConvertible {
    case trigger(Int, Plan)
    case step
    case advance(Int)
    case cancel(Int)
    case cancelAll(Int)
    case flag(Bool)
    case limit(Int)

    static let any: Generator<Step> = .frequency([
        (6, Generator<(Int, Plan)>.zip(.int(in: 0...2), Plan.any).map { .trigger($0, $1) }),
        (8, Generator { _ in .step }), (4, Generator<Int>.int(in: 1...3).map { .advance($0) }),
        (2, Generator<Int>.int(in: 0...7).map { .cancel($0) }), (2, Generator<Bool>.bool.map { .flag($0) }),
        (1, Generator<Int>.int(in: 1...3).map { .limit($0) }),
        (1, Generator<Int>.int(in: 0...2).map { .cancelAll($0) }),
    ])

    var description: String {
        switch self {
        case .trigger(let action, let plan): "trigger \(action): \(plan)"
        case .step: "step"
        case .advance(let time): "advance \(time)"
        case .cancel(let index): "cancel \(index)"
        case .cancelAll(let action): "cancelAll \(action)"
        case .flag(let flag): "flag \(flag)"
        case .limit(let limit): "limit \(limit)"
        }
    }
}

/// One action with a policy, or three in a group, which run two at a time.
private enum Setting: Sendable, CustomTestStringConvertible {
    case alone(ActionPolicy)
    case grouped

    var actions: Int { if case .grouped = self { 3 } else { 1 } }
    var keepsOne: Bool {
        switch self {
        case .alone(.switchToLatest), .alone(.coalesce), .grouped: true
        case .alone: false
        }
    }
    var testDescription: String {
        switch self {
        case .alone(let policy): "\(policy)"
        case .grouped: "grouped"
        }
    }
}

/// The expected course of events, as numbers and strings.
private struct Model {
    private struct Run {
        let action: Int
        var naps: [Int]
        let ending: Plan.Ending
        var isCancelled = false
        /// Cancelled while it slept.
        var isInterrupted = false
        /// Has slept, but has not reported it yet.
        var isAwake = false
        /// The deadline of the current sleep, and the sleep's number, which orders equal deadlines.
        var sleep: (deadline: Int, number: Int)?
        var outcome: String?
    }

    let setting: Setting
    private var limits: [Int]
    private var isOn = true
    private var now = 0
    private var runs: [Run] = []
    private var running: [Int] = []
    private var line: [Int] = []
    /// The runs with a pending job, in FIFO order.
    private(set) var jobs: [Int] = []
    private var sleeps = 0
    private(set) var told: [String] = []

    init(_ setting: Setting) {
        self.setting = setting
        limits = Array(repeating: 1, count: setting.actions)
    }

    var count: Int { runs.count }
    var hasEnded: Bool { running.isEmpty && line.isEmpty }
    var sleepers: Int { runs.count { $0.sleep != nil } }
    func outcome(_ run: Int) -> String? { runs[run].outcome }

    private func running(_ action: Int) -> [Int] { running.filter { runs[$0].action == action } }

    private func hasRoom(_ action: Int) -> Bool {
        if case .grouped = setting { return running(action).isEmpty && running.count < 2 }
        return running.count < limits[0]
    }

    /// As an action's snapshot: enabled, executing, running, waiting.
    func snapshot(_ action: Int) -> String {
        let takes =
            switch setting {
            case .grouped, .alone(.reject): hasRoom(action)
            case .alone(.queue(let most)): hasRoom(action) || line.count < most
            case .alone: true
            }
        let isBusy = !running(action).isEmpty
        // In a group, the count covers the runs of all its actions.
        return "\(isOn && takes ? "on" : "off") \(isBusy ? "busy" : "idle") \(running.count) \(line.count)"
    }

    private mutating func tell(_ run: Int, _ text: String) { told.append("\(run) \(text)") }

    private mutating func end(_ run: Int, _ text: String) {
        runs[run].outcome = text
        tell(run, text.hasPrefix("finished") ? "finished" : text)
    }

    mutating func trigger(_ action: Int, _ plan: Plan) {
        let run = runs.count
        runs.append(Run(action: action, naps: plan.naps, ending: plan.ending))
        if !isOn { return end(run, "rejected precondition") }
        if hasRoom(action) { return begin(run) }
        switch setting {
        case .grouped, .alone(.reject): end(run, "rejected busy")
        case .alone(.queue(let most)):
            if line.count < most { line.append(run) } else { end(run, "rejected queueFull") }
        case .alone(let policy):
            if let superseded = line.first { end(superseded, "rejected superseded") }
            line = [run]
            if policy == .switchToLatest { for each in running { cancel(each) } }
        }
    }

    private mutating func begin(_ run: Int) {
        running.append(run)
        tell(run, "started")
        jobs.append(run)
    }

    /// Begins waiting runs while slots are free. The slot of a run that must not begin passes to the next in the line, whose
    /// turn comes after the turns that are already due.
    private mutating func fill() {
        let slots = min(line.count, max(0, limits[0] - running.count))
        var turns = Array(line.prefix(slots))
        line.removeFirst(slots)
        while !turns.isEmpty {
            let run = turns.removeFirst()
            if isOn {
                begin(run)
            } else {
                end(run, "rejected precondition")
                if !line.isEmpty { turns.append(line.removeFirst()) }
            }
        }
    }

    mutating func step() {
        guard !jobs.isEmpty else { return }
        let run = jobs.removeFirst()
        if runs[run].isInterrupted { return finish(run, .cancellation) }
        if runs[run].isAwake { tell(run, "value -1") }
        runs[run].isAwake = false
        while let nap = runs[run].naps.first {
            runs[run].naps.removeFirst()
            if nap > 0 {
                if runs[run].isCancelled { return finish(run, .cancellation) }
                sleeps += 1
                return runs[run].sleep = (now + nap, sleeps)
            }
            tell(run, "value -1")
        }
        finish(run, runs[run].ending)
    }

    private mutating func finish(_ run: Int, _ ending: Plan.Ending) {
        running.removeAll { $0 == run }
        switch ending {
        case .cancellation: end(run, "cancelled")
        case .error: end(run, "failed TestError(number: \(run))")
        case .value:
            tell(run, "value \(run)")
            end(run, "finished \(run)")
        }
        fill()
    }

    mutating func advance(_ time: Int) {
        now += time
        let due = runs.indices.filter { runs[$0].sleep.map { $0.deadline <= now } ?? false }
            .sorted { runs[$0].sleep! < runs[$1].sleep! }
        for run in due {
            runs[run].sleep = nil
            runs[run].isAwake = true
            jobs.append(run)
        }
    }

    mutating func cancel(_ run: Int) {
        if let place = line.firstIndex(of: run) {
            line.remove(at: place)
            return end(run, "cancelled")
        }
        guard running.contains(run) else { return }
        runs[run].isCancelled = true
        if runs[run].sleep != nil {
            runs[run].sleep = nil
            runs[run].isInterrupted = true
            jobs.append(run)
        }
    }

    /// Counts the sleeping runs of an action. Cancelling more than one of them at once enqueues their jobs in any order.
    func sleepers(of action: Int) -> Int { running(action).count { runs[$0].sleep != nil } }

    mutating func cancelAll(_ action: Int) {
        for run in line + running(action) { cancel(run) }
    }

    mutating func set(_ isOn: Bool) { self.isOn = isOn }

    mutating func setLimit(_ limit: Int) {
        limits[0] = limit
        fill()
    }
}

/// The actions under test, and the model that runs alongside.
private final class Program {
    private let clock = ManualClock()
    private let executor = StepExecutor()
    private let flag = LiveValue(true)
    private let actions: [Action<Int, Int>]
    private let plans = Locked<[Plan]>([])
    private let told = Locked<[(ExecutionID, String)]>([])
    private var subscriptions: [Subscription] = []
    private var executions: [Execution<Int>] = []
    private var model: Model

    init(_ setting: Setting) {
        model = Model(setting)
        let policy = if case .alone(let policy) = setting { policy } else { ActionPolicy.reject }
        let group = setting.actions > 1 ? ActionGroup(limit: 2) : nil
        actions = (0..<setting.actions).map { [flag, executor, clock, plans] number in
            Action<Int, Int>(
                "\(number)", when: Precondition(flag), policy: policy, group: group, on: executor,
                work: { run, _, context in
                    let plan = plans.withLock { $0[run] }
                    for nap in plan.naps {
                        if nap > 0 { try await clock.sleep(for: .seconds(nap)) }
                        context.yield(-1)
                    }
                    switch plan.ending {
                    case .value: return run
                    case .error: throw TestError(number: run)
                    case .cancellation: throw CancellationError()
                    }
                })
        }
        subscriptions = actions.map { [told] action in
            action.observeEvents { event in told.withLock { $0.append((event.id, event.text)) } }
        }
    }

    func perform(_ steps: [Step]) throws {
        for step in steps {
            perform(step)
            try check()
        }
        var rounds = 0
        while !model.hasEnded {
            rounds += 1
            try #require(rounds < 1_000)
            perform(model.jobs.isEmpty ? .advance(3) : .step)
            try check()
        }
        try #require(executions.allSatisfy { $0.result != nil })
    }

    private func perform(_ step: Step) {
        switch step {
        case .trigger(let number, let plan):
            plans.withLock { $0.append(plan) }
            let action = number % actions.count
            executions.append(actions[action].trigger(model.count))
            model.trigger(action, plan)
        case .step:
            executor.step()
            model.step()
        case .advance(let time):
            clock.advance(by: .seconds(time))
            model.advance(time)
        case .cancel(let index):
            guard !executions.isEmpty else { return }
            executions[index % executions.count].cancel()
            model.cancel(index % executions.count)
        case .cancelAll(let number):
            let action = number % actions.count
            guard model.sleepers(of: action) <= 1 else { return }
            actions[action].cancelAll()
            model.cancelAll(action)
        case .flag(let isOn):
            flag.set(isOn)
            model.set(isOn)
        case .limit(let limit):
            guard !model.setting.keepsOne else { return }
            actions[0].setLimit(limit)
            model.setLimit(limit)
        }
    }

    private func check() throws {
        for (number, action) in actions.enumerated() {
            try #require(action.snapshot.text == model.snapshot(number))
        }
        try #require(executor.count == model.jobs.count)
        try #require(clock.sleepers == model.sleepers)
        let runs = Dictionary(uniqueKeysWithValues: executions.enumerated().map { ($1.id, $0) })
        try #require(told.withLock { $0 }.map { "\(runs[$0]!) \($1)" } == model.told)
        for (run, execution) in executions.enumerated() {
            try #require(execution.result?.text == model.outcome(run))
        }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ActionTimeTests {
    private static let settings: [Setting] = [
        .alone(.reject), .alone(.queue(1)), .alone(.queue(3)), .alone(.switchToLatest), .alone(.coalesce),
        .grouped,
    ]

    @Test(.promises("R1"), arguments: settings)
    private func `R1: in virtual time, whatever intervenes, notices match the model`(
        setting: Setting
    ) async {
        await forAll(Step.any.array(count: 0...40), cases: 150) { steps in
            try Program(setting).perform(steps)
        }
    }
}
