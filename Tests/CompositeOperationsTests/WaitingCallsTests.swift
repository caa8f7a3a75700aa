// Waits for operations, of each kind, on the workers of a scheduler.

import CompositeOperations
import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// Every call of this module that blocks until an operation has ended.
private enum WaitingCall: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case handle, composite, cascade, sync, syncFunction, syncRun, queued

    var testDescription: String { rawValue }

    /// Blocks until `body` has run.
    @available(*, noasync)
    func call(on scheduler: Scheduler, _ body: @escaping @Sendable () -> Void) {
        switch self {
        case .handle: #expect(operation(on: scheduler, body).wait() != nil)
        case .composite:
            let group = transactionalOperation(on: scheduler) { group in group.operation(on: scheduler, body)
            }
            #expect(group.wait() != nil)
        case .cascade:
            let cascade = cascadeOperation(on: scheduler) { cascade in
                cascade.operation(on: scheduler, body)
                cascade.operation(on: scheduler) {}
            }
            #expect(cascade.wait() != nil)
        case .sync:
            let sync = COSyncOperation<Void>(on: scheduler) {
                body()
                $0.finish()
            }
            #expect(sync.start())
        case .syncFunction:
            syncOperation(on: scheduler) {
                body()
                $0.finish()
            }
        case .syncRun:
            #expect(
                COSyncOperation<Void>(on: scheduler).run {
                    body()
                    $0.finish()
                })
        case .queued:
            let queue = COOperationQueue(runningLimit: 1, on: scheduler)
            #expect(operation(on: queue, body).wait() != nil)
        }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct WaitingCallsTests {
    @Test(arguments: WaitingCall.allCases, [1, 2, 4])
    fileprivate func `no operation runs below a wait if it wants a lock held there`(
        call: WaitingCall, workers: Int
    ) async throws {
        try await withScheduler(workers) { scheduler in
            let lock = Locked(0)
            let all = (0..<12).map { _ in
                operation(on: scheduler) {
                    lock.withLock { entries in
                        call.call(on: scheduler) { usleep(100) }
                        entries += 1
                    }
                }
            }
            for one in all { #expect(await one.outcome.isFinished) }
            #expect(lock.withLock { $0 } == 12)
        }
    }

    @Test(arguments: WaitingCall.allCases, [1, 2, 4])
    fileprivate func `unrelated work in a wait does not see its task-locals`(
        call: WaitingCall, workers: Int
    ) async throws {
        try await withScheduler(workers) { scheduler in
            let mistaken = Count()
            let all = (1...12).flatMap { id in
                [
                    operation(on: scheduler) {
                        Trace.$id.withValue(id) {
                            call.call(on: scheduler) { if Trace.id != 0, Trace.id != id { mistaken.add() } }
                            if Trace.id != id { mistaken.add() }
                        }
                    },
                    operation(on: scheduler) { if Trace.id != 0 { mistaken.add() } },
                ]
            }
            for one in all { #expect(await one.outcome.isFinished) }
            #expect(mistaken.value == 0)
        }
    }

    /// One operation waits for an operation that runs elsewhere. As many operations as there are workers wait for the
    /// first one.
    @Test(arguments: WaitingCall.allCases, [1, 2, 4])
    fileprivate func `acyclic waits end`(call: WaitingCall, workers: Int) async throws {
        try await withScheduler(workers) { scheduler in
            let gate = Gate()
            let outside = operation(on: elsewhere) { gate.wait() }
            let first = operation(on: scheduler) { call.call(on: scheduler) { outside.wait() } }
            let all = (0..<workers).map { _ in
                operation(on: scheduler) { call.call(on: scheduler) { first.wait() } }
            }
            gate.open()
            for one in all { #expect(await one.outcome.isFinished) }
        }
    }

    @Test(arguments: [1, 2, 4])
    func `handlers that wait for what another handler that waits begins all end`(workers: Int) async throws {
        try await withScheduler(workers) { scheduler in
            let (begun, told) = (COOperation<Void>(on: scheduler) { $0.finish() }, Count())
            let ends = (0..<9).map { _ in Gate() }
            let options = OperationOptions(handlerTarget: scheduler)
            for index in 0..<9 {
                operation(on: scheduler, options: options) {}.onOutcome { _ in
                    if index == 8 { begun.start() }
                    begun.wait()
                    told.add()
                    ends[index].open()
                }
            }
            await aside { for end in ends { end.wait() } }
            #expect(told.value == 9)
        }
    }

    @Test(arguments: [1, 2, 4])
    func `20,000 operations that wait for one end when it does`(workers: Int) async throws {
        let scheduler = try Scheduler(.init(workers: workers, spareWorkers: 64))
        let gate = COOperation<Void> { $0.finish() }
        let all = (0..<scaled(20_000)).map { _ in operation(on: scheduler) { gate.wait() } }
        #expect(await eventually { scheduler.statistics.replaced >= 32 })
        gate.start()
        for one in all { #expect(await one.outcome.isFinished) }
        try await scheduler.shutdown()
    }

    /// On a slow enough machine each operation occupies its own worker, so the limit on spare workers is too high to be
    /// reached here.
    @Test(arguments: [1, 2, 4])
    func `an operation that waits for another one, 10,000 deep, ends`(workers: Int) async throws {
        let scheduler = try Scheduler(.init(workers: workers, spareWorkers: scaled(10_000)))
        @Sendable func descend(_ depth: Int) {
            if depth > 0 { operation(on: scheduler) { descend(depth - 1) }.wait() }
        }
        #expect(await operation(on: scheduler) { descend(scaled(10_000)) }.outcome.isFinished)
        try await scheduler.shutdown()
    }

    @Test(arguments: [1, 2, 4])
    func `a limit of a wait holds, whatever else could be run`(workers: Int) async throws {
        try await withScheduler(workers) { scheduler in
            let gate = Gate()
            let slow = operation(on: elsewhere) { gate.wait() }
            let times = Locked<[Duration]>([])
            let all = (0..<20).flatMap { _ in
                [
                    operation(on: scheduler) {
                        let began = ContinuousClock.now
                        if slow.wait(timeout: .milliseconds(50)) == nil {
                            times.withLock { $0.append(ContinuousClock.now - began) }
                        }
                    },
                    operation(on: scheduler) { _ = usleep(100_000) },
                ]
            }
            for one in all { #expect(await one.outcome.isFinished) }
            gate.open()
            let sorted = times.withLock { $0.sorted() }
            try #require(sorted.count == 20)
            #expect(sorted[0] >= .milliseconds(50))
            // Concurrent tests cost time; an operation wrongly run inside a wait adds 100 ms.
            #expect(sorted[10] < .milliseconds(100))
        }
    }

    #if DEBUG
        @Test func `a wait for an operation below on the stack stops the process, and names both`() async {
            let result = await #expect(
                processExitsWith: .failure, observing: [\.standardErrorContent]
            ) {
                let scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
                let outer = Locked<COOperation<Void>?>(nil)
                let one = COOperation<Void>(on: scheduler, options: OperationOptions(name: "below")) {
                    token in
                    operation(on: scheduler, options: OperationOptions(name: "above")) {
                        outer.withLock { $0 }?.wait()
                    }.wait()
                    token.finish()
                }
                outer.withLock { $0 = one }
                one.start()
                _ = await one.outcome
            }
            let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            #expect(text.contains(#"a wait for operation "below" "#))
            #expect(text.contains(#/operation "above" \S+, above operation "below"/#))
        }

        @Test func `a wait in a child for its composite stops the process`() async {
            await #expect(processExitsWith: .failure) {
                let (made, group) = (Gate(), Locked<COTransaction<Void>?>(nil))
                let one = transactionalOperation { scope in
                    scope.operation {
                        made.wait()
                        group.withLock { $0 }?.wait()
                    }
                }
                group.withLock { $0 = one }
                made.open()
                _ = await one.outcome
            }
        }
    #endif

    private func withScheduler(_ workers: Int, _ body: (Scheduler) async throws -> Void) async throws {
        let scheduler = try Scheduler(.init(workers: workers))
        try await body(scheduler)
        try await scheduler.shutdown()
    }
}

private enum Trace { @TaskLocal static var id = 0 }
