import CompositeOperations
import CompositeOperationsFoundation
import CompositeOperationsTestSupport
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Operations of this package in Foundation's queues.
@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct FoundationOperationTests {
    // MARK: Normal course

    @Test func `finishes only after the wrapped operation has ended`() async {
        let token = Locked<COOperation<Int>.Attempt?>(nil)
        let wrapped = COOperation<Int> { attempt in token.withLock { $0 = attempt } }
        let operation = FoundationOperation(wrapped)
        #expect(
            operation.isReady && !operation.isExecuting && !operation.isFinished && operation.isAsynchronous)
        let queue = OperationQueue()
        queue.addOperation(operation)
        #expect(await eventually { token.withLock { $0 } != nil })
        #expect(operation.isExecuting && !operation.isFinished)
        #expect(queue.operationCount == 1)
        token.withLock { $0 }?.finish(7)
        await operation.ended()
        #expect(operation.isFinished && !operation.isExecuting && !operation.isCancelled)
        #expect(wrapped.result?.isFinished == true)
        #expect(await eventually { queue.operationCount == 0 })
    }

    @Test func `a serial queue starts the next when the wrapped operation has ended`() async {
        let token = Locked<COOperation<Void>.Attempt?>(nil)
        let first = FoundationOperation(COOperation<Void> { attempt in token.withLock { $0 = attempt } })
        let second = FoundationOperation(COOperation<Void> { $0.finish() })
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.add([first, second])
        #expect(await eventually { token.withLock { $0 } != nil })
        #expect(second.wrapped.state == .ready)
        token.withLock { $0 }?.finish()
        await second.ended()
        #expect(first.isFinished && second.wrapped.isFinished)
    }

    @Test func `dependencies hold in both directions, over composites too`() async {
        let log = Log()
        let cascade = COCascade<Void> { cascade in
            cascade.operation { log.add("first") }
            cascade.operation { log.add("second") }
        }
        let before = BlockOperation { log.add("before") }
        let after = BlockOperation { log.add("after") }
        let operation = FoundationOperation(cascade)
        operation.addDependency(before)
        after.addDependency(operation)
        let queue = OperationQueue()
        queue.add([after, operation])
        #expect(!operation.isReady)
        #expect(cascade.state == .ready)
        queue.addOperation(before)
        await after.ended()
        #expect(log.entries == ["before", "first", "second", "after"])
    }

    @Test(.promises("R43"), arguments: ["finished", "failed", "cancelled"])
    func `however it ends, the completion block is called once, and waiters resume`(_ end: String) async {
        let wrapped = COOperation<Void> { attempt in
            switch end {
            case "finished": attempt.finish()
            case "failed": attempt.fail(TestError())
            default: attempt.cancel()
            }
        }
        let operation = FoundationOperation(wrapped)
        let calls = Count()
        operation.completionBlock = { calls.add() }
        let queue = OperationQueue()
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                queue.addOperations([operation], waitUntilFinished: true)
                queue.waitUntilAllOperationsAreFinished()
                continuation.resume()
            }
        }
        #expect(operation.isFinished)
        #expect(operation.isCancelled == (end == "cancelled"))
        #expect(wrapped.isEnded)
        #expect(await eventually { calls.value == 1 })
    }

    @Test func `needs no queue`() async {
        let operation = FoundationOperation(COOperation<Void> { $0.finish() })
        operation.start()
        await operation.ended()
        #expect(operation.isFinished && operation.wrapped.isFinished)
    }

    @Test func `an operation started elsewhere is awaited`() async {
        let token = Locked<COOperation<Void>.Attempt?>(nil)
        let wrapped = COOperation<Void> { attempt in token.withLock { $0 = attempt } }
        wrapped.start()
        let operation = FoundationOperation(wrapped)
        OperationQueue().addOperation(operation)
        #expect(await eventually { operation.isExecuting && token.withLock { $0 } != nil })
        #expect(!operation.isFinished)
        token.withLock { $0 }?.finish()
        await operation.ended()
        #expect(wrapped.numberOfRuns == 1)
    }

    @Test func `an operation that had ended is finished once the queue starts it, and not before`()
        async
    {
        let wrapped = COOperation<Void> { $0.finish() }
        wrapped.finish()
        let operation = FoundationOperation(wrapped)
        let queue = OperationQueue()
        queue.isSuspended = true
        queue.addOperation(operation)
        #expect(!operation.isFinished)
        queue.isSuspended = false
        await operation.ended()
        #expect(wrapped.numberOfRuns == 0)
        #expect(await eventually { queue.operationCount == 0 })
    }

    // MARK: Cancelled

    @Test(.promises("R43"), arguments: [false, true])
    func `cancelled before it is enqueued, it finishes in the queue and runs nothing`(_ isOurs: Bool) async {
        let operation = FoundationOperation(COOperation<Void> { _ in Issue.record("the block ran") })
        if isOurs { operation.wrapped.cancel() } else { operation.cancel() }
        #expect(operation.isCancelled && operation.wrapped.isCancelled && !operation.isFinished)
        let queue = OperationQueue()
        queue.addOperation(operation)
        await operation.ended()
        #expect(operation.isFinished)
        #expect(await eventually { queue.operationCount == 0 })
        #expect(operation.wrapped.numberOfRuns == 0)
    }

    @Test(.promises("R43"), arguments: [false, true])
    func `cancelled while it depends on others, it leaves the queue without them`(_ isOurs: Bool) async {
        let never = BlockOperation {}
        let operation = FoundationOperation(COOperation<Void> { _ in Issue.record("the block ran") })
        operation.addDependency(never)
        let queue = OperationQueue()
        queue.addOperation(operation)
        #expect(!operation.isReady)
        if isOurs { operation.wrapped.cancel() } else { operation.cancel() }
        await operation.ended()
        #expect(operation.isFinished && operation.isCancelled && operation.wrapped.isCancelled)
        #expect(await eventually { queue.operationCount == 0 })
    }

    @Test(.promises("R43"), arguments: [false, true])
    func `cancelled while it runs, it is finished when the block has returned`(_ isOurs: Bool) async {
        let (began, mayReturn) = (Gate(), Gate())
        let wrapped = COOperation<Void>(on: DispatchQueue(label: "its own")) { _ in
            began.open()
            mayReturn.wait()
        }
        let operation = FoundationOperation(wrapped)
        let queue = OperationQueue()
        queue.addOperation(operation)
        #expect(await eventually { began.wait(timeout: .zero) })
        if isOurs { wrapped.cancel() } else { operation.cancel() }
        #expect(operation.isCancelled && wrapped.isCancelled)
        #expect(!operation.isFinished && queue.operationCount == 1)
        mayReturn.open()
        await operation.ended()
        #expect(operation.isFinished && !operation.isExecuting)
        #expect(await eventually { queue.operationCount == 0 })
    }

    @Test(.promises("R43")) func `a queue that cancels everything cancels the wrapped ones`() async {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let operations = (0..<10).map { _ in FoundationOperation(COOperation<Void> { _ in }) }
        queue.add(operations)
        #expect(await eventually { operations[0].isExecuting })
        queue.cancelAllOperations()
        for operation in operations { await operation.ended() }
        let outcomes = operations.map { $0.wrapped.result?.isCancelled }
        #expect(outcomes == Array(repeating: true, count: 10))
        #expect(await eventually { queue.operationCount == 0 })
    }

    @Test func `a composite's children are cancelled with it`() async {
        let child = Locked<AnyOperation?>(nil)
        let group = COTransaction<Void> { group in
            let one = group.operation { _ in }
            child.withLock { $0 = one }
        }
        let operation = FoundationOperation(group)
        OperationQueue().addOperation(operation)
        #expect(await eventually { child.withLock { $0 }?.state == .executing })
        operation.cancel()
        #expect(child.withLock { $0 }?.isCancelled == true)
        await operation.ended()
        #expect(group.isEnded)
    }

    @Test func `a waiting handler delays no one else in the queue`() async {
        let open = Gate()
        let wrapped = COOperation<Void> { $0.finish() }
        wrapped.onOutcome(on: DispatchQueue(label: "blocked")) { _ in open.wait() }
        let operation = FoundationOperation(wrapped)
        OperationQueue().addOperation(operation)
        await operation.ended()
        #expect(operation.isFinished)
        open.open()
    }

    // MARK: Misuse

    @Test func `a second start does nothing`() async {
        let wrapped = COOperation<Void> { _ in }
        let operation = FoundationOperation(wrapped)
        operation.start()
        operation.start()
        #expect(operation.isExecuting)
        #expect(await eventually { wrapped.numberOfRuns == 1 })
        wrapped.finish()
        await operation.ended()
        operation.start()
        #expect(operation.isFinished && !operation.isExecuting && wrapped.numberOfRuns == 1)
    }

    @Test func `cancel after the end does nothing`() async {
        let operation = FoundationOperation(COOperation<Void> { $0.finish() })
        operation.start()
        await operation.ended()
        operation.cancel()
        #expect(!operation.isCancelled && operation.wrapped.isFinished)
    }

    @Test func `an operation without a block is cancelled, and the queue goes on`() async {
        let operation = FoundationOperation(COOperation<Void>())
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let next = BlockOperation {}
        queue.add([operation, next])
        await next.ended()
        #expect(operation.isFinished && operation.wrapped.isCancelled)
    }

    @Test func `a child is left to its composite, and waited for`() async throws {
        let child = COOperation<Void> { $0.finish() }
        let mayRegister = Gate()
        let cascade = cascadeOperation(on: DispatchQueue(label: "its own")) { cascade in
            try cascade.add(child)
            mayRegister.wait()
        }
        #expect(await eventually { cascade.children.count == 1 })
        let operation = FoundationOperation(child)
        OperationQueue().addOperation(operation)
        #expect(await eventually { operation.isExecuting })
        #expect(!child.isCancelled && !operation.isFinished)
        mayRegister.open()
        await operation.ended()
        try await cascade.value
    }

    // MARK: Everything at once

    @Test(.promises("R43"))
    func `for any cancellations, each finishes, the queue drains, and nothing leaks`() async {
        let released = Count()
        let live = LiveCount("operation of Foundation's")
        let rounds = scaled(60)
        for round in 0..<rounds {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount =
                [1, 2, OperationQueue.defaultMaxConcurrentOperationCount][round % 3]
            let calls = Count()
            let operations = (0..<12).map { number in
                let token = Token(released)
                let wrapped = COOperation<Int> { attempt in
                    withExtendedLifetime(token) {}
                    switch number % 4 {
                    case 0: attempt.finish(number)
                    case 1: attempt.fail(TestError())
                    case 2: attempt.cancel()
                    default: attempt.onCancel { _ in }  // ends when it is cancelled
                    }
                }
                let operation = FoundationOperation(wrapped)
                let counted = Counted(live)
                operation.completionBlock = { withExtendedLifetime(counted) { _ = calls.add() } }
                return operation
            }
            for index in operations.indices where index % 3 == 1 {
                operations[index].addDependency(operations[index - 1])
            }
            await inThread {
                _ = concurrently(3) { index in
                    switch index {
                    case 0: queue.add(operations)
                    case 1:
                        for one in operations.reversed() where one.wrapped.id.hashValue % 2 == 0 {
                            one.cancel()
                        }
                    default:
                        for one in operations where one.wrapped.id.hashValue % 3 == 0 { one.wrapped.cancel() }
                    }
                }
            }
            for index in operations.indices where index % 4 == 3 {
                let one = operations[index]
                if index % 8 == 3 { one.cancel() } else { one.wrapped.cancel() }
            }
            for operation in operations { await operation.ended() }
            let unfinished = operations.filter { !$0.isFinished || !$0.wrapped.isEnded || $0.isExecuting }
            #expect(unfinished.isEmpty)
            let disagree = operations.filter { $0.wrapped.isCancelled && !$0.isCancelled }
            #expect(disagree.isEmpty)
            #expect(await eventually { queue.operationCount == 0 && calls.value == operations.count })
            #expect(calls.value == operations.count)
        }
        #expect(await eventually { released.value == rounds * 12 })
        #expect(await eventually { live.value == 0 })
    }

    @Test(.promises("G37")) func `operations never started leak nothing`() async {
        let released = Count()
        for cancels in [false, true] {
            let token = Token(released)
            let operation = FoundationOperation(COOperation<Void> { _ in withExtendedLifetime(token) {} })
            if cancels { operation.cancel() }
        }
        #expect(await eventually { released.value == 2 })
    }

    @Test(.promises("G37")) func `the last user frees the operation`() async {
        weak var operation: FoundationOperation<Void>?
        weak var wrapped: COOperation<Void>?
        do {
            let one = FoundationOperation(COOperation<Void> { $0.finish() })
            (operation, wrapped) = (one, one.wrapped as? COOperation<Void>)
            OperationQueue().addOperation(one)
            await one.ended()
        }
        #expect(await eventually { operation == nil && wrapped == nil })
    }

    @Test(.promises("G38")) func `dropped after its start, it finishes all the same`() async {
        let calls = Count()
        let token = Locked<COOperation<Void>.Attempt?>(nil)
        do {
            let operation = FoundationOperation(
                COOperation<Void> { attempt in token.withLock { $0 = attempt } })
            operation.completionBlock = { calls.add() }
            operation.start()
        }
        #expect(await eventually { token.withLock { $0 } != nil })
        token.withLock { token in
            token?.finish()
            token = nil
        }
        #expect(await eventually { calls.value == 1 })
    }
}

/// Runs a blocking closure on a dedicated thread.
func inThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            body()
            continuation.resume()
        }
    }
}
