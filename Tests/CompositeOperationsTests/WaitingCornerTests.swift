// WaitingCornerTests - corners that no other test looked into: who waits for another one, or for a gate. Each
// was found by a defect that the others let pass (Tests/Mutants/swift-by-hand.txt).

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct WaitingCornerTests {
    // MARK: Dependencies

    @Test func `a dependency that closes a cycle is refused, however long it is`() async {
        let all = (0..<4).map { _ in COOperation<Void> { $0.finish() } }
        #expect(!all[0].addDependency(all[0]))
        for index in 1..<4 { #expect(all[index].addDependency(all[index - 1])) }
        #expect(!all[0].addDependency(all[3]))
        #expect(!all[1].addDependency(all[3]))
        for one in all.reversed() { #expect(one.start()) }
        for one in all { #expect(await one.outcome.isFinished) }
    }

    @Test func `who waits for one more is still waited for, when others have ended`() async {
        let (first, second) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
        let last = COOperation<Void> { $0.finish() }
        #expect(last.addDependency(first) && last.addDependency(second))
        #expect(last.start() && first.start())
        #expect(await first.outcome.isFinished)
        #expect(!second.addDependency(last), "that would be a cycle")
        #expect(last.state == .queued)
        #expect(second.start())
        #expect(await last.outcome.isFinished)
    }

    @Test func `a child does not wait for what it is a part of`() async {
        let last = Locked<COOperation<Void>?>(nil)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { tokens.send($0) }
            cascade.cascadeOperation { _ in }
            let child = cascade.operation {}
            last.withLock { $0 = child }
        }
        let token = await tokens.next()
        #expect(last.withLock { $0! }.addDependency(cascade) == false)
        token.finish()
        #expect(await cascade.outcome.isFinished)
    }

    // MARK: Gates

    @Test func `a task that is cancelled stops to wait for a gate`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        #expect(one.suspend())
        let alone = try Scheduler(Scheduler.Configuration(workers: 1))
        let waiting = Task(executorPreference: alone) { () -> CancelReason.Kind? in
            do throws(CancelReason) {
                try await token.resumed()
                return nil
            } catch {
                return error.kind
            }
        }
        // On the only worker, this comes when the other one waits.
        await Task(executorPreference: alone) {}.value
        waiting.cancel()
        #expect(await waiting.value == .taskCancelled)
        #expect(one.finish())
    }

    @Test func `a task of its own that waits for the gate of an operation hears of its cancel`() async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        #expect(one.suspend())
        let alone = try Scheduler(Scheduler.Configuration(workers: 1))
        let waiting = Task(executorPreference: alone) { () -> CancelReason? in
            do throws(CancelReason) {
                try await token.resumed()
                return nil
            } catch {
                return error
            }
        }
        // On the only worker, this comes when the other one waits.
        await Task(executorPreference: alone) {}.value
        #expect(one.cancel(CancelReason(.removed)))
        #expect(await waiting.value?.kind == .removed)
    }

    @Test func `a task that waited for a gate is let through once, though the gate moves again`() async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        for _ in 0..<3 {
            #expect(one.suspend())
            let waiting = Task { try await token.resumed() }
            for _ in 0..<100 { await Task.yield() }
            #expect(one.resume())
            try await waiting.value
        }
        #expect(one.finish())
        try await one.value
    }
}
