// RedoTests - attempts after the first: what awake and rerun redo, and when (G28); limits (G29); pauses (G30, G31).

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// How often each step fails before it finishes.
private let failures = Generator.array(of: .int(in: 0...2), count: 1...6)

private let always: @Sendable (Cause) -> Bool = { _ in true }

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct RedoTests {
    // MARK: G28

    @Test(.promises("G28"))
    func `awake of a cascade keeps what has finished, and does every other step once more`() async {
        await forAll(failures, cases: scaled(60)) { failures in
            let runs = Slots(count: failures.count)
            let cascade = cascadeOperation { cascade in
                for (index, count) in failures.enumerated() {
                    cascade.operation { () throws -> Void in
                        runs[index] += 1
                        if runs[index] <= count { throw TestError(number: index) }
                    }
                }
            } cancellation: {
                $0.awake()
            }
            #expect(await cascade.outcome.isFinished)
            #expect(failures.indices.map { runs[$0] } == failures.map { $0 + 1 })
            #expect(cascade.attempt == failures.reduce(1, +))
            #expect(cascade.numberOfRuns == 1, "the registration block is not called again")
        }
    }

    @Test(.promises("G28"))
    func `awake of a transaction redoes exactly the children that did not finish`() async {
        await forAll(failures, cases: scaled(60)) { failures in
            let finishes = Slots(count: failures.count)
            let runs = Slots(count: failures.count)
            let doubled = Count()
            let lane = serialQueue()
            let group = transactionalOperation(on: lane) { group in
                group.suspend()
                for (index, count) in failures.enumerated() {
                    group.operation { attempt in
                        runs[index] += 1
                        if finishes[index] > 0 { doubled.add() }
                        if attempt.number <= count {
                            attempt.fail(TestError(number: index))
                        } else if attempt.finish() {
                            finishes[index] += 1
                        }
                    }
                }
            } cancellation: {
                $0.awake()
            }
            // Until the block has returned, awake would act as rerun.
            _ = await operation(on: lane) {}.outcome
            #expect(group.resume())
            #expect(await group.outcome.isFinished)
            #expect(doubled.value == 0)
            #expect(failures.indices.allSatisfy { finishes[$0] == 1 })
            // A child makes at most one attempt per round.
            #expect(failures.indices.allSatisfy { runs[$0] <= group.attempt })
            #expect(group.numberOfRuns == 1)
        }
    }

    @Test(.promises("G28"))
    func `awake goes down into a nested composite, and keeps what has finished there`() async throws {
        let runs = Slots(count: 5)
        let cascade = cascadeOperation { cascade in
            cascade.operation { runs[0] += 1 }
            cascade.cascadeOperation { inner in
                inner.operation { runs[1] += 1 }
                inner.cascadeOperation { innermost in
                    innermost.operation { runs[2] += 1 }
                    innermost.operation { () throws -> Void in
                        runs[3] += 1
                        if runs[3] < 4 { throw TestError() }
                    }
                }
            }
            cascade.operation { runs[4] += 1 }
        } cancellation: {
            $0.awake()
        }
        try await cascade.value
        #expect((0..<5).map { runs[$0] } == [1, 1, 1, 4, 1])
        #expect(cascade.attempt == 4)
    }

    @Test(.promises("G28"))
    func
        `awake waits for the block of a nested composite that is still out, and goes on with what that registers`()
        async throws
    {
        let (begun, left, hasReturned) = (Mail<COOperation<Void>>(), Gate(), Gate())
        let epochs = Count()
        let done = Log<Int>()
        let group = transactionalOperation(on: Relay { hasReturned.open() }) { group in
            group.transactionalOperation(on: elsewhere) { inner in
                let epoch = epochs.add()
                let kept = inner.operation { done.add(epoch) }
                if epoch == 1 {
                    begun.send(kept.operation)
                    left.wait()
                }
                inner.operation { done.add(10 * epoch) }
            }
            group.operation { (attempt: COOperation<Void>.Attempt) in
                if attempt.number > 1 { attempt.finish() }
            }
        } cancellation: {
            $0.awake()
        }
        let kept = await begun.next()
        #expect(await eventually { kept.isFinished })  // otherwise it is cancelled while it runs, and redone
        await hasReturned.opened()  // otherwise the outer block is rerun, too
        let leaf = group.children[1]
        #expect(await eventually { leaf.numberOfRuns == 1 })  // otherwise it begins with attempt 1 again
        #expect(leaf.cancel())
        #expect(await eventually { group.attempt == 2 })
        #expect(group.state == .delayed, "the old block has not left")
        left.open()
        try await group.value
        #expect(epochs.value == 1)
        #expect(done.entries == [1, 10])
    }

    @Test(.promises("G28")) func `a step that was never begun is ready again, and begins with attempt 1`()
        async throws
    {
        let runs = Count()
        let seen = Log<(OperationState, Int)>()
        let asked = Count()
        let cascade = cascadeOperation { cascade in
            cascade.operation { () throws -> Void in if runs.add() == 1 { throw TestError() } }
            cascade.operation { (attempt: COOperation<Void>.Attempt) in
                seen.add((.executing, attempt.number))
                attempt.finish()
            }
        } cancellation: { cascade in
            asked.add()
            let last = cascade.children[1]
            seen.add((last.state, last.attempt))
            cascade.awake()
        }
        try await cascade.value
        #expect(asked.value == 1)
        #expect(seen.entries.map(\.0) == [.ending, .executing])
        #expect(seen.entries.map(\.1) == [0, 1])
    }

    @Test(.promises("G28")) func `rerun does everything again, in a new epoch`() async throws {
        let runs = Slots(count: 3)
        let cascade = cascadeOperation { cascade in
            cascade.operation { runs[0] += 1 }
            cascade.operation { runs[1] += 1 }
            cascade.operation { () throws -> Void in
                runs[2] += 1
                if runs[2] < 3 { throw TestError() }
            }
        } cancellation: {
            $0.rerun()
        }
        try await cascade.value
        #expect((0..<3).map { runs[$0] } == [3, 3, 3])
        #expect(cascade.attempt == 3 && cascade.numberOfRuns == 3)
    }

    @Test(.promises("G28"))
    func `neither awake nor rerun begins until every old block has returned`() async throws {
        for isAwake in [true, false] {
            let (begun, left) = (Mail<Void>(), Gate())
            let isOut = Count()
            let (ran, decided) = (Mail<Void>(), Mail<Bool>())
            let group = transactionalOperation { group in
                group.operation(on: elsewhere) { (attempt: COOperation<Void>.Attempt) in
                    #expect(isOut.value == 0, "the old block of the same child is out")
                    if attempt.number == 1, group.control.attempt == 1 {
                        isOut.add()
                        begun.send(())
                        left.wait()
                        isOut.add(-1)
                    }
                    attempt.finish()
                }
                group.operation { (attempt: COOperation<Void>.Attempt) in
                    #expect(isOut.value == 0 || group.control.attempt == 1)
                    ran.send(())
                    if group.control.attempt > 1 { attempt.finish() }
                }
            } cancellation: { group in
                decided.send(isAwake ? group.awake() : group.rerun())
            }
            await begun.next()
            #expect(await eventually { group.children.count == 2 })  // the block may still be running
            let (slow, other) = (group.children[0], group.children[1])
            await ran.next()  // `other` has made its check
            #expect(other.numberOfRuns == 1)
            #expect(other.cancel())
            #expect(await decided.next())
            #expect(slow.isCancelled || slow.state == .delayed)
            try await operation {}.value
            #expect(group.state == .delayed && group.attempt == 2 && other.numberOfRuns == 1)
            left.open()
            try await group.value
            #expect(group.attempt == 2)
        }
    }

    @Test(.promises("G28")) func `redo is refused if there is nothing to decide, and after the end`()
        async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { $0.operation { tokens.send($0) } }
        let token = await tokens.next()
        #expect(!group.awake(), "it is healthy")
        #expect(group.attempt == 1 && token.isCurrent)
        token.finish()
        try await group.value
        #expect(!group.awake() && !group.rerun() && !group.start())
        #expect(!group.resolve(using: COOperationResolver()))
        #expect(!token.operation.rerun())
        #expect(group.attempt == 1 && group.isFinished)
    }

    @Test func `a decision can be held open and made later by anyone`() async throws {
        let holds = Mail<DecisionHold?>()
        let runs = Count()
        let cascade = cascadeOperation { cascade in
            cascade.operation { () throws -> Void in if runs.add() == 1 { throw TestError() } }
        } cancellation: {
            holds.send($0.deferDecision())
        }
        var hold = await holds.next()
        #expect(hold != nil)
        try await operation {}.value
        #expect(cascade.state == .deciding)
        #expect(cascade.awake())
        try await cascade.value
        hold = nil
        #expect(cascade.isFinished)
    }

    @Test func `a hold that is released without a decision is one: the causes decide`() async throws {
        let holds = Mail<DecisionHold?>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { () throws -> Void in throw TestError(number: 5) }
        } cancellation: {
            holds.send($0.deferDecision())
        }
        var hold = await holds.next()
        #expect(cascade.state == .deciding && cascade.result == nil)
        withExtendedLifetime(hold) {}
        hold = nil
        #expect(await cascade.outcome.error as? TestError == TestError(number: 5))
        #expect(cascade.deferDecision() == nil)
    }

    // MARK: G29

    @Test(.promises("G29"))
    func `a leaf has as many attempts as its resolver allows, then its fallback, once`() async throws {
        await forAll(Generator.zip(.int(in: 1...6), .bool), cases: scaled(30)) { limit, isAsking in
            let (runs, fallbacks, failures) = (Count(), Count(), Count())
            let resolver = COOperationResolver(
                maxAttempts: limit, retryIf: isAsking ? always : nil, fallback: { _ in fallbacks.add() })
            let told = Mail<Void>()
            let one = COOperation<Void>(options: OperationOptions(resolver: resolver))
            one.run { (_) throws -> Void in
                throw TestError(number: runs.add())
            } completion: {
                failures.add(100)
            } failure: { _ in
                failures.add()
                told.send(())
            }
            #expect(await one.outcome.error as? TestError == TestError(number: limit))
            await told.next()
            #expect(runs.value == limit && one.attempt == limit)
            #expect(fallbacks.value == 1 && failures.value == 1)
            #expect(!one.rerun())
        }
    }

    @Test(.promises("G29")) func `a resolver that is not exhausted calls no fallback`() async throws {
        let (runs, fallbacks) = (Count(), Count())
        let resolver = COOperationResolver(maxAttempts: 3, fallback: { _ in fallbacks.add() })
        let one = operation(options: OperationOptions(resolver: resolver)) { () throws -> Int in
            if runs.add() < 3 { throw TestError() }
            return runs.value
        }
        #expect(try await one.value == 3)
        #expect(fallbacks.value == 0)
    }

    @Test(.promises("G29")) func `a composite has as many attempts as its resolver allows: from its options`()
        async
    {
        let redo = Generator.element(of: [COOperationResolver.Redo.awake, .rerun])
        await forAll(Generator.zip(.int(in: 1...5), .zip(redo, .bool)), cases: scaled(40)) { limit, how in
            let (runs, first, fallbacks) = (Count(), Count(), Count())
            let resolver = COOperationResolver(
                maxAttempts: limit, redo: how.0, retryIf: how.1 ? always : nil,
                fallback: { _ in fallbacks.add() })
            let cascade = cascadeOperation(options: OperationOptions(resolver: resolver)) { cascade in
                cascade.operation { first.add() }
                cascade.operation { () throws -> Void in throw TestError(number: runs.add()) }
            }
            let outcome = await cascade.outcome
            #expect(outcome.error as? TestError == TestError(number: limit))
            #expect(runs.value == limit && cascade.attempt == limit)
            #expect(first.value == (how.0 == .awake ? 1 : limit))
            #expect(await eventually { fallbacks.value > 0 })
            #expect(fallbacks.value == 1)
        }
    }

    @Test(.promises("G29")) func `a composite has as many attempts as its resolver allows: from its handler`()
        async
    {
        let redo = Generator.element(of: [COOperationResolver.Redo.awake, .rerun])
        let backoff = Generator.element(of: [0, 1, 2])
        await forAll(Generator.zip(.int(in: 1...5), .zip(redo, backoff)), cases: scaled(60)) { limit, how in
            let (runs, asked, fallbacks) = (Count(), Count(), Count())
            let resolver = COOperationResolver(
                maxAttempts: limit, backoff: how.1 == 2 ? .custom({ _ in .zero }) : .none, redo: how.0,
                retryIf: how.1 == 1 ? always : nil, fallback: { _ in fallbacks.add() })
            let cascade = cascadeOperation { cascade in
                cascade.operation { () throws -> Void in throw TestError(number: runs.add()) }
            } cancellation: { cascade in
                asked.add()
                cascade.resolve(using: resolver)
            }
            let outcome = await cascade.outcome
            #expect(outcome.error as? TestError == TestError(number: limit))
            #expect(runs.value == limit && cascade.attempt == limit && asked.value == limit)
            #expect(await eventually { fallbacks.value > 0 })
            #expect(fallbacks.value == 1)
        }
    }

    @Test(.promises("G29"))
    func `after the last attempt the fallback decides, also when a handler used the resolver`()
        async throws
    {
        for isFromHandler in [false, true] {
            let redone = Log<Bool>()
            let resolver = COOperationResolver(
                maxAttempts: 2,
                fallback: { operation in
                    // A fallback cannot exceed the limit.
                    redone.add(operation.rerun())
                    redone.add(operation.resolve(using: COOperationResolver()))
                    redone.add(operation.cancel(CancelReason(.timedOut)))
                })
            let cascade =
                isFromHandler
                ? cascadeOperation {
                    $0.operation { () throws -> Void in throw TestError() }
                } cancellation: {
                    $0.resolve(using: resolver)
                }
                : cascadeOperation(options: OperationOptions(resolver: resolver)) {
                    $0.operation { () throws -> Void in throw TestError() }
                }
            let outcome = await cascade.outcome
            #expect(outcome.reason?.kind == .timedOut, "\(outcome)")
            // The fallback's last call has ended the cascade before it returns.
            #expect(await eventually { redone.entries.count == 3 })
            #expect(redone.entries == [false, false, true])
            #expect(cascade.attempt == 2)
        }
    }

    @Test(.promises("G29")) func `a fallback can keep the decision open`() async throws {
        let holds = Mail<DecisionHold?>()
        let resolver = COOperationResolver(
            maxAttempts: 1, fallback: { holds.send(($0 as? COCascade<Void>)?.deferDecision()) })
        let cascade = cascadeOperation {
            $0.operation { () throws -> Void in throw TestError() }
        } cancellation: {
            $0.resolve(using: resolver)
        }
        var hold = await holds.next()
        #expect(hold != nil)
        try await operation {}.value
        #expect(cascade.state == .deciding)
        #expect(!cascade.awake() && !cascade.rerun())
        withExtendedLifetime(hold) {}
        hold = nil
        #expect(await cascade.outcome.isFailed)
    }

    @Test(.promises("G29")) func `a leaf's fallback may finish it`() async throws {
        let resolver = COOperationResolver(
            maxAttempts: 2,
            fallback: {
                #expect($0.state == .deciding)
                #expect(!$0.rerun())
                ($0 as? COOperation<Int>)?.finish(42)
            })
        let one = operation(options: OperationOptions(resolver: resolver)) { () throws -> Int in
            throw TestError()
        }
        #expect(try await one.value == 42)
        #expect(one.attempt == 2)
    }

    @Test(.promises("G29"))
    func `a cause that merits no retry ends it at once, with the fallback`() async throws {
        for isFromHandler in [false, true] {
            let (runs, fallbacks) = (Count(), Count())
            let resolver = COOperationResolver(
                maxAttempts: 9,
                retryIf: { cause in
                    guard case .failed(let error) = cause.outcome else { return false }
                    return error as? TestError != TestError(number: 2)
                }, fallback: { _ in fallbacks.add() })
            let block: @Sendable (CascadeScope) throws -> Void = { scope in
                scope.operation { () throws -> Void in throw TestError(number: runs.add()) }
            }
            let cascade =
                isFromHandler
                ? cascadeOperation(block, cancellation: { $0.resolve(using: resolver) })
                : cascadeOperation(options: OperationOptions(resolver: resolver), block)
            #expect(await cascade.outcome.error as? TestError == TestError(number: 2))
            #expect(await eventually { fallbacks.value > 0 })
            #expect(runs.value == 2 && fallbacks.value == 1)
        }
    }

    @Test(.promises("G29"))
    func `a token's resolver retries, and gives cancelled(exhausted) when nothing has failed`()
        async throws
    {
        let (runs, fallbacks) = (Count(), Count())
        let resolver = COOperationResolver(maxAttempts: 3, fallback: { _ in fallbacks.add() })
        let one = operation { attempt in
            runs.add()
            #expect(attempt.resolve(using: resolver))
            #expect(!attempt.finish(), "that attempt is over")
        }
        #expect(await one.outcome.reason?.kind == .exhausted)
        #expect(runs.value == 3 && one.attempt == 3)
        #expect(fallbacks.value == 1)

        let two = operation { $0.resolve(using: COOperationResolver(maxAttempts: 2)) }
        #expect(await two.outcome.reason?.kind == .exhausted)
    }

    @Test(.promises("G29")) func `a direct cancel asks no resolver`() async throws {
        let asked = Count()
        let resolver = COOperationResolver(
            retryIf: { _ in
                asked.add()
                return true
            }, fallback: { _ in asked.add() })
        let one = operation(options: OperationOptions(resolver: resolver)) { $0.cancel() }
        #expect(await one.outcome.reason?.kind == .requested)
        let two = operation(options: OperationOptions(resolver: resolver)) { _ in }
        two.cancel()
        #expect(await two.outcome.isCancelled)
        try await operation {}.value
        #expect(asked.value == 0)
    }

    @Test(.promises("G29")) func `where a handler and a resolver are given, the handler decides`()
        async throws
    {
        let fallbacks = Count()
        let resolver = COOperationResolver(maxAttempts: 5, fallback: { _ in fallbacks.add() })
        let (asked, runs) = (Count(), Count())
        let cascade = cascadeOperation(options: OperationOptions(resolver: resolver)) {
            $0.operation { () throws -> Void in
                runs.add()
                throw TestError()
            }
        } cancellation: { _ in
            asked.add()
        }
        #expect(await cascade.outcome.isFailed)
        #expect(asked.value == 1 && runs.value == 1 && fallbacks.value == 0)
    }

    // MARK: G30, G31

    @Test(.promises("G31")) func `a pause takes its time on its clock`() async throws {
        await forAll(.array(of: .int(in: 1...1_000), count: 1...4), cases: scaled(25)) { pauses in
            let clock = ManualClock()
            let tokens = Mail<COOperation<Void>.Attempt>()
            let one = operation(options: OperationOptions(clock: clock)) { tokens.send($0) }
            var token = await tokens.next()
            for pause in pauses {
                #expect(token.rerun(after: .milliseconds(pause)))
                #expect(one.state == .delayed && one.attempt == token.number + 1)
                #expect(await eventually { clock.sleepers == 1 })
                clock.advance(by: .milliseconds(pause) - .nanoseconds(1))
                #expect(clock.sleepers == 1 && one.numberOfRuns == token.number)
                clock.advance(by: .nanoseconds(1))
                token = await tokens.next()
                #expect(clock.sleepers == 0)
            }
            #expect(token.finish())
            try await one.value
            #expect(one.numberOfRuns == pauses.count + 1)
        }
    }

    @Test(.promises("G31")) func `a resolver's pauses are on its own clock, and grow as they should`()
        async throws
    {
        let clock = ManualClock()
        let runs = Mail<Int>()
        let count = Count()
        let resolver = COOperationResolver(
            maxAttempts: 5,
            backoff: .exponential(first: .seconds(1), factor: 2, limit: .seconds(3), jitter: 0), clock: clock)
        let one = operation(options: OperationOptions(resolver: resolver)) { () throws -> Void in
            runs.send(count.add())
            throw TestError()
        }
        #expect(await runs.next() == 1)
        for (place, pause) in [1, 2, 3, 3].enumerated() {
            #expect(await eventually { clock.sleepers == 1 })
            clock.advance(by: .seconds(pause) - .nanoseconds(1))
            #expect(one.numberOfRuns == place + 1 && clock.sleepers == 1)
            clock.advance(by: .nanoseconds(1))
            #expect(await runs.next() == place + 2)
        }
        #expect(await one.outcome.isFailed)
        #expect(clock.sleepers == 0)
    }

    @Test(.promises("G30", "G31"))
    func `cancel during a pause wins, and frees the timer; nothing runs later`() async throws {
        let clock = ManualClock()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation(options: OperationOptions(clock: clock)) { tokens.send($0) }
        let token = await tokens.next()
        #expect(token.rerun(after: .seconds(9)))
        #expect(await eventually { clock.sleepers == 1 })
        #expect(one.cancel())
        #expect(await one.outcome.isCancelled)
        #expect(await eventually { clock.sleepers == 0 }, "the timer sleeps on")
        clock.advance(by: .seconds(99))
        try await operation {}.value
        #expect(one.numberOfRuns == 1)
    }

    @Test(.promises("G30")) func `the handle's finish and fail during a pause win; the old token's do not`()
        async throws
    {
        for isFinish in [true, false] {
            let clock = ManualClock()
            let tokens = Mail<COOperation<Int>.Attempt>()
            let one = operation(returning: Int.self, options: OperationOptions(clock: clock)) {
                tokens.send($0)
            }
            let token = await tokens.next()
            #expect(token.rerun(after: .seconds(9)))
            #expect(await eventually { clock.sleepers == 1 })
            #expect(!token.finish(1) && !token.fail(TestError()) && !token.cancel())
            #expect(isFinish ? one.finish(2) : one.fail(TestError(number: 2)))
            let outcome = await one.outcome
            if isFinish { #expect(try outcome.get() == 2) } else { #expect(outcome.isFailed) }
            #expect(await eventually { clock.sleepers == 0 })
            clock.advance(by: .seconds(99))
            try await operation {}.value
            #expect(one.numberOfRuns == 1)
        }
    }

    @Test(.promises("G30")) func `cancel during a composite's pause, its own or a child's, wins`()
        async throws
    {
        for isChild in [false, true] {
            let clock = ManualClock()
            let options = OperationOptions(clock: clock)
            let (runs, handled) = (Count(), Count())
            let cascade =
                isChild
                ? cascadeOperation { cascade in
                    cascade.operation(options: options) { (attempt: COOperation<Void>.Attempt) in
                        runs.add()
                        attempt.rerun(after: .seconds(3))
                    }
                } cancellation: { _ in
                    handled.add()
                }
                : cascadeOperation(options: options) { cascade in
                    cascade.operation { () throws -> Void in
                        runs.add()
                        throw TestError()
                    }
                } cancellation: { cascade in
                    if handled.add() == 1 { cascade.rerun(after: .seconds(3)) }
                }
            #expect(await eventually { clock.sleepers == 1 })
            #expect(cascade.cancel())
            #expect(await cascade.outcome.reason?.kind == .requested)
            #expect(await eventually { clock.sleepers == 0 })
            clock.advance(by: .seconds(3))
            try await operation {}.value
            #expect(runs.value == 1)
            // Each attempt's end is reported once: the end of the first, and the end of the one that never began.
            #expect(await eventually { handled.value == (isChild ? 1 : 2) })
        }
    }

    @Test(.promises("G30"))
    func `a cancel and the end of a pause that race: the block begins at most once, the outcome is one`()
        async throws
    {
        for _ in 0..<scaled(150) {
            let clock = ManualClock()
            let tokens = Mail<COOperation<Void>.Attempt>()
            let one = operation(options: OperationOptions(clock: clock)) { tokens.send($0) }
            let token = await tokens.next()
            token.rerun(after: .seconds(1))
            #expect(await eventually { clock.sleepers == 1 })
            let answers = await race(2) { index -> Bool in
                if index == 0 { return one.cancel() }
                clock.advance(by: .seconds(1))
                return true
            }
            #expect(answers[0])
            #expect(await one.outcome.isCancelled)
            #expect(one.numberOfRuns <= 2 && one.attempt == 2)
        }
    }

    @Test(.promises("G31"))
    func `a timeout ends a pausing operation; an attempt's timeout is passed to its resolver`()
        async throws
    {
        let clock = ManualClock()
        let begun = Mail<Int>()
        let resolver = COOperationResolver(maxAttempts: 2, clock: clock)
        let options = OperationOptions(
            resolver: resolver, timeout: .seconds(10), attemptTimeout: .seconds(2), clock: clock)
        let one = operation(options: options) { begun.send($0.number) }
        #expect(await begun.next() == 1)
        #expect(await eventually { clock.sleepers == 2 })
        clock.advance(by: .seconds(2))
        #expect(await begun.next() == 2)
        #expect(await eventually { clock.sleepers == 2 })
        clock.advance(by: .seconds(2))
        #expect(await one.outcome.reason?.kind == .timedOut)
        #expect(await eventually { clock.sleepers == 0 }, "both timers are freed")
    }
}
