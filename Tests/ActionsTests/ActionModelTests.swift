// ActionModelTests.swift - random programs: single-stepped against a model, and from several threads against the invariants.

import Actions
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

private enum Step: Sendable, CustomStringConvertible {
    case trigger
    case end(Int, Ending)
    case cancel(Int)
    case flag(Bool)
    case limit(Int)
    case cancelAll

    enum Ending: Sendable { case value, error, cancellation }

    static let any: Generator<Step> = .frequency([
        (8, Generator { _ in .trigger }),
        (
            6,
            Generator<(Int, Ending)>.zip(.int(in: 0...7), .element(of: [.value, .error, .cancellation]))
                .map { .end($0, $1) }
        ),
        (2, Generator<Int>.int(in: 0...7).map { .cancel($0) }), (2, Generator<Bool>.bool.map { .flag($0) }),
        (1, Generator<Int>.int(in: 1...3).map { .limit($0) }), (1, Generator { _ in .cancelAll }),
    ])

    var description: String {
        switch self {
        case .trigger: "trigger"
        case .end(let index, let ending): "end \(index) with \(ending)"
        case .cancel(let index): "cancel \(index)"
        case .flag(let flag): "flag \(flag)"
        case .limit(let limit): "limit \(limit)"
        case .cancelAll: "cancelAll"
        }
    }
}

/// The expected outcome of each trigger, as numbers and strings.
private struct Model {
    let policy: ActionPolicy
    var isEnabled = true
    var limit: Int
    var running: [Int] = []
    var line: [Int] = []
    var outcomes: [Int: String] = [:]
    var begun: [Int] = []
    var count = 0

    init(_ policy: ActionPolicy, _ limit: Int) { (self.policy, self.limit) = (policy, limit) }

    private mutating func begin(_ input: Int) {
        running.append(input)
        begun.append(input)
    }

    mutating func trigger() {
        let input = count
        count += 1
        guard isEnabled else { return outcomes[input] = "rejected precondition" }
        if running.count < limit { return begin(input) }
        switch policy {
        case .reject: outcomes[input] = "rejected busy"
        case .queue(let most):
            if line.count < most { line.append(input) } else { outcomes[input] = "rejected queueFull" }
        case .switchToLatest, .coalesce:
            if let old = line.first { outcomes[old] = "rejected superseded" }
            line = [input]
        }
    }

    mutating func end(_ input: Int, _ text: String) {
        running.removeAll { $0 == input }
        outcomes[input] = text
        fill()
    }

    private mutating func fill() {
        while running.count < limit, !line.isEmpty {
            let next = line.removeFirst()
            if isEnabled { begin(next) } else { outcomes[next] = "rejected precondition" }
        }
    }

    mutating func cancel(_ input: Int) {
        guard line.contains(input) else { return }
        line.removeAll { $0 == input }
        outcomes[input] = "cancelled"
    }

    mutating func setLimit(_ limit: Int) {
        self.limit = limit
        fill()
    }

