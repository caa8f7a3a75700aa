// R48, R53, R59: suspended queues, what passes through queues, and operations that become ready later.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct QueueGateRegressions {
    // MARK: R48

    @Test(.promises("R48")) func `R48: a suspended queue leaves the other users of its target alone`()
        async throws
    {
        let targets: [any ExecutionTarget] = [
            concurrentQueue(), serialQueue(), DispatchQueue(label: "serial"), elsewhere,
        ]
        for target in targets {
            let queue = COOperationQueue(on: target)
            let other = COOperationQueue(on: target)
            queue.suspend()
            let runs = Count()
            let waiting = operation(on: queue) { _ = runs.add() }
            try await operation(on: target) {}.value
            try await operation(on: other) {}.value
            // Handlers and work submitted to the target itself bypass the queue.
            await withCheckedContinuation { done in
                let handled = operation(on: other) {}
                handled.onOutcome(on: target) { _ in done.resume() }
            }
            #expect(runs.value == 0)
            #expect(waiting.state == .suspended)
            queue.resume()
            try await waiting.value
            #expect(runs.value == 1)
        }
    }

    @Test(.promises("R48")) func `R48: a suspended queue lets running work go on`() async throws {
        let queue = COOperationQueue(runningLimit: 2)
        let isIn = Count()
        let one = operation(on: queue) { attempt in isIn.add() }
        #expect(await eventually { isIn.value == 1 })
        queue.suspend()
        #expect(one.state == .executing)
        #expect(one.finish())
        try await one.value
        queue.resume()
        await queue.idle()
    }

    @Test(.promises("R48")) func `R48: a suspended operation does not run when its queue is resumed`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let log = Log<Int>()
        queue.suspend()
        let all = (0..<4).map { index in
            COOperation<Void> { attempt in
                log.add(index)
                attempt.finish()
            }
        }
        #expect(all[1].suspend())
        for one in all { #expect(queue.add(one)) }
        #expect(all[2].suspend())
        queue.resume()
        try await all[0].value
        try await all[3].value
        #expect(log.entries == [0, 3])
        #expect(queue.operationCount == 2)
        #expect(all[2].resume())
        try await all[2].value
        #expect(all[1].resume())
        try await all[1].value
        #expect(log.entries == [0, 3, 2, 1])
        await queue.idle()
    }

    @Test(.promises("R48")) func `R48: no pending turn passes a suspension: it waits on arrival`()
        async throws
    {
        let target = HoldingTarget()
        let queue = COOperationQueue(on: target)
        let one = operation(on: queue) { 1 }
        #expect(target.count == 1)
        queue.suspend()
        target.letGo()
        #expect(one.state == .suspended)
        #expect(one.numberOfRuns == 0)
        queue.resume()
        #expect(target.count == 1)
        target.letGo()
        #expect(try await one.value == 1)
    }

    // MARK: R53

    @Test(.promises("R53")) func `R53: an added composite waits for its turn, with all its children`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let first = operation(on: queue) { _ in }
        #expect(await eventually { first.hasLeftOpen })
        let log = Log<String>()
        let cascade = COCascade<Void> { cascade in
            log.add("block")
            cascade.operation { log.add("step") }
        }
        let group = COTransaction<Void> { group in
            log.add("block")
            group.operation { log.add("step") }
        }
        #expect(queue.add(cascade))
        #expect(queue.add(group))
        #expect(queue.pendingOperations.map(\.id) == [cascade.id, group.id])
        #expect(log.entries.isEmpty)
        #expect(cascade.numberOfRuns + group.numberOfRuns == 0)
        first.finish()
        try await cascade.value
        try await group.value
        await queue.idle()
        #expect(log.entries.sorted() == ["block", "block", "step", "step"])
    }

    @Test(.promises("R53")) func `R53: its children pass through the queue as well`() async throws {
        let queue = COOperationQueue(runningLimit: 1)
        let most = Log<Int>()
        let group = COTransaction<Void> { group in
            for _ in 0..<20 {
                group.operation { most.add(queue.runningOperations.count) }
                group.cascadeOperation { cascade in
                    most.add(queue.runningOperations.count)
                    cascade.operation { most.add(queue.runningOperations.count) }
                }
            }
        }
        #expect(queue.add(group))
        try await group.value
        await queue.idle()
        #expect(most.entries == Array(repeating: 1, count: 60))
    }

    @Test(.promises("R53"))
    func `R53: a started, ended, child or already queued operation is refused`() async {
        let queue = COOperationQueue()
        let started = cascadeOperation { cascade in cascade.operation { _ in } }
        #expect(await eventually { started.children.count == 1 })
        #expect(!queue.add(started))
        #expect(!queue.add(started.children[0]))
        started.cancel()
        #expect(!queue.add(started))
        let other = COOperationQueue()
        other.suspend()
        let elsewhere = COCascade<Void> { _ in }
        #expect(other.add(elsewhere))
        #expect(!queue.add(elsewhere))
        #expect(!other.add(elsewhere))
        #expect(queue.operationCount == 0)
        other.resume()
        await other.idle()
    }

    // MARK: R59

    @Test(.promises("R59")) func `R59: a queue takes any operation, through suspend and resume`() async throws
    {
        for order in [COOperationQueue.Order.fifo, .lifo, .aggressiveLIFO] {
            let queue = COOperationQueue(order, runningLimit: 2, pendingLimit: 10)
            let leaf = COOperation<Void> { $0.finish() }
            let asynchronous = operation(on: queue) { () async in await Task.yield() }
            let cascade = COCascade<Void> { cascade in for _ in 0..<3 { cascade.operation {} } }
            let group = COTransaction<Void> { group in for _ in 0..<3 { group.operation {} } }
            let taking = COOperation<Void>()
            let inner = operation {}
            taking.operation = { attempt in inner.onOutcome { _ in attempt.finish() } }
            queue.suspend()
            for one in [leaf, cascade, group, taking] as [AnyOperation] { #expect(queue.add(one)) }
            let sync = COSyncOperation<Void> { $0.finish() }
            async let isAdded = aside { queue.add(sync) }
            #expect(await eventually { queue.pendingOperations.contains { $0 === sync } })
            for _ in 0..<5 {
                queue.resume()
                queue.suspend()
            }
            queue.resume()
            #expect(await isAdded)
            let outcomes = [
                await leaf.outcome, await asynchronous.outcome, await cascade.outcome, await group.outcome,
                await taking.outcome, await sync.outcome,
            ]
            #expect(outcomes.allSatisfy { $0.isFinished })
            await queue.idle()
            #expect(queue.operationCount == 0)
        }
    }

    @Test(.promises("R59"))
    func `R59: later readiness starts it: the end of a dependency, a resume, a pause`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let first = COOperation<Void> { _ in }
        #expect(first.start())
        let dependent = COOperation<Void> { $0.finish() }
        #expect(dependent.addDependency(first))
        let suspended = COOperation<Void> { $0.finish() }
        #expect(suspended.suspend())
        let clock = ManualClock()
        let again = COOperation<Void>(options: OperationOptions(clock: clock)) { attempt in
            if attempt.number == 1 { attempt.rerun(after: .seconds(1)) } else { attempt.finish() }
        }
        for one in [dependent, suspended, again] { #expect(queue.add(one)) }
        #expect(await eventually { clock.sleepers == 1 })
        // The queue is idle, and nothing else will happen in it.
        #expect(dependent.numberOfRuns + suspended.numberOfRuns == 0)
        first.finish()
        try await dependent.value
        suspended.resume()
        try await suspended.value
        clock.advance(by: .seconds(1))
        try await again.value
        await queue.idle()
    }

    @Test(.promises("R59"))
    func `R59: a raised limit and a released slot start waiting operations`() async throws {
        let queue = COOperationQueue(runningLimit: 1)
        let holders = (0..<3).map { _ in operation(on: queue) { _ in } }
        #expect(await eventually { holders[0].hasLeftOpen })
        #expect(holders[1].numberOfRuns == 0)
        queue.runningLimit = 2
        #expect(await eventually { holders[1].hasLeftOpen })
        #expect(holders[2].numberOfRuns == 0)
        #expect(holders[0].suspend())
        #expect(await eventually { holders[2].hasLeftOpen })
        for one in holders { #expect(one.finish()) }
        await queue.idle()
    }
}
