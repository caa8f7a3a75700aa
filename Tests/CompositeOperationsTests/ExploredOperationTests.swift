// ExploredOperationTests.swift - operations, queues and timers, in every order of turns, handlers, and the tasks that
// finish, cancel, suspend and rerun operations.

import CompositeOperations
import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ExploredOperationTests {
    /// Handlers run on ``target``, as blocks do: each is a task of the exploration.
    private static var options: OperationOptions {
        var options = OperationOptions()
        options.handlerTarget = target
        return options
    }
    private static var target: ExecutorTarget { ExecutorTarget(explorationExecutor!) }

    /// The results seen, over all orders.
    private final class Seen: Sendable {
        private let texts = Locked<Set<String>>([])
        func add(_ text: String) { texts.withLock { _ = $0.insert(text) } }
        var all: Set<String> { texts.withLock { $0 } }
    }

    /// The current number of users, and the maximum so far.
    private final class Room: Sendable {
        private let state = Locked((now: 0, most: 0))
        var most: Int { state.withLock { $0.most } }
        func use() async {
            state.withLock { state in
                state.now += 1
                state.most = max(state.most, state.now)
            }
            await explorationPoint("in it")
            state.withLock { $0.now -= 1 }
        }
    }

    @Test func `finish, fail and cancel at once: one end, and one closure is called`()
        async
    {
        let seen = Seen()
        await explore {
            let (told, attempts) = (Log<String>(), Mail<COOperation<Int>.Attempt>())
            let one = operation(returning: Int.self, on: Self.target, options: Self.options) {
                attempts.send($0)
            } completion: {
                told.add("finished")
            } cancellation: {
                told.add("cancelled")
            } failure: { _ in
                told.add("failed")
            }
            let attempt = await attempts.next()
            async let isCancelled = one.cancel()
            async let isFinished = attempt.finish(1)
            async let isFailed = attempt.fail(TestError())
            let answers = await [isFinished, isFailed, isCancelled]
            #expect(answers.filter { $0 }.count == 1)
            let outcome = await one.outcome
            #expect(outcome.isFinished == answers[0] && outcome.isCancelled == answers[2])
            // Handlers are called after the closures.
            await withCheckedContinuation { continuation in one.onOutcome { _ in continuation.resume() } }
            #expect(told.entries == [outcome.isFinished ? "finished" : answers[1] ? "failed" : "cancelled"])
            seen.add(told.entries[0])
        }
        #expect(seen.all == ["finished", "cancelled", "failed"])
    }

    @Test func `G17: a cascade that is cancelled begins no other step`() async {
        let seen = Seen()
        await explore {
            let (room, log, told) = (Room(), Log<Int>(), Log<String>())
            let cascade = cascadeOperation(on: Self.target, options: Self.options) { cascade in
                for step in 0..<3 {
                    cascade.operation(on: Self.target, options: Self.options) {
                        (attempt: COOperation<Void>.Attempt) in
                        log.add(step)
                        Task {
                            await room.use()
                            attempt.finish()
                        }
                    }
                }
            } completion: {
                told.add("finished")
            } cancellation: { _ in
                told.add("asked")
            }
            async let cancelling: (Bool, Int) = { (cascade.cancel(), log.entries.count) }()
            let outcome = await cascade.outcome
            let (isCancelled, begun) = await cancelling
            #expect(isCancelled == outcome.isCancelled && room.most <= 1)
            #expect(log.entries == Array(0..<log.entries.count))
            if isCancelled { #expect(log.entries.count == begun) } else { #expect(begun <= 3) }
            await withCheckedContinuation { done in cascade.onOutcome { _ in done.resume() } }
            #expect(told.entries == [isCancelled ? "asked" : "finished"])
            seen.add("\(log.entries.count) \(isCancelled)")
        }
        #expect(seen.all.isSuperset(of: ["0 true", "1 true", "2 true", "3 false"]), "\(seen.all)")
    }

    @Test(arguments: [1, 2]) func `G18: a failing child ends a transaction when all that began has ended`(
        _ width: Int
    )
        async
    {
        let seen = Seen()
        await explore(departures: 2) {
            let (room, begun, left) = (Room(), Count(), Count())
            var options = Self.options
            options.width = width
            let group = transactionalOperation(on: Self.target, options: options) { group in
                for child in 0..<3 {
                    group.operation(on: Self.target, options: Self.options) { () async throws in
                        begun.add()
                        defer { left.add() }
                        await room.use()
                        if child == 1 { throw TestError() }
                    }
                }
            }
            let outcome = await group.outcome
            #expect(outcome.error is TestError)
            #expect(begun.value == left.value && room.most <= width)
            seen.add("\(begun.value) \(room.most)")
        }
        #expect(width == 1 ? seen.all == ["2 1"] : seen.all.contains("3 2"), "\(seen.all)")
    }

    @Test func `awake does again what has not finished, and that alone`() async {
        let seen = Seen()
        await explore(departures: 2) {
            let (runs, tries) = (Log<Int>(), Count())
            let group = transactionalOperation(on: Self.target, options: Self.options) { group in
                for child in 0..<2 {
                    group.operation(on: Self.target, options: Self.options) { () async throws in
                        runs.add(child)
                        await explorationPoint("runs")
                        if child == 1, tries.add() == 1 { throw TestError() }
                    }
                }
            } cancellation: { group in
                group.awake()
            }
            async let isCancelled = group.cancel()
            let outcome = await group.outcome
            #expect(await isCancelled != outcome.isFinished)
            let count = (0..<2).map { child in runs.entries.count { $0 == child } }
            if outcome.isFinished {
                // The other child is redone only if it had not finished when this one failed.
                #expect(count[1] == 2 && (1...2).contains(count[0]))
            } else {
                // If the failure came before the cancel, it is the group's outcome.
                #expect(outcome.isCancelled || outcome.error is TestError && count[1] == 1)
                #expect(count[0] <= 2 && count[1] <= 2)
            }
            seen.add("\(count) \(outcome.isFinished)")
        }
        #expect(seen.all.isSuperset(of: ["[1, 2] true", "[0, 0] false"]), "\(seen.all)")
    }

    @Test(arguments: [COOperationQueue.SlotPolicy.releaseWhileSuspended, .holdWhileSuspended])
    func `G33: never more slot holders than slots, despite suspend, resume and cancel`(
        _ slots: COOperationQueue.SlotPolicy
    ) async {
        let seen = Seen()
        await explore(departures: 2) {
            let queue = COOperationQueue(.fifo, runningLimit: 1, slots: slots, on: Self.target)
            let (room, order) = (Room(), Log<Int>())
            let all = (0..<3).map { number in
                operation(on: queue, options: Self.options) { () async throws in
                    order.add(number)
                    await room.use()
                }
            }
            async let pausing: Void = {
                if all[0].suspend() {
                    await explorationPoint("suspended")
                    _ = all[0].resume()
                }
            }()
            async let isCancelled = all[1].cancel()
            for one in all {
                let outcome = await one.outcome
                #expect(outcome.isFinished || one === all[1])
            }
            let wasCancelled = await isCancelled
            await pausing
            #expect(wasCancelled == all[1].isCancelled)
            await queue.idle()
            // The block of a suspended operation keeps running.
            #expect(slots == .releaseWhileSuspended || room.most == 1)
            #expect(queue.operationCount == 0 && Set(order.entries).isSuperset(of: [0, 2]))
            seen.add("\(order.entries)")
        }
        #expect(seen.all.isSuperset(of: ["[0, 1, 2]", "[0, 2]"]), "\(seen.all)")
    }

    @Test func `G35: a suspended queue starts nothing; a resumed one starts all it has`()
        async
    {
        await explore {
            let queue = COOperationQueue(.fifo, runningLimit: 2, on: Self.target)
            let (begun, isClosed) = (Count(), Locked(false))
            queue.suspend()
            isClosed.withLock { $0 = true }
            let all = (0..<3).map { _ in
                operation(on: queue, options: Self.options) {
                    #expect(!isClosed.withLock { $0 })
                    begun.add()
                }
            }
            async let resuming: Void = {
                await explorationPoint("suspended")
                isClosed.withLock { $0 = false }
                queue.resume()
            }()
            async let removed = queue.removeAllPending()
            var finished = 0
            for one in all where await one.outcome.isFinished { finished += 1 }
            await resuming
            #expect(finished == begun.value)
            let count = await removed
            #expect(finished + count == 3)
            await queue.idle()
        }
    }

    @Test func `a time limit and an end come in either order, and one counts`() async {
        let seen = Seen()
        await explore {
            var options = Self.options
            options.timeout = .seconds(1)
            options.clock = ExplorationClock()
            let one = operation(returning: Int.self, on: Self.target, options: options) { _ in }
            async let isFinished: Bool = {
                try? await ExplorationClock().sleep(for: .seconds(1))
                return one.finish(1)
            }()
            let outcome = await one.outcome
            #expect(await isFinished == outcome.isFinished)
            #expect(outcome.isFinished || outcome.reason?.kind == .timedOut)
            seen.add("\(outcome.isFinished)")
        }
        #expect(seen.all == ["true", "false"])
    }

    @Test func `a failed operation is retried, after pauses, up to its limit`() async {
        let seen = Seen()
        await explore(departures: 2) {
            var options = Self.options
            options.resolver = COOperationResolver(
                maxAttempts: 3, backoff: .constant(.seconds(1)), clock: ExplorationClock())
            let runs = Count()
            let began = ExplorationClock().now
            let one = operation(on: Self.target, options: options) { () throws -> Int in
                if runs.add() < 3 { throw TestError() }
                return 3
            }
            async let isCancelled = one.cancel()
            let outcome = await one.outcome
            #expect(await isCancelled == outcome.isCancelled)
            if outcome.isFinished {
                #expect(runs.value == 3)
                #expect(began.duration(to: ExplorationClock().now) == .seconds(2))
            }
            seen.add("\(runs.value) \(outcome.isFinished)")
        }
        #expect(seen.all.isSuperset(of: ["0 false", "1 false", "2 false", "3 true"]), "\(seen.all)")
    }

    @Test func `a sleeping block is woken by a cancel, in a separate turn, or ends before`() async {
        let seen = Seen()
        await explore {
            let (thread, told) = (UInt(pthread_self()), Locked<UInt?>(nil))
            let one = operation(on: Self.target, options: Self.options) { () async throws in
                try await withTaskCancellationHandler {
                    try await ExplorationClock().sleep(for: .seconds(1))
                } onCancel: {
                    told.withLock { $0 = UInt(pthread_self()) }
                }
            }
            async let isCancelled = one.cancel()
            let outcome = await one.outcome
            #expect(await isCancelled == outcome.isCancelled)
            // A handler that another thread calls would be outside the explored orders.
            #expect([nil, thread].contains(told.withLock { $0 }))
            seen.add("\(outcome.isFinished) \(told.withLock { $0 == nil })")
        }
        #expect(seen.all.isSuperset(of: ["true true", "false false"]), "\(seen.all)")
    }

    @Test func `dependents begin after their dependencies end`() async {
        await explore(departures: 2) {
            let order = Log<Int>()
            let all = (0..<3).map { number in
                COOperation<Void>(on: Self.target, options: Self.options) { () async throws in
                    order.add(number)
                    await explorationPoint("runs")
                    order.add(10 + number)
                }
            }
            #expect(all[2].addDependency(all[0]) && all[2].addDependency(all[1]))
            async let starting: Void = { for one in all.reversed() { one.start() } }()
            async let isCancelled = all[0].cancel()
            for one in all { _ = await one.outcome }
            await starting
            let entries = order.entries
            #expect(entries.suffix(2) == [2, 12] && entries.count { $0 == 1 } == 1)
            #expect(await isCancelled == all[0].isCancelled)
        }
    }

    @Test func `a task that waits and is cancelled cancels the operation by run(), not by value`() async {
        let seen = Seen()
        await explore(departures: 2) {
            let make: @Sendable () -> COOperation<Int> = {
                COOperation<Int>(on: Self.target, options: Self.options) { () async throws in
                    await explorationPoint("runs")
                    return 1
                }
            }
            let (owned, watched) = (make(), make())
            watched.start()
            let owner = Task { try await owned.run() }
            let watcher = Task { try await watched.value }
            async let cancelling: Void = {
                owner.cancel()
                watcher.cancel()
            }()
            let value = try await watcher.value
            #expect(value == 1)
            let result = await owner.result
            await cancelling
            let outcome = await owned.outcome
            switch result {
            case .success(let value): #expect(value == 1 && outcome.isFinished)
            case .failure(let error):
                #expect(error is CancelReason || error is CancellationError)
                #expect(outcome.isCancelled)
            }
            seen.add("\(outcome.isFinished)")
        }
        #expect(seen.all == ["true", "false"])
    }
}
