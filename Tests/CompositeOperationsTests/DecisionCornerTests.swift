// DecisionCornerTests - corner cases that no other test covered: what decides an attempt, and what comes too late to
// decide it. Each was found by a defect that the other tests let pass (Verification/Mutants/swift-by-hand.txt).

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// Runs work elsewhere, and reports when a piece has returned.
private final class TellingTarget: ExecutionTarget {
    let done = Mail<Void>()
    var isCurrent: Bool { false }
    func submit(_ work: ExecutionWork) {
        elsewhere.async { [done] in
            work.run()
            done.send(())
        }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct DecisionCornerTests {
    // MARK: Order

    @Test func `a step finished by hand while its cascade's block runs starts no other step`() async {
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

    @Test func `a child finished by hand while its composite pauses starts no other child`() async {
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
                        for _ in 0..<index % 100 { _ = arrived.value }  // varies the distance
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

    @Test func `after a rerun, the old block's error is ignored`() async {
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

    @Test func `after a rerun, the old block's omitted children do not count`() async throws {
        let (epochs, asked, lost) = (Count(), Gate(), Gate())
        let options = OperationOptions(handlerTarget: elsewhere)
        let lane = try SerialLane()
        let group = transactionalOperation(on: lane, options: options) { group in
            let epoch = epochs.add()
            // From the second epoch on, block and child share a lane, so the block has returned when the child runs.
            // Otherwise awake() would act as rerun.
            group.operation(on: epoch > 1 ? lane : elsewhere) { attempt in
                if group.control.attempt < 3 { attempt.cancel() } else { attempt.finish() }
            }
            if epoch > 1 { return }
            asked.wait()
            #expect(group.isCancelled, "a decision is open")
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

    @Test(.promises("G28"))
    func `if the block saw its composite as cancelled, awake starts over at once`() async {
        let (asked, told, decided) = (Gate(), Gate(), Gate())
        let epochs = Count()
        let late = Mail<COOperation<Void>>()
        let options = OperationOptions(handlerTarget: elsewhere)
        let group = transactionalOperation(on: elsewhere, options: options) { group in
            if epochs.add() > 1 { return }
            group.operation(on: elsewhere) { $0.cancel() }
            asked.wait()
            #expect(group.isCancelled, "a decision is open")
            told.open()
            decided.wait()
            late.send(group.operation {})
        } cancellation: { group in
            asked.open()
            told.wait()
            #expect(group.awake())
            decided.open()
        }
        #expect(await late.next().outcome.error as? RegistrationError == .stale)
        #expect(await group.outcome.isFinished)
        #expect(epochs.value == 2)
    }

    @Test func `a child's late end is ignored in a new attempt requested by an outer composite`()
        async throws
    {
        let clock = ManualClock()
        let lane = try SerialLane()
        let only = Locked<COOperation<Void>?>(nil)
        let asked = Count()
        let resolver = COOperationResolver(maxAttempts: 9, backoff: .constant(.seconds(1)), clock: clock)
        let other = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { group in
            group.transactionalOperation(on: lane, options: OperationOptions(resolver: resolver)) { inner in
                let child = inner.operation(on: lane) { attempt in
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
        // The child's composite is in a pause. After this cancel, it would begin its next attempt with a round.
        #expect(only.withLock { $0! }.cancel())
        #expect(token.cancel())
        #expect(await group.outcome.isFinished, "without a pause")
        #expect(asked.value == 1)
    }

    @Test func `a child that is redone and finishes is finished`() async throws {
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
            children.withLock { $0 = [leaf.operation, composite] }
        } cancellation: {
            if $0.attempt < 3 { $0.awake() }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(await eventually { outcomes.entries.count == 2 })
        #expect(outcomes.entries == [true, true])
        #expect(children.withLock { $0 }.allSatisfy { $0.isFinished && $0.state == .finished })
    }

    @Test func `a plain leaf that is redone and finishes is finished`() async {
        let leaf = Locked<COOperation<Int>?>(nil)
        let cascade = cascadeOperation { cascade in
            let one = cascade.operation { () throws -> Int in
                if cascade.control.attempt == 1 { throw TestError() }
                return 7
            }
            leaf.withLock { $0 = one.operation }
            cascade.operation {}
        } cancellation: {
            if $0.attempt == 1 { $0.awake() }
        }
        #expect(await cascade.outcome.isFinished)
        #expect((try? leaf.withLock { $0 }?.result?.get()) == 7)
    }

    @Test func `a composite ended by an outer round as it resumes decides nothing`() async throws {
        let clock = ManualClock()
        let lane = try SerialLane()
        let (tokens, fallbacks, told) = (Mail<COOperation<Void>.Attempt>(), Count(), Count())
        let resolver = COOperationResolver(maxAttempts: 2, backoff: .constant(.seconds(1)), clock: clock)
        let withFallback = COOperationResolver(maxAttempts: 2, fallback: { _ in fallbacks.add() })
        // The composite whose round ends the group is in the middle, so the composites may resume in either order.
        let resolvers = [withFallback, nil, withFallback]
        let group = transactionalOperation(on: lane) { group in
            for resolver in resolvers {
                group.transactionalOperation(on: lane, options: OperationOptions(resolver: resolver)) {
                    inner in
                    inner.operation(on: lane) { tokens.send($0) }
                }.onOutcome { _ in told.add() }
            }
            group.operation(on: lane, options: OperationOptions(name: "first")) { tokens.send($0) }
        } cancellation: {
            $0.resolve(using: resolver)
        }
        var all: [COOperation<Void>.Attempt] = []
        while all.count < 4 { all.append(await tokens.next()) }
        for token in all where token.operation.name == "first" { #expect(token.fail(TestError())) }
        #expect(await eventually { clock.sleepers == 1 })
        // Each inner composite will begin its next attempt with a round. The middle one has no resolver, so its round
        // ends it, and the group has no attempt left.
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

    @Test func `an unstarted child settles while its sibling runs`() async {
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

    @Test(.promises("G29")) func `of two resolvers in one handler, the exhausted one decides`()
        async
    {
        let (asked, runs, fallbacks) = (Count(), Count(), Count())
        let asking = COOperationResolver(
            maxAttempts: 9,
            retryIf: { _ in
                asked.add()
                return true
            })
        let cascade = cascadeOperation { cascade in
            cascade.operation { () throws -> Void in
                runs.add()
                throw TestError(number: 3)
            }
        } cancellation: { cascade in
            #expect(cascade.resolve(using: asking))
            #expect(cascade.resolve(using: COOperationResolver(maxAttempts: 1) { _ in fallbacks.add() }))
            #expect(!cascade.resolve(using: asking) && !cascade.rerun() && !cascade.awake())
        }
        #expect(await cascade.outcome.error as? TestError == TestError(number: 3))
        #expect(asked.value == 1 && runs.value == 1 && fallbacks.value == 1 && cascade.attempt == 1)
        // The fallback is called after the predicate of `asking`, while the decision is open.
        let states = Log<OperationState>()
        let other = cascadeOperation { cascade in
            cascade.operation { () throws -> Void in throw TestError() }
        } cancellation: { cascade in
            cascade.resolve(using: asking)
            cascade.resolve(using: COOperationResolver(maxAttempts: 1) { states.add($0.state) })
        }
        #expect(await other.outcome.isFailed)
        #expect(states.entries == [.deciding])
    }

    @Test(.promises("G29")) func `an operation redone by an outer composite may use its resolver again`()
        async
    {
        let asked = Log<Int>()
        let resolver = COOperationResolver(
            maxAttempts: 9,
            retryIf: { _ in
                asked.add(asked.entries.count + 1)
                return asked.entries.count > 1
            })
        let runs = Count()
        let outer = cascadeOperation { cascade in
            cascade.cascadeOperation(options: OperationOptions(resolver: resolver)) { inner in
                inner.operation { if runs.add() < 3 { throw TestError() } }
            }
        } cancellation: { outer in
            if outer.attempt == 1 { outer.awake() }
        }
        #expect(await outer.outcome.isFinished, "the second answer counts")
        #expect(asked.entries == [1, 2] && runs.value == 3 && outer.attempt == 2)
    }

    @Test(.promises("G3")) func `a handler notified in one attempt is asked in the next`() async {
        let queue = COOperationQueue(runningLimit: 1)
        let holder = operation(on: queue) { _ in }
        let told = Count()
        let (children, target) = (Mail<COCascade<Void>>(), HoldingTarget())
        let outer = transactionalOperation(on: target) { group in
            let child = group.cascadeOperation(on: queue) { _ in
                throw TestError()
            } cancellation: { _ in
                told.add()
            }
            children.send(child)
        } cancellation: { outer in
            if outer.attempt == 1 { outer.awake() }
        }
        target.letGo()  // the block has now returned; otherwise awake() would rerun it
        let child = await children.next()
        #expect(await eventually { child.state == .queued })
        #expect(child.cancel())
        #expect(await eventually { outer.attempt == 2 && child.state == .queued })
        #expect(child.numberOfRuns == 0 && child.attempt == 2)
        holder.finish()
        #expect(await outer.outcome.isFailed)
        #expect(told.value == 2, "once for each attempt")
        await queue.idle()
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

    @Test func `a handler that returns during the next decision does not make it`() async {
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
        // The last attempt may end before the call that began it returns.
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

    @Test func `a nested composite that resumes after its old block left is counted once`() async throws {
        let (begun, left) = (Mail<Void>(), Gate())
        let lane = try SerialLane()
        let cascade = cascadeOperation { cascade in
            cascade.transactionalOperation(on: lane) { inner in
                inner.operation(on: elsewhere) { (attempt: COOperation<Void>.Attempt) in
                    if attempt.number == 1 {
                        begun.send(())
                        left.wait()
                    }
                    attempt.finish()
                }
                inner.operation(on: lane) { attempt in if attempt.number > 1 { attempt.finish() } }
            } cancellation: {
                $0.awake()
            }
            cascade.operation {}
        }
        await begun.next()
        let inner = cascade.children[0] as? COTransaction<Void>
        #expect(await eventually { inner?.children.count == 2 && inner?.children[1].hasLeftOpen == true })
        #expect(inner?.children[1].cancel() == true)
        #expect(await eventually { inner?.state == .delayed })
        left.open()
        #expect(await cascade.outcome.isFinished)
        #expect(inner?.attempt == 2 && inner?.isFinished == true)
    }

    @Test func `a block's return value does not replace the value it was finished with`() async {
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

    @Test func `the token of an attempt that is over`() async {
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
        // A handler that is added late is still called, but a handler of the old attempt is not notified of the new
        // attempt's end.
        let heard = Log<String>()
        old.onCancel { _ in heard.add("old") }
        new.onCancel { heard.add("\($0.kind)") }
        #expect(await eventually { !heard.entries.isEmpty })
        await withCheckedContinuation { done in one.onOutcome { _ in done.resume() } }
        #expect(heard.entries == ["removed"])
    }
}
