// CornerTests - corners that no other test looked into: each was found by a defect that the others let pass
// (Tests/Mutants/swift-by-hand.txt).

import ActionTesting
import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// Calls something when it goes: in an object of a user's, where that may be done, no lock of ours is held.
private final class Sentinel: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    deinit { body() }
}

private struct SentinelError: Error {
    let sentinel: Sentinel
}

/// What a sentinel of a composite does: looks at it, and counts.
private final class Watch: Sendable {
    private let operation = Locked<AnyOperation?>(nil)
    let released = Count()

    func watch(_ operation: AnyOperation?) { self.operation.withLock { $0 = operation } }

    var sentinel: Sentinel {
        Sentinel { [self] in
            _ = operation.withLock { $0 }?.state
            released.add()
        }
    }
}

/// Tells when a piece of work is done.
private final class TellingTarget: ExecutionTarget {
    let done = Mail<Void>()
    var isCurrent: Bool { false }
    func submit(_ work: COQueues.Work) {
        elsewhere.async { [done] in
            work.run()
            done.send(())
        }
    }
}

/// Runs blocks and tasks when a test says so; does something when it is given a task.
private final class TaskTarget: ExecutionTarget, TaskExecutor {
    private let turns = HoldingTarget()
    private let tasks = StepExecutor()
    private let hook: @Sendable () -> Void
    init(whenGivenTask hook: @escaping @Sendable () -> Void) { self.hook = hook }
    var isCurrent: Bool { false }
    func submit(_ work: COQueues.Work) { turns.submit(work) }
    func enqueue(_ job: consuming ExecutorJob) {
        tasks.enqueue(job)
        hook()
    }
    func runTurns() { turns.letGo() }
    func runTasks() { tasks.runAll() }
}

private struct WeakChild {
    weak var child: AnyObject?
    init(_ child: AnyObject) { self.child = child }
}

/// A clock that stands still, and whose sleepers do not hear of a cancel.
private final class StubbornClock: Clock, Sendable {
    private let base = ManualClock()
    private let waiting = Locked<[CheckedContinuation<Void, Never>]>([])
    var now: ManualClock.Instant { base.now }
    var minimumResolution: Duration { .nanoseconds(1) }
    var sleepers: Int { waiting.withLock { $0.count } }

