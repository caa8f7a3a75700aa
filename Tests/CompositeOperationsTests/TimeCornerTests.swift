// TimeCornerTests - corner cases that no other test covered: timers, and the attempts that they belong to. Each was
// found by a defect that the other tests let pass (Verification/Mutants/swift-by-hand.txt).

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// Runs blocks and tasks when a test releases them. Calls a hook when it is given a task.
private final class TaskTarget: ExecutionTarget, TaskExecutor {
    private let turns = HoldingTarget()
    private let tasks = StepExecutor()
    private let hook: @Sendable () -> Void
    init(whenGivenTask hook: @escaping @Sendable () -> Void) { self.hook = hook }
    var isCurrent: Bool { false }
    func submit(_ work: ExecutionWork) { turns.submit(work) }
    func enqueue(_ job: consuming ExecutorJob) {
        tasks.enqueue(job)
        hook()
    }
    func runTurns() { turns.letGo() }
    func runTasks() { tasks.runAll() }
}

/// A clock that stands still, and whose sleepers do not react to a cancel.
private final class StubbornClock: Clock, Sendable {
    private let base = ManualClock()
    private let waiting = Locked<[CheckedContinuation<Void, Never>]>([])
    var now: ManualClock.Instant { base.now }
    var minimumResolution: Duration { .nanoseconds(1) }
    var sleepers: Int { waiting.withLock { $0.count } }

