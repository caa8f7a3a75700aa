// The README of seed 004, section by section: each flow, run, and what is said of it.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SeedReadmeTests {
    // MARK: What sync, async and composite mean here

    @Test
    func `sync: waits on its original thread until its block finishes it, after any thread switches`()
        async
    {
        let log = Log<String>()
        await aside {
            let original = pthread_self()
            syncOperation { so in
                log.add(pthread_self() == original ? "original" : "other")
                DispatchQueue.global().async {
                    elsewhere.async {
                        operation {
                            log.add("job")
                            so.finish()
                        }
                    }
                }
            }
            log.add("flow continues")
        }
        #expect(log.entries == ["original", "job", "flow continues"])
    }

    @Test func `sync: finishes and reruns itself at any point of its block`() async {
        let runs = Log<Int>()
        let sync = await aside {
            syncOperation { so in
                runs.add(so.number)
                if so.number < 3 { so.rerun() } else { so.finish() }
                runs.add(-so.number)
            }
        }
        #expect(sync.isFinished)
        #expect(runs.entries == [1, -1, 2, -2, 3, -3])
    }

    @Test func `sync: straightens a curly flow of asynchronous jobs for a test`() async {
        let collected = Log<Int>()
        let found = await aside {
            syncOperation { so in
                cascadeOperation { cascade in
                    for index in 0..<3 { cascade.operation(on: elsewhere) { collected.add(index) } }
                } completion: {
                    so.finish()
                }
            }
            return collected.entries
        }
        #expect(found == [0, 1, 2])
    }

    @Test func `async: is dispatched at once, to the default queue or a given one; the caller goes on`()
        async throws
    {
        let given = HoldingTarget()
        let usual = HoldingTarget()
        let ran = Log<String>()
        let (first, second) = COQueues.withDefaultQueue(usual) {
            (
                operation(on: given) { ran.add("given") },
                operation { ran.add("default") }
            )
        }
        #expect(ran.entries.isEmpty)
        #expect((given.count, usual.count) == (1, 1))
        given.letGo()
        usual.letGo()
        #expect(ran.entries == ["given", "default"])
        try await first.value
        try await second.value
    }

    @Test
    func `transactional: children end in any order; it completes at the last end, then is finished`()
        async throws
    {
        let orders = Generator<[Int]>.array(of: .int(in: 0...99), count: 3...3)
        let lane = try SerialLane()
        await forAll(orders, cases: scaled(60)) { keys in
            let completions = Count()
            let tokens = Log<COOperation<Void>.Attempt>()
            let transaction = transactionalOperation(on: lane) { transaction in
                for _ in 0..<3 { transaction.operation(on: lane) { tokens.add($0) } }
            } completion: {
                completions.add()
            }
            #expect(await eventually { tokens.entries.count == 3 })
            let order = (0..<3).sorted { keys[$0] < keys[$1] }
            for index in order.dropLast() {
                #expect(tokens.entries[index].finish())
                #expect(!transaction.isFinished)
            }
            #expect(tokens.entries[order[2]].finish())
            #expect(transaction.isFinished)
            try await transaction.value
            await withCheckedContinuation { done in transaction.onOutcome { _ in done.resume() } }
            #expect(completions.value == 1)
        }
    }

    @Test func `cascade: each step begins when the one before has finished, based on its results`()
        async throws
    {
        let log = Log<String>()
        let tokens = Log<COOperation<Int>.Attempt>()
        let cascade = cascadeOperation { cascade in
            let first = cascade.operation(returning: Int.self) { attempt in
                log.add("first")
                tokens.add(attempt)
            }
            let second = cascade.operation(using: first) { value in
                log.add("second is given \(value)")
                return value + 1
            }
            return .value(of: cascade.operation(using: second) { value in value * 10 })
        }
        #expect(await eventually { tokens.entries.count == 1 })
        #expect(await eventually { cascade.children.first?.hasLeftOpen == true })
        #expect(cascade.children.dropFirst().allSatisfy { $0.state == .ready })
        #expect(tokens.entries[0].finish(4))
        #expect(try await cascade.value == 50)
        #expect(log.entries == ["first", "second is given 4"])
    }

    @Test func `suboperations are not to be run standalone: start is refused`() async throws {
        let refusals = Log<Bool>()
        let cascade = cascadeOperation { cascade in
            let first = cascade.operation { $0.finish() }
            let second = cascade.operation { $0.finish() }
            refusals.add(first.start())
            refusals.add(second.start())
            refusals.add(second.run { $0.finish() })
        }
        try await cascade.value
        #expect(refusals.entries == [false, false, false])
    }

    // MARK: Four operations

    @Test func `COOperation: operation(queue, block) makes it and runs it; it is done when it is finished`()
        async throws
    {
        let isIn = Gate()
        let one = operation(on: concurrentQueue()) { operation in
            elsewhere.async {
                isIn.wait()
                operation.finish()
            }
        }
        #expect(await eventually { one.hasLeftOpen })
        #expect(!one.isFinished)
        isIn.open()
        try await one.value
        #expect(one.isFinished)
    }

    @Test func `COSyncOperation: the flow stops at syncOperation until it finishes`() async {
        let log = Log<String>()
        await aside {
            syncOperation { so in
                elsewhere.async {
                    log.add("stuff")
                    so.finish()
                }
            }
            log.add("after")
        }
        #expect(log.entries == ["stuff", "after"])
    }

    @Test func `COTransactionalOperation: three suboperations finish: completion, and no cancellation`()
        async throws
    {
        let log = Log<String>()
        let isFinished = Gate()
        let transaction = COQueues.withDefaultQueue(concurrentQueue()) {
            transactionalOperation { transaction in
                log.add("block")
                for name in ["1", "2", "3"] {
                    transaction.operation { operation in
                        log.add(name)
                        operation.finish()
                    }
                }
            } completion: {
                log.add("completion")
                isFinished.open()
            } cancellation: { _ in
                log.add("cancellation")
            }
        }
        await aside { isFinished.wait() }
        try await transaction.value
        #expect(log.entries.first == "block")
        #expect(log.entries.last == "completion")
        #expect(log.entries.sorted() == ["1", "2", "3", "block", "completion"])
    }

    @Test(arguments: 0..<3)
    func `COTransactionalOperation: one of three cancels: cancellation at once, and no completion`(index: Int)
        async
    {
        let log = Log<String>()
        let mayLeave = Gate()
        let transaction = transactionalOperation(on: elsewhere) { transaction in
            for number in 0..<3 {
                transaction.operation(on: elsewhere) { operation in
                    if number == index {
                        operation.cancel()
                    } else {
                        // A sibling that is still at work: the handler does not wait for it.
                        mayLeave.wait()
                        operation.finish()
                    }
                }
            }
        } completion: {
            log.add("completion")
        } cancellation: { transaction in
            log.add("cancellation")
            transaction.cancel()
            mayLeave.open()
        }
        #expect(await transaction.outcome.isCancelled)
        await withCheckedContinuation { done in transaction.onOutcome { _ in done.resume() } }
        #expect(log.entries == ["cancellation"])
    }

    @Test func `COCascadeOperation: four jobs on four queues, one after another, each on its own`()
        async throws
    {
        let queues = (1...4).map { DispatchQueue(label: "queue\($0)") }
        let log = Log<String>()
        let cascade = cascadeOperation { cascade in
            for (index, queue) in queues.enumerated() {
                cascade.operation(on: queue) { operation in
                    dispatchPrecondition(condition: .onQueue(queue))
                    log.add("job \(index + 1)")
                    operation.finish()
                }
            }
        } completion: {
            log.add("completion")
        } cancellation: { _ in
            log.add("cancellation")
        }
        try await cascade.value
        await withCheckedContinuation { done in cascade.onOutcome { _ in done.resume() } }
        #expect(log.entries == ["job 1", "job 2", "job 3", "job 4", "completion"])
    }

    @Test(arguments: 0..<4)
    func `COCascadeOperation: a job that cancels ends it: no later one runs, cancellation is called`(
        index: Int
    ) async {
        let log = Log<String>()
        let cascade = cascadeOperation { cascade in
            for number in 0..<4 {
                cascade.operation(on: elsewhere) { operation in
                    log.add("job \(number)")
                    _ = number == index ? operation.cancel() : operation.finish()
                }
            }
        } completion: {
            log.add("completion")
        } cancellation: { cascade in
            log.add("cancellation of \(cascade.causes.map { $0.index ?? -1 })")
        }
        #expect(await cascade.outcome.reason?.kind == .child)
        await withCheckedContinuation { done in cascade.onOutcome { _ in done.resume() } }
        #expect(log.entries == (0...index).map { "job \($0)" } + ["cancellation of [\(index)]"])
    }

    @Test func `COCascadeOperation: after the outer block all are scheduled to run in the default queue`()
        async throws
    {
        let some = CountingTarget(to: serialQueue())
        let log = Log<String>()
        let isFinished = Count()
        _ = COQueues.withDefaultQueue(some) {
            cascadeOperation { co in
                co.operation { o in
                    log.add("first")
                    o.finish()
                }
                co.operation { o in
                    log.add("second")
                    o.finish()
                }
                co.operation { o in
                    log.add("third")
                    o.finish()
                    isFinished.add()
                }
                log.add("scheduled")
            }
        }
        #expect(await eventually { isFinished.value == 1 })
        #expect(log.entries == ["scheduled", "first", "second", "third"])
        #expect(some.submitted.value == 4)
    }

    // MARK: Defining and running operations

    @Test func `class initialisation: new, then run at once`() async {
        let one = COSyncOperation<Void>()
        let outcome = await aside { one.run { $0.finish() } }
        #expect(outcome?.isFinished == true)
        #expect(one.isFinished)
    }

    @Test func `class initialisation: first prepare, then start by hand`() async {
        let ran = Count()
        let one = COSyncOperation<Void>()
        one.operation = { so in
            ran.add()
            so.finish()
        }
        #expect(ran.value == 0)
        #expect(one.isReady)
        #expect(await aside { one.start() })
        #expect(ran.value == 1)
        #expect(one.isFinished)
    }

    @Test func `class initialisation: the same two ways for the other three`() async throws {
        let ran = Count()
        let leaf = COOperation<Void>()
        let cascade = COCascadeOperation<Void>()
        let transaction = COTransactionalOperation<Void>()
        #expect(leaf.run { $0.finish() })
        let cascading = cascade.run { cascade in
            cascade.operation { _ = ran.add() }
            cascade.operation { _ = ran.add() }
        }
        let transacting = transaction.run { transaction in
            transaction.operation { _ = ran.add() }
            transaction.operation { _ = ran.add() }
        }
        #expect(cascading && transacting)
        try await leaf.value
        try await cascade.value
        try await transaction.value

        let prepared = COOperation<Void>()
        prepared.operation = { $0.finish() }
        let preparedCascade = COCascade<Void>()
        preparedCascade.operation = { scope in .value(of: scope.operation { _ = ran.add() }) }
        let preparedTransaction = COTransaction<Void> { scope in
            scope.operation { _ = ran.add() }
            scope.operation { _ = ran.add() }
        }
        #expect([prepared, preparedCascade, preparedTransaction].allSatisfy { $0.state == .ready })
        #expect(ran.value == 4)
        #expect(prepared.start() && preparedCascade.start() && preparedTransaction.start())
        try await prepared.value
        try await preparedCascade.value
        try await preparedTransaction.value
        #expect(ran.value == 7)
    }

    @Test func `helper functions: syncOperation runs at once`() async {
        let sync = await aside { syncOperation { $0.finish() } }
        #expect(sync.isFinished)
    }

    // MARK: Each operation yields itself to the block

    @Test func `each operation yields itself to its block`() async throws {
        let same = Log<Bool>()
        let leaf = COOperation<Void>()
        leaf.run { [weak leaf] attempt in
            same.add(attempt.operation === leaf)
            attempt.finish()
        }
        try await leaf.value
        let cascade = COCascade<Void>()
        cascade.run { [weak cascade] scope in
            same.add(scope.control === cascade)
        }
        try await cascade.value
        let transaction = COTransaction<Void>()
        transaction.run { [weak transaction] scope in
            same.add(scope.control === transaction)
        }
        try await transaction.value
        await aside {
            let sync = COSyncOperation<Void>()
            sync.run { attempt in
                same.add(attempt.operation === sync)
                attempt.finish()
            }
        }
        #expect(same.entries == [true, true, true, true])
    }

    @Test func `from inside of its block an operation is cancelled, suspended, resumed and rerun`()
        async throws
    {
        let cancelled = operation { $0.cancel() }
        #expect(await cancelled.outcome.reason?.kind == .requested)
        let suspended = operation { operation in
            operation.suspend()
            elsewhere.async {
                while !operation.operation.isSuspended { sched_yield() }
                operation.resume()
                operation.finish()
            }
        }
        try await suspended.value
        let again = operation { _ = $0.number < 5 ? $0.rerun() : $0.finish() }
        try await again.value
        #expect(again.numberOfRuns == 5)
    }

    // MARK: Finish rules

    @Test func `a leaf must be finished: returning ends nothing`() async throws {
        let one = operation { _ in }
        #expect(await eventually { one.hasLeftOpen })
        #expect(one.state == .executing)
        #expect(one.finish())
        try await one.value
    }

    @Test func `composites finish themselves only after all their suboperations are done`()
        async throws
    {
        let tokens = Log<COOperation<Void>.Attempt>()
        let transaction = transactionalOperation { transaction in
            transaction.operation { tokens.add($0) }
            transaction.cascadeOperation { cascade in cascade.operation { tokens.add($0) } }
        }
        #expect(await eventually { tokens.entries.count == 2 })
        #expect(transaction.state == .executing)
        tokens.entries[0].finish()
        #expect(transaction.state == .executing)
        tokens.entries[1].finish()
        try await transaction.value
        let empty = cascadeOperation { _ in }
        try await empty.value
    }

    // MARK: Combining operations

    @Test func `a transaction in a cascade runs when its turn comes; then the flow returns to the steps`()
        async throws
    {
        let log = Log<String>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { log.add("before") }
            cascade.transactionalOperation { transaction in
                log.add("block")
                for _ in 0..<3 { transaction.operation { log.add("in") } }
            }
            cascade.operation { log.add("after") }
            log.add("registered")
        }
        try await cascade.value
        #expect(log.entries == ["registered", "before", "block", "in", "in", "in", "after"])
    }

    @Test func `a cascade in a transaction is dispatched: the block does not wait for it`() async throws {
        let log = Log<String>()
        let target = HoldingTarget()
        let transaction = transactionalOperation { transaction in
            transaction.cascadeOperation(on: target) { cascade in
                for index in 0..<3 { cascade.operation { log.add("step \(index)") } }
            }
            log.add("registered")
        }
        #expect(await eventually { log.entries == ["registered"] && target.count == 1 })
        #expect(!transaction.isFinished)
        target.letGo()
        try await transaction.value
        #expect(log.entries == ["registered", "step 0", "step 1", "step 2"])
    }

    @Test func `mixtum compositum: to any depth, with one completion of each level, inner before outer`()
        async throws
    {
        let log = Log<String>()
        let depth = 6
        @Sendable func fill(_ scope: any CompositeScope, _ level: Int) {
            if level == depth {
                scope.operation { log.add("leaf") }
            } else if level % 2 == 0 {
                scope.transactionalOperation { fill($0, level + 1) }.onOutcome { _ in log.add("end") }
                scope.operation {}
            } else {
                scope.operation {}
                scope.cascadeOperation { fill($0, level + 1) }.onOutcome { _ in log.add("end") }
            }
        }
        let outer = cascadeOperation { fill($0, 0) }
        try await outer.value
        #expect(await eventually { log.entries.count == depth + 1 })
        #expect(log.entries.first == "leaf")
    }

    // MARK: The default queue

    @Test
    func
        `the default queue: setDefaultQueue, COSetDefaultQueue, CODefaultQueue; all async operations use it`()
        async
    {
        await #expect(processExitsWith: .success) {
            let queue = CountingTarget(to: DispatchQueue.global())
            COQueues.setDefaultQueue(queue)
            try #require(CODefaultQueue() === queue)
            let transaction = transactionalOperation { transaction in
                for _ in 0..<3 { transaction.operation { $0.finish() } }
            }
            try await transaction.value
            try #require(queue.submitted.value == 4)
            COSetDefaultQueue(concurrentQueue())
            try #require(CODefaultQueue() === Scheduler.shared)
            let cascade = cascadeOperation { cascade in cascade.operation { $0.finish() } }
            try await cascade.value
            try #require(queue.submitted.value == 4)
        }
    }

    @Test func `the default queue: serial and concurrent are both fine for a transaction`() async throws {
        let targets: [any ExecutionTarget] = [
            concurrentQueue(), serialQueue(), DispatchQueue(label: "serial"), elsewhere,
        ]
        for target in targets {
            let ran = Count()
            let transaction = COQueues.withDefaultQueue(target) {
                transactionalOperation { transaction in
                    for _ in 0..<3 {
                        transaction.operation {
                            ran.add()
                            $0.finish()
                        }
                    }
                }
            }
            try await transaction.value
            #expect(ran.value == 3)
        }
    }

    // MARK: Resolver in the cancellation handler

    @Test func `in the cancellation handler: rerun`() async throws {
        let runs = Count()
        let transaction = transactionalOperation { transaction in
            runs.add()
            transaction.operation { $0.finish() }
            transaction.operation { _ = runs.value < 3 ? $0.cancel() : $0.finish() }
        } cancellation: { transaction in
            transaction.rerun()
        }
        try await transaction.value
        #expect(runs.value == 3)
        #expect(transaction.attempt == 3)
    }

    @Test func `in the cancellation handler: rerun only after a delay`() async throws {
        let clock = ManualClock()
        let runs = Count()
        let transaction = transactionalOperation(options: OperationOptions(clock: clock)) { transaction in
            let isFirst = runs.add() == 1
            transaction.operation { _ = isFirst ? $0.cancel() : $0.finish() }
        } cancellation: { transaction in
            transaction.rerun(after: .seconds(10))
        }
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(9))
        #expect(transaction.state == .delayed)
        #expect(runs.value == 1)
        clock.advance(by: .seconds(1))
        try await transaction.value
        #expect(runs.value == 2)
    }

    @Test func `in the cancellation handler: a resolver, which tries again and gives up`() async throws {
        for limit in 1...4 {
            let tries = Count()
            let fallbacks = Count()
            let cascade = cascadeOperation { cascade in
                cascade.operation { $0.finish() }
                cascade.operation {
                    tries.add()
                    $0.cancel()
                }
            } cancellation: { cascade in
                cascade.resolve(
                    using: COOperationResolver(maxAttempts: limit, fallback: { _ in fallbacks.add() }))
            }
            #expect(await cascade.outcome.reason?.kind == .child)
            #expect(tries.value == limit)
            #expect(fallbacks.value == 1)
        }
        let tries = Count()
        let cascade = cascadeOperation { cascade in
            cascade.operation { _ = tries.add() < 4 ? $0.cancel() : $0.finish() }
        } cancellation: { cascade in
            cascade.resolve(using: COOperationResolver(maxAttempts: 10, backoff: .constant(.microseconds(1))))
        }
        try await cascade.value
        #expect(tries.value == 4)
    }

    @Test func `in the cancellation handler: nothing, or cancel, is a cancellation`() async {
        for isExplicit in [false, true] {
            let cascade = cascadeOperation { cascade in
                cascade.operation { $0.cancel() }
            } cancellation: { cascade in
                if isExplicit { cascade.cancel() }
            }
            #expect(await cascade.outcome.isCancelled)
            #expect(cascade.state == .cancelled)
        }
    }
}
