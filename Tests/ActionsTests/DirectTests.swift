// DirectTests - work that runs inside the trigger call while there is no observer, and calls made during that work.

import Actions
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

/// Stores submitted work until a test runs it.
private final class Elsewhere: ExecutionTarget {
    private let work = Locked<[ExecutionWork]>([])
    var count: Int { work.withLock { $0.count } }

    var isCurrent: Bool { false }
    func submit(_ piece: ExecutionWork) { work.withLock { $0.append(piece) } }

    func runAll() {
        while let piece = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { piece.run() }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct DirectTests {
    /// A callback for the work to call; set after the action is created.
    private final class Meanwhile: Sendable {
        let body = Locked<(@Sendable (Int) -> Void)?>(nil)
        func callAsFunction(_ input: Int) { body.withLock { $0 }?(input) }
    }

    @Test func `values, errors and refusals are set when the trigger returns`() async throws {
        let flag = LiveValue(true)
        let action = Action<Int, Int>(
            "direct", when: Precondition(flag),
            inline: { input, _ in
                if input < 0 { throw TestError(number: input) }
                if input == 0 { throw CancellationError() }
                return input
            })
        let first = action.trigger(7)
        #expect(first.result?.value == 7 && !first.cancel())
        #expect(try await first.value == 7)
        let second = action.trigger(-1)
        #expect(second.result?.error as? TestError == TestError(number: -1) && second.id > first.id)
        await #expect(throws: ActionError.self) { try await second.value }
        #expect(action.trigger(0).result?.reason?.kind == .threwCancellation)
        flag.set(false)
        let refused = action.trigger(1)
        #expect(refused.result?.reason?.kind == .precondition)
        let log = Log()
        let subscription = action.observeEvents { log.add($0.text) }
        #expect(action.trigger(2).result?.reason?.kind == .precondition)
        #expect(log.take() == ["rejected precondition"])
        withExtendedLifetime(subscription) {}
        do throws(ActionError) {
            _ = try await refused.value
            Issue.record("it was refused")
        } catch {
            guard case .disabled(.precondition, action.id) = error else {
                Issue.record(error)
                return
            }
        }
    }

    @Test func `an observer added meanwhile hears of the end`() {
        let log = Log()
        let meanwhile = Meanwhile()
        let action = Action<Int, Int>(
            "direct", when: .always,
            inline: { input, _ in
                meanwhile(input)
                if input < 0 { throw TestError(number: input) }
                return input
            })
        let subscriptions = Locked<[Subscription]>([])
        let ids = Locked<[ExecutionID]>([])
        meanwhile.body.withLock {
            $0 = { [weak action] _ in
                guard let action, subscriptions.withLock({ $0.isEmpty }) else { return }
                let events = action.observeEvents { event in
                    log.add(event.text)
                    ids.withLock { $0.append(event.id) }
                }
                let failures = action.facade.observeFailures(on: .inline) { log.add("failure \($0.message)") }
                let snapshots = action.observeSnapshots { log.add($0.text) }
                subscriptions.withLock { $0 = [events, failures, snapshots] }
            }
        }
        let first = action.trigger(3)
        #expect(log.take() == ["off busy 1 0", "on idle 0 0", "value 3", "finished"])
        #expect(ids.withLock { $0.allSatisfy { $0 == first.id } })
        _ = action.trigger(4)
        #expect(log.take() == ["off busy 1 0", "started", "on idle 0 0", "value 4", "finished"])
        subscriptions.withLock { $0 = [] }
        let last = action.trigger(-5)
        let failed = ["failed TestError(number: -5)", "failure TestError(number: -5)"]
        #expect(log.take() == ["off busy 1 0", "on idle 0 0"] + failed)
        #expect(last.result?.isFailed == true)
        subscriptions.withLock { $0 = [] }
        meanwhile.body.withLock { $0 = nil }
        _ = action.trigger(6)
        #expect(log.take() == [])
    }

    @Test func `waiting work begins after directly called work has ended`() async {
        let log = Log()
        let meanwhile = Meanwhile()
        let action = Action<Int, Int>(
            "direct", when: .always, policy: .queue(4),
            inline: { input, _ in
                log.add("begin \(input)")
                meanwhile(input)
                log.add("end \(input)")
                return input
            })
        let waiting = Locked<[Execution<Int>]>([])
        meanwhile.body.withLock {
            $0 = { [weak action] input in
                guard input == 1, let action else { return }
                // Triggered on the same stack: the executions wait, and begin after this one, in
                // the same loop.
                let (two, three) = (action.trigger(2), action.trigger(3))
                waiting.withLock { $0 = [two, three] }
                #expect(two.result == nil && action.snapshot.waiting == 2 && three.cancel())
            }
        }
        #expect(action.trigger(1).result?.value == 1)
        #expect(log.take() == ["begin 1", "end 1", "begin 2", "end 2"])
        #expect(waiting.withLock { $0[0].result?.value } == 2)
        #expect(action.snapshot.text == "on idle 0 0")
        meanwhile.body.withLock { $0 = nil }
    }

    @Test func `work triggered in a notice of its action runs after it`() {
        let log = Log()
        let action = Action<Int, Int>(
            "direct", when: .always,
            inline: { input, _ in
                log.add("work \(input)")
                return input
            })
        let observer = Locked<Subscription?>(nil)
        let subscription = action.observeSnapshots { [weak action] snapshot in
            let mine = observer.withLock { observer -> Subscription? in
                defer { if snapshot.isEnabled { observer = nil } }
                return snapshot.isEnabled ? observer : nil
            }
            guard let mine, let action else { return }
            mine.cancel()  // no observer from here on
            let execution = action.trigger(2)
            log.add("triggered \(execution.result == nil)")
        }
        observer.withLock { $0 = subscription }
        _ = action.trigger(1)
        #expect(log.take() == ["work 1", "triggered true", "work 2"])
        withExtendedLifetime(subscription) {}
    }

    /// I2: the observer was registered before the precondition failed.
    @Test func `an observer added while the precondition is read hears of the refusal`() {
        let log = Log()
        let subscription = Locked<Subscription?>(nil)
        let weakAction = Locked<(@Sendable () -> Action<Int, Int>?)?>(nil)
        let source = LiveValue(0)
        let action = Action<Int, Int>(
            "direct",
            when: Precondition(source) { _ -> Int? in
                guard let action = weakAction.withLock({ $0 })?(), subscription.withLock({ $0 == nil }) else {
                    return nil
                }
                let events = action.observeEvents { log.add($0.text) }
                subscription.withLock { $0 = events }
                return nil
            }, inline: { input, _ in input })
        weakAction.withLock { $0 = { [weak action] in action } }
        #expect(action.trigger(1).result?.reason?.kind == .precondition)
        #expect(log.take() == ["rejected precondition"])
        subscription.withLock { $0 = nil }
    }

    @Test func `a precondition is read once per trigger, and again when a waiter has its turn`() {
        let reads = Count()
        let meanwhile = Meanwhile()
        let source = LiveValue(0)
        let action = Action<Int, Int>(
            "direct",
            when: Precondition(source) { value -> Int? in
                reads.add()
                return value
            }, policy: .queue(2),
            inline: { input, _ in
                meanwhile(input)
                return input
            })
        let before = reads.value
        meanwhile.body.withLock {
            $0 = { [weak action] input in
                guard input == 1, let action else { return }
                _ = action.trigger(2)
                #expect(reads.value - before == 2)
            }
        }
        #expect(action.trigger(1).result?.value == 1)
        #expect(reads.value - before == 3)
        meanwhile.body.withLock { $0 = nil }
    }

    @Test func `cancelling all signals work that is called directly`() {
        let meanwhile = Meanwhile()
        let action = Action<Int, Int>(
            "direct", when: .always,
            inline: { input, _ in
                meanwhile(input)
                throw CancellationError()
            })
        meanwhile.body.withLock { $0 = { [weak action] input in if input == 1 { action?.cancelAll() } } }
        #expect(action.trigger(1).result?.reason?.kind == .requested)
        #expect(action.trigger(2).result?.reason?.kind == .threwCancellation)
        action.cancelAll()
        #expect(action.trigger(3).result?.reason?.kind == .threwCancellation)
        meanwhile.body.withLock { $0 = nil }
    }

    @Test func `an observer elsewhere hears of an end before the next begins in place`() {
        let elsewhere = Elsewhere()
        let (log, meanwhile) = (Log(), Meanwhile())
        let action = Action<Int, Int>(
            "direct", when: .always, limit: 2,
            inline: { input, _ in
                if input == 2 { log.add("\(elsewhere.count) sent") }
                meanwhile(input)
                return input
            })
        let subscription = Locked<Subscription?>(nil)
        meanwhile.body.withLock {
            $0 = { [weak action] input in
                guard input == 1, let action else { return }
                _ = action.trigger(2)
                let events = action.observeEvents(on: .target(elsewhere)) { log.add($0.text) }
                subscription.withLock { $0 = events }
            }
        }
        _ = action.trigger(1)
        #expect(log.take() == ["1 sent"])
        elsewhere.runAll()
        #expect(log.take() == ["value 1", "finished", "value 2", "finished"])
        subscription.withLock { $0 = nil }
        meanwhile.body.withLock { $0 = nil }
    }

    @Test(arguments: [ActionPolicy.reject, .queue(3), .coalesce])
    func `with threads, and observers that come and go, each trigger ends once`(policy: ActionPolicy) async {
        let inside = Count()
        let calls = Count()
        let action = Action<Int, Int>(
            "direct", when: .always, policy: policy,
            inline: { input, _ in
                #expect(inside.add() == 1)
                calls.add()
                inside.add(-1)
                return input
            })
        let ends = Locked<[ExecutionID: Int]>([:])
        let executions = await offThread {
            concurrently(4) { thread -> [(Int, Execution<Int>)] in
                var mine: [(Int, Execution<Int>)] = []
                for round in 0..<300 {
                    let subscription =
                        thread == 0 && round.isMultiple(of: 3)
                        ? action.observeEvents { event in
                            if event.isEnd { ends.withLock { $0[event.id, default: 0] += 1 } }
                        } : nil
                    mine.append((round, action.trigger(round)))
                    withExtendedLifetime(subscription) {}
                }
                return mine
            }.flatMap { $0 }
        }
        var finished = 0
        for (round, execution) in executions {
            switch await execution.outcome {
            case .finished(let value):
                #expect(value == round)
                finished += 1
            case .failed(let error): Issue.record(error)
            case .cancelled(let reason): #expect([.busy, .queueFull, .displaced].contains(reason.kind))
            }
        }
        #expect(finished == calls.value && inside.value == 0)
        #expect(ends.withLock { $0.values.allSatisfy { $0 == 1 } })
        #expect(action.snapshot.text == "on idle 0 0")
    }
}