    func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
        await withCheckedContinuation { continuation in waiting.withLock { $0.append(continuation) } }
    }

    /// Wakes the sleeper that has slept longest, and gives it time to report.
    func wakeFirst() async {
        waiting.withLock { $0.removeFirst() }.resume()
        for _ in 0..<1_000 { await Task.yield() }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct TimeCornerTests {
    @Test func `an abandoned attempt cancels its timeout and its task`() async {
        let clock = ManualClock()
        let (begun, left) = (Mail<Void>(), Gate())
        let options = OperationOptions(attemptTimeout: .seconds(5), clock: clock)
        let leaf = operation(on: elsewhere, options: options) { (attempt: COOperation<Void>.Attempt) in
            if attempt.number > 1 {
                attempt.finish()
                return
            }
            begun.send(())
            left.wait()
        }
        await begun.next()
        #expect(await eventually { clock.sleepers == 1 })
        #expect(leaf.rerun())
        #expect(await eventually { clock.sleepers == 0 }, "the new attempt waits for the old block")
        left.open()
        #expect(await leaf.outcome.isFinished)

        let (runs, cancelled) = (Count(), Mail<Void>())
        let task = operation { () async -> Void in
            if runs.add() > 1 { return }
            begun.send(())
            try? await Task.sleep(for: .seconds(3_600))
            cancelled.send(())
        }
        await begun.next()
        #expect(await eventually { task.rerun() })
        await cancelled.next()
        #expect(await task.outcome.isFinished)
        #expect(runs.value == 2)
    }

    @Test func `a task created as its attempt ends is cancelled before it begins`() async {
        let made = Locked<COOperation<Void>?>(nil)
        let isCancelled = Log<Bool>()
        let target = TaskTarget { made.withLock { $0 }?.cancel() }
        let one = operation(on: target) { () async -> Void in isCancelled.add(Task.isCancelled) }
        made.withLock { $0 = one }
        target.runTurns()
        #expect(one.isCancelled && !one.isEnded)
        target.runTasks()
        #expect(isCancelled.entries == [true])
        #expect(await one.outcome.reason?.kind == .requested)
        made.withLock { $0 = nil }
    }

    @Test func `a composite's timer stops with its end`() async {
        let clock = ManualClock()
        let options = OperationOptions(timeout: .seconds(5), clock: clock)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let completes = cascadeOperation(options: options) { $0.operation { tokens.send($0) } }
        let fails = cascadeOperation(options: options) { $0.operation { tokens.send($0) } }
        let (one, other) = (await tokens.next(), await tokens.next())
        #expect(await eventually { clock.sleepers == 2 })
        one.finish()
        other.fail(TestError())
        _ = await (completes.outcome, fails.outcome)
        #expect(await eventually { clock.sleepers == 0 })
    }

    @Test(.promises("G21")) func `a running block is notified that its attempt is abandoned`()
        async throws
    {
        enum Why: CaseIterable { case time, rerun, restart, resolver, failure, askingResolver }
        for (why, isLate) in Why.allCases.flatMap({ [($0, false), ($0, true)] }) {
            let clock = ManualClock()
            let (heard, begun, mayAsk) = (Log<CancelReason.Kind>(), Count(), Gate())
            let hasResolver = why == .time || why == .failure
            let one = COOperation<Int>(
                on: elsewhere,
                options: OperationOptions(
                    resolver: hasResolver ? COOperationResolver(maxAttempts: 2) : nil,
                    attemptTimeout: why == .time ? .seconds(1) : nil, clock: clock)
            ) { attempt in
                if attempt.number > 1 {
                    attempt.finish(attempt.number)
                    return
                }
                let isOver = Gate()
                begun.add()
                if isLate { mayAsk.wait() }
                attempt.onCancel {
                    heard.add($0.kind)
                    isOver.open()
                }
                begun.add()
                isOver.wait()
                // This call must not affect the next attempt.
                attempt.finish(0)
            }
            one.start()
            #expect(await eventually { begun.value == (isLate ? 1 : 2) })
            switch why {
            case .time:
                #expect(await eventually { clock.sleepers == 1 })
                clock.advance(by: .seconds(1))
            case .rerun: #expect(one.rerun())
            case .restart: #expect(one.suspend() && one.resume(.restart))
            case .resolver: #expect(one.resolve(using: COOperationResolver(maxAttempts: 2)))
            case .failure: #expect(one.fail(TestError()))
            case .askingResolver:
                #expect(one.resolve(using: COOperationResolver(maxAttempts: 2, retryIf: { _ in true })))
            }
            #expect(await eventually { one.attempt == 2 })
            mayAsk.open()
            #expect(try await one.value == 2)
            #expect(heard.entries == [why == .time ? .timedOut : .requested])
        }
    }

    @Test func `a running block is cancelled at its deadline`() async {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation(options: OperationOptions(deadline: .now + .milliseconds(50))) { tokens.send($0) }
        #expect(await eventually { one.isCancelled })
        #expect(await one.outcome.reason?.kind == .timedOut)
        if one.numberOfRuns > 0 { #expect(await tokens.next().isCancelled) }
    }

    @Test func `no block begins after its deadline, however fast its turn`() async {
        let ran = Count()
        for _ in 0..<scaled(2000) {
            let late = OperationOptions(deadline: .now)
            let one = operation(options: late) { ran.add() }
            let group = transactionalOperation { group in
                group.operation(options: late) { ran.add() }
            }
            #expect(await one.outcome.reason?.kind == .timedOut)
            #expect(await group.outcome.reason?.kind == .child)
        }
        #expect(ran.value == 0)
    }

    @Test func `the deadline of a composite with a late turn is passed to its handler once`() async {
        let target = HoldingTarget()
        let told = Count()
        let deadline = ContinuousClock.now + .milliseconds(1)
        let cascade = COCascade<Void>(on: target, options: OperationOptions(deadline: deadline))
        cascade.run({ $0.operation {} }, cancellation: { _ in told.add() })
        while .now < deadline { await Task.yield() }
        target.letGo()
        #expect(await cascade.outcome.reason?.kind == .timedOut)
        #expect(cascade.numberOfRuns == 0)
        #expect(await eventually { told.value == 1 })
    }

    @Test func `a child that waits for its turn is cancelled at its deadline`() async {
        let late = Mail<AnyOperation>()
        for isReadyMade in [false, true] {
            let cascade = cascadeOperation { cascade in
                let options = OperationOptions(deadline: .now + .milliseconds(2))
                cascade.operation { _ in }  // never ended
                if isReadyMade {
                    late.send(try cascade.add(COOperation<Void>(options: options) { _ in }))
                } else {
                    late.send(cascade.operation(options: options) {})
                }
            }
            let child = await late.next()
            #expect(await eventually { child.isCancelled })
            #expect(child.numberOfRuns == 0)
            #expect(await cascade.outcome.reason?.kind == .child)
        }
    }

    @Test func `a child to be redone that waits for its turn has its deadline again`() async {
        let late = Mail<AnyOperation>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { if $0.number == 1 { $0.cancel() } }  // its second attempt never ends
            let soon = OperationOptions(deadline: .now + .milliseconds(20))
            late.send(cascade.operation(options: soon) {})
        } cancellation: { cascade in
            if cascade.attempt == 1 { cascade.awake() }
        }
        let child = await late.next()
        // Under load the deadline may expire before the first round. It is then the cause of that round.
        #expect(await cascade.outcome.reason?.kind == .child)
        #expect(child.numberOfRuns == 0)
    }

    @Test func `a late timeout does not end an operation that was restarted`() async {
        let clock = StubbornClock()
        let (attempts, throwers) = (Log<COOperation<Void>.Attempt>(), Count())
        let outer = transactionalOperation { group in
            group.operation(options: OperationOptions(timeout: .seconds(5), clock: clock)) {
                attempts.add($0)
            }
            group.operation { () async throws -> Void in
                _ = await eventually { attempts.entries.count > 0 && clock.sleepers > 0 }
                if throwers.add() == 1 { throw TestError() }
            }
        } cancellation: { outer in
            if outer.attempt == 1 { outer.awake() }
        }
        #expect(await eventually { attempts.entries.count == 2 && clock.sleepers == 2 })
        await clock.wakeFirst()  // the sleeper of the first attempt, which did not react to its cancel
        #expect(attempts.entries[1].finish())
        #expect(await outer.outcome.isFinished)
        await clock.wakeFirst()
        attempts.removeAll()
    }

    @Test func `an operation that ends as it begins leaves no timer behind`() async {
        let clock = ManualClock()
        let options = OperationOptions(timeout: .seconds(5), clock: clock)
        for _ in 0..<scaled(50) {
            // In quick succession, so that the workers are awake and end operations that are still being started.
            let all = (0..<100).map { _ in operation(options: options) { $0.finish() } }
            for one in all { _ = await one.outcome }
        }
        #expect(await eventually { clock.sleepers == 0 })
    }

    @Test func `the timer of an old attempt does not end the next one`() async {
        let clock = StubbornClock()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation(options: OperationOptions(attemptTimeout: .seconds(5), clock: clock)) {
            tokens.send($0)
        }
        let first = await tokens.next()
        #expect(await eventually { clock.sleepers == 1 })
        #expect(first.rerun())
        _ = await tokens.next()
        #expect(await eventually { clock.sleepers == 2 })
        await clock.wakeFirst()
        #expect(one.attempt == 2 && one.state == .executing)
        await clock.wakeFirst()
        #expect(await one.outcome.reason?.kind == .timedOut)
    }

    @Test func `no timeout is reported for an attempt with an open decision`() async {
        let clock = StubbornClock()
        let holds = Mail<DecisionHold?>()
        let options = OperationOptions(attemptTimeout: .seconds(5), clock: clock)
        let cascade = cascadeOperation(options: options) { cascade in
            cascade.operation { () throws -> Void in throw TestError() }
        } cancellation: {
            holds.send($0.deferDecision())
        }
        var hold = await holds.next()
        #expect(await eventually { clock.sleepers == 1 })
        await clock.wakeFirst()
        #expect(cascade.causes.count == 1 && cascade.state == .deciding)
        withExtendedLifetime(hold) {}
        hold = nil
        #expect(await cascade.outcome.isFailed)
    }

    @Test func `a handler is notified of the timeout while a block below runs`() async {
        let clock = ManualClock()
        let (begun, left, told) = (Mail<Void>(), Gate(), Mail<Bool>())
        let options = OperationOptions(timeout: .seconds(5), clock: clock)
        let cascade = cascadeOperation(options: options) { cascade in
            cascade.operation(on: elsewhere) { () -> Void in
                begun.send(())
                left.wait()
            }
        } cancellation: {
            told.send($0.isEnded)
        }
        await begun.next()
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(5))
        #expect(await told.next() == false)
        left.open()
        #expect(await cascade.outcome.reason?.kind == .timedOut)
    }

    @Test func `a pause beyond its limit is cut to the limit`() async {
        let clock = ManualClock()
        let resolver = COOperationResolver(
            maxAttempts: 2,
            backoff: .exponential(first: .seconds(10), factor: 2, limit: .seconds(1), jitter: 0), clock: clock
        )
        let one = operation(options: OperationOptions(resolver: resolver)) { attempt in
            if attempt.number == 1 { attempt.fail(TestError()) } else { attempt.finish() }
        }
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(1))
        #expect(await one.outcome.isFinished)
    }
}
