// LifetimeTests.swift - what holds what, and for how long (R6, A15).

import Actions
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct LifetimeTests {
    private final class Witness: Sendable {
        let count: Counted
        init(_ count: LiveCount) { self.count = Counted(count) }
    }

    @Test(.promises("R6"))
    func `R6: streams finish with the last of action, facades and executions, while its sources live`()
        async
    {
        let flag = LiveValue(true)
        var action: Action<Int, Int>? = Action(
            "work", when: Precondition(flag), inline: { input, _ in input })
        var facade = action?.facade
        var execution = action?.trigger(1)
        let events = action?.events
        action = nil
        facade?.trigger(2)
        #expect(execution?.result?.text == "finished 1")
        facade = nil
        execution = nil
        var seen: [String] = []
        if let events { for await event in events { seen.append(event.text) } }
        #expect(seen == ["started", "value 2", "finished"])
        withExtendedLifetime(flag) {}
    }

    @Test(.promises("R6")) func `R6: a running execution ends normally when its action is released`() async {
        let works = Works()
        let execution: Execution<Int>
        do {
            let action = Action<Int, Int>("work") { try await works.run($0) }
            execution = action.trigger(1)
        }
        await works.begun(1)
        works.end(1, .success(7))
        #expect(await execution.outcome.text == "finished 7")
    }

    @Test func `an action retains its precondition for its lifetime, and no longer`() {
        let count = LiveCount("sources")
        weak var weakSource: LiveValue<Bool>?
        var action: Action<Int, Int>?
        do {
            let source = LiveValue(true), witness = Witness(count)
            weakSource = source
            action = Action(
                "work",
                when: Precondition(
                    source,
                    where: { isOn in
                        withExtendedLifetime(witness) {}
                        return isOn
                    }), inline: { input, _ in input })
        }
        #expect(weakSource != nil && count.value == 1)
        #expect(action?.snapshot.isEnabled == true)
        action = nil
        #expect(weakSource == nil && count.value == 0)
    }

    @Test func `inputs, work and observers are released when no longer needed`() async {
        let count = LiveCount("witnesses")
        do {
            let works = Works(), kept = Witness(count)
            let action = Action<Witness, Int>("work", policy: .queue(2)) { input in
                withExtendedLifetime((input, kept)) {}
                return try await works.run(1)
            }
            let seen = Witness(count)
            let subscription = action.observeEvents { _ in withExtendedLifetime(seen) {} }
            let first = action.trigger(Witness(count))
            let second = action.trigger(Witness(count))
            let third = action.trigger(Witness(count))
            second.cancel()
            await works.begun(1)
            works.end(1, .success(1))
            await works.begun(2)
            works.end(1, .failure(TestError()))
            _ = await third.outcome
            _ = await first.outcome
            subscription.cancel()
        }
        #expect(await eventually { count.value == 0 })
    }

    @Test func `a waiter retains no value, and an execution retains neither input nor value`() async {
        let inputs = LiveCount("inputs"), values = LiveCount("values"), works = Works()
        let source = LiveValue(Witness(values))
        let action = Action<Witness, Int>(
            when: Precondition(source, where: { _ in true }), policy: .queue(1)
        ) { _, _, _ in try await works.run(1) }
        let first = action.trigger(Witness(inputs))
        await works.begun(1)
        source.set(Witness(values))
        let second = action.trigger(Witness(inputs))
        source.set(Witness(values))
        #expect(values.value == 2)  // the running work's value, and the newest one
        let third = action.trigger(Witness(inputs))
        #expect(await third.outcome.text == "rejected queueFull")
        #expect(inputs.value == 2)
        second.cancel()
        #expect(await second.outcome.text == "cancelled")
        #expect(inputs.value == 1)
        works.end(1, .success(1))
        #expect(await first.outcome.text == "finished 1")
        #expect(await eventually { inputs.value == 0 && values.value == 1 })  // as soon as the task is gone
        withExtendedLifetime((first, second, third, source)) {}
    }

    @Test func `a subscription does not own its action`() {
        weak var weakAction: Action<Int, Int>?
        var subscriptions: [Subscription] = []
        do {
            let action = Action<Int, Int>("work") { $0 }
            weakAction = action
            subscriptions = [action.observeEvents { _ in }, action.observeSnapshots { _ in }]
        }
        #expect(weakAction == nil)
        withExtendedLifetime(subscriptions) {}
    }

    @Test func `a stream without a reader ends its observation`() async {
        let count = LiveCount("witnesses")
        let value = LiveValue(0)
        do {
            let witness = Witness(count)
            let derived = value.map { number in
                withExtendedLifetime(witness) {}
                return number
            }
            var iterator = derived.values.makeAsyncIterator()
            #expect(await iterator.next() == 0)
        }
        value.set(1)
        #expect(await eventually { count.value == 0 })
    }

    @Test func `the place of an ended subscription is released`() async {
        weak var weakOwner: Owner?
        do {
            let owner = Owner()
            weakOwner = owner
            await owner.watch()
        }
        #expect(await eventually { weakOwner == nil })
    }

    @Test func `an action is released under no lock while another follows its value`() async {
        let value = LiveValue(true)
        @Sendable func action() -> Action<Void, Void> {
            let reader = Reader(value)
            return Action(when: Precondition(value), inline: { _, _ in withExtendedLifetime(reader) {} })
        }
        _ = await offThread {
            for _ in 0..<(isSanitized ? 30 : 150) {
                let actions = (0..<100).map { _ in Locked<Action<Void, Void>?>(action()) }
                // One thread releases the actions while the other creates new ones. Each creation walks the
                // existing actions.
                _ = concurrently(2) { thread in
                    for index in actions.indices {
                        if thread == 0 { actions[index].withLock { $0 = nil } } else { _ = action() }
                    }
                }
            }
        }
    }
}

/// Observes its own action in its own isolation.
private actor Owner {
    private let action = Action<Int, Int>("work", when: .always, inline: { input, _ in input })
    func watch() {
        let subscription = action.observeEvents(on: .isolated(self)) { _ in }
        action.trigger(1)
        subscription.cancel()
    }
}

/// Reads a value when deallocated.
private final class Reader: Sendable {
    private let value: LiveValue<Bool>
    init(_ value: LiveValue<Bool>) { self.value = value }
    deinit { _ = value.value }
}
