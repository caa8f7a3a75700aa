// What the sink for diagnostics is told.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SinkTests {
    /// Each telling wrapped the listener once more, until a stack was too small for all the wrappings.
    @Test func `a listener may be told a hundred thousand times, on a small stack`() async {
        await #expect(processExitsWith: .success) {
            let count = Locked(0)
            Diagnostics.onReport { _ in count.withLock { $0 += 1 } }
            await onSmallStack { for _ in 0..<100_000 { Diagnostics.report(Diagnostic("again")) } }
            #expect(count.withLock { $0 } == 100_000)
        }
    }

    @Test func `the sink is told of refusals, and of failures that nobody looks at`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<Diagnostic>()
            Diagnostics.onReport { told.add($0) }
            let one = COOperation<Void>()
            one.start()
            try #require(told.entries.count == 1)
            try #require(told.entries[0].operation == one.id)
            try #require(told.entries[0].state == "ready" && told.entries[0].attempt == 0)
            try #require(told.entries[0].description.contains("without a block"))
            one.cancel()
            one.cancel()
            try #require(told.entries.count == 2)
            let failing = operation { _ in throw TestError() }
            try #require(await eventually { failing.isEnded && told.entries.count == 3 })
            try #require(told.entries[2].message.contains("nobody looked"))
            let looked = COOperation<Void> { _ in throw TestError() }
            looked.onOutcome { _ in }
            looked.start()
            _ = await looked.outcome
            Diagnostics.onReport(nil)
            one.cancel()
            try #require(told.entries.count == 3)
        }
    }

    @Test func `the sink is told why a queue does not take an operation`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            let (queue, other) = (COOperationQueue(pendingLimit: 0), COOperationQueue())
            queue.suspend()
            try #require(!queue.add(COOperation<Void> { _ in }))
            try #require(!queue.add(COOperation<Void>(on: other) { _ in }))
            try #require(!queue.add(COOperation<Void>()))
            try #require(
                told.entries == [
                    "refused: add() to a queue that is full",
                    "refused: add() of an operation that belongs to another queue",
                    "refused: start() without a block",
                ])
        }
    }

    @Test func `the sink is told why a composite does not take in what was made before`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            let (started, waits) = (operation {}, COOperation<Void> { _ in })
            let cascade = COCascade<Void> { cascade in
                for one in [started, waits] { _ = try? cascade.add(one) }
            }
            waits.addDependency(cascade)
            cascade.start()
            let outcome = await cascade.outcome
            try #require(outcome.isFinished)
            try #require(
                told.entries == [
                    "refused: a registration: alreadyStarted", "refused: a registration: wouldWaitForItself",
                ])
        }
    }

    @Test func `the sink is told of what is done and should not be, in other words than of a refusal`() async
    {
        await #expect(processExitsWith: .success) {
            func wait() -> Bool { COSyncOperation<Void> { $0.finish() }.start() }
            let told = Log<Diagnostic>()
            Diagnostics.onReport { told.add($0) }
            try #require(wait())
            try #require(told.entries.map(\.message) == ["a sync operation blocks a thread of a task"])
        }
    }
}
