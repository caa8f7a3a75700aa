// QueueTests - the admission queue: orders (G32), slots (G33), nesting (G34), and how it is emptied (G35).

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct QueueTests {
    // MARK: G32

    /// A queue whose only slot is taken until `first` ends.
    private func occupied(
        _ order: COOperationQueue.Order, pendingLimit: Int? = nil
    ) async -> (queue: COOperationQueue, first: COOperation<Void>.Attempt) {
        let queue = COOperationQueue(order, runningLimit: 1, pendingLimit: pendingLimit)
        let tokens = Mail<COOperation<Void>.Attempt>()
        operation(on: queue) { tokens.send($0) }
        return (queue, await tokens.next())
    }

    @Test(.promises("G32"))
    func `fifo with one slot runs in the order of submission, lifo in the reverse one`() async throws {
        await forAll(Generator.zip(.bool, .int(in: 1...12)), cases: scaled(60)) { isFIFO, count in
            let (queue, first) = await occupied(isFIFO ? .fifo : .lifo)
            let log = Log<Int>()
            let all = (0..<count).map { index in operation(on: queue) { log.add(index) } }
            #expect(queue.pendingOperations.map(\.id) == all.map(\.id))
            #expect(queue.operationCount == count + 1)
            first.finish()
            await queue.idle()
            #expect(log.entries == (isFIFO ? Array(0..<count) : (0..<count).reversed()))
        }
    }

    @Test(.promises("G32"))
    func `aggressive lifo keeps the newest; the oldest are displaced and never run`() async throws {
        await forAll(Generator.zip(Generator.int(in: 0...5).optional, .int(in: 1...12)), cases: scaled(80)) {
            pendingLimit, count in
            let (queue, first) = await occupied(.aggressiveLIFO, pendingLimit: pendingLimit)
            let limit = pendingLimit ?? 1
            let log = Log<Int>()
            var all: [COOperation<Void>] = []
            for index in 0..<count {
                all.append(operation(on: queue) { log.add(index) })
                #expect(queue.pendingOperations.count <= limit)
            }
            first.finish()
            for (index, one) in all.enumerated() {
                let outcome = await one.outcome
                if index >= count - limit {
                    #expect(outcome.isFinished)
                } else {
                    #expect(outcome.reason?.kind == .displaced)
                    #expect(one.numberOfRuns == 0)
                }
            }
            await queue.idle()
            #expect(log.entries == (max(0, count - limit)..<count).reversed())
        }
    }

    @Test(.promises("G32")) func `a full queue refuses add, and ends operations aimed at it`()
        async throws
    {
        for order in [COOperationQueue.Order.fifo, .lifo] {
            let (queue, first) = await occupied(order, pendingLimit: 1)
            let pending = operation(on: queue) {}
            let ready = COOperation<Void> { $0.finish() }
            #expect(!queue.add(ready))
            #expect(ready.state == .ready && ready.attempt == 0)
            let refused = operation(on: queue) {}
            #expect(await refused.outcome.reason?.kind == .queueFull)
            #expect(queue.pendingOperations.map(\.id) == [pending.id])
            first.finish()
            try await pending.value
            #expect(queue.add(ready))
            try await ready.value
            await queue.idle()
        }
    }

    /// A displaced operation has already left the queue when its cancel arrives. Nothing that happens in between may
    /// put it back in line.
    @Test(.promises("G32"))
    func `a displaced operation that is suspended and resumed meanwhile does not run`() async throws {
        for _ in 0..<scaled(300) {
            let (queue, first) = await occupied(.aggressiveLIFO, pendingLimit: 1)
            let runs = Count()
            let old = operation(on: queue) { runs.add() }
            let young = await race(3) { index -> COOperation<Void>? in
                switch index {
                case 0: return operation(on: queue) {}
                case 1:
                    for _ in 0..<20 where old.suspend() { old.resume() }
                default: first.finish()
                }
                return nil
            }[0]
            old.resume()
            let outcome = await old.outcome
            switch outcome {
            case .cancelled(let reason): #expect(reason.kind == .displaced && runs.value == 0)
            default: #expect(outcome.isFinished && runs.value == 1)
            }
            _ = await young?.outcome
            await queue.idle()
        }
    }

    /// The same, deterministically: a handler target receives the handler of the first displaced operation before the
    /// second one is cancelled, and suspends and resumes the second one at that moment.
    @Test(.promises("G32"))
    func `a handler's target cannot put a displaced operation back into a line`()
        async throws
    {
        final class Meddler: ExecutionTarget {
            let meddle = Locked<(@Sendable () -> Void)?>(nil)
            var isCurrent: Bool { false }
            func submit(_ work: ExecutionWork) {
                meddle.withLock { $0 }?()
                elsewhere.async { work.run() }
            }
        }
        let (queue, first) = await occupied(.aggressiveLIFO, pendingLimit: 2)
        #expect(await eventually { first.operation.tree.contains("returned without an end") })
        let meddler = Meddler()
        let isBack = Log<Bool>()
        let runs = Count()
        let told = COOperation<Void>(on: queue, options: OperationOptions(handlerTarget: meddler)) { _ in }
        told.onOutcome { _ in }
        told.start()
        let second = operation(on: queue) { runs.add() }
        meddler.meddle.withLock { meddle in
            meddle = {
                second.suspend()
                second.resume()
                let all = queue.pendingOperations + queue.runningOperations
                isBack.add(all.contains { $0 === second })
                first.finish()
            }
        }
        queue.pendingLimit = 1
        try await operation(on: queue) {}.value
        #expect(await second.outcome.reason?.kind == .displaced)
        #expect(await told.outcome.reason?.kind == .displaced)
        #expect(isBack.entries == [false])
        #expect(runs.value == 0 && second.numberOfRuns == 0)
        await queue.idle()
    }

    @Test(.promises("G35"))
    func `a waiter for an idle queue is woken by a displacement of all the rest`() async throws {
        let queue = COOperationQueue(.aggressiveLIFO, runningLimit: 1, pendingLimit: 3)
        queue.suspend()
        for _ in 0..<3 { operation(on: queue) {} }
        let idle = Task { await queue.idle() }
        // The task is waiting, or will find the queue empty. Either way it must return.
        for _ in 0..<100 { await Task.yield() }
        queue.pendingLimit = 0
        let newcomer = operation(on: queue) {}
        #expect(await newcomer.outcome.reason?.kind == .displaced)
        await idle.value
        #expect(queue.operationCount == 0)
    }

    @Test(.promises("G32"))
    func `children precede pending operations, in order, and are never displaced`() async throws {
        let (queue, first) = await occupied(.aggressiveLIFO, pendingLimit: 2)
        let log = Log<String>()
        let group = transactionalOperation(on: queue) { group in
            for index in 0..<5 { group.operation { log.add("child \(index)") } }
        }
        first.finish()
        // The group's block has a slot, or waits for one, before `last` is added.
        try await group.value
        let last = operation(on: queue) { log.add("last") }
        try await last.value
        #expect(log.entries == (0..<5).map { "child \($0)" } + ["last"])
        await queue.idle()
    }

    @Test(.promises("G32")) func `a child waits for a slot before an operation that was pending earlier`()
        async throws
    {
        let (queue, first) = await occupied(.fifo)
        let log = Log<String>()
        let group = cascadeOperation(on: queue) { cascade in
            cascade.operation { log.add("one") }
            cascade.operation { log.add("two") }
        }
        let other = operation(on: queue) { log.add("other") }
        first.finish()
        try await group.value
        try await other.value
        #expect(log.entries.first == "one")
        await queue.idle()
    }

    // MARK: G33

    @Test(.promises("G33")) func `no more run than the limit, and each free slot is filled`() async throws {
        await forAll(Generator.zip(.int(in: 1...4), .int(in: 1...10)), cases: scaled(60)) { limit, count in
            let queue = COOperationQueue(runningLimit: limit)
            let tokens = Mail<COOperation<Void>.Attempt>()
            for _ in 0..<count { operation(on: queue) { tokens.send($0) } }
            var live: [COOperation<Void>.Attempt] = []
            var left = count
            while left > 0 {
                // As many as fit begin without any further event.
                while live.count < min(limit, left) { live.append(await tokens.next()) }
                // The block of a finished operation may still be running.
                #expect(await eventually { queue.runningOperations.count == min(limit, left) })
                #expect(queue.pendingOperations.count == left - min(limit, left))
                live.removeFirst().finish()
                left -= 1
            }
            await queue.idle()
            #expect(queue.operationCount == 0)
        }
    }

    @Test(.promises("G33")) func `under load from many threads the limit holds`() async throws {
        await forAll(Generator.zip(.int(in: 1...3), .bool), cases: scaled(15)) { limit, hasComposites in
            let queue = COOperationQueue(runningLimit: limit, on: elsewhere)
            let (inside, most, done) = (Count(), Locked(0), Count())
            let block: @Sendable () -> Void = {
                let now = inside.add()
                most.withLock { $0 = max($0, now) }
                done.add()
                inside.add(-1)
            }
            _ = await race(3) { _ in
                for _ in 0..<30 {
                    operation(on: queue, block)
                    if hasComposites {
                        transactionalOperation(on: queue) { group in
                            for _ in 0..<3 { group.operation(block) }
                        }
                    }
                }
            }
            await queue.idle()
            #expect(done.value == 90 * (hasComposites ? 4 : 1))
            #expect(most.withLock { $0 } <= limit)
        }
    }

    @Test(.promises("G33")) func `a raised limit fills its new slots at once, a lowered one is reached`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let tokens = Mail<COOperation<Void>.Attempt>()
        for _ in 0..<6 { operation(on: queue) { tokens.send($0) } }
        var live = [await tokens.next()]
        queue.runningLimit = 4
        for _ in 0..<3 { live.append(await tokens.next()) }
        queue.runningLimit = 1
        for token in live.dropLast() { token.finish() }
        #expect(await eventually { queue.runningOperations.count == 1 })
        try await operation {}.value
        #expect(queue.pendingOperations.count == 2)
        live.last?.finish()
        await tokens.next().finish()
        await tokens.next().finish()
        await queue.idle()
    }

    @Test(.promises("G33"))
    func `readiness that comes later starts an operation: of a dependency, a gate, the queue`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let runs = Log<String>()
        let dependency = COOperation<Void>()
        let waiting = COOperation<Void> { attempt in
            runs.add("waiting")
            attempt.finish()
        }
        #expect(waiting.addDependency(dependency))
        #expect(queue.add(waiting))
        // The operation that is not ready holds no other one back.
        try await operation(on: queue) { runs.add("other") }.value
        #expect(dependency.finish(()))
        try await waiting.value

        let gated = COOperation<Void> { attempt in
            runs.add("gated")
            attempt.finish()
        }
        gated.suspend()
        #expect(queue.add(gated))
        try await operation(on: queue) { runs.add("another") }.value
        gated.resume()
        try await gated.value

        queue.suspend()
        let stopped = operation(on: queue) { runs.add("stopped") }
        try await operation {}.value
        #expect(stopped.numberOfRuns == 0 && stopped.state == .suspended)
        queue.resume()
        try await stopped.value
        #expect(runs.entries == ["other", "waiting", "another", "gated", "stopped"])
        await queue.idle()
    }

    @Test(.promises("G33"))
    func `threads suspend and resume a queue; it ends in the state it reports`() async throws {
        for _ in 0..<scaled(400) {
            let queue = COOperationQueue(runningLimit: 2)
            _ = await race(2) { index in
                for _ in 0..<5 { if index == 0 { queue.suspend() } else { queue.resume() } }
            }
            let one = operation(on: queue) { 1 }
            if queue.isSuspended {
                #expect(one.numberOfRuns == 0 && one.state == .suspended)
                queue.resume()
            }
            #expect(try await one.value == 1)
        }
    }

    @Test(.promises("G33")) func `a suspended queue starts nothing; its target still serves others`()
        async throws
    {
        let lane = serialQueue()
        let queue = COOperationQueue(runningLimit: 2, on: lane)
        queue.suspend()
        let all = (0..<5).map { _ in operation(on: queue) {} }
        try await operation(on: lane) {}.value
        #expect(all.allSatisfy { $0.numberOfRuns == 0 })
        queue.resume()
        for one in all { try await one.value }
        await queue.idle()
    }

    // MARK: G34

    @Test(.promises("G34")) func `composites nested to any depth complete in a queue of one slot`()
        async throws
    {
        let isCascade = Generator.array(of: .bool, count: 1...30)
        await forAll(Generator.zip(isCascade, .int(in: 1...3)), cases: scaled(30)) { levels, width in
            let queue = COOperationQueue(runningLimit: 1)
            let (inside, most, leaves) = (Count(), Locked(0), Count())
            @Sendable func fill(_ scope: any CompositeScope, _ level: Int) {
                for _ in 0..<width {
                    scope.operation {
                        let now = inside.add()
                        most.withLock { $0 = max($0, now) }
                        leaves.add()
                        inside.add(-1)
                    }
                }
                guard level < levels.count else { return }
                if levels[level] {
                    scope.cascadeOperation { fill($0, level + 1) }
                } else {
                    scope.transactionalOperation { fill($0, level + 1) }
                }
            }
            let root = transactionalOperation(on: queue) { fill($0, 0) }
            try await root.value
            #expect(leaves.value == width * (levels.count + 1))
            #expect(most.withLock { $0 } == 1)
            await queue.idle()
            #expect(queue.operationCount == 0 && queue.waitingComposites.isEmpty)
        }
    }

    @Test(.promises("G34")) func `a composite waits outside the queue while its children run`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation(on: queue) { $0.operation { tokens.send($0) } }
        let token = await tokens.next()
        #expect(queue.waitingComposites.map(\.id) == [group.id])
        #expect(queue.runningOperations.map(\.id) == [token.operation.id])
        #expect(queue.operationCount == 2)
        token.finish()
        try await group.value
        await queue.idle()
    }

    // MARK: G35

    @Test(.promises("G35")) func `removeAllPending ends each waiting operation once, no other`()
        async throws
    {
        await forAll(.int(in: 0...8), cases: scaled(40)) { count in
            let (queue, first) = await occupied(.fifo)
            let told = Count()
            let all = (0..<count).map { _ -> COOperation<Void> in
                let one = COOperation<Void>(on: queue)
                one.run({ _ in told.add(1_000) }, cancellation: { told.add() })
                return one
            }
            #expect(queue.removeAllPending() == count)
            for one in all {
                #expect(await one.outcome.reason?.kind == .removed)
                #expect(one.numberOfRuns == 0)
            }
            #expect(await eventually { told.value == count })
            #expect(first.isCurrent && queue.removeAllPending() == 0)
            #expect(await eventually { queue.operationCount == 1 })
            first.finish()
            await queue.idle()
        }
    }

    @Test(.promises("G35")) func `after cancelAll the counts drain to 0, whatever the operations were at`()
        async throws
    {
        await forAll(.array(of: .int(in: 0...4), count: 0...12), cases: scaled(60)) { kinds in
            let queue = COOperationQueue(runningLimit: 2)
            let clock = ManualClock()
            let outcomes = Count()
            let all = kinds.map { kind -> AnyOperation in
                switch kind {
                case 0: return operation(on: queue) { _ in }.onOutcome { _ in outcomes.add() }
                case 1:
                    return operation(on: queue) { $0.suspend() }.onOutcome { _ in outcomes.add() }
                case 2:
                    return operation(on: queue, options: OperationOptions(clock: clock)) {
                        $0.rerun(after: .seconds(1))
                    }.onOutcome { _ in outcomes.add() }
                case 3:
                    return transactionalOperation(on: queue) { group in
                        for _ in 0..<3 { group.operation { _ in } }
                    }.onOutcome { _ in outcomes.add() }
                default:
                    return cascadeOperation(on: queue) { cascade in
                        for _ in 0..<3 { cascade.operation {} }
                    }.onOutcome { _ in outcomes.add() }
                }
            }
            queue.cancelAll()
            await queue.idle()
            #expect(queue.operationCount == 0 && queue.pendingOperations.isEmpty)
            #expect(queue.runningOperations.isEmpty && queue.waitingComposites.isEmpty)
            #expect(await eventually { outcomes.value == all.count })
            #expect(all.allSatisfy { $0.isEnded })
            #expect(await eventually { clock.sleepers == 0 })
            let next = operation(on: queue) { 1 }
            #expect(await next.outcome.isFinished, "the queue is of use as before")
        }
    }

    @Test(.promises("G35")) func `cancelAll of a suspended queue ends what is pending in it`() async throws {
        let queue = COOperationQueue(runningLimit: 1)
        queue.suspend()
        let all = (0..<4).map { _ in operation(on: queue) {} }
        queue.cancelAll(CancelReason(.timedOut))
        for one in all { #expect(await one.outcome.reason?.kind == .timedOut) }
        await queue.idle()
        #expect(queue.isSuspended && queue.operationCount == 0)
    }

    @Test func `an operation has one queue at most, and a child none`() async throws {
        let (queue, first) = await occupied(.fifo)
        let other = COOperationQueue()
        let one = COOperation<Void> { $0.finish() }
        #expect(queue.add(one) && !queue.add(one) && !other.add(one))
        let children = Mail<AnyOperation>()
        let group = transactionalOperation { children.send($0.operation { _ in }) }
        let child = await children.next()
        #expect(!other.add(child))
        #expect(!other.add(COOperation<Void>()), "without a block")
        group.cancel()
        first.finish()
        try await one.value
        await queue.idle()
        await other.idle()
    }
}
