// R12 ... R19 of the specification: gates.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SuspendRegressions {
    @Test(.promises("R12")) func `R12: a cascade waits for an individually suspended step`() async {
        let ran = Log<Int>()
        let first = Gate()
        let second = Locked<COOperation<Void>?>(nil)
        let cascade = cascadeOperation { cascade in
            cascade.operation { ran.add(1) }
            let step = cascade.operation { ran.add(2) }
            #expect(step.suspend())
            second.withLock { $0 = step.operation }
            cascade.operation { ran.add(3) }
            first.open()
        }
        await elsewhere.waits(for: first)
        #expect(await eventually { cascade.children.first?.isEnded == true })
        let step = second.withLock { $0 }!
        #expect(step.state == .suspended)
        #expect(cascade.state == .executing)
        #expect(ran.entries == [1])
        #expect(step.resume())
        #expect(await cascade.outcome.isFinished)
        #expect(ran.entries == [1, 2, 3])
    }

    @Test(.promises("R13")) func `R13: a child individually suspended, then resumed, runs once`() async {
        let lane = HeldTarget()
        let ran = Count()
        let child = Locked<COOperation<Void>?>(nil)
        let isThere = Gate()
        let group = transactionalOperation { group in
            let only = group.operation(on: lane) { _ = ran.add() }
            child.withLock { $0 = only }
            isThere.open()
        }
        await elsewhere.waits(for: isThere)
        let only = child.withLock { $0 }!
        // The child's turn has been sent. Then the child is suspended, so the turn does nothing.
        #expect(await eventually { lane.count == 1 })
        #expect(only.suspend())
        lane.runAll()
        #expect(ran.value == 0)
        #expect(only.resume())
        lane.runAll()
        #expect(await group.outcome.isFinished)
        #expect(ran.value == 1)
    }

    @Test(.promises("R14"))
    func `R14: suspended in its last step, finished, and resumed, a cascade completes`() async {
        let completed = Gate()
        let hasSuspended = Gate()
        let cascade = cascadeOperation { cascade in
            cascade.operation { $0.finish() }
            cascade.operation { attempt in
                #expect(cascade.suspend())
                #expect(attempt.isSuspended)
                #expect(attempt.finish())
                hasSuspended.open()
            }
        } completion: {
            completed.open()
        }
        await elsewhere.waits(for: hasSuspended)
        #expect(await eventually { cascade.children.last?.isEnded == true })
        #expect(cascade.state == .suspended)
        #expect(cascade.resume())
        #expect(await cascade.outcome.isFinished)
        await elsewhere.waits(for: completed)
    }

    @Test(.promises("R15")) func `R15: a transaction does not complete while it is suspended`() async {
        let isOpen = Gate()
        let isThere = Gate()
        let completions = Count()
        let group = transactionalOperation { group in
            for _ in 0..<5 {
                group.operation(on: elsewhere) { attempt in
                    isOpen.wait()
                    attempt.finish()
                }
            }
            isThere.open()
        } completion: {
            completions.add()
        }
        await elsewhere.waits(for: isThere)
        #expect(await eventually { group.children.allSatisfy { $0.state == .executing } })
        #expect(group.suspend())
        isOpen.open()
        #expect(await eventually { group.children.allSatisfy(\.isEnded) })
        #expect(group.state == .suspended)
        #expect(!group.isEnded && completions.value == 0)
        #expect(group.resume())
        #expect(await group.outcome.isFinished)
        #expect(await eventually { completions.value == 1 })
    }

    @Test(.promises("R16")) func `R16: resume does not disturb a running block`() async {
        let runs = Count()
        let began = Gate()
        let isOpen = Gate()
        let group = transactionalOperation { group in
            group.operation(on: elsewhere) { attempt in
                runs.add()
                began.open()
                isOpen.wait()
                attempt.finish()
            }
        }
        await elsewhere.waits(for: began)
        let child = group.children[0]
        for _ in 0..<3 {
            #expect(group.suspend() && group.resume())
            #expect(child.suspend() && child.resume())
        }
        isOpen.open()
        #expect(await group.outcome.isFinished)
        #expect(runs.value == 1)
        #expect(child.numberOfRuns == 1 && child.attempt == 1)
    }

    @Test(.promises("R17")) func `R17: awake on a composite without a failure is refused`() async {
        let runs = Count()
        let began = Gate()
        let isOpen = Gate()
        let group = transactionalOperation { group in
            for _ in 0..<2 {
                group.operation(on: elsewhere) { attempt in
                    if runs.add() == 2 { began.open() }
                    isOpen.wait()
                    attempt.finish()
                }
            }
        }
        await elsewhere.waits(for: began)
        #expect(!group.awake())
        #expect(group.suspend())
        #expect(!group.awake())
        #expect(group.resume())
        #expect(group.attempt == 1)
        isOpen.open()
        #expect(await group.outcome.isFinished)
        #expect(!group.awake())
        #expect(runs.value == 2)
    }

    @Test(.promises("R18")) func `R18: suspended and resumed many times, each transition is seen once`() async
    {
        let began = Gate()
        let token = Locked<COOperation<Void>.Attempt?>(nil)
        let one = COOperation<Void> { attempt in
            token.withLock { $0 = attempt }
            began.open()
        }
        var transitions = one.transitions.makeAsyncIterator()
        #expect(one.start())
        await elsewhere.waits(for: began)
        let times = 50
        for _ in 0..<times {
            #expect(one.suspend())
            #expect(!one.suspend())
            #expect(one.resume())
            #expect(!one.resume())
        }
        #expect(token.withLock { $0 }?.finish() == true)
        #expect(await one.outcome.isFinished)
        var told: [OperationState] = []
        while let next = await transitions.next() { told.append(next.to) }
        var expected: [OperationState] = [.ready, .queued, .executing]
        for _ in 0..<times { expected += [.suspended, .executing] }
        // The block may still be running for a moment, or may have returned already.
        #expect(told.filter { $0 != .ending } == expected + [.finished])
    }

    @Test(.promises("R19"))
    func `R19: a suspended child that never began is cancelled quietly by its parent`() async {
        let began = Gate()
        let ran = Count()
        let told = Log<String>()
        let queue = COOperationQueue(runningLimit: 1)
        let group = transactionalOperation(on: queue) { group in
            let child = group.operation { _ = ran.add() }
            #expect(child.suspend())
            child.onOutcome { told.add($0.reason?.kind == .parent ? "parent" : "other") }
            group.operation { _ in began.open() }
        }
        await elsewhere.waits(for: began)
        let child = group.children[0]
        #expect(child.state == .suspended)
        #expect(group.cancel())
        #expect(child.isCancelled)
        #expect(await group.outcome.isCancelled)
        #expect(await eventually { told.entries.count == 1 })
        #expect(told.entries == ["parent"])
        #expect(!child.resume())
        await queue.idle()
        #expect(ran.value == 0)
    }
}
