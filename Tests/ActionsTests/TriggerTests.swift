// TriggerTests.swift - one execution from its trigger to its end: the gate, the value, the events and the errors.

import Actions
import Commands
import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct TriggerTests {
    @Test(.promises("R4", "A7", "A15")) func `R4: gate, started, closure; gate, value, finished, caller`()
        async throws
    {
        let works = Works(), log = Log()
        let action = Action<Int, Int>("work") { try await works.run($0) }
        let snapshots = action.observeSnapshots { log.add($0.text) }
        let events = action.observeEvents { log.add($0.text) }
        #expect(log.take() == ["on idle 0 0"])
        let execution = action.trigger(3)
        #expect(log.take() == ["off busy 1 0", "started"])
        await works.begun(1)
        works.end(3, .success(9))
        #expect(await execution.outcome.text == "finished 9")
        #expect(log.take() == ["on idle 0 0", "value 9", "finished"])
        withExtendedLifetime((snapshots, events)) {}
    }

    @Test(.promises("R4", "Z12")) func `R4: work that ends at once sends the same notices in order`() {
        let log = Log()
        let action = Action<Int, Int>("work", when: .always, inline: { input, _ in input * input })
        let snapshots = action.observeSnapshots { log.add($0.text) }
        let events = action.observeEvents { log.add($0.text) }
        let execution = action.trigger(3)
        #expect(execution.result?.text == "finished 9")
        #expect(
            log.take() == ["on idle 0 0", "off busy 1 0", "started", "on idle 0 0", "value 9", "finished"])
        withExtendedLifetime((snapshots, events)) {}
    }

    @Test
    func `an outcome is the exact value returned, even a nested optional or none`()
        async throws
    {
        for value: Int??? in [nil, .some(nil), .some(.some(nil)), 4] {
            let action = Action<Int, Int???>("work", when: .always, inline: { _, _ in value })
            #expect(try await action(1) == value)
            guard case .finished(let output)? = action.trigger(1).result else {
                Issue.record("it has not finished")
                return
            }
            #expect(output == value)
        }
        let nothing = Action<Int, Void>("work", when: .always, inline: { _, _ in })
        #expect(nothing.trigger(1).result?.text == "finished ()")
        let erased = Action<Int, any Error>(
            "work", when: .always, inline: { input, _ in TestError(number: input) })
        #expect(try await erased(1) as? TestError == TestError(number: 1))
    }

    @Test(.promises("A17", "A20", "Z10")) func `A20: work does not begin inside trigger`() async throws {
        let log = Log()
        let action = Action<Int, Int>("work") { input in
            log.add("work")
            return input
        }
        // An observer that is notified in place delays the work.
        let events = action.observeEvents { event in if case .started = event { log.add("started") } }
        _ = try await action(1)
        #expect(log.take() == ["started", "work"])
        withExtendedLifetime(events) {}
    }

    @Test(.promises("A20", "Z10")) func `A20: no triggering caller does work`() async {
        let executor = StepExecutor(), log = Log()
        let action = Action<Int, Int>("work", on: executor) { input in
            log.add("work")
            return input
        }
        let execution = action.trigger(1)
        action.facade.trigger(2)  // no slot is free
        #expect(log.entries == [] && action.snapshot.isExecuting)
        executor.runAll()
        #expect(await execution.outcome.text == "finished 1")
        #expect(log.entries == ["work"])
    }

    @Test(.promises("R2", "A1")) func `A1: the value that was tested is passed to the work`()
        async throws
    {
        let token = LiveValue<String?>(nil)
        let action = Action<Int, String>(
            "send", when: Precondition(unwrapping: token), work: { input, token, _ in "\(token) \(input)" })
        await #expect(throws: ActionError.self) { try await action(1) }
        token.set("first")
        #expect(try await action(2) == "first 2")
        token.set("second")
        #expect(try await action(3) == "second 3")
    }

    @Test(.promises("R2", "R3", "Z3"))
    func `R2: changing values concurrently with triggers passes no forbidden value to work`() async {
        let number = LiveValue(0)
        let wrong = Log()
        let action = Action<Int, Int>(
            "even", when: Precondition(number, where: { $0 % 2 == 0 }), policy: .queue(8), limit: 4,
            work: { _, value, _ in
                if value % 2 != 0 { wrong.add("\(value)") }
                return value
            })
        let executions = await offThread {
            concurrently(4) { index in
                (0..<500).map { round in
                    if index == 0 { number.set(round) }
                    return action.trigger(round)
                }
            }.flatMap { $0 }
        }
        for execution in executions { _ = await execution.outcome }
        #expect(wrong.entries.isEmpty)
        number.set(2)
        #expect(action.snapshot.text == "on idle 0 0")
        number.set(3)
        #expect(action.snapshot.text == "off idle 0 0")
    }

    @Test(.promises("R3")) func `R3: a source that changes while it is read is read again`() {
        let source = LiveValue(0)
        let precondition = Precondition(
            source,
            where: { value in
                // The value is changed, and the change delivered, before this answer is used.
                if value == 1 { source.set(2) }
                return value < 2
            })
        let action = Action<Int, Int>("work", when: precondition, inline: { input, _ in input })
        #expect(action.snapshot.isEnabled)
        source.set(1)
        #expect(source.value == 2 && !action.snapshot.isEnabled)
    }

    @Test(.promises("A11")) func `A11: direct calls pass the same gate, and their errors tell the cause`()
        async throws
    {
        let works = Works()
        let action = Action<Int, Int>("work") { try await works.run($0) }
        let first = action.trigger(1)
        await works.begun(1)
        do {
            _ = try await action(2)
            Issue.record("it was let in")
        } catch {
            guard case .disabled(.busy, let id) = error else { throw error }
            #expect(id == action.id && id.name == "work")
        }
        works.end(1, .failure(TestError(number: 1)))
        #expect(await first.outcome.text == "failed TestError(number: 1)")
        let failing = Task { try await action(3) }
        await works.begun(2)
        works.end(3, .failure(TestError(number: 3)))
        guard case .failure(let error) = await failing.result,
            case ActionError.failed(let cause)? = error as? ActionError
        else {
            Issue.record("it did not fail")
            return
        }
        #expect(cause as? TestError == TestError(number: 3))
        let cancelled = Task { try await action(4) }
        await works.begun(3)
        works.end(4, .failure(CancellationError()))
        guard case .failure(let error) = await cancelled.result,
            case ActionError.cancelled? = error as? ActionError
        else {
            Issue.record("it was not cancelled")
            return
        }
        #expect(works.count == 3)
    }

    @Test(.promises("R5", "Z4", "Z7"))
    func `R5: a rejection is one event and one rejection, no failure, and the work is not called`()
        async
    {
        let online = LiveValue(false), works = Works(), log = Log()
        let action = Action<Int, Int>(
            "work", when: Precondition(online), work: { input, _, _ in try await works.run(input) })
        let facade = action.facade
        let subscriptions = [
            action.observeEvents { log.add($0.text) },
            facade.observeRejections(on: .inline) { log.add("rejection \($0)") },
            facade.observeFailures(on: .inline) { log.add("failure \($0.message)") },
        ]
        #expect(action.trigger(1).result?.text == "rejected precondition")
        #expect(log.take() == ["rejected precondition", "rejection precondition"])
        online.set(true)
        let execution = action.trigger(2)
        facade.trigger(3)
        #expect(log.take() == ["started", "rejected busy", "rejection busy"])
        await works.begun(1)
        works.end(2, .failure(TestError(number: 7)))
        _ = await execution.outcome
        #expect(log.take() == ["failed TestError(number: 7)", "failure TestError(number: 7)"])
        #expect(works.count == 1)
        withExtendedLifetime(subscriptions) {}
    }

    @Test(.promises("A13")) func `A13: a failure has its owner's text, and the error`() async {
        let log = Log()
        let action = Action<Int, Int>(
            "work", describe: { "number \(($0 as? TestError)?.number ?? -1)" },
            work: { throw TestError(number: $0) })
        let failures = action.facade.observeFailures(on: .inline) { failure in
            log.add("\(failure.message), \(failure.error)")
        }
        let execution = action.trigger(5)
        _ = await execution.outcome
        #expect(log.take() == ["number 5, TestError(number: 5)"])
        withExtendedLifetime(failures) {}
    }

    @Test(.promises("R4")) func `values yielded by work come before the end, and none after it`()
        async throws
    {
        let log = Log()
        let kept = Locked<ExecutionContext<Int>?>(nil)
        let action = Action<Int, Int>(
            "work", when: .always,
            work: { input, _, context in
                for value in 0..<input { context.yield(value) }
                kept.withLock { $0 = context }
                return 99
            })
        let events = action.observeEvents { log.add($0.text) }
        let execution = action.trigger(3)
        _ = await execution.outcome
        kept.withLock { $0 }?.yield(4)
        #expect(log.take() == ["started", "value 0", "value 1", "value 2", "value 99", "finished"])
        #expect(kept.withLock { $0 }?.id == execution.id)
        kept.withLock { $0 = nil }  // the execution retains the action, which retains its work
        withExtendedLifetime(events) {}
    }

    @Test(.promises("R6")) func `R6: no failure ends a stream; a released action finishes each stream once`()
        async throws
    {
        var action: Action<Int, Int>? = Action("work") { input in
            if input < 0 { throw TestError(number: input) }
            return input
        }
        let events = try #require(action?.events)
        let execution = action?.trigger(-1)
        _ = await execution?.outcome
        let second = action?.trigger(2)
        _ = await second?.outcome
        // The executions share the action's internal state, which outlives the action.
        action = nil
        var text: [String] = []
        var iterator = events.makeAsyncIterator()
        for _ in 0..<5 { text.append(await iterator.next()?.text ?? "end") }
        #expect(text == ["started", "failed TestError(number: -1)", "started", "value 2", "finished"])
        withExtendedLifetime((execution, second)) {}
    }

    @Test(.promises("A8", "Z5"))
    func `A8: a late observer gets the snapshot now, and events of running executions`() async {
        let works = Works(), log = Log()
        let action = Action<Int, Int>("work") { try await works.run($0) }
        let execution = action.trigger(1)
        await works.begun(1)
        let snapshots = action.observeSnapshots { log.add($0.text) }
        let events = action.observeEvents { log.add($0.text) }
        works.end(1, .success(1))
        _ = await execution.outcome
        #expect(log.take() == ["off busy 1 0", "on idle 0 0", "value 1", "finished"])
        withExtendedLifetime((snapshots, events)) {}
    }

    @Test(.promises("A10"))
    func `inputs of a sequence trigger one after the other, until the subscription ends`() async {
        let log = Log()
        let (inputs, source) = AsyncStream.makeStream(of: Int.self)
        let action = Action<Int, Int>("work", when: .always, inline: { input, _ in input })
        let done = AsyncStream.makeStream(of: Int.self)
        let events = action.observeEvents { event in
            if case .value(_, let value) = event {
                log.add("\(value)")
                done.continuation.yield(value)
            }
        }
        let subscription = action.triggers(from: inputs)
        var iterator = done.stream.makeAsyncIterator()
        for input in 1...3 {
            source.yield(input)
            #expect(await iterator.next() == input)
        }
        subscription.cancel()
        #expect(log.take() == ["1", "2", "3"])
        withExtendedLifetime(events) {}
    }

    @Test(.promises("A10"))
    func `buffered inputs trigger nothing once the subscription has ended`() async {
        let log = Log(), (done, end) = AsyncStream.makeStream(of: Never.self)
        let subscription = Locked<Subscription?>(nil)
        let action = Action<Int, Int>(
            "work", when: .always,
            inline: { input, _ in
                log.add("\(input)")
                subscription.withLock { $0 }?.cancel()
                return input
            })
        subscription.withLock { $0 = action.triggers(from: Numbers(end: end)) }
        for await _ in done {}
        #expect(log.take() == ["1"])
    }
}

/// Runs `body` on a dedicated thread, because it blocks.
func offThread<Answer: Sendable>(_ body: @escaping @Sendable () -> Answer) async -> Answer {
    await withCheckedContinuation { continuation in
        pthread_detach(startThread(for: "offThread") { continuation.resume(returning: body()) })
    }
}

/// Yields 1, 2, 3, regardless of cancellation. Ends the stream `end` when its iterator is deallocated.
private struct Numbers: AsyncSequence, Sendable {
    let end: AsyncStream<Never>.Continuation

    final class AsyncIterator: AsyncIteratorProtocol {
        private var last = 0
        private let end: AsyncStream<Never>.Continuation
        init(_ end: AsyncStream<Never>.Continuation) { self.end = end }
        func next() async -> Int? {
            last += 1
            return last < 4 ? last : nil
        }
        deinit { end.finish() }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(end) }
}
