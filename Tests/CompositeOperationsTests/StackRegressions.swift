// R44: steps that finish at once do not nest, and children do not run inside their parent's block.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct StackRegressions {
    /// Counts how many blocks are nested on each thread.
    private final class Depths: Sendable {
        private let inside = Locked<[pthread_t: Int]>([:])
        let deepest = Locked(0)
        let entries = Count()

        func enter() {
            entries.add()
            let depth = inside.withLock { inside in
                inside[pthread_self(), default: 0] += 1
                return inside[pthread_self()]!
            }
            deepest.withLock { $0 = max($0, depth) }
        }

        func leave() { inside.withLock { $0[pthread_self()]! -= 1 } }
    }

    static let targets: [@Sendable () -> any ExecutionTarget] = [
        { concurrentQueue() }, { serialQueue() }, { DispatchQueue(label: "serial") }, { elsewhere },
        { COOperationQueue(runningLimit: 1) }, { COOperationQueue(.lifo, runningLimit: 2, on: elsewhere) },
    ]

    @Test(.promises("R44"), arguments: targets.indices)
    func `R44: a step begins when its predecessor left the thread`(index: Int) async throws {
        let target = Self.targets[index]()
        let depths = Depths()
        let cascade = cascadeOperation(on: target) { cascade in
            for _ in 0..<scaled(2000) {
                cascade.operation(on: target) { attempt in
                    depths.enter()
                    attempt.finish()
                    depths.leave()
                }
            }
        }
        try await cascade.value
        #expect(depths.deepest.withLock { $0 } == 1)
        #expect(depths.entries.value == scaled(2000))
    }

    @Test(.promises("R44"), arguments: targets.indices)
    func `R44: a child begins outside of the registration block, on whatever thread`(index: Int) async throws
    {
        let target = Self.targets[index]()
        let depths = Depths()
        let group = transactionalOperation(on: target) { group in
            depths.enter()
            for _ in 0..<50 {
                group.operation(on: target) { attempt in
                    depths.enter()
                    attempt.finish()
                    depths.leave()
                }
                group.cascadeOperation(on: target) { cascade in
                    depths.enter()
                    cascade.operation(on: target) {
                        depths.enter()
                        depths.leave()
                    }
                    depths.leave()
                }
            }
            depths.leave()
        }
        try await group.value
        #expect(depths.deepest.withLock { $0 } == 1)
        #expect(depths.entries.value == 151)
    }

    @Test(.promises("R44"))
    func `R44: an operation does not begin before the call that made it returns, on one worker`()
        async throws
    {
        let one = try Scheduler(Scheduler.Configuration(workers: 1, spareWorkers: 0))
        let depths = Depths()
        let outer = operation(on: one) {
            depths.enter()
            defer { depths.leave() }
            return (0..<20).map { _ in
                operation(on: one) {
                    depths.enter()
                    depths.leave()
                }
            }
        }
        for inner in try await outer.value { try await inner.value }
        #expect(depths.deepest.withLock { $0 } == 1)
    }

    @Test(.promises("R44")) func `R44: a rerun begins when the block that asked for it has left the thread`()
        async throws
    {
        let one = try Scheduler(Scheduler.Configuration(workers: 1, spareWorkers: 0))
        let depths = Depths()
        let again = operation(on: one) { attempt in
            depths.enter()
            if attempt.number < scaled(2000) { attempt.rerun() } else { attempt.finish() }
            depths.leave()
        }
        try await again.value
        #expect(depths.deepest.withLock { $0 } == 1)
        #expect(depths.entries.value == scaled(2000))
    }

    @Test(.promises("R44")) func `R44: a handler runs outside of the call that ended its operation`() async {
        let one = try? Scheduler(Scheduler.Configuration(workers: 1, spareWorkers: 0))
        for ending in Ending.allCases {
            let depths = Depths()
            let handle = COOperation<Int>(on: one, options: OperationOptions(handlerTarget: one))
            handle.run { attempt in
                depths.enter()
                ending.end(attempt)
                depths.leave()
            } completion: {
                depths.enter()
                depths.leave()
            } cancellation: {
                depths.enter()
                depths.leave()
            }
            await withCheckedContinuation { done in handle.onOutcome { _ in done.resume() } }
            #expect(depths.deepest.withLock { $0 } == 1)
            #expect(depths.entries.value == 2)
        }
    }
}
