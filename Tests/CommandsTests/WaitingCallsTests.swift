// The blocking wait for a command, on the workers that run commands.

import Commands
import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct WaitingCallsTests {
    /// Also with a time limit, which never expires here.
    static let limits: [Duration?] = [nil, .seconds(60)]

    @Test(arguments: limits, [1, 2, 4])
    func `no operation runs below a wait if it wants a lock held there`(limit: Duration?, workers: Int)
        async throws
    {
        try await withInvoker(workers) { invoker in
            let lock = Locked(0)
            let handles = (0..<12).map { _ in
                invoker.submit(
                    Immediate { _ in
                        lock.withLock { entries in
                            _ = invoker.submit(Immediate { _ in _ = usleep(100) }).wait(timeout: limit)
                            entries += 1
                        }
                    })
            }
            for handle in handles { #expect(await handle.outcome.isFinished) }
            #expect(lock.withLock { $0 } == 12)
        }
    }

    @Test(arguments: limits, [1, 2, 4])
    func `unrelated work in a wait does not see its task-locals`(limit: Duration?, workers: Int)
        async throws
    {
        try await withInvoker(workers) { invoker in
            let mistaken = Count()
            let handles = (1...12).flatMap { id in
                [
                    invoker.submit(
                        Immediate { _ in
                            Trace.$id.withValue(id) {
                                let inner = invoker.submit(
                                    Immediate { _ in if Trace.id != 0 { mistaken.add() } })
                                _ = inner.wait(timeout: limit)
                                if Trace.id != id { mistaken.add() }
                            }
                        }),
                    invoker.submit(Immediate { _ in if Trace.id != 0 { mistaken.add() } }),
                ]
            }
            for handle in handles { #expect(await handle.outcome.isFinished) }
            #expect(mistaken.value == 0)
        }
    }

    @Test(arguments: limits, [1, 2, 4])
    func `acyclic waits end`(limit: Duration?, workers: Int) async throws {
        try await withInvoker(workers) { invoker in
            let held = Held()
            let outside = ConcurrentInvoker(limit: 1).submit(held)
            let first = invoker.submit(Immediate { _ in _ = outside.wait(timeout: limit) })
            let all = (0..<workers).map { _ in
                invoker.submit(Immediate { _ in _ = first.wait(timeout: limit) })
            }
            held.release()
            for handle in all { #expect(await handle.outcome.isFinished) }
        }
    }

    private func withInvoker(_ workers: Int, _ body: (ConcurrentInvoker) async throws -> Void) async throws {
        let scheduler = try Scheduler(.init(workers: workers))
        let invoker = ConcurrentInvoker(limit: 64, on: scheduler)
        try await body(invoker)
        try await invoker.flush()
        try await scheduler.shutdown()
    }
}

private enum Trace { @TaskLocal static var id = 0 }
