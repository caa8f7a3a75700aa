import CompositeOperations
import CompositeOperationsFoundation
import CompositeOperationsTestSupport
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Foundation's operations, adapted as operations of this package.
@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct FoundationAdaptorTests {
    @Test(arguments: [false, true])
    func `the adaptor finishes only after its operation`(_ hasQueue: Bool) async throws {
        let foundation = ManualOperation()
        let operation = COOperation(foundation: foundation, in: hasQueue ? OperationQueue() : nil)
        #expect(foundation.starts.value == 0)
        #expect(operation.start())
        #expect(await eventually { foundation.isExecuting })
        #expect(!operation.isFinished)
        foundation.finish()
        try await operation.value
        #expect(foundation.starts.value == 1)
        #expect(foundation.cancellations.value == 0)
    }

    @Test func `a cancelled operation cancels its adaptor at its end`() async {
        let foundation = ManualOperation()
        let operation = COOperation(foundation: foundation)
        operation.start()
        #expect(await eventually { foundation.isExecuting })
        foundation.cancel()
        #expect(!operation.isCancelled)
        foundation.finish()
        let outcome = await operation.outcome
        #expect(outcome.isCancelled)
    }

    @Test(.promises("G2"))
    func `cancelled while running, it cancels its operation, and ends after that finishes`() async {
        let foundation = ManualOperation()
        let operation = COOperation(foundation: foundation)
        operation.start()
        #expect(await eventually { foundation.isExecuting })
        #expect(operation.cancel())
        #expect(await eventually { foundation.isCancelled })
        #expect(operation.isCancelled && !operation.isEnded)
        foundation.finish()
        let outcome = await operation.outcome
        #expect(outcome.isCancelled)
    }

    @Test func `cancelled before the start, it cancels its operation unstarted`() async {
        let foundation = ManualOperation()
        let operation = COOperation(foundation: foundation)
        operation.cancel()
        let outcome = await operation.outcome
        #expect(outcome.isCancelled)
        #expect(await eventually { foundation.isCancelled })
        #expect(foundation.starts.value == 0)
    }

    @Test func `an operation already queued, executing or finished is awaited`() async throws {
        let queue = OperationQueue()
        queue.isSuspended = true
        let inQueue = BlockOperation {}
        queue.addOperation(inQueue)
        let first = COOperation(foundation: inQueue, in: queue)
        first.start()
        queue.isSuspended = false
        try await first.value

        let executing = ManualOperation()
        executing.start()
        let second = COOperation(foundation: executing)
        second.start()
        executing.finish()
        try await second.value
        #expect(executing.starts.value == 1)

        let third = COOperation(foundation: executing)
        third.start()
        try await third.value
        #expect(executing.starts.value == 1)
    }

    /// Simulates an operation that finishes before Foundation has registered the dependent.
    @Test func `an end that notifies no dependent is detected`() async throws {
        final class Silent: Foundation.Operation, @unchecked Sendable {
            override var isFinished: Bool { true }
        }
        let operation = COOperation(foundation: Silent())
        operation.start()
        try await operation.value
    }

    @Test func `the completion block stays the user's`() async throws {
        let calls = Count()
        let foundation = BlockOperation {}
        foundation.completionBlock = { calls.add() }
        let operation = COOperation(foundation: foundation)
        operation.start()
        try await operation.value
        #expect(await eventually { calls.value == 1 })
    }

    @Test func `steps and children may be from Foundation`() async throws {
        let log = Log()
        let cascade = cascadeOperation { cascade in
            cascade.operation { log.add("ours") }
            try cascade.add(COOperation(foundation: BlockOperation { log.add("Foundation's") }))
            cascade.operation { log.add("ours again") }
        }
        try await cascade.value
        #expect(log.entries == ["ours", "Foundation's", "ours again"])

        let foundation = ManualOperation()
        let group = transactionalOperation { group in
            try group.add(COOperation(foundation: foundation))
            group.operation { _ in }
        }
        #expect(await eventually { foundation.isExecuting })
        foundation.cancel()
        foundation.finish()
        let outcome = await group.outcome
        #expect(outcome.isCancelled)
        #expect(group.causes.first?.index == 0)
    }

    @Test(.promises("G2")) func `a cancelled composite cancels the operation, and awaits it`() async {
        let foundation = ManualOperation()
        let cascade = cascadeOperation { cascade in
            try cascade.add(COOperation(foundation: foundation))
        }
        #expect(await eventually { foundation.isExecuting })
        cascade.cancel()
        #expect(await eventually { foundation.isCancelled })
        #expect(!cascade.isEnded)
        foundation.finish()
        let outcome = await cascade.outcome
        #expect(outcome.isCancelled)
    }

    @Test func `wrapped both ways`() async throws {
        let runs = Count()
        let inner = COOperation<Void> { attempt in
            runs.add()
            attempt.finish()
        }
        let outer = COOperation(foundation: FoundationOperation(inner), in: OperationQueue())
        outer.start()
        try await outer.value
        #expect(runs.value == 1 && inner.isFinished)

        let held = COOperation<Void> { _ in }
        let around = COOperation(foundation: FoundationOperation(held))
        around.start()
        #expect(await eventually { held.state == .executing })
        around.cancel()
        let outcome = await around.outcome
        #expect(outcome.isCancelled && held.isCancelled)
    }

    // MARK: In our queue

    @Test(.promises("R59"))
    func `a queue takes adaptors of both kinds, through suspend and resume, within its limit`()
        async throws
    {
        let log = Log()
        let queue = COOperationQueue(runningLimit: 1)
        queue.suspend()
        let block = COOperation(foundation: BlockOperation { log.add("block") })
        let wrapped = COOperation(
            foundation: FoundationOperation(
                COOperation<Void> {
                    log.add("ours"); $0.finish()
                }))
        let manual = ManualOperation()
        let held = COOperation(foundation: manual)
        let plain = COOperation<Void> {
            log.add("plain"); $0.finish()
        }
        let refused = [block, wrapped, held, plain].filter { !queue.add($0) }
        #expect(refused.isEmpty && queue.operationCount == 4)
        queue.resume()
        #expect(await eventually { manual.isExecuting })
        queue.suspend()
        #expect(plain.numberOfRuns == 0)
        #expect(queue.runningOperations.count == 1)
        manual.finish()
        try await held.value
        #expect(plain.numberOfRuns == 0)
        queue.resume()
        try await plain.value
        await queue.idle()
        #expect(log.entries == ["block", "ours", "plain"])
        #expect(queue.operationCount == 0)
    }

    @Test(.promises("R59")) func `readiness gained later starts it`() async throws {
        let dependency = ManualOperation()
        let foundation = BlockOperation {}
        foundation.addDependency(dependency)
        let queue = COOperationQueue(runningLimit: 1)
        let first = COOperation(foundation: foundation)
        let second = COOperation<Void> { $0.finish() }
        second.addDependency(first)
        queue.add(second)
        queue.add(first)
        #expect(await eventually { first.state == .executing })
        #expect(!foundation.isFinished && !second.isFinished)
        dependency.start()
        dependency.finish()
        try await second.value
        #expect(foundation.isFinished)
        await queue.idle()
    }

    @Test(.promises("R59")) func `a queue that cancels everything gets rid of adaptors, run or not`() async {
        let queue = COOperationQueue(runningLimit: 1)
        let foundation = (0..<5).map { _ in ManualOperation() }
        let operations = foundation.map { COOperation(foundation: $0) }
        for operation in operations { queue.add(operation) }
        #expect(await eventually { foundation[0].isExecuting })
        queue.cancelAll()
        #expect(await eventually { foundation.allSatisfy(\.isCancelled) })
        foundation[0].finish()
        for operation in operations {
            let outcome = await operation.outcome
            #expect(outcome.isCancelled)
        }
        await queue.idle()
        #expect(queue.operationCount == 0)
        #expect(foundation.map(\.starts.value) == [1, 0, 0, 0, 0])
    }

    // MARK: Races and leaks

    @Test(.promises("G37")) func `for any cancellation race, both end, and nothing leaks`() async {
        let live = LiveCount("block of Foundation's")
        let weakly = Locked<[WeakFoundation]>([])
        for round in 0..<scaled(200) {
            let counted = Counted(live)
            let foundation = BlockOperation { withExtendedLifetime(counted) {} }
            weakly.withLock { $0.append(WeakFoundation(foundation)) }
            let operation = COOperation(foundation: foundation, in: round % 2 == 0 ? OperationQueue() : nil)
            await inThread {
                _ = concurrently(3) { index in
                    switch index {
                    case 0: operation.start()
                    case 1: if round % 3 != 0 { operation.cancel() }
                    default: if round % 5 != 0 { foundation.cancel() }
                    }
                }
            }
            let outcome = await operation.outcome
            if round % 15 == 0 { #expect(outcome.isFinished) }
            if outcome.isFinished { #expect(foundation.isFinished && !foundation.isCancelled) }
        }
        #expect(await eventually { live.value == 0 })
        #expect(await eventually { weakly.withLock { $0.allSatisfy { $0.operation == nil } } })
    }

    @Test(.promises("G37")) func `an adaptor that was never started leaks nothing`() async {
        weak var foundation: ManualOperation?
        weak var operation: COOperation<Void>?
        do {
            let one = ManualOperation()
            let adaptor = COOperation(foundation: one)
            (foundation, operation) = (one, adaptor)
            #expect(adaptor.isReady)
        }
        #expect(await eventually { foundation == nil && operation == nil })
    }
}

struct WeakFoundation: Sendable {
    weak let operation: Foundation.Operation?
    init(_ operation: Foundation.Operation) { self.operation = operation }
}
