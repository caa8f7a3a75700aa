// SurroundingsTests - what a block knows about where it runs: the slots that its callers hold, and the default queue.
// Unrelated work that happens to run on the same stack knows neither.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Foundation
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// A target that queries a queue when it is released.
private final class Asking: ExecutionTarget {
    let queue: COOperationQueue
    let asked: Count
    init(_ queue: COOperationQueue, _ asked: Count) { (self.queue, self.asked) = (queue, asked) }
    deinit { asked.add(1 + queue.operationCount) }
    func submit(_ work: ExecutionWork) { work.run() }
    var isCurrent: Bool { false }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SurroundingsTests {
    // MARK: Slots

    /// Where the blocks of a queue may run.
    private static func targets() -> [(any ExecutionTarget)?] { [nil, elsewhere, serialQueue()] }

    @Test(.promises("R42"))
    func `a sync operation made outside its queue and started inside it runs within the slot`()
        async throws
    {
        for target in Self.targets() {
            let queue = COOperationQueue(runningLimit: 1, on: target)
            let running = Log<Int>()
            let sync = COSyncOperation<Void>(on: queue) { attempt in
                running.add(queue.runningOperations.count)
                attempt.finish()
            }
            let outer = operation(on: queue) { sync.start() }
            #expect(try await outer.value)
            await queue.idle()
            #expect(running.entries == [1] && sync.isFinished)
        }
    }

    @Test(.promises("R42"))
    func `nested sync operations run within the slot, also through another queue`() async throws {
        for target in Self.targets() {
            for isThroughAnother in [false, true] {
                let queue = COOperationQueue(runningLimit: 1, on: target)
                let other = isThroughAnother ? COOperationQueue(runningLimit: 1, on: target) : queue
                let log = Log<[Int]>()
                let note: @Sendable () -> Void = {
                    log.add([queue, other].map(\.runningOperations.count))
                }
                let outer = operation(on: queue) {
                    syncOperation(on: other) { first in
                        note()
                        syncOperation(on: queue) { second in
                            note()
                            syncOperation(on: other) { third in
                                note()
                                third.finish()
                            }
                            second.finish()
                        }
                        first.finish()
                    }
                }
                _ = try await outer.value
                await queue.idle()
                await other.idle()
                #expect(log.entries == [[1, 1], [1, 1], [1, 1]])
            }
        }
    }

    @Test(.promises("R42")) func `a sync operation without a queue passes on the slot of its caller`()
        async throws
    {
        for target in [nil, elsewhere] as [(any ExecutionTarget)?] {
            let queue = COOperationQueue(runningLimit: 1)
            let ran = Count()
            let outer = operation(on: queue) {
                COSyncOperation<Void>(on: target) { attempt in
                    syncOperation(on: queue) {
                        ran.add()
                        $0.finish()
                    }
                    attempt.finish()
                }.start()
            }
            #expect(try await outer.value)
            await queue.idle()
            #expect(ran.value == 1)
        }
    }

    @Test(.promises("G33"))
    func `a sync operation started outside its queue takes its own slot, as does a copy`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let running = Log<[OperationID]>()
        let outer = operation(returning: COSyncOperation<Void>.self, on: queue) { attempt in
            attempt.finish(
                COSyncOperation<Void>(on: queue) { attempt in
                    running.add(queue.runningOperations.map(\.id))
                    attempt.finish()
                })
        }
        let sync = try await outer.value
        await queue.idle()
        let copy = sync.copy()
        #expect(await aside { sync.start() })
        // A copy of an operation that ran within its caller's slot is admitted on its own.
        let lent = COSyncOperation<Void>(on: queue, options: OperationOptions(keepsBlock: true)) { attempt in
            running.add(queue.runningOperations.map(\.id))
            attempt.finish()
        }
        let around = operation(on: queue) { lent.start() }
        #expect(try await around.value)
        await queue.idle()
        let again = lent.copy()
        for one in [copy, again] { #expect(await aside { one.start() }) }
        await queue.idle()
        #expect(running.entries == [[sync.id], [around.id], [copy.id], [again.id]])
    }

    @Test(.promises("R42")) func `added to a queue whose slot the caller holds, it runs in that slot`()
        async throws
    {
        // No operation may wait in this queue, so the sync operation would be refused if it needed a slot.
        let queue = COOperationQueue(runningLimit: 1, pendingLimit: 0)
        let running = Log<Int>()
        let outer = operation(on: queue) {
            queue.add(
                COSyncOperation<Void> { attempt in
                    running.add(queue.operationCount)
                    attempt.finish()
                })
        }
        #expect(try await outer.value)
        await queue.idle()
        #expect(running.entries == [1])
    }

    @Test func `a late queue check leaves an operation inside a caller's slot alone`() async throws {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        // Many, so that listing them delays the queue checks of other threads for a while.
        let pending = (0..<1000).map { _ in operation(on: queue) {} }
        for one in pending { one.suspend() }
        for _ in 0..<scaled(1500) {
            let over = Locked(false)
            let sync = COSyncOperation<Void>(on: queue) { $0.finish() }
            let outer = operation(on: queue) { sync.start() }
            _ = await atOnce(2) { index in
                while !over.withLock({ $0 }) {
                    if index == 0 {
                        over.withLock { $0 = sync.isEnded }
                        sync.suspend()
                        sync.resume()
                    } else {
                        _ = queue.pendingOperations
                    }
                }
            }
            #expect(try await outer.value)
        }
        for one in pending { one.cancel() }
        await queue.idle()
    }

    @Test(.promises("G33")) func `an operation dispatched by a block lacks its slot`() async throws {
        let targets: [@Sendable () -> any ExecutionTarget] = [
            { ExecutorTarget(serialQueue() as any SerialExecutor) }, { ExecutorTarget(Scheduler.shared) },
            { ExecutorTarget(Somebody()) }, { elsewhere }, { Scheduler.shared },
        ]
        for target in targets {
            let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
            let (ran, gate) = (Count(), Gate())
            let (target, syncs) = (target(), Mail<COSyncOperation<Void>>())
            let outer = operation(on: queue) {
                operation(on: target) {
                    let sync = COSyncOperation<Void>(on: queue) {
                        ran.add()
                        $0.finish()
                    }
                    syncs.send(sync)
                    sync.start()
                }
                gate.wait()
            }
            let sync = await syncs.next()
            #expect(await eventually { sync.isEnded || queue.pendingOperations.map(\.id) == [sync.id] })
            #expect(ran.value == 0, "the slot is not its own")
            gate.open()
            _ = try await outer.value
            #expect(await sync.outcome.isFinished)
            await queue.idle()
        }
    }

    private actor Somebody {}
    @TaskLocal private static var mark = 0

    @Test func `work on a target inherits nothing from its submitter`() async throws {
        let targets: [any ExecutionTarget] = [
            ExecutorTarget(serialQueue() as any SerialExecutor), ExecutorTarget(Scheduler.shared),
            ExecutorTarget(Somebody()), elsewhere, Scheduler.shared,
        ]
        for target in targets {
            let silent = OperationOptions(context: .empty)
            let one = Self.$mark.withValue(1) { operation(on: target, options: silent) { Self.mark } }
            #expect(try await one.value == 0)
        }
    }

    // MARK: The stack of a waiter

    @Test(.promises("G7"))
    func `work run by a waiting worker does not see the default queue of the waiting block`()
        async throws
    {
        let alone = try Scheduler(Scheduler.Configuration(workers: 1))
        let (outside, scope) = (COQueues.defaultQueue, DispatchQueue(label: "scope"))
        let seen = Log<Bool>()
        let note: @Sendable () -> Void = { seen.add(COQueues.defaultQueue === outside) }
        // A plain leaf, one with options, a handler, and work that belongs to no operation.
        let strangers: [@Sendable (@escaping @Sendable () -> Void) -> Void] = [
            { operation(on: alone, $0) },
            { operation(on: alone, options: OperationOptions(name: "stranger"), $0) },
            { end in
                operation(options: OperationOptions(handlerTarget: alone)) {}.onOutcome { _ in end() }
            },
            { try? alone.submit($0) },
        ]
        for (kind, stranger) in strangers.enumerated() {
            // The block waits for an operation. For the first three kinds of strangers, the test is repeated with a
            // wait on a counter of the scheduler.
            for isOurWait in kind < 3 ? [true, false] : [true] {
                let (done, begins) = (try CompletionCounter(), Gate())
                done.enter()
                let other = operation(on: elsewhere) { done.wait() }
                let waiting = COQueues.withDefaultQueue(scope) {
                    operation(on: alone) {
                        begins.wait()
                        if isOurWait { other.wait() } else { done.wait() }
                        return COQueues.defaultQueue === scope
                    }
                }
                stranger {
                    note()
                    done.leave()
                }
                begins.open()
                #expect(try await waiting.value)
                _ = try await other.value
            }
        }
        #expect(seen.entries == Array(repeating: true, count: 7))
    }

    @Test func `a block run inline by its target does not see the submitter's default queue`() {
        final class Inline: ExecutionTarget {
            var isCurrent: Bool { false }
            func submit(_ work: ExecutionWork) { work.run() }
        }
        let (outside, scope) = (COQueues.defaultQueue, DispatchQueue(label: "scope"))
        let seen = Log<Bool>()
        let note: @Sendable () -> Void = { seen.add(COQueues.defaultQueue === outside) }
        let target = Inline()
        let queue = COOperationQueue(on: target)
        // A plain operation, one with a slot, one with extras, one with both, and one with a handler.
        var all: [COOperation<Void>] = []
        for options in [OperationOptions.standard, OperationOptions(name: "one with extras")] {
            for target in [target, queue] as [any ExecutionTarget] {
                all.append(
                    COOperation(on: target, options: options) { attempt in
                        note()
                        attempt.finish()
                    })
            }
        }
        let told = COOperation<Void>(options: OperationOptions(handlerTarget: target))
        told.onOutcome { _ in note() }
        COQueues.withDefaultQueue(scope) {
            for one in all { one.start() }
            told.cancel()
        }
        #expect(seen.entries == Array(repeating: true, count: 5))
    }

    @Test(.promises("R42")) func `an operation run on a waiter's stack may use the waiter's slot`()
        async throws
    {
        let alone = try Scheduler(Scheduler.Configuration(workers: 1, spareWorkers: 0))
        let queue = COOperationQueue(runningLimit: 1, on: alone)
        let ran = Count()
        let stranger = COOperation<Void>(on: alone) { attempt in
            // The holder of the slot is below this block on the stack: a wait for the slot would never end.
            syncOperation(on: queue) {
                ran.add()
                $0.finish()
            }
            attempt.finish()
        }
        let waiting = operation(on: queue) {
            stranger.start()
            stranger.wait()
        }
        _ = try await waiting.value
        #expect(ran.value == 1)
        await queue.idle()
    }

    @Test func `a child on a waiter's stack has the waiter's slot too, whatever its own slot or options`()
        async throws
    {
        let all = [OperationOptions.standard, OperationOptions(name: "one with extras")]
        for (options, isInQueue) in [(all[0], false), (all[0], true), (all[1], false), (all[1], true)] {
            for optionsOfChild in all {
                let alone = try Scheduler(Scheduler.Configuration(workers: 1, spareWorkers: 0))
                let queue = COOperationQueue(runningLimit: 1, on: alone)
                let other = COOperationQueue(runningLimit: 1, on: alone)
                let targetOfChild: any ExecutionTarget = isInQueue ? other : alone
                let (ran, begun) = (Count(), Mail<Void>())
                let group = COTransactionalOperation<Void>(on: alone) { group in
                    group.operation(on: targetOfChild, options: optionsOfChild) {
                        syncOperation(on: queue) {
                            ran.add()
                            $0.finish()
                        }
                    }
                }
                let waiting = operation(on: queue, options: options) {
                    begun.send(())
                    group.start()
                    group.wait()
                }
                await begun.next()  // otherwise the await below would give it extras
                _ = try await waiting.value
                #expect(ran.value == 1)
                await queue.idle()
                await other.idle()
            }
        }
    }

    @Test(.promises("R42")) func `a sync call to another stack keeps a waiter's slot`() async throws {
        let two = try Scheduler(Scheduler.Configuration(workers: 2, spareWorkers: 0))
        let queue = COOperationQueue(runningLimit: 1, on: two)
        let (ran, isHeld, gate) = (Count(), Gate(), Gate())
        // The other worker is held until the stranger runs. Hence the stranger runs on the stack of the waiting
        // operation.
        let held = operation(on: two) {
            isHeld.open()
            gate.wait()
        }
        await aside { isHeld.wait() }
        let waiting = operation(on: queue) {
            let stranger = operation(on: two) {
                syncOperation(on: elsewhere) {
                    gate.open()
                    syncOperation(on: queue) {
                        ran.add()
                        $0.finish()
                    }
                    $0.finish()
                }
            }
            _ = stranger.wait()
        }
        _ = try await (waiting.value, held.value)
        #expect(ran.value == 1)
        await queue.idle()
    }

    @Test(.promises("G33")) func `a task created on a waiter's stack does not hold the waiter's slot`()
        async throws
    {
        let alone = try Scheduler(Scheduler.Configuration(workers: 1, spareWorkers: 0))
        let queue = COOperationQueue(runningLimit: 1, on: alone)
        let (ran, gate, syncs) = (Count(), Gate(), Mail<COSyncOperation<Void>>())
        let stranger = COOperation<Void>(on: alone) { attempt in
            Task {
                let sync = COSyncOperation<Void>(on: queue) {
                    ran.add()
                    $0.finish()
                }
                syncs.send(sync)
                start(sync)
            }
            attempt.finish()
        }
        let waiting = operation(on: queue) {
            stranger.start()
            stranger.wait()
            gate.wait()
        }
        let sync = await syncs.next()
        #expect(await eventually { sync.isEnded || queue.pendingOperations.map(\.id) == [sync.id] })
        #expect(ran.value == 0)
        gate.open()
        _ = try await waiting.value
        #expect(await sync.outcome.isFinished)
        await queue.idle()
    }

    @Test func `a task created by a block shares its slot while it is held`() async {
        for options in [OperationOptions.standard, OperationOptions(name: "one with extras")] {
            let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
            let (ran, begun) = (Count(), Mail<Void>())
            // The block returns, and keeps the slot until the task ends its attempt.
            let outer = operation(on: queue, options: options) { attempt in
                begun.send(())
                Task {
                    start(
                        COSyncOperation<Void>(on: queue) {
                            ran.add()
                            $0.finish()
                        })
                    attempt.finish()
                }
            }
            await begun.next()  // otherwise the await below would give it extras
            #expect(await outer.outcome.isFinished)
            #expect(ran.value == 1)
            await queue.idle()
        }
    }

    @Test(.promises("G15"))
    func `a task of a sync operation's block has the slots of its waiting callers`() async throws {
        for isThroughAnother in [nil, false, true] as [Bool?] {
            let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
            let other = COOperationQueue(runningLimit: 1, on: elsewhere)
            let target: (any ExecutionTarget)? = isThroughAnother.map { $0 ? other : queue }
            let ran = Count()
            let outer = operation(on: queue) {
                let sync = COSyncOperation<Void>(on: target) { sync in
                    // The nested sync operation holds up the task, the task holds up `sync`, and the outer block waits
                    // for `sync`.
                    Task {
                        start(
                            COSyncOperation<Void>(on: queue) {
                                ran.add()
                                $0.finish()
                            })
                        sync.finish()
                    }
                }
                sync.start()
            }
            _ = try await outer.value
            #expect(ran.value == 1)
            await queue.idle()
            await other.idle()
        }
    }

    @Test(.promises("G15"), .enabled(if: !isSanitized))
    func `nested sync operations hold each slot once`() async {
        await #expect(processExitsWith: .success) {
            @Sendable func nest(_ depth: Int) {
                if depth == 0 { return }
                syncOperation { sync in
                    nest(depth - 1)
                    sync.finish()
                }
            }
            let queue = COOperationQueue(runningLimit: 1)
            _ = try await operation(on: queue) { nest(1) }.value
            // If the number of held slots doubled with each level, it would reach 100 million.
            var limit = rlimit()
            try #require(getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
            let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")[
                0]
            limit.rlim_cur = UInt(pages)! * UInt(getpagesize()) + 1 << 30
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0)
            _ = try await operation(on: queue) { nest(25) }.value
        }
    }

    @Test func `a slot of an outer block is not held once it returned`() async throws {
        let alone = try Scheduler(Scheduler.Configuration(workers: 1))
        let queue = COOperationQueue(runningLimit: 1, on: alone)
        // The block returns, and the operation keeps its slot. Other operations on the same thread do not inherit the
        // slot.
        let outer = operation(on: queue) { _ in }
        #expect(await eventually { outer.hasLeftOpen })
        let syncs = Mail<COSyncOperation<Void>>()
        let stranger = operation(on: alone) {
            let sync = COSyncOperation<Void>(on: queue) { $0.finish() }
            syncs.send(sync)
            sync.start()
        }
        let sync = await syncs.next()
        #expect(await eventually { sync.isEnded || queue.pendingOperations.map(\.id) == [sync.id] })
        #expect(!sync.isEnded)
        outer.finish()
        #expect(await stranger.outcome.isFinished)
        await queue.idle()
    }

    @Test(.promises("G37"))
    func `the callers' slots are released at the end, even if the block is kept`() async {
        weak var queue: COOperationQueue?
        let lent = COSyncOperation<Void>(on: elsewhere, options: OperationOptions(keepsBlock: true)) {
            $0.finish()
        }
        do {
            let made = COOperationQueue(runningLimit: 1)
            queue = made
            #expect(await operation(on: made) { lent.start() }.outcome.isFinished)
            await made.idle()
        }
        #expect(await eventually { queue == nil })
        #expect(lent.isFinished)
    }

    @Test(.promises("G33")) func `a released slot is no longer held`() async throws {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        let (goesOn, syncs) = (Gate(), Mail<COSyncOperation<Void>>())
        let running = Log<Bool>()
        let first = operation(on: queue) {
            // A task inherits the slot that is held where it is created, and may outlive the holder.
            Task {
                await elsewhere.waits(for: goesOn)
                let sync = COSyncOperation<Void>(on: queue) { attempt in
                    running.add(queue.runningOperations.contains { $0 === attempt.operation })
                    attempt.finish()
                }
                syncs.send(sync)
                start(sync)
            }
        }
        _ = try await first.value
        await queue.idle()
        goesOn.open()
        let sync = await syncs.next()
        #expect(await sync.outcome.isFinished)
        #expect(running.entries == [true], "it has a slot of its own")
        await queue.idle()
    }

    /// A synchronous wrapper, which a task may call.
    private func start(_ sync: COSyncOperation<Void>) { sync.start() }

    // MARK: Targets

    @Test(.promises("G15")) func `a thread does not wait for a slot whose holders need it`() async throws {
        for limit in [1, 2] {
            for isOnStack in [false, true] {
                let alone = try Scheduler(Scheduler.Configuration(workers: 1, spareWorkers: 0))
                let target = try SerialLane(on: alone)
                let queue = COOperationQueue(runningLimit: limit, on: target)
                let log = Log<String>()
                let ask: @Sendable () -> Void = {
                    // The operations submitted here take the slots, and their turns wait until the outer block leaves
                    // the lane.
                    for index in 0..<limit { operation(on: queue) { log.add("\(index)") } }
                    syncOperation(on: queue) {
                        log.add("sync")
                        $0.finish()
                    }
                }
                let outer = operation(on: target) {
                    if isOnStack { operation(on: alone, ask).wait() } else { ask() }
                }
                _ = try await outer.value
                await queue.idle()
                #expect(log.entries == ["sync"] + (0..<limit).map { "\($0)" })
            }
        }
    }

    @Test(.promises("G15")) func `a thread waits for a slot that others can release`() async throws {
        let lane = try SerialLane()
        let queue = COOperationQueue(runningLimit: 1, on: lane)
        let holder = operation(on: queue) { _ in }
        #expect(await eventually { holder.hasLeftOpen })
        let syncs = Mail<COSyncOperation<Void>>()
        let outer = operation(on: lane) {
            let sync = COSyncOperation<Void>(on: queue) { $0.finish() }
            syncs.send(sync)
            sync.start()
        }
        let sync = await syncs.next()
        #expect(await eventually { sync.isEnded || queue.pendingOperations.map(\.id) == [sync.id] })
        #expect(!sync.isEnded)
        holder.finish()
        _ = try await outer.value
        #expect(sync.isFinished)
        await queue.idle()
    }

    @Test(.promises("G15")) func `a thread of a concurrent queue waits for a slot`() async throws {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        for _ in 0..<scaled(200) {
            let log = Log<String>()
            let outer = operation(on: elsewhere) {
                operation(on: queue) { log.add("first") }
                syncOperation(on: queue) {
                    log.add("sync")
                    $0.finish()
                }
            }
            _ = try await outer.value
            #expect(log.entries == ["first", "sync"])
        }
        await queue.idle()
    }

    @Test(.promises("G15"))
    func `a sync operation's task loses its caller's slot once the caller continues`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        let (goesOn, mayEnd, syncs) = (Gate(), Gate(), Mail<COSyncOperation<Void>>())
        let outer = operation(on: queue) {
            syncOperation { attempt in
                Task {
                    await elsewhere.waits(for: goesOn)
                    let sync = COSyncOperation<Void>(on: queue) { $0.finish() }
                    syncs.send(sync)
                    start(sync)
                }
                attempt.finish()
            }
            goesOn.open()
            mayEnd.wait()
        }
        let sync = await syncs.next()
        #expect(await eventually { sync.isEnded || queue.pendingOperations.map(\.id) == [sync.id] })
        #expect(!sync.isEnded)
        mayEnd.open()
        _ = try await outer.value
        #expect(await sync.outcome.isFinished)
        await queue.idle()
    }

    @Test(.promises("G15")) func `a lane waiting further down the stack causes no deadlock`()
        async throws
    {
        let alone = try Scheduler(Scheduler.Configuration(workers: 1, spareWorkers: 0))
        let lane = try SerialLane(on: alone)
        let ran = Count()
        let stranger = COOperation<Void>(on: alone) { attempt in
            syncOperation(on: lane) {
                ran.add()
                $0.finish()
            }
            attempt.finish()
        }
        let waiting = operation(on: lane) {
            stranger.start()
            stranger.wait()
        }
        _ = try await waiting.value
        #expect(ran.value == 1)
    }

    @Test(.promises("G6")) func `the target that a queue replaces is released under no lock`() async {
        // In a separate process, because the default queue is global.
        await #expect(processExitsWith: .success) {
            let (queue, asked) = (COOperationQueue(), Count())
            COQueues.setDefaultQueue(Asking(queue, asked))
            let one = COOperation<Void> { $0.finish() }
            COQueues.setDefaultQueue(nil)
            try #require(asked.value == 0, "the operation has it")
            try #require(queue.add(one))
            try #require(asked.value > 0)
            let outcome = await one.outcome
            try #require(outcome.isFinished)
        }
    }

    @Test(arguments: [false, true])
    func `an operation ended while it waits releases its target at once, under no lock`(isSync: Bool) async {
        let (queue, asked) = (COOperationQueue(runningLimit: 1), Count())
        let tokens = Mail<COOperation<Void>.Attempt>()
        let holder = operation(on: queue) { tokens.send($0) }
        let token = await tokens.next()
        if isSync {
            let mail = Mail<COSyncOperation<Void>>()
            elsewhere.async {
                let sync = COSyncOperation<Void>(on: Asking(queue, asked)) { $0.finish() }
                mail.send(sync)
                queue.add(sync)
            }
            do {
                let sync = await mail.next()
                #expect(await eventually { queue.pendingOperations.count == 1 })
                sync.cancel()
            }
        } else {
            var options = OperationOptions()
            options.keepsBlock = true
            let one = COOperation<Void>(on: Asking(queue, asked), options: options) { $0.finish() }
            #expect(queue.add(one))
            one.cancel()
        }
        #expect(await eventually { asked.value > 0 })
        token.finish()
        #expect(await holder.outcome.isFinished)
        await queue.idle()
    }

    @Test func `a queue released with its last block leaves no slot on the stack`()
        async throws
    {
        /// Runs a sync operation when it is released.
        final class Running: ExecutionTarget {
            let lane: SerialLane
            let ran: Count
            init(_ lane: SerialLane, _ ran: Count) { (self.lane, self.ran) = (lane, ran) }
            deinit {
                COSyncOperation<Void>(on: lane).run { $0.finish() }
                ran.add()
            }
            func submit(_ work: ExecutionWork) { work.run() }
            var isCurrent: Bool { false }
        }
        let (lane, ran) = (serialQueue(), Count())
        let count = scaled(1000)
        for index in 0..<count {
            let queue = COOperationQueue(runningLimit: 1, on: Running(lane, ran))
            let options = index % 2 == 0 ? OperationOptions.standard : OperationOptions(name: "named")
            operation(on: queue, options: options) { () -> Void in }
        }
        #expect(await eventually { ran.value == count })
    }
}