    func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
        await withCheckedContinuation { continuation in waiting.withLock { $0.append(continuation) } }
    }

    /// Wakes the one that has slept for the longest time, and gives it time to tell of it.
    func wakeFirst() async {
        waiting.withLock { $0.removeFirst() }.resume()
        for _ in 0..<1_000 { await Task.yield() }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct CornerTests {
    // MARK: Order

    @Test func `a step that is finished by hand while its cascade's block is out starts no other one`() async
    {
        let (runs, seen) = (Count(), Locked<OperationState?>(nil))
        let cascade = cascadeOperation { cascade in
            let first = cascade.operation { _ in runs.add() }
            let second = cascade.operation { runs.add() }
            first.finish()
            seen.withLock { $0 = second.state }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(seen.withLock { $0 } == .ready)
        #expect(runs.value == 1)
    }

    @Test func `a child that is finished by hand while its composite pauses starts no other one`() async {
        let clock = ManualClock()
        let children = Locked<[COOperation<Void>]>([])
        let resolver = COOperationResolver(maxAttempts: 5, backoff: .constant(.seconds(1)), clock: clock)
        let cascade = cascadeOperation(options: OperationOptions(resolver: resolver)) { cascade in
            let first = cascade.operation { attempt in if attempt.number == 1 { attempt.cancel() } }
            let second = cascade.operation { $0.finish() }
            children.withLock { $0 = [first, second] }
        }
        #expect(await eventually { clock.sleepers == 1 })
        let (first, second) = children.withLock { ($0[0], $0[1]) }
        #expect(first.finish())
        #expect(second.state == .ready && second.attempt == 0)
        clock.advance(by: .seconds(1))
        #expect(await cascade.outcome.isFinished)
        #expect(second.numberOfRuns == 1)
    }

    @Test func `children that finish by hand just as they are added are refused, or counted`() async {
        for _ in 0..<5 {
            let (scopes, tokens) = (Mail<TransactionScope>(), Mail<COOperation<Void>.Attempt>())
            let group = transactionalOperation { group in
                group.operation { tokens.send($0) }
                scopes.send(group)
            }
            let (scope, token) = (await scopes.next(), await tokens.next())
            let all = (0..<scaled(20_000)).map { _ in COOperation<Void>() }
            let arrived = Count()
            _ = await race(2) { thread in
                for (index, child) in all.enumerated() {
                    arrived.add()
                    while arrived.value < 2 * (index + 1) { sched_yield() }
                    if thread == 0 {
                        _ = try? scope.add(child)
                    } else {
                        for _ in 0..<index % 100 { _ = arrived.value }  // now nearer to it, now farther
                        child.finish()
                    }
                }
            }
            token.finish()
            #expect(await group.outcome.isFinished)
            #expect(all.allSatisfy { $0.isEnded })
        }
    }

    // MARK: Decisions

    @Test func `a block that returns while a decision is open completes nothing`() async {
        let clock = ManualClock()
        let (left, begun) = (Gate(), Mail<Void>())
        let holds = Mail<DecisionHold?>()
        let options = OperationOptions(attemptTimeout: .seconds(1), clock: clock)
        let queue = COOperationQueue(on: elsewhere)
        let group = transactionalOperation(on: queue, options: options) { _ in
            begun.send(())
            left.wait()
        } cancellation: {
            holds.send($0.deferDecision())
        }
        await begun.next()
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(1))
        var hold = await holds.next()
        #expect(hold != nil)
        left.open()
        #expect(await eventually { queue.runningOperations.isEmpty })
        #expect(group.state == .deciding)
        hold = nil
        #expect(await group.outcome.reason?.kind == .timedOut)
    }

    @Test func `after a rerun, what the old block threw does not count`() async {
        let epochs = Count()
        let cascade = cascadeOperation { cascade in
            if epochs.add() == 1 { throw TestError() }
            cascade.operation { attempt in
                if attempt.number == 1 { attempt.cancel() } else { attempt.finish() }
            }
        } cancellation: { cascade in
            if cascade.attempt == 1 { #expect(cascade.rerun()) } else { #expect(cascade.awake()) }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(cascade.attempt == 3)
        #expect(epochs.value == 2, "the second redo was of the children, not of the block")
    }

    @Test func `after a rerun, a child that the old block lost does not count`() async throws {
        let (epochs, asked, lost) = (Count(), Gate(), Gate())
        let options = OperationOptions(handlerTarget: elsewhere)
        let lane = try SerialLane()
        let group = transactionalOperation(on: lane, options: options) { group in
            let epoch = epochs.add()
            // The second block has returned when its child runs: else awake() would be a rerun.
            group.operation(on: epoch > 1 ? lane : elsewhere) { attempt in
                if group.control.attempt < 3 { attempt.cancel() } else { attempt.finish() }
            }
            if epoch > 1 { return }
            asked.wait()
            #expect(group.operation {}.isFailed, "a decision is open")
            lost.open()
        } cancellation: { group in
            guard group.attempt == 1 else {
                #expect(group.awake())
                return
            }
            asked.open()
            lost.wait()
            #expect(group.rerun())
        }
        #expect(await group.outcome.isFinished)
        #expect(group.attempt == 3)
        #expect(epochs.value == 2, "the second redo was of the children, not of the block")
    }

    @Test func `a child's late end does not count in the attempt that a composite around its own asks for`()
        async
    {
        let clock = ManualClock()
        let only = Locked<COOperation<Void>?>(nil)
        let asked = Count()
        let resolver = COOperationResolver(maxAttempts: 9, backoff: .constant(.seconds(1)), clock: clock)
        let other = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { group in
            group.transactionalOperation(options: OperationOptions(resolver: resolver)) { inner in
                let child = inner.operation { attempt in
                    if attempt.number == 1 { attempt.cancel() } else { attempt.finish() }
                }
                only.withLock { $0 = child }
            }
            group.operation { attempt in
                if attempt.number == 1 { other.send(attempt) } else { attempt.finish() }
            }
        } cancellation: {
            asked.add()
            $0.awake()
        }
        let token = await other.next()
        #expect(await eventually { clock.sleepers == 1 })
        // Its composite pauses, and would begin its next attempt with a round.
        #expect(only.withLock { $0! }.cancel())
        #expect(token.cancel())
        #expect(await group.outcome.isFinished, "without a pause")
        #expect(asked.value == 1)
    }

    @Test func `a child that is done again, and finishes, has finished`() async throws {
        let children = Locked<[AnyOperation]>([])
        let outcomes = Log<Bool>()
        let cascade = cascadeOperation { cascade in
            let leaf = cascade.operation { () throws -> Int in
                if cascade.control.attempt == 1 { throw TestError() }
                return 7
            }
            let composite = cascade.cascadeOperation { inner in
                inner.operation { () throws -> Void in if cascade.control.attempt == 2 { throw TestError() } }
            }
            leaf.onOutcome { outcomes.add($0.isFinished) }
            composite.onOutcome { outcomes.add($0.isFinished) }
            children.withLock { $0 = [leaf, composite] }
        } cancellation: {
            if $0.attempt < 3 { $0.awake() }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(await eventually { outcomes.entries.count == 2 })
        #expect(outcomes.entries == [true, true])
        #expect(children.withLock { $0 }.allSatisfy { $0.isFinished && $0.state == .finished })
    }

    @Test func `a plain leaf that is done again, and finishes, has finished`() async {
        let leaf = Locked<COOperation<Int>?>(nil)
        let cascade = cascadeOperation { cascade in
            let one = cascade.operation { () throws -> Int in
                if cascade.control.attempt == 1 { throw TestError() }
                return 7
            }
            leaf.withLock { $0 = one }
            cascade.operation {}
        } cancellation: {
            if $0.attempt == 1 { $0.awake() }
        }
        #expect(await cascade.outcome.isFinished)
        #expect((try? leaf.withLock { $0 }?.result?.get()) == 7)
    }

    @Test func `a composite that a round around it ends as it goes on asks nobody`() async {
        let clock = ManualClock()
        let (tokens, fallbacks, told) = (Mail<COOperation<Void>.Attempt>(), Count(), Count())
        let resolver = COOperationResolver(maxAttempts: 2, backoff: .constant(.seconds(1)), clock: clock)
        let withFallback = COOperationResolver(maxAttempts: 2, fallback: { _ in fallbacks.add() })
        // In the middle the one that ends all of them, so that either order in which they go on will do.
        let resolvers = [withFallback, nil, withFallback]
        let group = transactionalOperation { group in
            for resolver in resolvers {
                group.transactionalOperation(options: OperationOptions(resolver: resolver)) { inner in
                    inner.operation { tokens.send($0) }
                }.onOutcome { _ in told.add() }
            }
            group.operation(options: OperationOptions(name: "first")) { tokens.send($0) }
        } cancellation: {
            $0.resolve(using: resolver)
        }
        var all: [COOperation<Void>.Attempt] = []
        while all.count < 4 { all.append(await tokens.next()) }
        for token in all where token.operation.name == "first" { #expect(token.fail(TestError())) }
        #expect(await eventually { clock.sleepers == 1 })
        // Each composite will begin with a round; that of the one in the middle leaves the group no attempt.
        for token in all where token.operation.name != "first" { #expect(token.operation.cancel()) }
        clock.advance(by: .seconds(1))
        #expect(!(await group.outcome.isFinished))
        #expect(await eventually { told.value == 3 })
        #expect(group.attempt == 2)
        #expect(fallbacks.value == 1, "of the one before it")
    }

    @Test func `a leaf that pauses before its last attempt, and is failed, fails`() async {
        let (clock, fallbacks) = (ManualClock(), Count())
        let resolver = COOperationResolver(
            maxAttempts: 2, backoff: .constant(.seconds(1)), clock: clock, fallback: { _ in fallbacks.add() })
        let leaf = operation(options: OperationOptions(resolver: resolver)) { () throws -> Void in
            throw TestError()
        }
        #expect(await eventually { clock.sleepers == 1 })
        #expect(leaf.fail(TestError(number: 3)))
        #expect(leaf.isFailed)
        #expect(await leaf.outcome.error as? TestError == TestError(number: 3))
        #expect(fallbacks.value == 0 && leaf.numberOfRuns == 1)
    }

    @Test func `what never ran settles while its sibling is still out`() async {
        let (begun, left) = (Mail<Void>(), Gate())
        let group = transactionalOperation(options: OperationOptions(width: 1)) { group in
            group.operation(on: elsewhere) { () -> Void in
                begun.send(())
                left.wait()
            }
            group.operation {}
        }
        await begun.next()
        #expect(await eventually { group.children.count == 2 })
        let idle = group.children[1]
        #expect(group.cancel())
        #expect(idle.isEnded && !group.isEnded)
        left.open()
        #expect(await group.outcome.isCancelled)
    }

    @Test func `a hold of an earlier decision does not keep the fallback's open`() async {
        let composite = Locked<COCascade<Void>?>(nil)
        let (holds, fallbacks) = (Log<DecisionHold?>(), Count())
        let resolver = COOperationResolver(
            maxAttempts: 2,
            retryIf: { _ in
                holds.add(composite.withLock { $0 }?.deferDecision())
                return true
            }, fallback: { _ in fallbacks.add() })
        let cascade = COCascade<Void>(options: OperationOptions(resolver: resolver)) { cascade in
            cascade.operation { () throws -> Void in throw TestError() }
        }
        composite.withLock { $0 = cascade }
        cascade.start()
        #expect(await eventually { cascade.isEnded })
        #expect(cascade.isFailed && cascade.attempt == 2)
        #expect(fallbacks.value == 1)
        #expect(holds.entries.count == 1 && holds.entries[0] != nil)
        composite.withLock { $0 = nil }
    }

    @Test func `a predicate that answers when the next attempt has begun decides nothing`() async {
        let (asked, mayAnswer, target) = (Mail<Void>(), Gate(), TellingTarget())
        let resolver = COOperationResolver(
            maxAttempts: 9,
            retryIf: { _ in
                asked.send(())
                mayAnswer.wait()
                return true
            })
        let options = OperationOptions(handlerTarget: target, resolver: resolver)
        let group = transactionalOperation(options: options) { group in
            group.operation { attempt in if group.control.attempt == 1 { attempt.cancel() } }
        }
        await asked.next()
        #expect(group.rerun())
        #expect(await eventually { group.children.first?.hasLeftOpen == true })
        mayAnswer.open()
        await target.done.next()
        #expect(group.attempt == 2)
        (group.children.first as? COOperation<Void>)?.finish()
        #expect(await group.outcome.isFinished)
    }

    @Test func `a handler that returns when the next decision is open does not make it`() async {
        let answers = Log<Bool>()
        let options = OperationOptions(handlerTarget: elsewhere)
        let cascade = cascadeOperation(options: options) { cascade in
            cascade.operation { attempt in
                if cascade.control.attempt < 3 { attempt.cancel() } else { attempt.finish() }
            }
        } cancellation: { cascade in
            answers.add(cascade.rerun())
            guard cascade.attempt == 2 else { return }
            while cascade.attempt == 2, cascade.state != .deciding, !cascade.isEnded { sched_yield() }
        }
        #expect(await cascade.outcome.isFinished)
        // The last attempt may be over before the call that began it has returned.
        #expect(await eventually { answers.entries == [true, true] })
        #expect(cascade.attempt == 3)
    }

    @Test func `of several failures the first one is the outcome`() async {
        let (asked, left) = (Gate(), Gate())
        let options = OperationOptions(handlerTarget: elsewhere)
        let queue = COOperationQueue(on: elsewhere)
        let group = transactionalOperation(on: queue, options: options) { group in
            group.operation { () throws -> Void in throw TestError(number: 1) }
            asked.wait()
            throw TestError(number: 2)
        } cancellation: { group in
            asked.open()
            while group.causes.count < 2 { sched_yield() }
            left.open()
        }
        #expect(await group.outcome.error as? TestError == TestError(number: 1))
        #expect(group.causes.count == 2)
    }

    @Test func `a nested composite that goes on when its old block has left is counted once`() async {
        let (begun, left) = (Mail<Void>(), Gate())
        let cascade = cascadeOperation { cascade in
            cascade.transactionalOperation { inner in
                inner.operation(on: elsewhere) { (attempt: COOperation<Void>.Attempt) in
                    if attempt.number == 1 {
                        begun.send(())
                        left.wait()
                    }
                    attempt.finish()
                }
                inner.operation { attempt in if attempt.number > 1 { attempt.finish() } }
            } cancellation: {
                $0.awake()
            }
            cascade.operation {}
        }
        await begun.next()
        let inner = cascade.children[0] as? COTransaction<Void>
        #expect(await eventually { inner?.children.count == 2 })
        #expect(await eventually { inner?.children[1].hasLeftOpen == true })
        #expect(inner?.children[1].cancel() == true)
        #expect(await eventually { inner?.state == .delayed })
        left.open()
        #expect(await cascade.outcome.isFinished)
        #expect(inner?.attempt == 2 && inner?.isFinished == true)
    }

    @Test func `what a block returns does not replace the value with which it was finished before`() async {
        let (begun, left) = (Mail<Void>(), Gate())
        let one = operation(on: elsewhere) { () -> Int in
            begun.send(())
            left.wait()
            return 1
        }
        await begun.next()
        #expect(one.finish(2))
        left.open()
        #expect(await (try? one.outcome.get()) == 2)
    }

    @Test func `rerun from inside a block that then throws: the throw is not the next attempt's`() async {
        let epochs = Count()
        let cascade = cascadeOperation { cascade in
            if epochs.add() == 1 {
                #expect(cascade.control.rerun())
                throw TestError()
            }
            cascade.operation { attempt in
                if attempt.number == 1 { attempt.cancel() } else { attempt.finish() }
            }
        } cancellation: {
            #expect($0.awake())
        }
        #expect(await cascade.outcome.isFinished)
        #expect(cascade.attempt == 3 && epochs.value == 2)
    }

    @Test func `awake starts a composite that was not started`() async {
        let cascade = COCascade<Void> { $0.operation {} }
        #expect(cascade.awake())
        #expect(await cascade.outcome.isFinished)
        #expect(!cascade.awake())
    }

    @Test func `what knows of an attempt that is over`() async {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let old = await tokens.next()
        #expect(old.isCurrent)
        #expect(old.rerun())
        let new = await tokens.next()
        #expect(!old.isCurrent && new.isCurrent)
        await #expect(throws: CancelReason.self) { try await old.resumed() }
        #expect(one.cancel(CancelReason(.removed)))
        #expect(!new.isCurrent)
        // Late is better than never; but an old one does not hear of what the new one came to.
        let heard = Log<String>()
        old.onCancel { _ in heard.add("old") }
        new.onCancel { heard.add("\($0.kind)") }
        #expect(await eventually { !heard.entries.isEmpty })
        await withCheckedContinuation { done in one.onOutcome { _ in done.resume() } }
        #expect(heard.entries == ["removed"])
    }

    // MARK: Ends

    @Test func `without a failure closure, the cancellation closure is told of a failure`() async {
        let told = Log<String>()
        let one = COOperation<Void>()
        one.run({ $0.fail(TestError()) }, completion: { told.add("completion") }) { told.add("cancellation") }
        #expect(await one.outcome.isFailed)
        #expect(await eventually { told.entries == ["cancellation"] })
    }

    @Test func `a handler is told of a composite whose value cannot be made`() async {
        let told = Count()
        let stranger = COOperation<Int> { $0.finish(1) }
        let cascade = COCascade<Int>()
        cascade.run({ _ in .value(of: stranger) }, cancellation: { _ in told.add() })
        #expect(await cascade.outcome.error as? RegistrationError == .notAnEarlierStep)
        #expect(await eventually { told.value == 1 })
    }

    @Test func `a failure that nobody looks at is told once, of the outermost`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<COQueues.Diagnostic>()
            COQueues.onDiagnostic { told.add($0) }
            let cascade = cascadeOperation { cascade in
                cascade.cascadeOperation { inner in
                    inner.operation { () throws -> Void in throw TestError() }
                }
            }
            try #require(await eventually { cascade.isEnded && !told.entries.isEmpty })
            // What was to be told before that has been told: it was said in the same step.
            try #require(told.entries.count == 1)
            try #require(told.entries[0].operation == cascade.id)
        }
    }

    @Test func `tasks that begin to wait as the end comes hear of it`() async {
        let all = (0..<scaled(10_000)).map { _ in COOperation<Int>() }
        let waits = Count()
        // It follows the one that waits, closely: on a thread of its own, or it would hold one of those that run tasks.
        async let isOver = onSmallStack {
            for (index, one) in all.enumerated() {
                while waits.value <= index { sched_yield() }
                one.finish(index)
            }
            return true
        }
        for (index, one) in all.enumerated() {
            waits.add()
            for _ in 0..<index % 100 { _ = waits.value }  // now nearer to it, now farther
            #expect(await one.outcome.isFinished)
        }
        #expect(await isOver)
    }

    @Test func `readers that begin to wait as a transition comes see it`() async {
        for _ in 0..<scaled(5_000) {
            let one = COOperation<Int>()
            var transitions = one.transitions.makeAsyncIterator()
            let ends = Task { one.finish(1) }
            var last: OperationState?
            while let transition = await transitions.next() { last = transition.to }
            #expect(last == .finished)
            _ = await ends.value
        }
    }

    @Test func `a handler whose target runs its work several times is called once`() async {
        for _ in 0..<scaled(100) {
            let calls = Count()
            let one = COOperation<Void>()
            let target = RepeatingTarget(3)
            one.onOutcome(on: target) { _ in calls.add() }
            one.finish()
            await withCheckedContinuation { done in one.onOutcome(on: target) { _ in done.resume() } }
            #expect(calls.value == 1)
        }
    }

    @Test func `a block that is out is not called forgotten`() async {
        let (begun, left) = (Mail<Void>(), Gate())
        let one = operation(on: elsewhere) { (_: COOperation<Void>.Attempt) in
            begun.send(())
            left.wait()
        }
        await begun.next()
        #expect(!one.hasLeftOpen)
        left.open()
        #expect(await eventually { one.hasLeftOpen })
        one.finish()
    }

    // MARK: Dependencies

    @Test func `a dependency that closes a cycle is refused, however long it is`() async {
        let all = (0..<4).map { _ in COOperation<Void> { $0.finish() } }
        #expect(!all[0].addDependency(all[0]))
        for index in 1..<4 { #expect(all[index].addDependency(all[index - 1])) }
        #expect(!all[0].addDependency(all[3]))
        #expect(!all[1].addDependency(all[3]))
        for one in all.reversed() { #expect(one.start()) }
        for one in all { #expect(await one.outcome.isFinished) }
    }

    @Test func `who waits for one more is still waited for, when others have ended`() async {
        let (first, second) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
        let last = COOperation<Void> { $0.finish() }
        #expect(last.addDependency(first) && last.addDependency(second))
        #expect(last.start() && first.start())
        #expect(await first.outcome.isFinished)
        #expect(!second.addDependency(last), "that would be a cycle")
        #expect(last.state == .queued)
        #expect(second.start())
        #expect(await last.outcome.isFinished)
    }

    @Test func `a child does not wait for what it is a part of`() async {
        let last = Locked<COOperation<Void>?>(nil)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { tokens.send($0) }
            cascade.cascadeOperation { _ in }
            let child = cascade.operation {}
            last.withLock { $0 = child }
        }
        let token = await tokens.next()
        #expect(last.withLock { $0! }.addDependency(cascade) == false)
        token.finish()
        #expect(await cascade.outcome.isFinished)
    }

    // MARK: Gates

    @Test func `a task that is cancelled stops to wait for a gate`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        #expect(one.suspend())
        let alone = try Scheduler(Scheduler.Configuration(workers: 1))
        let waiting = Task(executorPreference: alone) { () -> CancelReason.Kind? in
            do throws(CancelReason) {
                try await token.resumed()
                return nil
            } catch {
                return error.kind
            }
        }
        // On the only worker, this comes when the other one waits.
        await Task(executorPreference: alone) {}.value
        waiting.cancel()
        #expect(await waiting.value == .taskCancelled)
        #expect(one.finish())
    }

    @Test func `a task of its own that waits for the gate of an operation hears of its cancel`() async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        #expect(one.suspend())
        let alone = try Scheduler(Scheduler.Configuration(workers: 1))
        let waiting = Task(executorPreference: alone) { () -> CancelReason? in
            do throws(CancelReason) {
                try await token.resumed()
                return nil
            } catch {
                return error
            }
        }
        // On the only worker, this comes when the other one waits.
        await Task(executorPreference: alone) {}.value
        #expect(one.cancel(CancelReason(.removed)))
        #expect(await waiting.value?.kind == .removed)
    }

    @Test func `a task that waited for a gate is let through once, though the gate moves again`() async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        for _ in 0..<3 {
            #expect(one.suspend())
            let waiting = Task { try await token.resumed() }
            for _ in 0..<100 { await Task.yield() }
            #expect(one.resume())
            try await waiting.value
        }
        #expect(one.finish())
        try await one.value
    }

    // MARK: Time

    @Test func `an attempt that is given up takes its time and its task along`() async {
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

    @Test func `a task that is made as its attempt ends is cancelled before it begins`() async {
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

    @Test func `the time of a composite stops with its end`() async {
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

    @Test func `a timer is not left behind by an operation that ends as it begins`() async {
        let clock = ManualClock()
        let options = OperationOptions(timeout: .seconds(5), clock: clock)
        for _ in 0..<scaled(50) {
            // Close together, so that the workers are awake and end what is just being started.
            let all = (0..<100).map { _ in operation(options: options) { $0.finish() } }
            for one in all { _ = await one.outcome }
        }
        #expect(await eventually { clock.sleepers == 0 })
    }

    @Test func `the time of an attempt that is over does not end the next one`() async {
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

    @Test func `the time of an attempt about which a decision is open is not told of`() async {
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

    @Test func `a handler is told that the time is over while a block below is still out`() async {
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

    @Test func `a pause that begins beyond its limit is cut to that`() async {
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

    // MARK: Memory

    @Test func `after the end an operation has given up its resolver, and the default queue in force`() async
    {
        let released = Count()
        weak var gone: HeldTarget?
        func make() -> COOperation<Void> {
            let (token, target) = (Token(released), HeldTarget())
            gone = target
            let resolver = COOperationResolver(retryIf: { _ in withExtendedLifetime(token) { false } })
            return COQueues.withDefaultQueue(target) {
                operation(on: elsewhere, options: OperationOptions(resolver: resolver)) { $0.finish() }
            }
        }
        let one = make()
        #expect(await one.outcome.isFinished)
        #expect(await eventually { released.value == 1 && gone == nil })
        withExtendedLifetime(one) {}
    }

    @Test func `after the end a composite does not hold what its value is made of`() async throws {
        let children = Locked<[WeakChild]>([])
        let cascade = cascadeOperation { cascade -> Results<Int> in
            let child = cascade.operation { 1 }
            children.withLock { $0 = [WeakChild(child)] }
            return .value(of: child)
        }
        #expect(try await cascade.value == 1)
        #expect(await eventually { children.withLock { $0[0].child == nil } })
        withExtendedLifetime(cascade) {}
    }

    @Test func `a queue does not know of what was not started, though its gate has moved`() async {
        let queue = COOperationQueue(runningLimit: 1)
        weak var gone: COOperation<Void>?
        func prepare() {
            let one = COOperation<Void>(on: queue) { $0.finish() }
            gone = one
            #expect(one.suspend() && one.resume() && one.suspend())
            #expect(queue.operationCount == 0)
        }
        prepare()
        #expect(gone == nil)
        await queue.idle()

        let other = COOperation<Void>(on: queue) { $0.finish() }
        #expect(other.suspend() && other.resume())
        #expect(queue.add(other), "it is ready")
        #expect(await other.outcome.isFinished)
        let child = COOperation<Void>(on: queue) { $0.finish() }
        #expect(child.suspend() && child.resume())
        let cascade = cascadeOperation { cascade in try cascade.add(child) }
        #expect(await cascade.outcome.isFinished)
        await queue.idle()
    }

    @Test func `a composite that a rerun drops is told of its end, though nobody holds it`() async {
        let (begun, left) = (Mail<Void>(), Gate())
        let (told, epochs) = (Log<Bool>(), Count())
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { group in
            if epochs.add() > 1 { return }
            group.transactionalOperation { inner in
                inner.operation(on: elsewhere) { () -> Void in
                    begun.send(())
                    left.wait()
                }
            }.onOutcome { told.add($0.isCancelled) }
            group.operation { tokens.send($0) }
        } cancellation: {
            $0.rerun()
        }
        await begun.next()
        #expect(await tokens.next().cancel())
        #expect(await eventually { group.attempt == 2 })
        left.open()
        #expect(await group.outcome.isFinished)
        #expect(await eventually { told.entries.count == 1 })
        #expect(told.entries == [true])
    }

    @Test func `the values of children that a rerun drops, and at the end, are released under no lock`() async
    {
        let watch = Watch()
        let one = COCascade<Void>()
        watch.watch(one)
        let block: @Sendable (CascadeScope) throws -> Void = { cascade in
            cascade.operation { watch.sentinel }
            cascade.operation { attempt in
                if cascade.control.attempt == 1 { attempt.cancel() } else { attempt.finish() }
            }
        }
        one.run(block, cancellation: { $0.rerun() })
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 2 })
        watch.watch(nil)
    }

    @Test func `what a block threw is released under no lock when another attempt begins`() async {
        let watch = Watch()
        let one = COCascade<Void>()
        watch.watch(one)
        let block: @Sendable (CascadeScope) throws -> Void = { cascade in
            if cascade.control.attempt == 1 { throw SentinelError(sentinel: watch.sentinel) }
        }
        one.run(block, cancellation: { $0.rerun() })
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 1 })
        watch.watch(nil)
    }

    @Test func `what a token was given, and what was not called, is released under no lock`() async {
        let watch = Watch()
        let one = COOperation<Void>()
        watch.watch(one)
        @Sendable func listen(_ attempt: COOperation<Void>.Attempt) {
            let sentinel = watch.sentinel
            attempt.onCancel { _ in withExtendedLifetime(sentinel) {} }
        }
        func run() {
            let (inCancellation, inFailure) = (watch.sentinel, watch.sentinel)
            one.run { attempt in
                listen(attempt)
                attempt.finish()
            } cancellation: {
                withExtendedLifetime(inCancellation) {}
            } failure: { _ in
                withExtendedLifetime(inFailure) {}
            }
        }
        run()
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 3 })
        watch.watch(nil)
    }

    @Test func `what an attempt of a leaf threw is released under no lock when the next one begins`() async {
        let watch = Watch()
        let one = COOperation<Void>(options: OperationOptions(resolver: COOperationResolver(maxAttempts: 2)))
        watch.watch(one)
        one.run { attempt in
            if attempt.number == 1 { throw SentinelError(sentinel: watch.sentinel) }
            attempt.finish()
        }
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 1 })
        watch.watch(nil)
    }

    @Test func `a plain leaf leaves nothing: neither block, nor value, nor itself`() async {
        let (blocks, values) = (Count(), Count())
        weak var gone: COOperation<Token>?
        // Nobody waits for it: then it would be a plain one no more.
        func run() {
            let inBlock = Token(blocks)
            gone = operation {
                withExtendedLifetime(inBlock) {}
                return Token(values)
            }
        }
        run()
        #expect(await eventually { gone == nil })
        #expect(await eventually { blocks.value == 1 && values.value == 1 })
    }

    // MARK: Queues

    @Test func `an operation that pauses gives its slot back`() async throws {
        let clock = ManualClock()
        let queue = COOperationQueue(runningLimit: 1)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let pauses = operation(on: queue, options: OperationOptions(clock: clock)) { tokens.send($0) }
        let token = await tokens.next()
        #expect(await eventually { token.operation.hasLeftOpen })
        #expect(token.rerun(after: .seconds(1)))
        try await operation(on: queue) {}.value
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(1))
        await tokens.next().finish()
        try await pauses.value
    }

    @Test func `children with a target of their own pass through the queue of their composite`() async {
        let queue = COOperationQueue(runningLimit: 1)
        let (inside, most) = (Count(), Locked(0))
        let group = transactionalOperation(on: queue) { group in
            for _ in 0..<20 {
                group.operation(on: elsewhere) {
                    let now = inside.add()
                    most.withLock { $0 = max($0, now) }
                    #expect(queue.runningOperations.count == 1)
                    inside.add(-1)
                }
            }
        }
        #expect(await group.outcome.isFinished)
        #expect(most.withLock { $0 } == 1)
    }

    @Test func `a queue gives its target to what was made where another one is the default`() async throws {
        let lane = try SerialLane()
        let one = COQueues.withDefaultQueue(elsewhere) {
            COOperation<Bool> { $0.finish(lane.isCurrent) }
        }
        #expect(COOperationQueue(on: lane).add(one))
        #expect(try await one.value)
    }

    @Test func `children without a target run where the queue of their composite says`() async throws {
        let lane = try SerialLane()
        let queue = COOperationQueue(on: lane)
        let isThere = Log<Bool>()
        let cascade = cascadeOperation(on: queue) { cascade in
            isThere.add(lane.isCurrent)
            cascade.operation { isThere.add(lane.isCurrent) }
            cascade.transactionalOperation { inner in inner.operation { isThere.add(lane.isCurrent) } }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(isThere.entries == [true, true, true])
    }

    @Test func `an operation that a round has ended gives its slot back while the decision is open`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let (tokens, holds) = (Mail<COOperation<Void>.Attempt>(), Mail<DecisionHold?>())
        let waiting = Locked<COOperation<Void>?>(nil)
        let group = transactionalOperation(on: queue) { group in
            group.operation { tokens.send($0) }
            let other = group.operation {}
            waiting.withLock { $0 = other }
        } cancellation: {
            holds.send($0.deferDecision())
        }
        let token = await tokens.next()
        #expect(await eventually { token.operation.hasLeftOpen })
        #expect(waiting.withLock { $0! }.cancel())
        let hold = await holds.next()
        #expect(hold != nil && group.state == .deciding)
        // The slot of the one that runs is the only one.
        try await operation(on: queue) {}.value
        #expect(group.state == .deciding)
        withExtendedLifetime(hold) {}
    }

    // MARK: Names

    @Test func `threads that ask at once for the identity of an operation are told the same`() async {
        for _ in 0..<scaled(100) {
            // Side by side through many of them, they meet at some.
            let all = (0..<1_000).map { _ in COOperation<Void>() }
            let answers = await race(2) { _ in all.map(\.id) }
            #expect(answers[0] == answers[1])
        }
    }
}
