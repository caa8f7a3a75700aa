// GateWordTests.swift - the gates as pure state machines: random events, checked against a model made of plain numbers.

import Actions
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

private enum Event: Sendable {
    case enable(Bool)
    case trigger
    case end
    case leave
    case limit(Int)

    static let any: Generator<Event> = .frequency([
        (6, Generator { _ in .trigger }), (4, Generator { _ in .end }), (1, Generator { _ in .leave }),
        (2, Generator<Bool>.bool.map { .enable($0) }), (1, Generator<Int>.int(in: 1...4).map { .limit($0) }),
    ])
}

private struct Model {
    var isEnabled = false
    var running = 0
    var waiting = 0
    var limit: Int
    var policy: ActionPolicy
    var changes = 0

    var hasRoom: Bool {
        switch policy {
        case .reject: running < limit
        case .queue(let most): running < limit || waiting < most
        case .switchToLatest, .coalesce: true
        }
    }

    var snapshot: ActionSnapshot {
        ActionSnapshot(
            isEnabled: isEnabled && hasRoom, isExecuting: running > 0, running: running, waiting: waiting,
            limit: limit, generation: changes)
    }
}

@Suite(.inTurn, .leavesNothing) struct GateWordTests {
    private static let policies: [ActionPolicy] = [.reject, .queue(1), .queue(3), .switchToLatest, .coalesce]

    @Test(.promises("R1", "A21"), arguments: policies) func `R1: the word matches a model of numbers`(
        policy: ActionPolicy
    )
        async
    {
        let keepsOne = policy == .switchToLatest || policy == .coalesce
        await forAll(Event.any.array(count: 0...60), cases: 200) { events in
            var word = GateWord(isEnabled: false, limit: 1)
            var model = Model(limit: 1, policy: policy)
            for event in events {
                switch event {
                case .enable(let isEnabled):
                    let hasChanged = word.setEnabled(isEnabled)
                    #expect(hasChanged == (model.isEnabled != isEnabled))
                    if model.isEnabled != isEnabled { model.changes += 1 }
                    model.isEnabled = isEnabled
                case .trigger:
                    let admission = word.admit(policy)
                    if !model.isEnabled {
                        #expect(admission == .refuse(.precondition))
                    } else if model.running < model.limit {
                        #expect(admission == .start)
                        model.running += 1
                        model.changes += 1
                    } else if keepsOne {
                        #expect(admission == .replace)
                        model.waiting = 1
                        model.changes += 1
                    } else if case .queue(let most) = policy, model.waiting < most {
                        #expect(admission == .wait)
                        model.waiting += 1
                        model.changes += 1
                    } else {
                        #expect(admission == .refuse(policy == .reject ? .busy : .queueFull))
                    }
                case .end:
                    guard model.running > 0 else { continue }
                    let isHandedOver = model.waiting > 0 && model.running <= model.limit
                    let answer = word.end()
                    #expect(answer == isHandedOver)
                    if isHandedOver { model.waiting -= 1 } else { model.running -= 1 }
                    model.changes += 1
                case .leave:
                    guard model.waiting > 0 else { continue }
                    word.leaveLine()
                    model.waiting -= 1
                    model.changes += 1
                case .limit(let limit):
                    guard !keepsOne else { continue }
                    let admitted = max(0, min(model.waiting, limit - model.running))
                    let count = word.setLimit(limit)
                    #expect(count == admitted)
                    model.limit = limit
                    model.waiting -= admitted
                    model.running += admitted
                    model.changes += 1
                }
                #expect(word.snapshot(policy) == model.snapshot)
                // No trigger waits while a slot is free.
                #expect(model.waiting == 0 || model.running >= model.limit)
            }
        }
    }

    @Test(.promises("R3"))
    func `each field holds 4095, and a generation that wraps leaves the others alone`() {
        var word = GateWord(isEnabled: true, limit: 4095)
        for _ in 0..<4095 { #expect(word.admit(.queue(4095)) == .start) }
        for _ in 0..<4095 { #expect(word.admit(.queue(4095)) == .wait) }
        let admission = word.admit(.queue(4095))
        #expect(admission == .refuse(.queueFull))
        let full = word.snapshot(.queue(4095))
        #expect((full.running, full.waiting, full.limit, full.generation) == (4095, 4095, 4095, 8190))
        #expect(!full.isEnabled)
        var last = GateWord(bits: word.bits | ~0 << 37)
        #expect(last.generation == 1 << 27 - 1)
        let hasChanged = last.setEnabled(false)
        #expect(hasChanged)
        #expect(last.generation == 0)
        #expect((last.running, last.waiting, last.limit, last.isEnabled) == (4095, 4095, 4095, false))
    }

    @Test(.promises("A25")) func `A25: a group's word matches a model of sets`() async {
        let event = Generator<(Int, Int)>.zip(.int(in: 0...3), .int(in: 0...15))
        await forAll(event.array(count: 0...80), cases: 300) { events in
            var word = GroupWord(limit: 2)
            var (enabled, executing, limit, changes) = (Set<Int>(), Set<Int>(), 2, 0)
            for (kind, index) in events {
                switch kind {
                case 0:
                    let isEnabled = !enabled.contains(index)
                    let hasChanged = word.setEnabled(isEnabled, index)
                    #expect(hasChanged)
                    if isEnabled { enabled.insert(index) } else { enabled.remove(index) }
                    changes += 1
                case 1:
                    let admission = word.admit(index)
                    if !enabled.contains(index) {
                        #expect(admission == .refuse(.precondition))
                    } else if executing.contains(index) || executing.count >= limit {
                        #expect(admission == .refuse(.busy))
                    } else {
                        #expect(admission == .start)
                        executing.insert(index)
                        changes += 1
                    }
                case 2:
                    guard executing.remove(index) != nil else { continue }
                    word.end(index)
                    changes += 1
                default:
                    limit = 1 + index % 4
                    word.setLimit(limit)
                    changes += 1
                }
                for action in 0..<16 {
                    let isExecuting = executing.contains(action)
                    #expect(
                        word.snapshot(action)
                            == ActionSnapshot(
                                isEnabled: enabled.contains(action) && !isExecuting
                                    && executing.count < limit,
                                isExecuting: isExecuting, running: executing.count, waiting: 0, limit: limit,
                                generation: changes))
                }
            }
        }
    }
}
