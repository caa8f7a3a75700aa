// DumpLoadTests - dumps while everything runs.
//
// No worker waits long for a dump, because each lock is held for O(1) nodes (DESIGN.md of Inspection). That is not measured
// here: on a busy machine a worker may be without a processor for longer than such a wait.

import CompositeOperations
import CompositeOperationsTestSupport
import Foundation
import Observability
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * min(1, stressScale))) }

// Part of the same suite as the other tests of dumps: only one test at a time may turn inspection on.
extension DumpTests {
    /// Runs trees, one after another, until `isOver` is set.
    private func load(_ isOver: Locked<Bool>, _ done: Count, _ queue: COOperationQueue) async {
        while !isOver.withLock({ $0 }) {
            let tree = transactionalOperation { scope in
                for _ in 0..<4 {
                    scope.operation { done.add() }
                    _ = scope.operation(on: queue) { attempt in
                        done.add()
                        attempt.finish()
                    }
                    _ = scope.cascadeOperation { cascade in
                        _ = cascade.operation { (attempt: COOperation<Void>.Attempt) in attempt.finish() }
                        _ = cascade.operation { () async throws -> Void in done.add() }
                    }
                }
            }
            let single = operation { () async throws -> Void in _ = await tree.outcome }
            _ = await single.outcome
        }
    }

    @Test func `a dump visits part of a large tree, and counts the rest`() async {
        Inspection.start()
        defer { Inspection.stop() }
        let count = scaled(100_000)
        let attempts = Locked<[COOperation<Void>.Attempt]>([])
        let tree = transactionalOperation(options: named("large tree")) { scope in
            for _ in 0..<count { _ = scope.operation { attempt in attempts.withLock { $0.append(attempt) } } }
        }
        #expect(await eventually { attempts.withLock { $0.count } == count })
        for limit in [1, 100, 1_000] {
            let dump = Inspection.dump(limit: limit)
            #expect(dump.trees.nodes.count <= limit)
            // Other tests may have more roots than `limit`.
            if let root = dump.trees.node("large tree") { #expect(root.omitted >= count - limit) }
            #expect(dump.problems.count { $0.kind == .forgottenFinish } < limit)
        }
        for attempt in attempts.withLock({ $0 }) { attempt.finish() }
        attempts.withLock { $0 = [] }
        #expect(await tree.outcome.isFinished)
    }

    @Test func `a thousand dumps under load are valid, and the load goes on`() async throws {
        Inspection.start()
        defer { Inspection.stop() }
        let (isOver, done) = (Locked(false), Count())
        let queue = COOperationQueue(runningLimit: 2)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 { group.addTask { await load(isOver, done, queue) } }
            for index in 0..<scaled(1_000) {
                let before = done.value
                let dump = Inspection.dump(limit: index % 2 == 0 ? 200 : 7)
                do {
                    let decoded = try JSONDecoder().decode(Dump.self, from: Data(dump.json.utf8))
                    #expect(decoded == dump)
                } catch { Issue.record(error) }
                #expect(!dump.description.isEmpty)
                #expect(dump.trees.nodes.count <= dump.limit)
                if index % 100 == 0 { #expect(await eventually { done.value > before }) }
            }
            isOver.withLock { $0 = true }
        }
        await queue.idle()
    }
}
