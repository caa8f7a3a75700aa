// ReentranceTests.swift - triggers, changes and subscriptions from inside notifications (A22, A23, R7, R10), and delivery (A14).

import Actions
import Commands
import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ReentranceTests {
    @Test(.promises("R4", "A22", "Z12"))
    func `A22: an observer of the end can trigger again, for immediate and for other work`()
        async
    {
        let log = Log()
        let atOnce = Action<Int, Int>("at once", when: .always, inline: { input, _ in input })
        let first = atOnce.observeEvents { event in
            log.add(event.text)
            if case .finished = event, log.entries.count < 6 {
                log.add("\(atOnce.trigger(2).id == event.id)")
            }
        }
        atOnce.trigger(1)
        #expect(
            log.take() == ["started", "value 1", "finished", "false", "started", "value 2", "finished"])
        let later = Action<Int, Int>("later") { $0 }
        let again = Locked<Execution<Int>?>(nil)
        let second = later.observeEvents { event in
            guard case .finished = event, again.withLock({ $0 == nil }) else { return }
            let execution = later.trigger(3)
            again.withLock { $0 = execution }
        }
        _ = await later.trigger(1).outcome
        #expect(await again.withLock { $0 }?.outcome.text == "finished 3")
        first.cancel()
        second.cancel()
    }

    @Test(.promises("A18"))
    func `A18: a refusal is known at once, and reaches waiters after its notices`()
        async
    {
        let log = Log(), begun = Gate(), goOn = Gate()
        let action = Action<Int, Int>("work", when: .always, inline: { input, _ in input })
        let events = action.observeEvents { event in
            if case .started = event {
                begun.open()
                goOn.wait()
            }
            log.add(event.text)
        }
        async let first = offThread { action.trigger(1) }
        let refused = await offThread {
            begun.wait()
            return action.trigger(2)
        }
        #expect(refused.result?.text == "rejected busy")
        let waiter = Task.immediate { log.add("outcome: \(await refused.outcome.text)") }
        #expect(log.entries == [])
        goOn.open()
        await waiter.value
        #expect(log.entries.prefix(2) == ["started", "rejected busy"])
        #expect(log.entries.contains("outcome: rejected busy"))
        #expect(await first.outcome.text == "finished 1")
        events.cancel()
    }

    @Test func `an end is known at once, and reaches waiters after its notices`() async {
        let log = Log(), works = Works(), isTold = Gate(), goOn = Gate()
        let action = Action<Int, Int>("work") { try await works.run($0) }
        let events = action.observeEvents { event in
            if case .value = event {
                isTold.open()
                goOn.wait()
            }
            log.add(event.text)
        }
        let execution = action.trigger(1)
        await works.begun(1)
        works.end(1, .success(7))
        await offThread { isTold.wait() }
        #expect(execution.result?.text == "finished 7")
        let waiter = Task.immediate { log.add("outcome: \(await execution.outcome.text)") }
        #expect(log.entries == ["started"])
        goOn.open()
        await waiter.value
        #expect(log.entries == ["started", "value 7", "finished", "outcome: finished 7"])
        events.cancel()
    }

    @Test(.promises("R4"))
    func `work in place runs in its trigger, though another thread notifies earlier`() async {
        let log = Log(), isTold = Gate(), goOn = Gate()
        let flag = LiveValue(true)
        let action = Action<Int, UInt>(
            "work", when: Precondition(flag), inline: { _, _ in UInt(pthread_self()) })
        let events = action.observeEvents { event in
            if case .rejected = event {
                isTold.open()
                goOn.wait()
            }
            log.add(event.text)
        }
        flag.set(false)
        async let telling: Void = offThread { action.trigger(0) }
        await offThread {
            isTold.wait()
            flag.set(true)
            let execution = action.trigger(1)
            #expect(execution.result?.value == UInt(pthread_self()))
            #expect(!action.snapshot.isExecuting && log.entries == [])
        }
        goOn.open()
        await telling
        #expect(
            log.entries.map { $0.hasPrefix("value") ? "value" : $0 } == [
                "rejected precondition", "started", "value", "finished",
            ])
        events.cancel()
    }

    @Test func `in-place work of many threads runs on the caller's, or on none`() async {
        let action = Action<Int, UInt>(
            "work", when: .always, limit: 3, inline: { _, _ in UInt(pthread_self()) })
        let told = Locked(0)
        let events = action.observeEvents { event in if case .value = event { told.withLock { $0 += 1 } } }
        let ran = await offThread {
            concurrently(4) { _ in
                (0..<500).count { _ in
                    guard let value = action.trigger(0).result?.value else { return false }
                    #expect(value == UInt(pthread_self()))
                    return true
                }
            }.reduce(0, +)
        }
        // Another thread may still be delivering the last notices.
        let areTold = await eventually { told.withLock { $0 } == ran }
        #expect(ran > 0 && areTold)
        events.cancel()
    }

    @Test(.promises("R4"))
    func `a lone caller that resumes after an execution sends later notices in its own calls`()
        async throws
    {
        let flag = LiveValue(true)
        let action = Action<Int, Int>("work", when: Precondition(flag)) { input, _, _ in input }
        for round in 0..<500 {
            flag.set(true)
            let value = try await action(round)
            #expect(value == round)
            flag.set(false)
            let log = Log()
            let events = action.observeEvents { log.add($0.text) }
            action.trigger(0)
            #expect(log.entries == ["rejected precondition"])
            events.cancel()
        }
    }

    @Test(.promises("A23", "Z13")) func `A23: no older state is sent after a newer`() {
        let log = Log()
        let action = Action<Int, Int>("work", when: .always, inline: { input, _ in input })
        let runs = Locked(0)
        let snapshots = action.observeSnapshots { snapshot in
            log.add(snapshot.text)
            // On the transition back to enabled.
            if snapshot.isEnabled,
                runs.withLock({
                    $0 += 1; return $0
                }) <= 2
            {
                action.trigger(1)
            }
        }
        let late = action.observeSnapshots { log.add("late \($0.text)") }
        #expect(
            log.take() == [
                "on idle 0 0", "off busy 1 0", "on idle 0 0", "off busy 1 0", "on idle 0 0",
                "late on idle 0 0",
            ])
        #expect(action.snapshot.text == "on idle 0 0")
        withExtendedLifetime((snapshots, late)) {}
    }

    @Test(.promises("R7", "Z14"))
    func `R7: a million chained triggers of immediate work need a constant stack`() {
        #if DEBUG
            let count = isSanitized ? 20_000 : 100_000
        #else
            let count = isSanitized ? 20_000 : 1_000_000
        #endif
        let done = Locked(0)
        let action = Action<Int, Int>("work", when: .always, inline: { input, _ in input + 1 })
        let chain = action.observeEvents { event in
            if case .value(_, let value) = event { done.withLock { $0 = value } }
            if case .finished = event, done.withLock({ $0 }) < count { action.trigger(done.withLock { $0 }) }
        }
        action.trigger(0)
        #expect(done.withLock { $0 } == count)
        chain.cancel()
    }

    @Test(.promises("R10")) func `R10: actions that trigger each other end without deadlock`() {
        let log = Log()
        let first = Action<Int, Int>("first", when: .always, inline: { input, _ in input })
        let second = Action<Int, Int>("second", when: .always, inline: { input, _ in input })
        let subscriptions = [
            first.observeEvents { event in
                if case .value(_, let value) = event {
                    log.add("first \(value)")
                    if value < 4 { second.trigger(value + 1) }
                }
            },
            second.observeEvents { event in
                if case .value(_, let value) = event {
                    log.add("second \(value)")
                    if value < 4 { first.trigger(value + 1) }
                }
            },
        ]
        first.trigger(1)
        #expect(log.entries.first == "first 1" && log.entries.dropFirst().first == "second 2")
        withExtendedLifetime(subscriptions) {}
    }

    @Test(.promises("R10")) func `R10: a precondition fed by not executing settles`() async {
        let idle = LiveValue(true), works = Works()
        let action = Action<Int, Int>(
            "work", when: Precondition(idle), policy: .queue(4), limit: 4,
            work: { input, _, _ in try await works.run(input) })
        let feedback = action.observeSnapshots { idle.set(!$0.isExecuting) }
        let execution = action.trigger(1)
        #expect(!idle.value && !action.snapshot.isEnabled)
        await works.begun(1)
        works.end(1, .success(1))
        _ = await execution.outcome
        #expect(await eventually { idle.value && action.snapshot.text == "on idle 0 0" })
        withExtendedLifetime(feedback) {}
    }

    @Test(.promises("R10"))
    func `R10: a loop that never settles is reported once, and the caller returns`() async {
        await restless(changesBefore: 0)
        // Changes are counted from the start of the loop. An execution restarts the count.
        await restless(changesBefore: 4_000)
        settlesNothingButWorks(.reject)
        settlesNothingButWorks(.coalesce)
        worksFromTheLine()
    }

    private func restless(changesBefore: Int) async {
        let reports = Log()
        let flag = LiveValue(false)
        let action = Action<Void, UInt>(
            "restless", when: Precondition(flag), inline: { _, _ in UInt(pthread_self()) })
        Diagnostics.onReport { diagnostic in
            if diagnostic.message.contains("restless") { reports.add(diagnostic.message) }
        }
        defer { Diagnostics.onReport(nil) }
        for change in 0..<changesBefore { flag.set(change % 2 == 0) }
        let (hasReturned, rounds) = (Locked(false), Locked(0))
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let loop = action.observeSnapshots { _ in
            let round = rounds.withLock { rounds in
                rounds += 1
                return rounds
            }
            if round == 2 { action.trigger(()) }
            // Keeps the loop going until the caller has returned, however long that takes.
            if round >= 4_000, hasReturned.withLock({ $0 }) { end.finish() } else { flag.set(!flag.value) }
        }
        // Another thread runs the loop by now; this thread still runs its own work in place.
        let results = triggers(of: action)
        hasReturned.withLock { $0 = true }
        for await _ in ends {}
        loop.cancel()
        #expect(results.allSatisfy { $0 })
        #expect(reports.entries.count == 1)
        #expect(reports.entries.first?.contains("changed 1000 times in one go") == true)
    }

    /// Whether each trigger was refused, or had run on this thread, by the time the call returned.
    private func triggers(of action: Action<Void, UInt>) -> [Bool] {
        (0..<20).map { _ in
            guard let result = action.trigger(()).result else { return false }
            return result.value.map { $0 == UInt(pthread_self()) } ?? result.isCancelled
        }
    }

    /// While `started` is delivered, another thread changes the precondition's value often enough to make a loop restless.
    @Test(.promises("R4")) func `work in place runs in its trigger, though earlier notices never end`()
        async
    {
        let flag = LiveValue(true)
        let action = Action<Int, UInt>(
            "busy", when: Precondition(flag), inline: { _, _ in UInt(pthread_self()) })
        let (isTold, isChanged) = (Gate(), Gate())
        let events = action.observeEvents { event in
            guard case .started = event else { return }
            isTold.open()
            isChanged.wait()
        }
        async let changing: Void = offThread {
            isTold.wait()
            for change in 1...4_001 { flag.set(change % 2 == 0) }
            isChanged.open()
        }
        await offThread {
            let execution = action.trigger(1)
            #expect(execution.result?.value == UInt(pthread_self()))
        }
        await changing
        events.cancel()
    }

    /// A loop in which the work runs now and then is not reported. Part of the same test, because a process has one diagnostics sink.
    private func settlesNothingButWorks(_ policy: ActionPolicy) {
        let reports = Log()
        let flag = LiveValue(false)
        let action = Action<Void, Void>(
            "busy loop", when: Precondition(flag), policy: policy, inline: { _, _ in })
        Diagnostics.onReport { diagnostic in
            if diagnostic.message.contains("busy loop") { reports.add(diagnostic.message) }
        }
        defer { Diagnostics.onReport(nil) }
        let (rounds, executions) = (Locked(0), Locked(0))
        let loop = action.observeSnapshots { snapshot in
            let round = rounds.withLock { rounds in
                rounds += 1
                return rounds
            }
            let isDue = executions.withLock { executions in
                guard snapshot.isEnabled, round >= (executions + 1) * 500 else { return false }
                executions += 1
                return true
            }
            if isDue { action.trigger(()) }
            if round < 5_000 { flag.set(!flag.value) }
        }
        #expect(rounds.withLock { $0 } >= 5_000 && executions.withLock { $0 } >= 9)
        #expect(reports.entries.isEmpty)
        loop.cancel()
    }

    /// Each execution has waited in line for its predecessor.
    private func worksFromTheLine() {
        let reports = Log(), flag = LiveValue(true), count = Locked(0)
        let action = Action<Void, Void>(
            "busy line", when: Precondition(flag), policy: .coalesce, inline: { _, _ in })
        Diagnostics.onReport { diagnostic in
            if diagnostic.message.contains("busy line") { reports.add(diagnostic.message) }
        }
        defer { Diagnostics.onReport(nil) }
        let loop = action.observeEvents { event in
            guard case .started = event,
                count.withLock({ count in
                    count += 1
                    return count < 2_000
                })
            else { return }
            flag.set(false)
            flag.set(true)
            action.trigger(())
        }
        action.trigger(())
        #expect(count.withLock { $0 } == 2_000 && reports.entries.isEmpty)
        loop.cancel()
    }

    @Test func `a notice delivered elsewhere knows nothing of its originating task`() async {
        let value = LiveValue(0), seen = Mail<Int>()
        let places = Elsewhere()
        for delivery in [Delivery.main, .isolated(places)] {
            let subscription = value.observe(on: delivery) { _ in seen.send(Elsewhere.mark) }
            _ = await seen.next()
            await Task { Elsewhere.$mark.withValue(7) { value.set(1) } }.value
            #expect(await seen.next() == 0)
            subscription.cancel()
        }
    }

    @Test(.promises("A23"))
    func `an observer may end itself and others, or subscribe, with immediate effect`() {
        let value = LiveValue(0), log = Log()
        let second = Locked<Subscription?>(nil), third = Locked<Subscription?>(nil)
        let first = value.observe { now in
            log.add("first \(now)")
            if now == 1 {
                second.withLock { $0 }?.cancel()
                let added = value.observe { log.add("third \($0)") }
                third.withLock { $0 = added }
            }
        }
        let subscription = value.observe { log.add("second \($0)") }
        second.withLock { $0 = subscription }
        value.set(1)
        value.set(2)
        #expect(log.take() == ["first 0", "second 0", "first 1", "third 1", "first 2", "third 2"])
        withExtendedLifetime((first, third)) {}
    }

    // MARK: Delivery

    @Test(.promises("A14", "Z8")) @MainActor
    func `A14: on the main actor at once if the caller is there, else later in order`()
        async
    {
        let log = Log(), works = Works()
        let action = Action<Int, Int>("work") { try await works.run($0) }
        let snapshots = action.facade.observeSnapshots { snapshot in
            MainActor.assumeIsolated { log.add(snapshot.text) }
        }
        #expect(log.take() == ["on idle 0 0"])
        let execution = action.trigger(1)
        #expect(log.take() == ["off busy 1 0"])
        await works.begun(1)
        works.end(1, .success(1))
        _ = await execution.outcome
        #expect(await eventually { !log.entries.isEmpty })
        #expect(log.take() == ["on idle 0 0"])
        withExtendedLifetime(snapshots) {}
    }

    @Test(.promises("A14")) func `A14: on a target, and on an actor, in order, nothing skipped`() async {
        let queue = DispatchQueue(label: "delivery")
        let keeper = Keeper()
        let value = LiveValue(0)
        let seen = AsyncStream.makeStream(of: Int.self)
        let onQueue = value.observe(on: .target(queue)) { now in
            dispatchPrecondition(condition: .onQueue(queue))
            seen.continuation.yield(now)
        }
        let onActor = value.observe(on: .isolated(keeper)) { now in
            keeper.assumeIsolated { $0.numbers.append(now) }
            if now == 300 { seen.continuation.yield(-1) }
        }
        _ = await offThread { concurrently(3) { _ in for _ in 0..<100 { value.modify { $0 += 1 } } } }
        var (numbers, ends) = ([Int](), 0)
        for await number in seen.stream {
            if number >= 0 { numbers.append(number) } else { ends += 1 }
            if numbers.last == 300, ends == 1 { break }
        }
        #expect(numbers == Array(0...300))
        #expect(await keeper.numbers == Array(0...300))
        withExtendedLifetime((onQueue, onActor)) {}
    }
}

private actor Keeper {
    var numbers: [Int] = []
}

private actor Elsewhere {
    @TaskLocal static var mark = 0
}
