// PolicyTests.swift - triggers that find no free slot or are cancelled, and changes of the limit (R9, A24).

import Actions
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct PolicyTests {
    @Test(.promises("R9", "A2")) func `R9: reject refuses while one runs, and admits after it has ended`()
        async
    {
        let works = Works()
        let action = Action<Int, Int>("work") { try await works.run($0) }
        let first = action.trigger(1)
        #expect(action.trigger(2).result?.text == "rejected busy")
        await works.begun(1)
        works.end(1, .success(1))
        _ = await first.outcome
        let third = action.trigger(3)
        await works.begun(2)
        works.end(3, .success(3))
        #expect(await third.outcome.text == "finished 3")
    }

    @Test(.promises("R9")) func `R9: a queue keeps its order, and refuses overflow`() async {
        let works = Works(), log = Log()
        let action = Action<Int, Int>("work", policy: .queue(3)) { try await works.run($0) }
        let events = action.observeEvents { event in
            if case .value(_, let value) = event { log.add("\(value)") }
        }
        let executions = (1...4).map { action.trigger($0) }
        #expect(action.snapshot.text == "off busy 1 3")
        #expect(action.trigger(5).result?.text == "rejected queueFull")
        for input in 1...4 {
            await works.begun(input)
            works.end(input, .success(input))
        }
        for execution in executions { _ = await execution.outcome }
        #expect(log.take() == ["1", "2", "3", "4"])
        #expect(works.most == 1)
        withExtendedLifetime(events) {}
    }

    @Test(.promises("R9")) func `R9: a refused waiter's slot goes to the next without one`() async {
        let works = Works(), log = Log(), refusesOnce = Locked(false)
        let source = LiveValue(true)
        let action = Action<Int, Int>(
            when: Precondition(
                source,
                where: { _ in
                    !refusesOnce.withLock { refuses in
                        defer { refuses = false }
                        return refuses
                    }
                }), policy: .queue(9)
        ) { input, _, _ in try await works.run(input) }
        let executions = (0..<4).map { action.trigger($0) }
        let names = Dictionary(uniqueKeysWithValues: executions.enumerated().map { ($1.id, $0) })
        await works.begun(1)
        let events = action.observeEvents { event in log.add("\(event.text) \(names[event.id]!)") }
        refusesOnce.withLock { $0 = true }
        action.setLimit(3)  // slots for 1 and 2; 1 is refused, so 3 gets its slot
        #expect(log.entries == ["rejected precondition 1", "started 2", "started 3"])
        await works.begun(3)
        for input in [0, 2, 3] { works.end(input, .success(input)) }
        for execution in executions { _ = await execution.outcome }
        events.cancel()
    }

    @Test(.promises("R9"))
    func `R9: switchToLatest cancels the running one, and begins the newest after it has ended`() async {
        let works = Works()
        let action = Action<Int, Int>("work", policy: .switchToLatest) { try await works.run($0) }
        let first = action.trigger(1)
        await works.begun(1)
        let second = action.trigger(2)
        #expect(action.snapshot.text == "on busy 1 1")
        let third = action.trigger(3)
        #expect(await second.outcome.text == "rejected superseded")
        #expect(works.count == 1)
        works.end(1, .failure(CancellationError()))
        #expect(await first.outcome.text == "cancelled")
        await works.begun(2)
        works.end(3, .success(3))
        #expect(await third.outcome.text == "finished 3")
        #expect(works.most == 1 && works.count == 2)
    }

    @Test(.promises("R9")) func `R9: a switched execution that still completes has finished`() async {
        let isCancelled = AsyncStream.makeStream(of: Bool.self)
        let works = Works()
        let action = Action<Int, Int>(
            "work", when: .always, policy: .switchToLatest,
            work: { input, _, context in
                let value = try await works.run(input)
                isCancelled.continuation.yield(context.isCancelled && Task.isCancelled)
                return value
            })
        let first = action.trigger(1)
        await works.begun(1)
        let second = action.trigger(2)
        works.end(1, .success(1))
        var seen = isCancelled.stream.makeAsyncIterator()
        #expect(await seen.next() == true)
        #expect(await first.outcome.text == "finished 1")
        await works.begun(2)
        works.end(2, .success(2))
        #expect(await seen.next() == false)
        #expect(await second.outcome.text == "finished 2")
    }

    @Test(.promises("R9"))
    func `R9: coalesce lets the running one finish, and runs once more, with the last input`() async {
        let works = Works()
        let action = Action<Int, Int>("work", policy: .coalesce) { try await works.run($0) }
        let executions = (1...6).map { action.trigger($0) }
        await works.begun(1)
        works.end(1, .success(1))
        #expect(await executions[0].outcome.text == "finished 1")
        for execution in executions[1..<5] { #expect(await execution.outcome.text == "rejected superseded") }
        await works.begun(2)
        works.end(6, .success(6))
        #expect(await executions[5].outcome.text == "finished 6")
        #expect(works.count == 2)
    }

    @Test(.promises("A24"))
    func `A24: a cancelled waiting trigger leaves at once, and its work never runs`() async {
        let works = Works(), log = Log()
        let action = Action<Int, Int>("work", policy: .queue(2)) { try await works.run($0) }
        let first = action.trigger(1), second = action.trigger(2), third = action.trigger(3)
        let events = action.observeEvents { log.add($0.text) }
        second.cancel()
        #expect(second.result?.text == "cancelled")
        #expect(log.take() == ["cancelled"])
        #expect(action.snapshot.text == "on busy 1 1")
        await works.begun(1)
        works.end(1, .success(1))
        await works.begun(2)
        works.end(3, .success(3))
        #expect(await third.outcome.text == "finished 3")
        #expect(await first.outcome.text == "finished 1")
        withExtendedLifetime(events) {}
    }

    @Test(.promises("A24", "Z15"))
    func `A24: a cancelled running execution keeps its slot until it has ended`() async {
        let works = Works()
        let action = Action<Int, Int>("work") { try await works.run($0) }
        for (end, text) in [
            (Works.End.success(5), "finished 5"), (.failure(CancellationError()), "cancelled"),
            (.failure(TestError(number: 1)), "failed TestError(number: 1)"),
        ] {
            let count = works.count
            let execution = action.trigger(1)
            await works.begun(count + 1)
            execution.cancel()
            #expect(action.snapshot.text == "off busy 1 0")
            #expect(await action.trigger(2).outcome.text == "rejected busy")
            works.end(1, end)
            #expect(await execution.outcome.text == text)
            #expect(action.snapshot.text == "on idle 0 0")
        }
    }

    @Test(.promises("A24"))
    func `A24: cancelling a direct call's task cancels the execution, and awaits its end`()
        async
    {
        let works = Works()
        let action = Action<Int, Int>(
            "work", when: .always,
            work: { input, _, context in
                let value = try await works.run(input)
                // The caller may only now have begun to wait; its cancellation can still be on its way.
                return await eventually { context.isCancelled } ? -value : value
            })
        let call = Task { try await action(4) }
        await works.begun(1)
        call.cancel()
        works.end(4, .success(4))
        #expect(await (try? call.value) == -4)
    }

    @Test func `A24: an execution cancelled in its start notice begins cancelled`() async {
        let action = Action<Int, Bool>(
            "work", when: .always, work: { _, _, context in context.isCancelled && Task.isCancelled })
        let events = action.observeEvents { event in if case .started = event { action.cancelAll() } }
        for _ in 0..<1000 { #expect(await action.trigger(1).outcome.text == "finished true") }
        events.cancel()
    }

    @Test func `cancelAll removes waiting ones, and asks running ones to end`() async {
        let works = Works()
        let action = Action<Int, Int>("work", policy: .queue(5), limit: 2) { try await works.run($0) }
        let executions = (1...5).map { action.trigger($0) }
        await works.begun(2)
        action.cancelAll()
        #expect(action.snapshot.text == "on busy 2 0")
        works.end(1, .failure(CancellationError()))
        works.end(2, .success(2))
        var ends: [String] = []
        for execution in executions { ends.append(await execution.outcome.text) }
        #expect(ends == ["cancelled", "finished 2", "cancelled", "cancelled", "cancelled"])
        #expect(works.count == 2)
    }

    @Test
    func `a raised limit begins waiters; a lowered one stops none, and admits none until it is reached`()
        async
    {
        let works = Works()
        let action = Action<Int, Int>("work", policy: .queue(8)) { try await works.run($0) }
        let executions = (1...6).map { action.trigger($0) }
        action.setLimit(3)
        #expect(action.snapshot.text == "on busy 3 3")
        await works.begun(3)
        action.setLimit(1)
        #expect(action.snapshot.text == "on busy 3 3")
        works.end(1, .success(1))
        works.end(2, .success(2))
        _ = await executions[1].outcome
        _ = await executions[0].outcome
        #expect(works.count == 3)
        #expect(action.snapshot.text == "on busy 1 3")
        for input in 3...6 {
            await works.begun(input)
            works.end(input, .success(input))
        }
        for execution in executions { _ = await execution.outcome }
        #expect(action.snapshot.text == "on idle 0 0")
    }

    @Test
    func `a precondition that fails at its turn refuses the waiter, and the next is checked`()
        async
    {
        let works = Works(), number = LiveValue(0)
        let action = Action<Int, Int>(
            "work", when: Precondition(number, where: { $0 >= 0 }), policy: .queue(5),
            work: { input, _, _ in try await works.run(input) })
        let executions = (1...3).map { action.trigger($0) }
        await works.begun(1)
        number.set(-1)
        #expect(action.snapshot.text == "off busy 1 2")
        works.end(1, .success(1))
        #expect(await executions[1].outcome.text == "rejected precondition")
        #expect(await executions[2].outcome.text == "rejected precondition")
        #expect(action.snapshot.text == "off idle 0 0")
        #expect(works.count == 1)
    }

    @Test(.promises("R9"))
    func `R9: waiters begin in order, even when two slots become free together`() async {
        let executor = StepExecutor()
        let action = Action<Int, Int>("work", policy: .queue(4), limit: 2, on: executor) { $0 }
        let executions = (1...4).map { action.trigger($0) }
        let order = Locked<[ExecutionID]>([])
        let events = action.observeEvents { event in
            switch event {
            case .started(let id): order.withLock { $0.append(id) }
            // The other execution ends while this end is being reported.
            case .finished(executions[0].id): _ = concurrently(1) { _ in executor.step() }
            default: break
            }
        }
        _ = await offThread { executor.step() }
        #expect(order.withLock { $0 } == executions[2...].map(\.id))
        await offThread { executor.runAll() }
        withExtendedLifetime(events) {}
    }

    @Test func `a slot passed to a waiting trigger is used, however busy the observers are`() async {
        let executor = StepExecutor()
        let action = Action<Int, Int>("work", policy: .queue(1), on: executor) { $0 }
        let first = action.trigger(1), second = action.trigger(2)
        let refused = Locked(0)
        let events = action.observeEvents { event in
            switch event {
            case .finished(first.id):
                action.trigger(3)
                action.trigger(4)
            // Retried until the second execution has begun.
            case .rejected:
                if refused.withLock({
                    $0 += 1; return $0
                }) < 1_000 {
                    action.trigger(5)
                }
            case .started(second.id): refused.withLock { $0 += 1_000 }
            default: break
            }
        }
        _ = await offThread { executor.step() }
        #expect(refused.withLock { $0 } < 1_000 + 10)
        await offThread { executor.runAll() }
        withExtendedLifetime(events) {}
    }

    @Test(arguments: [
        "Action: the limit is 0", "Action: 0 may wait",
        "Action: with the policy coalesce the limit must be 1, not 2",
        "Action: in a group the policy must be reject", "ActionGroup: the limit is 0",
        "ActionGroup: a group has at most 16 actions",
    ]) func `misuse traps with a sentence`(sentence: String) async {
        // One process per kind of misuse; the sentence selects the kind.
        await #expect(processExitsWith: .failure) { [sentence] in
            switch sentence {
            case "Action: the limit is 0": _ = Action<Int, Int>(limit: 0) { $0 }
            case "Action: 0 may wait": _ = Action<Int, Int>(policy: .queue(0)) { $0 }
            case "ActionGroup: the limit is 0": _ = ActionGroup(limit: 0)
            case "ActionGroup: a group has at most 16 actions":
                let group = ActionGroup()
                _ = (0..<17).map { _ in Action<Int, Int>(group: group) { $0 } }
            case "Action: in a group the policy must be reject":
                _ = Action<Int, Int>(policy: .coalesce, group: ActionGroup()) { $0 }
            default: _ = Action<Int, Int>(policy: .coalesce, limit: 2) { $0 }
            }
        }
    }

    // MARK: Groups

    @Test(.promises("A25"))
    func `A25: a group limits running actions, each runs once at a time, and all see it`() async {
        let works = Works(), group = ActionGroup(limit: 2)
        let actions = (0..<3).map { index in
            Action<Int, Int>("action \(index)", group: group) { try await works.run($0) }
        }
        let first = actions[0].trigger(1)
        #expect(actions.map(\.snapshot.isEnabled) == [false, true, true])
        #expect(actions.map(\.snapshot.isExecuting) == [true, false, false])
        #expect(actions[0].trigger(9).result?.text == "rejected busy")
        let second = actions[1].trigger(2)
        #expect(actions.map(\.snapshot.isEnabled) == [false, false, false])
        #expect(actions[2].trigger(3).result?.text == "rejected busy")
        #expect(group.running == 2)
        await works.begun(2)
        works.end(1, .success(1))
        _ = await first.outcome
        #expect(actions.map(\.snapshot.isEnabled) == [true, false, true])
        works.end(2, .success(2))
        _ = await second.outcome
        #expect(actions.map(\.snapshot.isEnabled) == [true, true, true])
    }

    @Test func `A25: observers of other actions in the group are told`() {
        let group = ActionGroup(), log = Log()
        let first = Action<Int, Int>("first", when: .always, group: group, inline: { input, _ in input })
        let second = Action<Int, Int>("second", when: .always, group: group, inline: { input, _ in input })
        let snapshots = second.observeSnapshots { log.add($0.text) }
        first.trigger(1)
        #expect(log.take() == ["on idle 0 0", "off idle 1 0", "on idle 0 0"])
        withExtendedLifetime(snapshots) {}
    }

    @Test(.promises("R1", "Z16")) func `A25: actions that threads trigger keep the group's limit`() async {
        let group = ActionGroup(limit: 2), flight = Locked((now: 0, most: 0))
        let actions = (0..<4).map { _ in
            Action<Int, Int>(group: group) { input in
                flight.withLock { flight in
                    flight.now += 1
                    flight.most = max(flight.most, flight.now)
                }
                await Task.yield()
                flight.withLock { $0.now -= 1 }
                return input
            }
        }
        let executions = await offThread {
            concurrently(3) { index in (0..<300).map { actions[($0 + index) % 4].trigger($0) } }.flatMap {
                $0
            }
        }
        for execution in executions { _ = await execution.outcome }
        #expect(flight.withLock { $0.most } <= 2)
        #expect(actions.allSatisfy { $0.snapshot.isEnabled } && group.running == 0)
    }

    @Test(.promises("A25")) func `A25: a group has room again when one of its sixteen actions is gone`() {
        let group = ActionGroup(limit: 2), flag = LiveValue(true)
        let kept = (0..<15).map { _ in Action<Int, Int>("kept", group: group) { $0 } }
        for round in 0..<40 {
            flag.set(round % 2 == 0)
            let action = Action<Int, Int>(
                "short", when: Precondition(flag), group: group, inline: { input, _ in input })
            #expect(action.snapshot.isEnabled == flag.value)
            action.trigger(round)
        }
        #expect(group.running == 0 && kept.allSatisfy { $0.snapshot.isEnabled })
    }
}
