// OperationContextTests - task-local values: blocks and handlers see the values that were bound where they were passed
// to their operation, and no others.

import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@testable import CompositeOperations

private enum Trace {
    @TaskLocal static var id = 0
    @TaskLocal static var holder: Marker?
    @TaskLocal static var wide = SIMD4<Double>()
    @TaskLocal static var small: UInt8 = 0
    @TaskLocal static var any: any Sendable = 0
    @TaskLocal static var words: [String]? = []
    @TaskLocal static var nothing: Void = ()
}

private final class Marker: Sendable {}

/// The values seen, in the order in which they are recorded.
private typealias Seen = Log<Int>

extension Log where Entry == Int {
    fileprivate func note() { add(Trace.id) }
}

/// Calls `body` outside any task, with `bound` as the task-local value; 0: with none bound.
private func onThread<Answer: Sendable>(
    bound: Int = 0, _ body: @escaping @Sendable () -> Answer
) async -> Answer {
    await withCheckedContinuation { continuation in
        elsewhere.async {
            continuation.resume(returning: bound == 0 ? body() : Trace.$id.withValue(bound) { body() })
        }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct OperationContextTests {
    private static func targets() throws -> [(any ExecutionTarget)?] {
        [
            nil, try Scheduler(.init(workers: 1)), serialQueue(), DispatchQueue(label: "serial"),
            ExecutorTarget(Scheduler.shared as any TaskExecutor), COOperationQueue(runningLimit: 1),
            COOperationQueue(runningLimit: 2, on: elsewhere),
        ]
    }

    // MARK: Blocks

    @Test(.promises("G41"))
    func `G41: blocks of every kind see the values bound at registration, on every target`()
        async throws
    {
        for target in try Self.targets() {
            for isInTask in [true, false] {
                let make: @Sendable () -> [AnyOperation] = {
                    let prepared = COOperation<Void>(on: target)
                    prepared.run { $0.finish(()) }
                    let set = COOperation<Int>(on: target)
                    set.operation = { $0.finish(Trace.id) }
                    set.start()
                    return [
                        operation(returning: Int.self, on: target) { $0.finish(Trace.id) },
                        operation(on: target) { Trace.id },
                        operation(on: target) { () async -> Int in
                            await Task.yield()
                            return Trace.id
                        },
                        set,
                    ]
                }
                let made =
                    isInTask
                    ? Trace.$id.withValue(7, operation: make) : await onThread(bound: 7, make)
                for one in made {
                    let one = try #require(one as? OperationHandle<Int>)
                    #expect(try await one.value == 7)
                }
            }
        }
    }

    @Test(.promises("G41"))
    func `G41: where no value is bound, a block sees none, and its operation is a plain one`()
        async throws
    {
        let single = await onThread { operation(on: nil) { Trace.id } }
        #expect(single.look { single.extras == nil || single.extras?.context == nil })
        #expect(try await single.value == 0)
        let (plain, bound) = await onThread { () -> (Bool, Bool) in
            let one = COOperation<Void> { $0.finish(()) }
            let other = Trace.$id.withValue(1) { COOperation<Void> { $0.finish(()) } }
            return (one.look { one.isPlain }, other.look { other.isPlain })
        }
        #expect(plain && !bound)
    }

    @Test func `G41: the module's own bindings do not mark queued children as bound`() async throws {
        let queue = COOperationQueue(runningLimit: 2)
        let have = Log<Bool>()
        let group = await onThread {
            COQueues.withDefaultQueue(queue) {
                transactionalOperation { group in
                    group.operation { have.add(COQueues.haveValuesHere) }
                    have.add(COQueues.haveValuesHere)
                }
            }
        }
        _ = try await group.value
        await queue.idle()
        #expect(have.entries == [false, false])
    }

    @Test(.promises("G41")) func `G41: options can disable inheritance`() async throws {
        let made = Trace.$id.withValue(3) {
            [
                operation(options: OperationOptions(context: .empty)) { Trace.id },
                transactionalOperation(options: OperationOptions(context: .empty)) { group in
                    Results.value(of: group.operation { Trace.id })
                },
            ] as [OperationHandle<Int>]
        }
        for one in made { #expect(try await one.value == 0) }
        let (unsaid, said) = (OperationOptions(), OperationOptions(context: .inherited))
        #expect(unsaid.context == nil && said.context == .inherited)
    }

    @Test(.promises("G41")) func `G41: the module's default can disable inheritance`() async {
        await #expect(processExitsWith: .success) {
            #expect(COQueues.context == .inherited)
            COQueues.context = .empty
            #expect(COQueues.context == .empty)
            let made = Trace.$id.withValue(3) {
                [
                    operation { Trace.id },
                    operation(options: OperationOptions(context: .inherited)) { Trace.id },
                    cascadeOperation { cascade in
                        let first = cascade.operation { Trace.id }
                        return Results.value(of: cascade.operation(using: first) { $0 + Trace.id })
                    },
                ] as [OperationHandle<Int>]
            }
            var seen: [Int] = []
            for one in made { seen.append(try await one.value) }
            #expect(seen == [0, 3, 0])
        }
    }

    @Test(.promises("G41"))
    func `G41: steps, children and nested composites see what is bound where they are registered`()
        async throws
    {
        for target in [nil, serialQueue(), COOperationQueue(runningLimit: 3)] as [(any ExecutionTarget)?] {
            let seen = Seen()
            let cascade = Trace.$id.withValue(1) {
                cascadeOperation(on: target) { cascade in
                    seen.note()
                    let first = cascade.operation { Trace.id }
                    let second = Trace.$id.withValue(2) {
                        cascade.operation(using: first) { $0 * 10 + Trace.id }
                    }
                    cascade.operation(using: second) { value async in seen.add(value * 10 + Trace.id) }
                    cascade.operation(on: elsewhere) { step in
                        seen.note()
                        step.finish()
                    }
                    Trace.$id.withValue(3) {
                        cascade.transactionalOperation { group in
                            seen.note()
                            for number in 4...5 {
                                Trace.$id.withValue(number) { group.operation { seen.note() } }
                            }
                        }
                    }
                    cascade.operation { seen.note() }
                }
            }
            _ = try await cascade.value
            var entries = seen.entries
            entries[4...5].sort()
            #expect(entries == [1, 121, 1, 3, 4, 5, 1])
        }
    }

    @Test func `G41: a ready-made child keeps its own`() async throws {
        let seen = Seen()
        let child = Trace.$id.withValue(1) {
            COOperation<Void> { attempt in
                seen.note()
                attempt.finish()
            }
        }
        let group = Trace.$id.withValue(2) {
            transactionalOperation { group in try group.add(child) }
        }
        _ = try await group.value
        #expect(seen.entries == [1])
    }

    @Test(.promises("G41")) func `G41: redo, rerun and awake keep the bindings`() async throws {
        let seen = Seen()
        let redone = Trace.$id.withValue(4) {
            operation(options: OperationOptions(resolver: COOperationResolver(maxAttempts: 5))) {
                (attempt: COOperation<Void>.Attempt) in
                seen.note()
                Trace.$id.withValue(99) {
                    if attempt.number < 5 { attempt.fail(TestError()) } else { attempt.finish() }
                }
            }
        }
        _ = try await redone.value
        #expect(seen.take() == Array(repeating: 4, count: 5))

        let lane = try SerialLane()
        for awakes in [true, false] {
            let attempts = Count()
            let group = Trace.$id.withValue(5) {
                transactionalOperation(on: lane) { group in
                    seen.note()
                    group.operation(on: lane) {
                        seen.note()
                        if attempts.add() < 3 { throw TestError() }
                    }
                } cancellation: { group in
                    seen.note()
                    _ = awakes ? group.awake() : group.rerun()
                }
            }
            _ = try await group.value
            #expect(seen.take() == Array(repeating: 5, count: awakes ? 6 : 8))
        }
    }

    @Test(.promises("G41")) func `G41: a copy sees what the block of the original sees`() async throws {
        let original = Trace.$id.withValue(6) { COOperation<Int> { $0.finish(Trace.id) } }
        let copy = Trace.$id.withValue(1) { original.copy() }
        copy.start()
        #expect(try await copy.value == 6)
        original.start()
        #expect(try await original.value == 6)
        let kept = Trace.$id.withValue(7) {
            operation(options: OperationOptions(keepsBlock: true)) { Trace.id }
        }
        #expect(try await kept.value == 7)
        let again = kept.copy()
        again.start()
        #expect(try await again.value == 7)
        // A block that is set later captures the values bound at that time.
        let other = Trace.$id.withValue(7) { COOperation<Int> { $0.finish(Trace.id) } }
        Trace.$id.withValue(8) { _ = other.run { $0.finish(Trace.id) } }
        #expect(try await other.value == 8)
    }

    @Test(.promises("G41")) func `G41: sync operations see them, on the calling thread and elsewhere`() async
    {
        let seen = await onThread { () -> [Int] in
            let (seen, another) = (Seen(), DispatchQueue(label: "another"))
            Trace.$id.withValue(1) {
                syncOperation { sync in
                    seen.note()
                    sync.finish()
                }
                syncOperation(on: another) { sync in
                    seen.note()
                    sync.finish()
                }
                COSyncOperation<Void>(on: another).run { sync in
                    seen.note()
                    sync.finish()
                }
            }
            let made = Trace.$id.withValue(2) {
                COSyncOperation<Void> { attempt in
                    seen.note()
                    attempt.finish()
                }
            }
            Trace.$id.withValue(3) { _ = made.start() }
            let empty = Trace.$id.withValue(4) { COSyncOperation<Void>(on: another) }
            Trace.$id.withValue(5) {
                empty.run { sync in
                    seen.note()
                    sync.finish()
                }
            }
            return seen.entries
        }
        #expect(seen == [1, 1, 1, 2, 5])
    }

    @Test func `G41: all kinds of values propagate`() async throws {
        let marker = Marker()
        let see: @Sendable () -> [Bool] = {
            [
                Trace.id == 1, Trace.holder === marker, Trace.wide == SIMD4(1, 2, 3, 4), Trace.small == 2,
                Trace.any as? String == "any", Trace.words == ["a", "b"],
            ]
        }
        let bind: @Sendable (() -> COOperation<[Bool]>) -> COOperation<[Bool]> = { make in
            Trace.$id.withValue(9) {
                Trace.$nothing.withValue(()) {
                    Trace.$holder.withValue(marker) {
                        Trace.$wide.withValue(SIMD4(1, 2, 3, 4)) {
                            Trace.$small.withValue(2) {
                                Trace.$any.withValue("any") {
                                    Trace.$words.withValue(["a", "b"]) {
                                        Trace.$id.withValue(1) { make() }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        let all = Array(repeating: true, count: 6)
        #expect(try await bind { operation(see) }.value == all)
        #expect(try await onThread { bind { operation(see) } }.value == all)
        #expect(try await bind { operation { () async in see() } }.value == all)
    }

    @Test func `G41: bindings of a target or a waiter are seen alongside`() async throws {
        let seen = Log<[Int]>()
        await onThread {
            Trace.$id.withValue(1) {
                let sync = COSyncOperation<Void> { attempt in
                    seen.add([Trace.id, Int(Trace.small)])
                    attempt.finish()
                }
                Trace.$id.withValue(2) { Trace.$small.withValue(3) { _ = sync.start() } }
            }
        }
        #expect(seen.entries == [[1, 3]])
    }

    @Test func `copies of a task can be used again and again, also at once`() async throws {
        let context = await onThread(bound: 5) { OperationContext(.ofTask(OperationContext.TaskCopies())) }
        let seen = Seen()
        for _ in 0..<3 { await onThread { context.run { seen.note() } } }
        _ = await atOnce(4) { _ in
            for _ in 0..<100 { context.run { Trace.$id.withValue(6) { seen.note() } } }
        }
        context.run {
            seen.note()
            context.run { seen.note() }
        }
        let entries = seen.entries
        #expect(entries.filter { $0 == 5 }.count == 5 && entries.filter { $0 == 6 }.count == 400)
    }

    @Test func `copies of a task are released with the context`() async {
        weak var weakly: Marker?
        func make(_ marker: Marker) -> OperationContext {
            weakly = marker
            return Trace.$holder.withValue(marker) {
                OperationContext(.ofTask(OperationContext.TaskCopies()))
            }
        }
        do {
            let context = make(Marker())
            #expect(weakly != nil)
            context.run { #expect(Trace.holder != nil) }
        }
        #expect(weakly == nil)
    }

    private actor Home {
        private(set) var entries: [Int] = []
        func add(_ entry: Int) { entries.append(entry) }
    }

    @Test(.promises("G41"))
    func `G41: blocks on an actor and on the main queue are isolated there, within a context, too`()
        async throws
    {
        let (home, seen) = (Home(), Seen())
        let made = Trace.$id.withValue(3) {
            [
                operation(on: ExecutorTarget(home)) { home.assumeIsolated { $0.add(Trace.id) } },
                operation(on: DispatchQueue.main) { MainActor.assumeIsolated { seen.note() } },
            ]
        }
        for one in made { _ = try await one.value }
        #expect(await home.entries == [3])
        #expect(seen.entries == [3])
    }

    // MARK: Handlers

    @Test(.promises("G41"))
    func `G41: closures see what was bound with their block, handlers where they were added`()
        async throws
    {
        let seen = Log<String>()
        let failing = Trace.$id.withValue(1) {
            let one = COOperation<Void>()
            one.run({ _ in throw TestError() }, failure: { _ in seen.add("failure \(Trace.id)") })
            return one
        }
        Trace.$id.withValue(2) { _ = failing.onOutcome { _ in seen.add("outcome \(Trace.id)") } }
        _ = await onThread { failing.onOutcome { _ in seen.add("bare \(Trace.id)") } }
        _ = await failing.outcome
        #expect(await eventually { seen.entries.count == 3 })
        #expect(seen.take() == ["failure 1", "outcome 2", "bare 0"])

        let started = Locked(false)
        let cancelled = Trace.$id.withValue(3) {
            operation { (attempt: COOperation<Void>.Attempt) in
                attempt.onCancel { _ in seen.add("cancel \(Trace.id)") }
                Trace.$id.withValue(4) { attempt.onCancel { _ in seen.add("inner \(Trace.id)") } }
                started.withLock { $0 = true }
            }
        }
        #expect(await eventually { started.withLock(\.self) })
        Trace.$id.withValue(5) { _ = cancelled.cancel() }
        #expect(await eventually { seen.entries.count == 2 })
        #expect(seen.take() == ["cancel 3", "inner 4"])

        let completed = Trace.$id.withValue(6) {
            cascadeOperation { cascade in
                cascade.operation {}
            } completion: {
                seen.add("completion \(Trace.id)")
            }
        }
        _ = try await completed.value
        #expect(await eventually { seen.entries.count == 1 })
        #expect(seen.take() == ["completion 6"])
    }

    @Test func `G41: a resolver's closures see what was bound at the block`() async throws {
        let seen = Seen()
        let resolver = COOperationResolver(
            maxAttempts: 2,
            backoff: .custom { _ in
                seen.note()
                return .zero
            },
            retryIf: { _ in
                seen.note()
                return true
            },
            fallback: { _ in seen.note() })
        let failing = Trace.$id.withValue(9) {
            operation(options: OperationOptions(resolver: resolver)) { () throws -> Void in throw TestError()
            }
        }
        _ = await failing.outcome
        #expect(seen.entries == [9, 9, 9])
    }

    // MARK: Isolation

    @Test(.promises("G41")) func `G41: on one worker, no operation sees another's values`() async throws {
        let scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
        let wrong = Log<(Int, Int)>()
        let all = await onThread {
            (0..<scaled(2000)).map { number in
                let id = number % 3 == 0 ? 0 : number
                let make = {
                    operation(on: scheduler) {
                        if Trace.id != id { wrong.add((id, Trace.id)) }
                        Trace.$id.withValue(-1) {
                            if Trace.id != -1 { wrong.add((id, Trace.id)) }
                        }
                    }
                }
                return id == 0 ? make() : Trace.$id.withValue(id) { make() }
            }
        }
        for one in all { _ = try await one.value }
        #expect(wrong.entries.isEmpty)
        try await scheduler.shutdown()
    }

    @Test(.promises("G41"))
    func `G41: an operation run inside a wait sees its own values, not the waiter's`()
        async throws
    {
        let scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
        let seen = Seen()
        let outer = Trace.$id.withValue(1) {
            operation(on: scheduler) {
                let group = transactionalOperation(
                    on: scheduler, options: OperationOptions(context: .empty)
                ) { group in
                    seen.note()
                    group.operation(on: scheduler) { seen.note() }
                    Trace.$id.withValue(2) { group.operation(on: scheduler) { seen.note() } }
                }
                group.wait()
                seen.note()
            }
        }
        _ = try await outer.value
        #expect(seen.entries.sorted() == [0, 0, 1, 2])
        #expect(seen.entries.last == 1)
        try await scheduler.shutdown()
    }

    @Test func `G41: blocks within a context report it: they are in no task blocked by a wait`()
        async throws
    {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            _ = try await Trace.$id.withValue(1) { operation { syncOperation { $0.finish() } } }.value
            #expect(told.entries.isEmpty)
        }
    }

    // MARK: Retention

    @Test(.promises("G41"))
    func `G41: values are released when the operation has ended, or was never started`() async throws {
        weak var weakly: Marker?
        func make() -> [COOperation<Bool>] {
            let marker = Marker()
            weakly = marker
            return Trace.$holder.withValue(marker) {
                [
                    COOperation<Bool> { $0.finish(Trace.holder != nil) },
                    operation { Trace.holder != nil },
                    operation { () async -> Bool in Trace.holder != nil },
                ]
            }
        }
        var made = make()
        for one in made.dropFirst() { #expect(try await one.value) }
        #expect(weakly != nil)
        made[0].cancel()
        _ = await made[0].outcome
        #expect(await eventually { weakly == nil })
        made = make()
        _ = try await made[1].value
        _ = try await made[2].value
        made = []
        #expect(await eventually { weakly == nil })
    }

    @Test func `G41: at once on many threads, handlers and attempts each see their own`() async throws {
        let wrong = Count()
        let ends = Count()
        for round in 1...scaled(50) {
            let one = Trace.$id.withValue(round) {
                operation(options: OperationOptions(resolver: COOperationResolver(maxAttempts: 3))) {
                    (attempt: COOperation<Void>.Attempt) in
                    if Trace.id != round { wrong.add() }
                    if attempt.number < 3 { throw TestError() }
                    attempt.finish()
                }
            }
            _ = await atOnce(2) { index in
                let id = round * 10 + index
                Trace.$id.withValue(id) {
                    _ = one.onOutcome { _ in
                        if Trace.id != id { wrong.add() }
                        ends.add()
                    }
                }
            }
            _ = try await one.value
        }
        #expect(await eventually { ends.value == 2 * scaled(50) })
        #expect(wrong.value == 0)
    }
}