    var text: String {
        let hasRoom =
            switch policy {
            case .reject: running.count < limit
            case .queue(let most): running.count < limit || line.count < most
            case .switchToLatest, .coalesce: true
            }
        return
            "\(isEnabled && hasRoom ? "on" : "off") \(running.isEmpty ? "idle" : "busy") \(running.count) \(line.count)"
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ActionModelTests {
    private static let policies: [ActionPolicy] = [.reject, .queue(1), .queue(3), .switchToLatest, .coalesce]

    @Test(.promises("R1", "Z15"), arguments: policies)
    func `R1: stepped programs match a model, for each policy`(
        policy: ActionPolicy
    ) async {
        let keepsOne = policy == .switchToLatest || policy == .coalesce
        await forAll(Step.any.array(count: 0...25), cases: 120) { steps in
            let flag = LiveValue(true), works = Works(), begun = Log(), snapshots = Log()
            let action = Action<Int, Int>(
                "work", when: Precondition(flag), policy: policy,
                work: { input, _, _ in try await works.run(input) })
            let order = Locked<[ExecutionID]>([])
            let events = action.observeEvents { event in
                if case .started(let id) = event { order.withLock { $0.append(id) } }
                begun.add("\(event.id) \(event.text)")
            }
            let watching = action.observeSnapshots { snapshots.add("\($0.generation)") }
            var model = Model(policy, 1)
            var executions: [Execution<Int>] = []
            func settle() async {
                await works.begun(model.begun.count)
                for (input, text) in model.outcomes {
                    let outcome = await executions[input].outcome.text
                    #expect(outcome == text, "trigger \(input)")
                }
                #expect(action.snapshot.text == model.text)
                for (input, execution) in executions.enumerated() where model.outcomes[input] == nil {
                    #expect(execution.result == nil, "trigger \(input)")
                }
            }
            for step in steps {
                switch step {
                case .trigger:
                    executions.append(action.trigger(model.count))
                    model.trigger()
                case .end(let index, let ending):
                    guard !model.running.isEmpty else { continue }
                    let input = model.running[index % model.running.count]
                    switch ending {
                    case .value:
                        model.end(input, "finished \(input)")
                        works.end(input, .success(input))
                    case .error:
                        model.end(input, "failed TestError(number: \(input))")
                        works.end(input, .failure(TestError(number: input)))
                    case .cancellation:
                        model.end(input, "cancelled")
                        works.end(input, .failure(CancellationError()))
                    }
                case .cancel(let index):
                    guard !executions.isEmpty else { continue }
                    model.cancel(index % executions.count)
                    executions[index % executions.count].cancel()
                case .flag(let isOn):
                    model.isEnabled = isOn
                    flag.set(isOn)
                case .limit(let limit):
                    guard !keepsOne else { continue }
                    model.setLimit(limit)
                    action.setLimit(limit)
                case .cancelAll:
                    for input in model.line { model.cancel(input) }
                    action.cancelAll()
                }
                await settle()
            }
            while let input = model.running.first {
                model.end(input, "finished \(input)")
                works.end(input, .success(input))
                await settle()
            }
            #expect(order.withLock { $0 } == model.begun.map { executions[$0].id })
            #expect(model.outcomes.count == executions.count)
            // No snapshot is skipped: the generations are consecutive.
            let generations = snapshots.entries.compactMap { Int($0) }
            #expect(
                generations == Array((generations.first ?? 0)..<(generations.first ?? 0) + generations.count))
            withExtendedLifetime((events, watching)) {}
        }
    }

    @Test(.promises("R1", "R3", "A17", "A18", "A21", "Z1", "Z9", "Z11"), arguments: policies)
    func `R1: from threads each trigger ends once, and the limit holds`(
        policy: ActionPolicy
    ) async {
        let limit = policy == .switchToLatest || policy == .coalesce ? 1 : 3
        let flight = Locked((now: 0, most: 0, calls: 0))
        let flag = LiveValue(true)
        let seen = Locked<[ExecutionID: [String]]>([:])
        let wrong = Log()
        let action = Action<Int, Int>(
            "work", when: Precondition(flag), policy: policy, limit: limit,
            work: { input, _, context in
                flight.withLock { flight in
                    flight.now += 1
                    flight.calls += 1
                    flight.most = max(flight.most, flight.now)
                }
                context.yield(-1)
                await Task.yield()
                flight.withLock { $0.now -= 1 }
                if input % 5 == 0 { throw TestError(number: input) }
                return input
            })
        let events = action.observeEvents { event in
            seen.withLock { $0[event.id, default: []].append(event.text) }
        }
        let snapshots = action.observeSnapshots { snapshot in
            if snapshot.isExecuting != (snapshot.running > 0) || snapshot.running > limit {
                wrong.add("\(snapshot)")
            }
        }
        let executions = await offThread {
            concurrently(4) { thread in
                (0..<250).map { round in
                    if thread == 0 && round % 10 == 0 { flag.set(round % 20 == 0) }
                    let execution = action.trigger(round)
                    if round % 7 == thread { execution.cancel() }
                    let snapshot = action.snapshot
                    if snapshot.isExecuting != (snapshot.running > 0) || snapshot.running > limit {
                        wrong.add("\(snapshot)")
                    }
                    return execution
                }
            }.flatMap { $0 }
        }
        var begun = 0
        for execution in executions {
            let outcome = await execution.outcome
            let told = seen.withLock { $0[execution.id] ?? [] }
            switch outcome {
            case .finished(let value):
                #expect(told == ["started", "value -1", "value \(value)", "finished"])
            case .failed(let error): #expect(told == ["started", "value -1", "failed \(error)"])
            case .cancelled: #expect(told == [outcome.text])
            }
            if told.first == "started" { begun += 1 }
        }
        flight.withLock { #expect($0.now == 0 && $0.most <= limit && $0.calls == begun) }
        #expect(wrong.entries.isEmpty)
        flag.set(true)
        #expect(action.snapshot.text == "on idle 0 0")
        withExtendedLifetime((events, snapshots)) {}
    }
}
