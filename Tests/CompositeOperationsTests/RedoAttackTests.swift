// Attempts after the first, with something else happening concurrently: decisions, resolvers, pauses, time limits, and
// releases.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct RedoAttackTests {
    // MARK: Resolvers

    @Test(.promises("G29")) func `a decision handler may leave the decision to a resolver that asks first`()
        async
    {
        let asked = Count()
        let resolver = COOperationResolver(maxAttempts: 3, retryIf: { _ in asked.add() > 0 })
        let cascade = cascadeOperation { cascade in
            cascade.operation { attempt in
                if attempt.number == 1 { attempt.cancel() } else { attempt.finish() }
            }
        } cancellation: {
            $0.resolve(using: resolver)
        }
        #expect(await cascade.outcome.isFinished)
        #expect(asked.value == 1)
        #expect(cascade.attempt == 2)
    }

    @Test(.promises("G29"))
    func `the fallback of a decision handler's resolver runs while the decision is open, and decides`()
        async
    {
        let states = Log<OperationState>()
        let resolver = COOperationResolver(
            maxAttempts: 1,
            fallback: { operation in
                states.add(operation.state)
                operation.cancel(CancelReason(.removed))
            })
        let cascade = cascadeOperation { cascade in
            cascade.operation { $0.fail(TestError(number: 1)) }
        } cancellation: {
            $0.resolve(using: resolver)
        }
        #expect(await cascade.outcome.reason?.kind == .removed)
        #expect(states.entries == [.deciding])
    }

    @Test(.promises("G29"))
    func `a resolver that asks first outlasts a hold, and a hold outlasts a fallback`() async {
        let hold = Locked<DecisionHold?>(nil)
        let isBack = Gate()
        let resolver = COOperationResolver(
            maxAttempts: 2, retryIf: { _ in true }, fallback: { _ in isBack.open() })
        let cascade = cascadeOperation(options: OperationOptions(handlerTarget: elsewhere)) { cascade in
            cascade.operation { $0.cancel() }
        } cancellation: { cascade in
            let kept = cascade.deferDecision()
            if cascade.attempt == 2 { hold.withLock { $0 = kept } }
            cascade.resolve(using: resolver)
            withExtendedLifetime(kept) {}
        }
        await waitElsewhere(isBack)
        // The fallback has been called, and the handler has returned. The hold still exists.
        #expect(await eventually { cascade.state == .deciding })
        #expect(cascade.attempt == 2)
        #expect(cascade.cancel(CancelReason(.removed)))
        #expect(await cascade.outcome.reason?.kind == .removed)
        hold.withLock { $0 = nil }
    }

    @Test(.promises("G28")) func `a composite with a resolver of its own awakes: what finished is kept`()
        async
    {
        let runs = [Count(), Count()]
        let options = OperationOptions(resolver: COOperationResolver(maxAttempts: 3, redo: .awake))
        let cascade = cascadeOperation(options: options) { cascade in
            cascade.operation { _ = runs[0].add() }
            cascade.operation { attempt in if runs[1].add() < 3 { attempt.cancel() } else { attempt.finish() }
            }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(runs.map(\.value) == [1, 3])
        #expect(cascade.numberOfRuns == 1)
    }

    @Test(.promises("G28"), arguments: [true, false])
    func `resolve on an executing composite includes its children`(
        asks: Bool
    ) async throws {
        let began = Gate()
        let runs = [Count(), Count()]
        let lane = try SerialLane()
        let resolver =
            asks
            ? COOperationResolver(maxAttempts: 2, retryIf: { _ in true })
            : COOperationResolver(maxAttempts: 2)
        let group = transactionalOperation(on: lane) { group in
            group.operation(on: lane) {
                runs[0].add(); $0.finish()
            }
            group.operation(on: lane) { attempt in
                if runs[1].add() == 1 { began.open() } else { attempt.finish() }
            }
        }
        await waitElsewhere(began)
        #expect(group.children.first?.isEnded == true)
        #expect(group.resolve(using: resolver))
        #expect(await group.outcome.isFinished)
        #expect(runs.map(\.value) == [1, 2])
    }

    @Test func `a composite without a cause ends exhausted`() async {
        let began = Gate()
        let group = transactionalOperation { group in group.operation { _ in began.open() } }
        await waitElsewhere(began)
        #expect(group.resolve(using: COOperationResolver(maxAttempts: 1)))
        #expect(await group.outcome.reason?.kind == .exhausted)
    }

    @Test(.promises("R23"))
    func `a fallback runs once, even if an outer composite awakes its operation`() async {
        let fallbacks = Count()
        let runs = Count()
        let resolver = COOperationResolver(maxAttempts: 1, fallback: { _ in fallbacks.add() })
        let cascade = cascadeOperation { cascade in
            cascade.operation(options: OperationOptions(resolver: resolver)) { () throws -> Void in
                runs.add()
                throw TestError(number: 7)
            }
        } cancellation: { cascade in
            if cascade.attempt < 4 { cascade.awake() }
        }
        #expect(await cascade.outcome.error as? TestError == TestError(number: 7))
        #expect(runs.value == 4)
        #expect(fallbacks.value == 1)
    }

    @Test(.promises("G31")) func `an exponential pause stays within its limit, whatever the factor is`() async
    {
        let clock = ManualClock()
        let backoff = Backoff.exponential(
            first: .seconds(1), factor: .infinity, limit: .seconds(5), jitter: 0)
        let one = operation(
            options: OperationOptions(
                resolver: COOperationResolver(maxAttempts: 3, backoff: backoff, clock: clock))
        ) { (attempt: COOperation<Void>.Attempt) in
            if attempt.number < 3 { attempt.fail(TestError()) } else { attempt.finish() }
        }
        for (number, pause) in [(2, 1), (3, 5)] {
            #expect(await eventually { clock.sleepers == 1 && one.attempt == number })
            clock.advance(by: .seconds(pause))
        }
        #expect(await one.outcome.isFinished)
    }

    @Test(.promises("R24")) func `a predicate that races a cancel: one outcome, and nothing after it`() async
    {
        for round in 0..<scaled(200) {
            let runs = Count()
            let began = Gate()
            let token = Locked<COOperation<Void>.Attempt?>(nil)
            let one = operation(
                options: OperationOptions(
                    resolver: COOperationResolver(maxAttempts: 3, retryIf: { _ in true }))
            ) { (attempt: COOperation<Void>.Attempt) in
                runs.add()
                token.withLock { $0 = $0 ?? attempt }
                if attempt.number == 1 { began.open() }
            }
            await waitElsewhere(began)
            let first = token.withLock { $0 }!
            let accepted = await racing(2) { index in
                index == 0 ? first.fail(TestError(number: round)) : one.cancel(CancelReason(.removed))
            }
            // The cancel may come before or after the failure, and is never refused.
            #expect(accepted[1])
            #expect(await one.outcome.reason?.kind == .removed)
            #expect(runs.value <= 2)
            #expect(one.isEnded)
        }
    }

    @Test(.promises("G22", "R26"))
    func `an attempt that failed is over for its token, also while its resolver asks`() async {
        let asked = Gate()
        let answer = Gate()
        let token = Locked<COOperation<Int>.Attempt?>(nil)
        let resolver = COOperationResolver(
            maxAttempts: 2,
            retryIf: { _ in
                asked.open()
                answer.wait()
                return false
            })
        let one = operation(
            returning: Int.self, options: OperationOptions(handlerTarget: elsewhere, resolver: resolver)
        ) { attempt in
            token.withLock { $0 = attempt }
            attempt.fail(TestError(number: 1))
        }
        await waitElsewhere(asked)
        let attempt = token.withLock { $0 }!
        #expect(!attempt.finish(1))
        #expect(!attempt.fail(TestError(number: 2)))
        #expect(!attempt.cancel())
        answer.open()
        #expect(await one.outcome.error as? TestError == TestError(number: 1))
    }

    @Test func `the handle's holder may finish a leaf in its fallback`() async {
        let handle = Locked<COOperation<Int>?>(nil)
        let resolver = COOperationResolver(
            maxAttempts: 1, fallback: { _ in _ = handle.withLock { $0 }?.finish(5) })
        let one = COOperation<Int>(options: OperationOptions(resolver: resolver)) { $0.fail(TestError()) }
        handle.withLock { $0 = one }
        one.start()
        guard case .finished(5) = await one.outcome else {
            Issue.record("\(await one.outcome)")
            return
        }
    }

    // MARK: Awake

    @Test(.promises("G4")) func `awake reruns a nested composite that had not registered everything`() async {
        let isRegistering = Gate()
        let goOn = Gate()
        let hasReturned = Gate()
        let outerHasReturned = Gate()
        let runs = [Count(), Count()]
        let hold = Locked<DecisionHold?>(nil)
        let isDeciding = Gate()
        let outer = transactionalOperation(on: Relay { outerHasReturned.open() }) { group in
            group.cascadeOperation(on: Relay { hasReturned.open() }) { cascade in
                cascade.operation { _ = runs[0].add() }
                isRegistering.open()
                goOn.wait()
                cascade.operation { _ = runs[1].add() }
            }
            group.operation(on: elsewhere) { attempt in
                isRegistering.wait()
                if attempt.number == 1 { attempt.cancel() } else { attempt.finish() }
            }
        } cancellation: { outer in
            hold.withLock { $0 = outer.deferDecision() }
            isDeciding.open()
        }
        await waitElsewhere(isDeciding)
        goOn.open()  // the block's second registration is refused
        await waitElsewhere(hasReturned)
        await waitElsewhere(outerHasReturned)  // otherwise awake() would rerun the outer composite, too
        #expect(outer.awake())
        #expect(await outer.outcome.isFinished)
        #expect(runs.map(\.value) == [1, 1])
        hold.withLock { $0 = nil }
    }

    @Test(.promises("G4")) func `awake is a rerun when the block could not register everything`() async {
        let isDeciding = Gate()
        let hasReturned = Gate()
        let runs = [Count(), Count()]
        let hold = Locked<DecisionHold?>(nil)
        let outer = transactionalOperation(on: Relay { hasReturned.open() }) { group in
            group.operation { attempt in if runs[0].add() == 1 { attempt.cancel() } else { attempt.finish() }
            }
            isDeciding.wait()
            if group.isCancelled { return }
            group.operation { _ = runs[1].add() }
        } cancellation: { outer in
            hold.withLock { $0 = outer.deferDecision() }
            isDeciding.open()
        }
        await waitElsewhere(hasReturned)
        #expect(outer.awake())
        #expect(await outer.outcome.isFinished)
        #expect(runs.map(\.value) == [2, 1])
        #expect(outer.numberOfRuns == 2)
        hold.withLock { $0 = nil }
    }

    @Test(.promises("G4")) func `awake runs the block of a nested composite that was about to rerun`() async {
        let clock = ManualClock()
        let runs = Count()
        let throwers = Count()
        let outer = transactionalOperation { group in
            let inner = group.cascadeOperation(options: OperationOptions(clock: clock)) { cascade in
                cascade.operation { attempt in
                    if runs.add() == 1 { attempt.cancel() } else { attempt.finish() }
                }
            } cancellation: {
                $0.rerun(after: .seconds(60))
            }
            group.operation { () async throws -> Void in
                let isDelayed = await eventually { inner.state == .delayed || inner.isEnded }
                #expect(isDelayed)
                if throwers.add() == 1 { throw TestError() }
            }
        } cancellation: { outer in
            if outer.attempt == 1 { outer.awake() }
        }
        // The second attempt of the inner cascade comes from the outer decision, so its pause is abandoned.
        #expect(await outer.outcome.isFinished)
        #expect(runs.value == 2)
        #expect(await eventually { clock.sleepers == 0 })
    }

    @Test(.promises("G28")) func `awake goes on in a nested composite whose registration was closed`()
        async throws
    {
        let lane = try SerialLane()
        let runs = (0..<3).map { _ in Count() }
        let registrations = Count()
        let outer = cascadeOperation { cascade in
            cascade.transactionalOperation(on: lane) { group in
                registrations.add()
                group.operation(on: lane) { _ = runs[0].add() }
                group.cascadeOperation(on: lane) { inner in
                    registrations.add()
                    inner.operation(on: lane) { _ = runs[1].add() }
                    inner.operation(on: lane) { attempt in
                        if runs[2].add() < 3 { attempt.fail(TestError()) } else { attempt.finish() }
                    }
                }
            }
        } cancellation: { outer in
            // All blocks have returned before the composite continues. By then the other child may have finished, or
            // not.
            outer.awake()
        }
        #expect(await outer.outcome.isFinished)
        #expect(registrations.value == 2)
        #expect(runs[1].value == 1)
        #expect(runs[2].value == 3)
        #expect((1...3).contains(runs[0].value))
    }

    @Test func `a time limit also holds in an attempt requested by an outer composite`() async {
        let clock = ManualClock()
        let began = Count()
        let throwers = Count()
        let outer = transactionalOperation { group in
            group.operation(options: OperationOptions(timeout: .seconds(5), clock: clock)) {
                (_: COOperation<Void>.Attempt) in began.add()
            }
            group.operation { () async throws -> Void in
                let isThere = await eventually { began.value > 0 }
                #expect(isThere)
                if throwers.add() == 1 { throw TestError() }
            }
        } cancellation: { outer in
            if outer.attempt == 1 { outer.awake() }
        }
        #expect(await eventually { began.value == 2 })
        // The sleeper may still be the timer of the first attempt, which is cancelled elsewhere.
        #expect(
            await eventually {
                clock.advance(by: .seconds(5))
                return outer.isEnded
            })
        #expect(await outer.outcome.reason?.kind == .child)
    }

    @Test(.promises("G30"))
    func `a child that ends while the composite pauses begins the next attempt with a round`() async {
        let clock = ManualClock()
        let runs = Count()
        let asked = Log<Int>()
        let resolver = COOperationResolver(maxAttempts: 5, backoff: .constant(.seconds(1)), clock: clock)
        let child = Locked<COOperation<Void>?>(nil)
        let cascade = cascadeOperation { cascade in
            let only = cascade.operation { attempt in
                if runs.add() == 1 { attempt.cancel() } else { attempt.finish() }
            }
            child.withLock { $0 = only }
        } cancellation: { cascade in
            asked.add(cascade.attempt)
            cascade.resolve(using: resolver)
        }
        #expect(await eventually { clock.sleepers == 1 })
        let only = child.withLock { $0 }!
        #expect(only.cancel())
        clock.advance(by: .seconds(1))
        #expect(await eventually { asked.entries.count == 2 && clock.sleepers == 1 })
        #expect(runs.value == 1)
        clock.advance(by: .seconds(1))
        #expect(await cascade.outcome.isFinished)
        #expect(runs.value == 2)
        #expect(asked.entries == [1, 2])
        #expect(cascade.attempt == 3)
    }

    @Test(.promises("G30"))
    func `a child that is finished by hand while the composite pauses is not run again`() async throws {
        let clock = ManualClock()
        let runs = Count()
        let lane = try SerialLane()
        let resolver = COOperationResolver(maxAttempts: 5, backoff: .constant(.seconds(1)), clock: clock)
        let child = Locked<COOperation<Void>?>(nil)
        let options = OperationOptions(resolver: resolver, width: 1)
        let group = transactionalOperation(on: lane, options: options) { group in
            let first = group.operation(on: lane) { attempt in if runs.add() == 1 { attempt.cancel() } }
            child.withLock { $0 = first }
            group.operation { $0.finish() }
        }
        #expect(await eventually { clock.sleepers == 1 })
        let first = child.withLock { $0 }!
        #expect(await eventually { first.finish() }, "as soon as its block has returned")
        clock.advance(by: .seconds(1))
        #expect(await group.outcome.isFinished)
        #expect(runs.value == 1)
    }

    // MARK: Decisions

    @Test(.promises("G16"))
    func `a cancel without a reason in an open decision decides nothing: the cause is kept`()
        async
    {
        let cascade = cascadeOperation { cascade in
            cascade.operation { $0.fail(TestError(number: 3)) }
        } cancellation: {
            $0.cancel()
        }
        #expect(await cascade.outcome.error as? TestError == TestError(number: 3))
        let other = cascadeOperation { cascade in
            cascade.operation { $0.fail(TestError(number: 3)) }
        } cancellation: {
            $0.cancel(CancelReason(.removed))
        }
        #expect(await other.outcome.reason?.kind == .removed)
    }

    @Test(.promises("G21")) func `a hold of an old attempt keeps nothing open, and closes nothing`() async {
        let holds = Locked<[DecisionHold]>([])
        let isDeciding = [Gate(), Gate()]
        let runs = Count()
        let cascade = cascadeOperation { cascade in
            cascade.operation { attempt in if runs.add() < 3 { attempt.cancel() } else { attempt.finish() } }
        } cancellation: { cascade in
            if let hold = cascade.deferDecision() { holds.withLock { $0.append(hold) } }
            isDeciding[cascade.attempt - 1].open()
        }
        await waitElsewhere(isDeciding[0])
        #expect(cascade.awake())
        await waitElsewhere(isDeciding[1])
        #expect(holds.withLock { $0.count } == 2)
        let old = holds.withLock { $0.removeFirst() }
        _ = consume old
        #expect(cascade.state == .deciding)
        #expect(cascade.awake())
        #expect(await cascade.outcome.isFinished)
        holds.withLock { $0 = [] }
        #expect(cascade.isFinished)
    }

    @Test func `holds released while other threads decide: one decision`() async {
        for _ in 0..<scaled(200) {
            let holds = Locked<[DecisionHold]>([])
            let isDeciding = Gate()
            let runs = Count()
            let outcomes = Count()
            let cascade = cascadeOperation { cascade in
                cascade.operation { attempt in
                    if runs.add() == 1 { attempt.cancel() } else { attempt.finish() }
                }
            } cancellation: { cascade in
                for _ in 0..<2 {
                    if let hold = cascade.deferDecision() { holds.withLock { $0.append(hold) } }
                }
                isDeciding.open()
            }
            cascade.onOutcome { _ in outcomes.add() }
            await waitElsewhere(isDeciding)
            let decided = await racing(4) { index in
                switch index {
                case 0: return cascade.awake()
                case 1: return cascade.rerun()
                default:
                    let hold = holds.withLock { $0.popLast() }
                    return withExtendedLifetime(hold) { false }
                }
            }
            let outcome = await cascade.outcome
            // `rerun` may follow an `awake` that has begun already. Either is accepted only before the holds are
            // released.
            if decided[0] || decided[1] {
                #expect(outcome.isFinished)
            } else {
                #expect(outcome.isCancelled)
                #expect(runs.value == 1)
            }
            #expect(await eventually { outcomes.value == 1 })
        }
    }

    @Test(.promises("G16")) func `a throw of the block while a decision is open is one of the causes`() async
    {
        let isDeciding = Gate()
        let hasReturned = Gate()
        let hold = Locked<DecisionHold?>(nil)
        let group = transactionalOperation(on: Relay { hasReturned.open() }) { group in
            group.operation { $0.cancel() }
            isDeciding.wait()
            throw TestError(number: 4)
        } cancellation: { group in
            hold.withLock { $0 = group.deferDecision() }
            isDeciding.open()
        }
        await waitElsewhere(hasReturned)
        #expect(group.causes.count == 2)
        #expect(!group.awake())
        hold.withLock { $0 = nil }
        #expect(await group.outcome.error as? TestError == TestError(number: 4))
    }

    @Test(.promises("G21"))
    func `rerun from inside the registration block: a new epoch, and what comes later is refused`()
        async
    {
        let runs = [Count(), Count()]
        let refused = Locked<COOperation<Void>?>(nil)
        let group = transactionalOperation { group in
            let isFirst = group.control.numberOfRuns == 1
            group.operation { _ = runs[0].add() }
            if isFirst { #expect(group.control.rerun()) }
            let second = group.operation { _ = runs[1].add() }
            if isFirst { refused.withLock { $0 = second.operation } }
            #expect(group.isOpen == !isFirst)
        }
        #expect(await group.outcome.isFinished)
        #expect(runs[1].value == 1)
        #expect((1...2).contains(runs[0].value))
        let late = refused.withLock { $0 }
        #expect(late?.result?.error as? RegistrationError == .stale)
        #expect(group.attempt == 2)
    }

    // MARK: Time limits

    @Test func `an attempt's timeout awakes a composite and keeps what finished`() async {
        let clock = ManualClock()
        let runs = [Count(), Count()]
        let options = OperationOptions(
            resolver: COOperationResolver(maxAttempts: 2), attemptTimeout: .seconds(3), clock: clock)
        let cascade = cascadeOperation(options: options) { cascade in
            cascade.operation { _ = runs[0].add() }
            cascade.operation { attempt in if runs[1].add() == 2 { attempt.finish() } }
        }
        #expect(await eventually { runs[1].value == 1 && clock.sleepers == 1 })
        clock.advance(by: .seconds(3))
        #expect(await cascade.outcome.isFinished)
        #expect(runs.map(\.value) == [1, 2])
        #expect(await eventually { clock.sleepers == 0 })
    }

    @Test func `a timeout of the last attempt ends the composite: timed out`() async {
        let clock = ManualClock()
        let options = OperationOptions(
            resolver: COOperationResolver(maxAttempts: 2), attemptTimeout: .seconds(3), clock: clock)
        let group = transactionalOperation(options: options) { group in
            group.operation { (_: COOperation<Void>.Attempt) in }
        }
        for number in 1...2 {
            #expect(await eventually { group.attempt == number && clock.sleepers == 1 })
            clock.advance(by: .seconds(3))
        }
        #expect(await group.outcome.reason?.kind == .timedOut)
        #expect(group.attempt == 2)
    }

    @Test(.promises("G10")) func `a finish that races the timeout: exactly one wins`() async {
        for _ in 0..<scaled(200) {
            let clock = ManualClock()
            let token = Locked<COOperation<Int>.Attempt?>(nil)
            let began = Gate()
            let one = operation(
                returning: Int.self, options: OperationOptions(attemptTimeout: .seconds(1), clock: clock)
            ) { attempt in
                token.withLock { $0 = attempt }
                began.open()
            }
            await waitElsewhere(began)
            _ = await eventually { clock.sleepers == 1 }
            let attempt = token.withLock { $0 }!
            let accepted = await racing(2) { index in
                if index == 0 { return attempt.finish(1) }
                clock.advance(by: .seconds(1))
                return false
            }
            let outcome = await one.outcome
            #expect(outcome.isFinished == accepted[0])
            if !accepted[0] { #expect(outcome.reason?.kind == .timedOut) }
        }
    }

    // MARK: Ready-made children

    @Test func `a suspended operation that becomes a child waits for its resume`() async {
        let ran = Count()
        let ready = COOperation<Void> { attempt in
            ran.add()
            attempt.finish()
        }
        #expect(ready.suspend())
        let other = Gate()
        let group = transactionalOperation { group in
            try group.add(ready)
            group.operation { other.open() }
        }
        await waitElsewhere(other)
        #expect(await eventually { group.children.last?.isEnded == true })
        #expect(ready.state == .suspended)
        #expect(ran.value == 0)
        #expect(group.suspend())
        #expect(ready.resume())
        #expect(ran.value == 0)
        #expect(group.state == .suspended)
        #expect(group.resume())
        #expect(await group.outcome.isFinished)
        #expect(ran.value == 1)
    }

    @Test func `a cancel that races the adoption of a child: refused, or a round`() async {
        for _ in 0..<scaled(500) {
            let ready = COOperation<Void> { $0.finish() }
            let isOpen = Gate()
            let hasTried = Gate()
            let group = transactionalOperation(on: elsewhere) { (group: TransactionScope) -> Void in
                if group.control.numberOfRuns > 1 { return }
                group.operation { $0.finish() }
                isOpen.open()
                do { try group.add(ready) } catch { #expect(error as? RegistrationError == .alreadyStarted) }
                hasTried.open()
            } cancellation: { group in
                if group.attempt == 1 { group.awake() }
            }
            isOpen.wait()
            ready.cancel()
            #expect(await group.outcome.isFinished)
            hasTried.wait()
            #expect(ready.isEnded)
        }
    }

    // MARK: Depth and release

    @Test(.promises("G25")) func `awake reaches ten thousand nested composites on a small stack`()
        async
    {
        let depth = scaled(isThreadSanitized || isAddressSanitized ? 2_000 : 10_000)
        let runs = Count()
        let hold = Locked<DecisionHold?>(nil)
        let isDeciding = Gate()
        let outer = cascadeOperation { (scope: CascadeScope) -> Void in
            nest(scope, depth) { attempt in if runs.add() == 1 { attempt.cancel() } else { attempt.finish() }
            }
        } cancellation: { outer in
            hold.withLock { $0 = outer.deferDecision() }
            isDeciding.open()
        }
        await waitElsewhere(isDeciding)
        let isAwake = await onSmallStack { outer.awake() }
        #expect(isAwake)
        #expect(await outer.outcome.isFinished)
        #expect(runs.value == 2)
        hold.withLock { $0 = nil }
    }

    @Test(.promises("G25"))
    func `ten thousand nested resolvers without an attempt left, on a small stack`() async {
        let depth = scaled(isThreadSanitized || isAddressSanitized ? 2_000 : 10_000)
        let leaf = Locked<COOperation<Void>.Attempt?>(nil)
        let began = Gate()
        let outer = cascadeOperation { (scope: CascadeScope) -> Void in
            nest(scope, depth, OperationOptions(resolver: COOperationResolver(maxAttempts: 1))) { attempt in
                leaf.withLock { $0 = attempt }
                began.open()
            }
        }
        await waitElsewhere(began)
        let attempt = leaf.withLock { $0 }!
        #expect(await onSmallStack { attempt.fail(TestError(number: 2)) })
        #expect(await outer.outcome.error as? TestError == TestError(number: 2))
    }

    @Test(.promises("G6"))
    func `user objects that query the operation are released under no lock`() async {
        let cascade = Locked<COCascade<Void>?>(nil)
        let released = Count()
        let look: @Sendable () -> Void = {
            _ = cascade.withLock { $0 }?.state
            released.add()
        }
        let one = COCascade<Void>()
        cascade.withLock { $0 = one }
        let block: @Sendable (CascadeScope) throws -> Void = { scope in
            scope.operation { attempt in
                let sentinel = Sentinel(look)
                attempt.onCancel { _ in withExtendedLifetime(sentinel) {} }
                attempt.finish()
            }
            scope.operation { attempt in
                let sentinel = Sentinel(look)
                attempt.onCancel { _ in withExtendedLifetime(sentinel) {} }
                if attempt.number == 1 { attempt.rerun() } else { attempt.finish() }
            }
            scope.operation { (attempt: COOperation<Void>.Attempt) throws in
                if attempt.number == 1 { throw SentinelError(sentinel: Sentinel(look)) }
                attempt.finish()
            }
        }
        one.run(block, cancellation: { if $0.attempt == 1 { $0.awake() } })
        #expect(await one.outcome.isFinished)
        #expect(await eventually { released.value == 4 })
        cascade.withLock { $0 = nil }
    }

    @Test(.promises("G21")) func `the task of an old attempt is not mistaken for that of the next one`()
        async
    {
        let second = Gate()
        let executor = InlineFirst(until: second)
        let runs = Count()
        let isCancelled = Gate()
        let one = operation(
            on: executor, options: OperationOptions(resolver: COOperationResolver(maxAttempts: 2))
        ) { () async throws -> Void in
            if runs.add() == 1 { throw TestError() }
            second.open()
            try? await Task.sleep(for: .seconds(3600))
            if Task.isCancelled { isCancelled.open() }
        }
        await waitElsewhere(executor.hasLeft)
        #expect(one.cancel())
        await waitElsewhere(isCancelled)
        #expect(await one.outcome.reason?.kind == .requested)
        #expect(runs.value == 2)
    }
}

// MARK: Help

/// Waits at a gate without blocking a thread of the test.
private func waitElsewhere(_ gate: Gate) async {
    await withCheckedContinuation { continuation in
        elsewhere.async {
            gate.wait()
            continuation.resume()
        }
    }
}

/// Runs `body` on threads that start together, without blocking a thread of the test.
private func racing(_ count: Int, _ body: @escaping @Sendable (Int) -> Bool) async -> [Bool] {
    await withCheckedContinuation { continuation in
        elsewhere.async { continuation.resume(returning: concurrently(count, body)) }
    }
}

/// Nested cascades, with one leaf in the innermost.
private func nest(
    _ scope: CascadeScope, _ depth: Int, _ options: OperationOptions = .standard,
    _ leaf: @escaping COOperation<Void>.Block
) {
    if depth == 0 {
        scope.operation(leaf)
    } else {
        scope.cascadeOperation(options: options) { (scope: CascadeScope) -> Void in
            nest(scope, depth - 1, options, leaf)
        }
    }
}

/// Runs work elsewhere. Calls `after` when a piece has returned, and with it everything that the piece does after its
/// block.
final class Relay: ExecutionTarget {
    private let after: @Sendable () -> Void
    init(_ after: @escaping @Sendable () -> Void) { self.after = after }
    var isCurrent: Bool { false }
    func submit(_ work: ExecutionWork) {
        elsewhere.async { [after] in
            work.run()
            after()
        }
    }
}

/// Runs its first job inside `enqueue`, and then blocks the enqueuing thread until a gate opens.
private final class InlineFirst: ExecutionTarget, TaskExecutor {
    private let isFirst = Locked(true)
    private let until: Gate
    /// Opens when the piece of work that enqueued the first job has returned.
    let hasLeft = Gate()
    init(until: Gate) { self.until = until }
    var isCurrent: Bool { false }
    func submit(_ work: ExecutionWork) {
        elsewhere.async { [hasLeft] in
            work.run()
            hasLeft.open()
        }
    }
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = isFirst.withLock { isFirst in
            defer { isFirst = false }
            return isFirst
        }
        let executor = asUnownedTaskExecutor()
        guard isFirst else { return elsewhere.async { job.runSynchronously(on: executor) } }
        job.runSynchronously(on: executor)
        until.wait()
    }
}

private final class Sentinel: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    deinit { body() }
}

private struct SentinelError: Error {
    let sentinel: Sentinel
}
