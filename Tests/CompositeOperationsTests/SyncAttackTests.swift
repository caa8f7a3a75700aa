// Attempts to break sync waits: two threads, copies, workers, queues, time limits.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SyncAttackTests {
    // MARK: Two threads

    @Test func `two threads start one: one waits and runs the block, the other is refused`() async {
        for _ in 0..<scaled(200) {
            let threads = Log<pthread_t>()
            let sync = COSyncOperation<Void> { attempt in
                threads.add(pthread_self())
                attempt.finish()
            }
            let answers = await atOnce(2) { _ in (pthread_self(), sync.start(), sync.isEnded) }
            let winners = answers.filter(\.1)
            #expect(winners.count == 1)
            #expect(winners.count { $0.2 } == 1)
            #expect(threads.entries == winners.map(\.0))
        }
    }

    @Test(.promises("G20"))
    func `two threads run a block each: only the waiting thread's block runs`() async {
        for _ in 0..<scaled(300) {
            let sync = COSyncOperation<Int>()
            let runs = Log<Int>()
            let answers = await atOnce(2) { index in
                sync.run { attempt in
                    runs.add(index)
                    attempt.finish(index)
                }
            }
            let winners = answers.indices.filter { answers[$0] != nil }
            #expect(winners.count == 1)
            #expect(runs.entries == winners)
            #expect(await sync.outcome.isFinished)
        }
    }

    @Test func `two threads run a block each on an operation without a waiter: the winner's runs`()
        async throws
    {
        for _ in 0..<scaled(300) {
            let one = COOperation<Int>()
            let cascade = COCascade<Int>()
            let answers = await atOnce(2) { index in
                (
                    one.run { $0.finish(index) },
                    cascade.run { scope in .value(of: scope.operation { index }) }
                )
            }
            let winners = (answers.firstIndex(where: \.0), answers.firstIndex(where: \.1))
            #expect(answers.filter(\.0).count == 1)
            #expect(answers.filter(\.1).count == 1)
            let values = (await one.outcome, await cascade.outcome)
            #expect(try values.0.get() == winners.0)
            #expect(try values.1.get() == winners.1)
        }
    }

    @Test func `a refused start by another thread does not send a rerun to the target that waits`()
        async throws
    {
        let lane = DispatchQueue(label: "lane")
        let hasBegun = Gate()
        let mayGoOn = Gate()
        let sync = COSyncOperation<Void>(on: lane) { attempt in
            if attempt.number == 1 {
                hasBegun.open()
                mayGoOn.wait()
                attempt.rerun()
            } else {
                attempt.finish()
            }
        }
        let outer = operation(on: lane) { sync.start() }
        #expect(
            !(await aside {
                hasBegun.wait()
                defer { mayGoOn.open() }
                return sync.start()
            }))
        #expect(try await outer.value)
        #expect(sync.isFinished)
    }

    @Test(.promises("G15"))
    func `start against cancel and finish: every caller returns, with one outcome`() async {
        for _ in 0..<scaled(200) {
            let sync = COSyncOperation<Int> { _ in }
            let answers = await atOnce(3) { index in
                switch index {
                case 0: sync.start()
                case 1: sync.cancel()
                default: sync.finish(1)
                }
            }
            #expect(answers[1] != answers[2])
            #expect(sync.isCancelled == answers[1])
            #expect(await sync.outcome.isFinished == answers[2])
        }
    }

    @Test(.promises("G15")) func `all threads waiting for one operation see its end`() async {
        for ending in Ending.allCases {
            let one = operation(returning: Int.self) { _ in }
            let outcomes = await atOnce(5) { index in
                if index == 4 {
                    ending.end(one)
                    return one.wait()
                }
                return one.wait()
            }
            #expect(outcomes.allSatisfy { ending.fits($0) })
        }
    }

    // MARK: Time

    @Test func `a wait that times out returns nil, and the operation goes on`() async throws {
        let one = operation(returning: Int.self) { _ in }
        #expect(await aside { one.wait(timeout: .zero) } == nil)
        #expect(await aside { one.wait(timeout: .milliseconds(-5)) } == nil)
        #expect(await aside { one.wait(timeout: .microseconds(300)) } == nil)
        #expect(!one.isCancelled)
        #expect(one.finish(3))
        #expect(await aside { one.wait(timeout: .zero) }?.isFinished == true)
    }

    @Test func `a wait that times out as the end comes returns all or nothing`() async {
        for _ in 0..<scaled(200) {
            let one = operation(returning: Int.self) { _ in }
            let outcomes = await atOnce(2) { index -> Outcome<Int>? in
                if index == 0 { return one.wait(timeout: .microseconds(50)) }
                for _ in 0..<20 { sched_yield() }
                one.finish(1)
                return one.wait()
            }
            #expect(outcomes[0]?.isFinished ?? true)
            #expect(outcomes[1]?.isFinished == true)
        }
    }

    @Test(arguments: [Duration.zero, .milliseconds(-1), .microseconds(100)])
    func `a sync operation that is not ended is cancelled at its timeout`(timeout: Duration) async {
        let sync = await aside { syncOperation(timeout: timeout) { _ in } }
        #expect(sync.result?.reason?.kind == .timedOut)
        #expect(sync.numberOfRuns == 1)
    }

    @Test func `on a target, a call that times out does not wait for a running block`() async {
        let isIn = Gate()
        let mayLeave = Gate()
        let sync = await aside {
            syncOperation(on: elsewhere, timeout: .milliseconds(1)) { attempt in
                isIn.open()
                mayLeave.wait()
            }
        }
        #expect(sync.isCancelled)
        if sync.numberOfRuns > 0 { #expect(sync.result == nil) }
        mayLeave.open()
        #expect(await sync.outcome.reason?.kind == .timedOut)
    }

    @Test func `a borrowed block is waited for, even after a timeout`() async {
        // On a busy machine the time may expire before the block has begun; then the block never begins.
        for limit in [20, 200, 2_000, 20_000] {
            let (outcome, hasReturned, runs) = await aside {
                var hasReturned = false
                let isIn = Gate()
                let mayLeave = Gate()
                let sync = COSyncOperation<Void>(on: elsewhere)
                elsewhere.async {
                    isIn.wait()
                    while !sync.isCancelled { sched_yield() }
                    mayLeave.open()
                }
                let outcome = sync.run(timeout: .milliseconds(limit)) { attempt in
                    isIn.open()
                    mayLeave.wait()
                    hasReturned = true
                }
                isIn.open()
                return (outcome, hasReturned, sync.numberOfRuns)
            }
            #expect(outcome?.reason?.kind == .timedOut)
            #expect(hasReturned || runs == 0)
            if runs > 0 { return }
        }
    }

    @Test func `an end in time is an end, not a timeout`() async {
        let sync = await aside {
            syncOperation(timeout: .seconds(3600)) { attempt in elsewhere.async { attempt.finish() } }
        }
        #expect(sync.result?.isFinished == true)
    }

    // MARK: Copies, children

    @Test func `a copy of a sync operation is awaited by its starter`() async {
        let threads = Log<pthread_t>()
        let sync = COSyncOperation<Int> { attempt in
            threads.add(pthread_self())
            attempt.finish(attempt.number)
        }
        let copy = sync.copy()
        for one in [sync, copy] {
            let waiter = await aside {
                one.start()
                return pthread_self()
            }
            #expect(threads.entries.last == waiter)
            #expect(one.result?.isFinished == true)
        }
        #expect(threads.entries.count == 2)
    }

    @Test func `a copy of a sync operation on a target runs on that target`() async {
        let lane = DispatchQueue(label: "lane")
        let sync = COSyncOperation<Bool>(on: lane) { $0.finish(lane.isCurrent) }
        let copy = sync.copy()
        #expect(await aside { copy.start() })
        guard case .finished(true)? = copy.result else {
            Issue.record("\(String(describing: copy.result))")
            return
        }
        #expect(sync.state == .ready)
    }

    @Test func `a copy gets no borrowed block`() async {
        let copies = Log<COOperation<Void>>()
        let (outcome, getter) = await aside {
            let sync = COSyncOperation<Void>(options: OperationOptions(keepsBlock: true))
            var getter: COOperation<Void>.Block?
            let outcome = sync.run { attempt in
                copies.add(sync.copy())
                getter = sync.operation
                attempt.finish()
            }
            copies.add(sync.copy())
            return (outcome, getter == nil)
        }
        #expect(outcome?.isFinished == true)
        #expect(getter)
        for copy in copies.entries { #expect(await aside { !copy.start() }) }
    }

    @Test func `a sync operation that becomes a child runs without a waiter`() async throws {
        let ran = Count()
        let cascade = cascadeOperation { cascade in
            try cascade.add(
                COSyncOperation<Void> { attempt in
                    if ran.add() == 1 { attempt.rerun() } else { attempt.finish() }
                })
            cascade.operation { ran.add() }
        }
        try await cascade.value
        #expect(ran.value == 3)
    }

    @Test func `a sync operation in a queue blocks its caller until its turn is over`() async throws {
        let queue = COOperationQueue(runningLimit: 1)
        let first = operation(on: queue) { $0.suspend() }
        queue.suspend()
        let sync = COSyncOperation<Void> { $0.finish() }
        async let isAdded = aside { queue.add(sync) }
        #expect(await eventually { queue.pendingOperations.contains { $0 === sync } })
        queue.resume()
        #expect(first.cancel())
        #expect(await isAdded)
        #expect(sync.isFinished)
        await queue.idle()
    }

    // MARK: Queues

    @Test func `aimed at a queue, a block runs where that queue's operations do`() async {
        let queues = [COOperationQueue(runningLimit: 2), COOperationQueue(on: concurrentQueue())]
        for queue in queues {
            let (isWorker, isOther) = await aside {
                let caller = pthread_self()
                let answers = Log<(Bool, Bool)>()
                syncOperation(on: queue) { attempt in
                    answers.add((Scheduler.current === Scheduler.shared, pthread_self() != caller))
                    attempt.finish()
                }
                return answers.entries[0]
            }
            #expect(isWorker)
            #expect(isOther)
        }
    }

    /// Runs a sync operation in a queue, and records how many operations have a slot there meanwhile.
    @Sendable private static func runAndCount(in queue: COOperationQueue, _ running: Log<Int>) {
        syncOperation(on: queue) { attempt in
            running.add(queue.runningOperations.count)
            attempt.finish()
        }
    }

    @Test func `aimed at the queue whose slot the caller holds, a block runs within that slot`() async throws
    {
        for target: (any ExecutionTarget)? in [nil, elsewhere, serialQueue()] {
            let queue = COOperationQueue(runningLimit: 1, on: target)
            let running = Log<Int>()
            _ = try await operation(on: queue) { Self.runAndCount(in: queue, running) }.value
            await queue.idle()
            #expect(running.entries == [1])
        }
    }

    @Test func `aimed at the queue whose slot a registration block has, a block runs within that slot`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let running = Log<Int>()
        _ = try await cascadeOperation(on: queue) { _ in Self.runAndCount(in: queue, running) }.value
        await queue.idle()
        #expect(running.entries == [1])
    }

    @Test func `aimed at a queue other than that of the caller's slot, a block takes a slot there`()
        async throws
    {
        let (queue, other) = (COOperationQueue(runningLimit: 1), COOperationQueue(runningLimit: 1))
        let running = Log<Int>()
        _ = try await operation(on: queue) { Self.runAndCount(in: other, running) }.value
        await other.idle()
        #expect(running.entries == [1])
    }

    @Test func `cancelAll wakes callers waiting for a suspended queue`() async {
        let queue = COOperationQueue()
        queue.suspend()
        let sync = COSyncOperation<Void>(on: queue) { $0.finish() }
        async let hasStarted = aside { sync.start() }
        #expect(await eventually { queue.operationCount == 1 })
        queue.cancelAll()
        #expect(await hasStarted)
        #expect(sync.result?.isCancelled == true)
        #expect(sync.numberOfRuns == 0)
        await queue.idle()
    }

    @Test func `a full queue wakes refused callers`() async {
        let queue = COOperationQueue(runningLimit: 1, pendingLimit: 0)
        let first = operation(on: queue) { _ in }
        let sync = await aside { syncOperation(on: queue) { $0.finish() } }
        #expect(sync.result?.reason?.kind == .queueFull)
        first.finish()
        await queue.idle()
    }

    @Test func `a target that drops or repeats its work blocks no caller forever`() async {
        let dropped = await aside { syncOperation(on: DroppingTarget()) { $0.finish() } }
        #expect(dropped.result?.reason?.kind == .shutDown)
        let runs = Count()
        let repeated = await aside {
            syncOperation(on: RepeatingTarget(3)) { attempt in
                runs.add()
                attempt.finish()
            }
        }
        #expect(repeated.result?.isFinished == true)
        #expect(runs.value == 1)
    }

    // MARK: Workers

    @Test func `a scheduler's only worker may wait for work that it must run`() async throws {
        let one = try Scheduler(Scheduler.Configuration(workers: 1))
        let outer = operation(on: one) {
            let inner = operation(on: one) { 5 }
            let nested = transactionalOperation(on: one) { group in
                .values(of: (0..<20).map { index in group.operation(on: one) { index } })
            }
            syncOperation { attempt in operation(on: one) { attempt.finish() } }
            syncOperation(on: one) { $0.finish() }
            guard case .finished(let five)? = inner.wait(), case .finished(let all)? = nested.wait() else {
                return 0
            }
            return five + all.count
        }
        #expect(try await outer.value == 25)
    }

    @Test func `all workers wait for operations that wait behind them`() async throws {
        let few = try Scheduler(Scheduler.Configuration(workers: 2))
        let all = transactionalOperation(on: few) { group in
            .values(
                of: (0..<30).map { index in
                    group.operation(on: few) {
                        let inner = operation(on: few) { index }
                        if case .finished(let value)? = inner.wait() { return value }
                        return -1
                    }
                })
        }
        #expect(try await all.value == Array(0..<30))
    }

    @Test func `handlers may wait: for ended operations and for others`() async throws {
        let other = operation(on: elsewhere) { 4 }
        let values = Log<Int>()
        let one = operation { 3 }
        await withCheckedContinuation { continuation in
            one.onOutcome(on: elsewhere) { _ in
                if case .finished(let three)? = one.wait() { values.add(three) }
                if case .finished(let four)? = other.wait() { values.add(four) }
                continuation.resume()
            }
        }
        #expect(values.entries == [3, 4])
    }

    // MARK: Rerun and ends from everywhere

    @Test
    func `reruns, suspensions and an end from several threads: the waiter returns, runs do not overlap`()
        async
    {
        for round in 0..<scaled(60) {
            let inside = Count()
            let overlaps = Count()
            let handles = Log<COOperation<Int>>()
            let sync = COSyncOperation<Int> { _ in
                if inside.add() != 1 { overlaps.add() }
                sched_yield()
                inside.add(-1)
            }
            handles.add(sync)
            let answers = await atOnce(4) { index -> Bool in
                switch index {
                case 0: return sync.start()
                case 1:
                    for _ in 0..<20 { sync.rerun() }
                    return true
                case 2:
                    for _ in 0..<20 {
                        sync.suspend()
                        sync.resume()
                    }
                    return true
                default:
                    while sync.numberOfRuns < 1 + round % 3, !sync.hasLeftOpen { sched_yield() }
                    return sync.finish(round)
                }
            }
            #expect(answers == [true, true, true, true])
            #expect(overlaps.value == 0)
            #expect(sync.result?.isFinished == true)
        }
    }
}
