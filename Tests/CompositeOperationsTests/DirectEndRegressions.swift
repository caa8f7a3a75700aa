// R1, R2, R11, R28, R29, R30 of the specification: ends that come from unexpected places.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct DirectEndRegressions {
    @Test(.promises("R1")) func `R1: a direct cancel of a composite calls its handler, and gives an outcome`()
        async
    {
        let calls = Log<String>()
        let notice = Gate()
        let began = Gate()
        let group = transactionalOperation { group in
            group.operation { _ in began.open() }
        } completion: {
            calls.add("completion")
        } cancellation: { group in
            calls.add(group.awake() || group.rerun() ? "decided" : "notice")
            notice.open()
        }
        await elsewhere.waits(for: began)
        #expect(group.cancel())
        let outcome = await group.outcome
        #expect(outcome.reason?.kind == .requested)
        await elsewhere.waits(for: notice)
        #expect(calls.entries == ["notice"])
    }

    @Test(.promises("R1"))
    func `R1: the same before the start; without a handler the composite ends, too`() async {
        let notice = Gate()
        let ready = COCascade<Void>()
        let block: @Sendable (CascadeScope) throws -> Void = { _ in Issue.record("it was cancelled before") }
        #expect(ready.suspend())
        let hasStarted = ready.run(block, cancellation: { _ in notice.open() })
        #expect(hasStarted)
        #expect(ready.cancel())
        #expect(await ready.outcome.isCancelled)
        await elsewhere.waits(for: notice)
        let bare = COCascade<Void>(block)
        #expect(bare.cancel())
        #expect(!bare.start())
        #expect(await bare.outcome.isCancelled)
    }

    @Test(.promises("R2")) func `R2: a handler that decides nothing ends the composite`() async {
        for isCascade in [true, false] {
            let asked = Count()
            let outcome: Outcome<Void>
            if isCascade {
                let cascade = cascadeOperation { scope in
                    scope.operation { $0.cancel() }
                } cancellation: { _ in
                    asked.add()
                }
                outcome = await cascade.outcome
                #expect(cascade.isEnded)
            } else {
                let group = transactionalOperation { scope in
                    scope.operation { $0.cancel() }
                } cancellation: { _ in
                    asked.add()
                }
                outcome = await group.outcome
                #expect(group.isEnded)
            }
            #expect(outcome.reason?.kind == .child)
            #expect(asked.value == 1)
        }
    }

    @Test(.promises("R11")) func `R11: a step cancelled before its turn excludes completion`() async {
        let isOpen = Gate()
        let calls = Log<String>()
        let notice = Gate()
        let second = Locked<COOperation<Void>?>(nil)
        let isThere = Gate()
        let cascade = cascadeOperation { cascade in
            cascade.operation(on: elsewhere) { attempt in
                isOpen.wait()
                attempt.finish()
            }
            let step = cascade.operation { calls.add("second") }
            second.withLock { $0 = step.operation }
            cascade.operation { calls.add("third") }
            isThere.open()
        } completion: {
            calls.add("completion")
        } cancellation: { _ in
            calls.add("cancellation")
            notice.open()
        }
        await elsewhere.waits(for: isThere)
        let step = second.withLock { $0 }!
        #expect(step.cancel())
        isOpen.open()
        #expect(await cascade.outcome.reason?.kind == .child)
        await elsewhere.waits(for: notice)
        #expect(calls.entries == ["cancellation"])
    }

    @Test(.promises("R28"))
    func `R28: handles dropped before the delivery: the right handler, and no false end`()
        async
    {
        for end in ["finish", "cancel", "fail"] {
            let told = Log<String>()
            let isTold = Gate()
            let isOpen = Gate()
            start(end, isOpen, told, isTold)
            isOpen.open()
            await elsewhere.waits(for: isTold)
            #expect(told.entries == [end])
        }
    }

    /// Starts a cascade that comes to the given end, and keeps no handle of it.
    private func start(_ end: String, _ isOpen: Gate, _ told: Log<String>, _ isTold: Gate) {
        let tell: @Sendable (String) -> Void = {
            told.add($0)
            isTold.open()
        }
        let cascade = COCascade<Void>()
        let block: @Sendable (CascadeScope) throws -> Void = { cascade in
            cascade.transactionalOperation { group in
                group.operation { $0.finish() }
                group.operation(on: elsewhere) { attempt in
                    isOpen.wait()
                    switch end {
                    case "finish": attempt.finish()
                    case "cancel": attempt.cancel()
                    default: attempt.fail(TestError())
                    }
                }
            }
        }
        cascade.run(
            block, completion: { tell("finish") },
            cancellation: { cascade in
                guard case .failed? = cascade.causes.first?.outcome else { return tell("cancel") }
                tell("fail")
            })
    }

    @Test(.promises("R29")) func `R29: no call on a composite finishes it while a child runs`() async {
        let began = Gate()
        let isOpen = Gate()
        let completions = Count()
        let group = transactionalOperation { group in
            group.operation { $0.finish() }
            group.operation(on: elsewhere) { attempt in
                began.open()
                isOpen.wait()
                attempt.finish()
            }
        } completion: {
            completions.add()
        }
        await elsewhere.waits(for: began)
        // The type has no `finish`, and the calls that exist do not end the group.
        #expect(!group.start())
        #expect(!group.awake())
        #expect(!group.resume())
        #expect(group.suspend() && group.resume())
        #expect(group.state == .executing)
        #expect(completions.value == 0)
        isOpen.open()
        #expect(await group.outcome.isFinished)
        #expect(await eventually { completions.value == 1 })
        #expect(!group.start() && !group.cancel())
    }

    @Test(.promises("R30")) func `R30: a late registration is an error`() async {
        let scope = Locked<TransactionScope?>(nil)
        let group = transactionalOperation { group in
            scope.withLock { $0 = group }
            group.operation { $0.finish() }
        }
        #expect(await group.outcome.isFinished)
        let late = scope.withLock { $0 }!
        #expect(!late.isOpen)
        let ran = Count()
        let child = late.operation { _ = ran.add() }
        #expect(await child.outcome.error as? RegistrationError == .ended)
        let nested = late.cascadeOperation { _ in _ = ran.add() }
        #expect(await nested.outcome.error as? RegistrationError == .ended)
        let ready = COOperation<Void> { $0.finish() }
        #expect(throws: RegistrationError.ended) { try late.add(ready) }
        // The refused operation was left as it was.
        #expect(ready.start())
        #expect(await ready.outcome.isFinished)
        #expect(ran.value == 0)
    }
}
