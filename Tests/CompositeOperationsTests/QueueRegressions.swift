// R3 ... R10 of the specification: operations in admission queues.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct QueueRegressions {
    @Test(.promises("R3"), arguments: [true, false])
    func `R3: a round gives one notice, with children pending in a queue or not`(
        isQueued: Bool
    ) async {
        let queue = COOperationQueue(runningLimit: 1)
        let notices = Count()
        let ran = Count()
        let isOpen = Gate()
        let isThere = Gate()
        let block: @Sendable (TransactionScope) throws -> Void = { group in
            group.operation(on: isQueued ? nil : elsewhere) { attempt in
                isOpen.wait()
                attempt.cancel()
            }
            for _ in 0..<20 { group.operation { _ in ran.add() } }
            isThere.open()
        }
        let group = COTransaction<Void>(on: isQueued ? queue : nil)
        let end = Gate()
        group.run(
            block, completion: { Issue.record("it was cancelled") },
            cancellation: { _ in notices.add() })
        group.onOutcome { _ in end.open() }
        await elsewhere.waits(for: isThere)
        if isQueued { #expect(queue.operationCount > 1) }
        isOpen.open()
        #expect(await group.outcome.reason?.kind == .child)
        await elsewhere.waits(for: end)
        #expect(notices.value == 1)
        if isQueued {
            #expect(ran.value == 0)
            await queue.idle()
            #expect(queue.operationCount == 0)
        }
    }

    @Test func `an operation that is not started is in no queue, whatever is done with its gate`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let one = COOperation<Int>(on: queue) { $0.finish(1) }
        let other = COOperation<Int>(on: queue) { $0.finish(2) }
        for operation in [one, other] {
            #expect(operation.suspend())
            #expect(queue.operationCount == 0)
        }
        await queue.idle()
        #expect(queue.add(one))
        #expect(queue.operationCount == 1)
        let cascade = cascadeOperation { cascade in .value(of: try cascade.add(other)) }
        #expect(one.resume() && other.resume())
        #expect(try await one.value == 1)
        #expect(try await cascade.value == 2)
        await queue.idle()
    }

    @Test(.promises("R4")) func `R4: a composite in a queue of one slot completes, however deep`() async {
        let queue = COOperationQueue(runningLimit: 1)
        let ran = Count()
        let cascade = cascadeOperation(on: queue) { cascade in
            cascade.operation { _ = ran.add() }
            cascade.transactionalOperation { group in
                for _ in 0..<3 { group.operation { _ = ran.add() } }
                group.cascadeOperation { inner in for _ in 0..<3 { inner.operation { _ = ran.add() } } }
            }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(ran.value == 7)
        await queue.idle()
    }

    @Test(.promises("R5")) func `R5: children in an aggressive queue leave each other alone`() async {
        let queue = COOperationQueue(.aggressiveLIFO, runningLimit: 1, pendingLimit: 1)
        let group = transactionalOperation(on: queue) { group in
            .values(of: (0..<10).map { number in group.operation { number } })
        }
        guard case .finished(let values) = await group.outcome else {
            Issue.record("\(await group.outcome)")
            return
        }
        #expect(values == Array(0..<10))
    }

    @Test(.promises("R6")) func `R6: resuming a queue starts pending work if none runs`() async {
        let queue = COOperationQueue(runningLimit: 2)
        queue.suspend()
        let all = (0..<5).map { number in operation(on: queue) { number } }
        #expect(queue.pendingOperations.count == 5)
        #expect(queue.runningOperations.isEmpty)
        #expect(all[0].state == .suspended)
        queue.resume()
        for one in all { #expect(await one.outcome.isFinished) }
    }

    @Test(.promises("R7")) func `R7: several free slots fill at once`() async {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        let isOpen = Gate()
        let began = Count()
        let all = (0..<6).map { _ in
            operation(on: queue) { attempt in
                began.add()
                isOpen.wait()
                attempt.finish()
            }
        }
        #expect(await eventually { began.value == 1 })
        #expect(queue.pendingOperations.count == 5)
        // One event adds four slots; no operation leaves.
        queue.runningLimit = 5
        #expect(await eventually { began.value == 5 })
        #expect(queue.runningOperations.count == 5)
        #expect(queue.pendingOperations.count == 1)
        isOpen.open()
        for one in all { #expect(await one.outcome.isFinished) }
    }

    @Test(.promises("R8"))
    func `R8: suspended between admission and start, neither the start nor the slot is lost`() async {
        let lane = HeldTarget()
        let queue = COOperationQueue(runningLimit: 1, on: lane)
        let ran = Log<Int>()
        let first = operation(on: queue) { ran.add(1) }
        // The first operation has been admitted: its turn has been sent. It is suspended before the turn arrives.
        #expect(lane.count == 1)
        #expect(first.suspend())
        let second = operation(on: queue) { ran.add(2) }
        lane.runAll()
        // The slot has gone to the second operation meanwhile.
        lane.runAll()
        #expect(await second.outcome.isFinished)
        #expect(ran.entries == [2])
        #expect(first.state == .suspended)
        #expect(first.resume())
        lane.runAll()
        #expect(await first.outcome.isFinished)
        #expect(ran.entries == [2, 1])
        await queue.idle()
    }

    @Test(.promises("R9")) func `R9: cancelAll empties a queue, and removeAllPending gives outcomes`() async {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        for isAll in [true, false] {
            let began = Gate()
            let isOpen = Gate()
            let ran = Count()
            let running = operation(on: queue) { attempt in
                began.open()
                isOpen.wait()
                attempt.finish()
            }
            let pending = (0..<5).map { _ in operation(on: queue) { _ = ran.add() } }
            await elsewhere.waits(for: began)
            if isAll { queue.cancelAll() } else { #expect(queue.removeAllPending() == 5) }
            for one in pending {
                #expect(await one.outcome.reason?.kind == (isAll ? .requested : .removed))
            }
            #expect(queue.pendingOperations.isEmpty)
            #expect(queue.operationCount == 1)
            isOpen.open()
            #expect(await running.outcome.isFinished == !isAll)
            await queue.idle()
            #expect(queue.operationCount == 0)
            #expect(ran.value == 0)
        }
    }

    @Test(.promises("R10")) func `R10: a displaced operation is notified, unlisted and never runs`() async {
        let queue = COOperationQueue(.aggressiveLIFO, runningLimit: 1, on: elsewhere)
        let began = Gate()
        let isOpen = Gate()
        let ran = Log<String>()
        let told = Gate()
        let running = operation(on: queue) { attempt in
            began.open()
            isOpen.wait()
            attempt.finish()
        }
        await elsewhere.waits(for: began)
        let old = COOperation<Void>(on: queue)
        old.run(
            { attempt in
                ran.add("old")
                attempt.finish()
            }, completion: { ran.add("completion") }, cancellation: { told.open() })
        let new = operation(on: queue) { ran.add("new") }
        await elsewhere.waits(for: told)
        #expect(await old.outcome.reason?.kind == .displaced)
        #expect(queue.pendingOperations.map(\.id) == [new.id])
        isOpen.open()
        #expect(await running.outcome.isFinished)
        #expect(await new.outcome.isFinished)
        await queue.idle()
        #expect(ran.entries == ["new"])
        #expect(old.numberOfRuns == 0)
    }
}
