// Where blocks and handlers run: targets of every kind, including targets that drop or repeat work, and default queues.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct TargetTests {
    private actor Home {
        func isHere() -> Bool { true }
        var count = 0
        func add() { count += 1 }
    }

    @Test func `an actor as a target: blocks are isolated to it`() async throws {
        let home = Home()
        let target = ExecutorTarget(home)
        let cascade = cascadeOperation(on: target) { cascade in
            home.preconditionIsolated()
            for _ in 0..<10 {
                cascade.operation(on: target) {
                    home.assumeIsolated { _ = $0 }
                }
            }
        }
        try await cascade.value
        #expect(!target.isCurrent)
    }

    @Test func `a task executor as a target: blocks run there`() async throws {
        let workers = try Scheduler(Scheduler.Configuration(workers: 1))
        let target = ExecutorTarget(workers as any TaskExecutor)
        let one = operation(on: target) { Scheduler.current === workers }
        #expect(try await one.value)
        #expect(!target.isCurrent)
    }

    @Test func `a serial executor as a target: one block at a time, recognised by it`() async throws {
        let lane = serialQueue()
        let target = ExecutorTarget(lane as any SerialExecutor)
        let inside = Count()
        let most = Locked(0)
        let group = transactionalOperation(on: target) { group in
            .values(
                of: (0..<20).map { _ in
                    group.operation(on: target) { () -> Bool in
                        let now = inside.add()
                        most.withLock { $0 = max($0, now) }
                        inside.add(-1)
                        return target.isCurrent && lane.isCurrent
                    }
                })
        }
        #expect(try await group.value.allSatisfy { $0 })
        #expect(most.withLock { $0 } == 1)
        #expect(!target.isCurrent)
    }

    @Test func `dispatch queues and lanes as targets: blocks run there, one at a time and in order`()
        async throws
    {
        let queue = DispatchQueue(label: "serial")
        let lane = serialQueue("lane")
        for target in [queue, lane] as [any ExecutionTarget] {
            let log = Log<Int>()
            let all = (0..<50).map { index in
                operation(on: target) {
                    log.add(index)
                    return target.isCurrent
                }
            }
            for one in all { #expect(try await one.value) }
            #expect(log.entries == Array(0..<50))
            #expect(!target.isCurrent)
        }
        #expect(!DispatchQueue.global().isCurrent)
        let global = operation(on: DispatchQueue.global()) { DispatchQueue.global().isCurrent }
        #expect(try await !global.value)
    }

    @Test func `a target that drops its work: the operation ends as cancelled, shut down`() async {
        let dropping = DroppingTarget()
        let leaf = operation(on: dropping) { $0.finish() }
        let cascade = cascadeOperation(on: dropping) { _ in }
        let queued = operation(on: COOperationQueue(runningLimit: 1, on: dropping)) { $0.finish() }
        let asynchronous = operation(on: dropping) { () async in }
        let step = cascadeOperation { cascade in
            cascade.operation {}
            cascade.operation(on: dropping) {}
            cascade.operation {}
        }
        #expect(await leaf.outcome.reason?.kind == .shutDown)
        #expect(await cascade.outcome.reason?.kind == .shutDown)
        #expect(await queued.outcome.reason?.kind == .shutDown)
        #expect(await asynchronous.outcome.reason?.kind == .shutDown)
        let reason = await step.outcome.reason
        #expect(reason?.kind == .child)
        #expect(step.causes.map(\.index) == [1])
        #expect(
            leaf.numberOfRuns + cascade.numberOfRuns + queued.numberOfRuns + asynchronous.numberOfRuns == 0)
    }

    @Test func `handlers are called though their target drops them`() async {
        let called = Count()
        let one = COOperation<Void>(options: OperationOptions(handlerTarget: DroppingTarget()))
        one.onOutcome { _ in called.add() }
        one.run {
            $0.finish()
        } completion: {
            called.add()
        }
        _ = await one.outcome
        #expect(await eventually { called.value == 2 })
    }

    @Test(.promises("G20")) func `a target that runs work twice concurrently: each block begins once`()
        async throws
    {
        let twice = RepeatingTarget(3)
        for _ in 0..<scaled(50) {
            let runs = Count()
            let steps = Count()
            let leaf = operation(on: twice) { runs.add() }
            let cascade = cascadeOperation(on: twice) { cascade in
                runs.add()
                for _ in 0..<3 { cascade.operation(on: twice) { _ = steps.add() } }
            }
            _ = try await leaf.value
            try await cascade.value
            #expect(runs.value == 2)
            #expect(steps.value == 3)
            let again = operation(on: twice) { _ = $0.number < 5 ? $0.rerun() : $0.finish() }
            try await again.value
            #expect(again.numberOfRuns == 5)
        }
    }

    @Test func `a shut-down scheduler ends operations aimed at it, waiting or new`() async throws {
        let scheduler = try Scheduler(Scheduler.Configuration(workers: 1))
        let lane = try SerialLane(on: scheduler)
        let isIn = Gate()
        let mayLeave = Gate()
        let running = operation(on: scheduler) {
            isIn.open()
            mayLeave.wait()
        }
        await aside { isIn.wait() }
        scheduler.suspend()
        let waiting = operation(on: scheduler) {}
        let inLane = operation(on: lane) {}
        elsewhere.async { mayLeave.open() }
        // Cancels the pending work before it ends the suspension.
        try await scheduler.shutdown(.cancelPending)
        #expect(await waiting.outcome.reason?.kind == .shutDown)
        #expect(await running.outcome.isFinished)
        #expect(await inLane.outcome.isCancelled)
        let late = operation(on: scheduler) {}
        let lateInLane = operation(on: lane) {}
        let lateCascade = cascadeOperation(on: scheduler) { _ in }
        #expect(await late.outcome.reason?.kind == .shutDown)
        #expect(await lateInLane.outcome.reason?.kind == .shutDown)
        #expect(await lateCascade.outcome.reason?.kind == .shutDown)
        #expect(late.numberOfRuns == 0)
    }

    @Test func `work runs once, and reports when dropped`() {
        let target = HoldingTarget()
        let one = operation(on: target) { 1 }
        target.letGo()
        target.letGo()
        #expect(one.numberOfRuns == 1)
        #expect(one.isFinished)
    }

    // MARK: The default queue of a scope

    @Test func `withDefaultQueue: for operations made inside, in their blocks only`() async throws {
        let (outer, inner) = (CountingTarget(to: elsewhere), CountingTarget(to: elsewhere))
        let before = ObjectIdentifier(CODefaultQueue())
        let cascade = COQueues.withDefaultQueue(outer) {
            let inside = COQueues.withDefaultQueue(inner) { CODefaultQueue() === inner }
            #expect(inside)
            #expect(CODefaultQueue() === outer)
            return cascadeOperation { cascade in
                cascade.operation { operation { CODefaultQueue() === outer } }
                cascade.operation { () async -> Void in #expect(CODefaultQueue() === outer) }
            }
        }
        #expect(ObjectIdentifier(CODefaultQueue()) == before)
        try await cascade.value
        #expect(await eventually { outer.submitted.value == 4 })
        #expect(inner.submitted.value == 0)
        #expect(throws: TestError.self) {
            try COQueues.withDefaultQueue(outer) { () throws(TestError) in throw TestError() }
        }
    }

    @Test func `withDefaultQueue, asynchronously: across suspensions and in child tasks`() async throws {
        let target = CountingTarget(to: elsewhere)
        let value = try await COQueues.withDefaultQueue(target) {
            await Task.yield()
            #expect(CODefaultQueue() === target)
            async let other = operation { 2 }.value
            return try await operation { 1 }.value + other
        }
        #expect(value == 3)
        #expect(target.submitted.value == 2)
        #expect(CODefaultQueue() !== target)
        await #expect(throws: TestError.self) {
            try await COQueues.withDefaultQueue(target) { () async throws(TestError) in throw TestError() }
        }
    }
}
