// R20 ... R25 of the specification: attempts after the first.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ResolverRegressions {
    @Test(.promises("R20"))
    func `R20: prepared, and started without handlers: a child's cancel is the outcome`() async {
        let group = COTransaction<Void>()
        group.operation = { group in
            let child = group.operation { $0.cancel() }
            return .value(of: child)
        }
        #expect(group.start())
        #expect(await group.outcome.reason?.kind == .child)
        let cascade = COCascade<Void> { cascade in
            cascade.operation { $0.finish() }
            cascade.operation { $0.cancel() }
        }
        #expect(cascade.start())
        #expect(await cascade.outcome.reason?.kind == .child)
    }

    @Test(.promises("R21"))
    func `R21: a resolver, then success: completion once, and neither fallback nor cancellation`() async {
        let told = Log<String>()
        let isOver = Gate()
        let resolver = COOperationResolver(maxAttempts: 5, fallback: { _ in told.add("fallback") })
        let one = COOperation<Void>(options: OperationOptions(resolver: resolver))
        one.run(
            { attempt in if attempt.number < 3 { attempt.fail(TestError()) } else { attempt.finish() } },
            completion: { told.add("completion") }, cancellation: { told.add("cancellation") },
            failure: { _ in told.add("failure") })
        one.onOutcome { _ in isOver.open() }
        #expect(await one.outcome.isFinished)
        await elsewhere.waits(for: isOver)
        #expect(told.entries == ["completion"])
        #expect(one.numberOfRuns == 3)
    }

    @Test func `a lone trailing closure is a resolver's fallback, with or without retryIf`() async {
        let told = Log<String>()
        let resolvers = [
            COOperationResolver(maxAttempts: 3) { _ in told.add("fallback") },
            COOperationResolver(maxAttempts: 3, redo: .rerun) { operation in
                told.add("fallback")
                operation.cancel(CancelReason(.removed))
            },
            COOperationResolver(retryIf: { _ in false }) { _ in told.add("fallback") },
            COOperationResolver(maxAttempts: 3) { cause in
                cause.child == nil
            } fallback: { _ in
                told.add("fallback")
            },
            COOperationResolver(maxAttempts: 3, retryIf: { $0.child == nil }),
        ]
        for (index, resolver) in resolvers.enumerated() {
            let one = operation(options: OperationOptions(resolver: resolver)) { attempt in
                attempt.fail(TestError())
            }
            #expect(await one.outcome.isFailed == (index != 1))
            #expect(one.attempt == (index == 2 ? 1 : 3))
            #expect(told.entries.count == min(index + 1, 4))
        }
    }

    @Test(.promises("G30", "R22"), arguments: ["cancel", "finish"])
    func `R22: an end during a resolver's pause stays an end`(
        end: String
    ) async {
        let clock = ManualClock()
        let runs = Count()
        let resolver = COOperationResolver(maxAttempts: 9, backoff: .constant(.seconds(1)), clock: clock)
        let one = operation(options: OperationOptions(resolver: resolver)) {
            (attempt: COOperation<Void>.Attempt) in
            runs.add()
            attempt.fail(TestError())
        }
        #expect(await eventually { clock.sleepers == 1 })
        #expect(one.state == .delayed)
        #expect(end == "cancel" ? one.cancel() : one.finish())
        #expect(await one.outcome.isFinished == (end == "finish"))
        #expect(await eventually { clock.sleepers == 0 })
        clock.advance(by: .seconds(60))
        #expect(one.isEnded && runs.value == 1)
    }

    @Test(.promises("G29", "R23"), arguments: [COOperationResolver.Redo.rerun, .awake])
    func
        `R23: a resolver on a composite: as many attempts as it says, and one fallback`(
            redo: COOperationResolver.Redo
        ) async
    {
        for isFromHandler in [true, false] {
            let runs = Count()
            let fallbacks = Count()
            let resolver = COOperationResolver(maxAttempts: 4, redo: redo, fallback: { _ in fallbacks.add() })
            let options = isFromHandler ? OperationOptions() : OperationOptions(resolver: resolver)
            let block: @Sendable (CascadeScope) throws -> Void = { cascade in
                cascade.operation { $0.finish() }
                cascade.operation { attempt in
                    runs.add()
                    attempt.fail(TestError(number: runs.value))
                }
            }
            let cascade = COCascade<Void>(options: options)
            let handler: @Sendable (COCascade<Void>) -> Void = { $0.resolve(using: resolver) }
            cascade.run(block, cancellation: isFromHandler ? handler : nil)
            #expect(await cascade.outcome.error as? TestError == TestError(number: 4))
            #expect(runs.value == 4)
            #expect(cascade.attempt == 4)
            #expect(fallbacks.value == 1)
            #expect(cascade.numberOfRuns == (redo == .rerun ? 4 : 1))
        }
    }

    @Test(.promises("R24")) func `R24: a cancel ends an otherwise endless retry loop`() async {
        let resolver = COOperationResolver(maxAttempts: .max)
        let runs = Count()
        let one = operation(options: OperationOptions(resolver: resolver)) { () throws -> Void in
            runs.add()
            throw TestError()
        }
        #expect(await eventually { runs.value > 20 })
        #expect(one.cancel())
        #expect(await one.outcome.reason?.kind == .requested)
        let count = runs.value
        #expect(one.numberOfRuns == count)
        let group = transactionalOperation(options: OperationOptions(resolver: resolver)) { group in
            group.operation { $0.cancel() }
            group.operation { $0.finish() }
        }
        #expect(await eventually { group.attempt > 20 })
        #expect(group.cancel())
        #expect(await group.outcome.reason?.kind == .requested)
        #expect(runs.value == count)
    }

    @Test(.promises("R25")) func `R25: an ended operation is not redone`() async {
        let runs = Count()
        let resolver = COOperationResolver()
        for end in ["finish", "cancel", "fail"] {
            let one = operation { (attempt: COOperation<Void>.Attempt) in
                runs.add()
                switch end {
                case "finish": attempt.finish()
                case "cancel": attempt.cancel()
                default: attempt.fail(TestError())
                }
            }
            _ = await one.outcome
            let state = one.state
            #expect(!one.rerun() && !one.rerun(after: .seconds(1)) && !one.resolve(using: resolver))
            #expect(!one.start() && !one.cancel() && !one.finish() && !one.fail(TestError()))
            #expect(!one.suspend() && !one.resume() && !one.resume(.restart))
            #expect(one.state == state && one.attempt == 1)
        }
        #expect(runs.value == 3)
        let cascade = cascadeOperation { cascade in cascade.operation { _ = runs.add() } }
        #expect(await cascade.outcome.isFinished)
        #expect(!cascade.awake() && !cascade.rerun() && !cascade.resolve(using: resolver))
        #expect(cascade.deferDecision() == nil)
        #expect(runs.value == 4)
    }
}
