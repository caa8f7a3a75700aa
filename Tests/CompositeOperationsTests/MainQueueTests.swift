// MainQueueTests - waits on the main thread: what they serve meanwhile, what wakes them, and what a pump does.

@testable import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct MainQueueTests {
    static let scenes = [
        chain, nestedRunLoop, rounds, sleeps, inItem, onAnotherThread, times, longTimes, pump, eaten,
        uselessPump, strangers,
    ]

    // MARK: Serving

    private static let chain = Scene("chain") {
        let one = COOperation<Void>()
        let (main, elsewhere) = (pthread_self(), Count())
        @Sendable func post(_ left: Int) {
            DispatchQueue.main.async {
                if pthread_equal(pthread_self(), main) == 0 { elsewhere.add() }
                if left == 0 { one.finish() } else { post(left - 1) }
            }
        }
        post(50)
        expectInScene(one.wait()?.isFinished == true, "it finished")
        expectInScene(elsewhere.value == 0, "items run on the main thread")
    }

    @Test func `a wait on the main thread serves the main queue and what its items enqueue`() async {
        #expect(await Self.chain.status() == 0)
    }

    private static let nestedRunLoop = Scene("an item empties the descriptor") {
        for _ in 0..<20 {
            let one = COOperation<Void>()
            // The inner items are posted during the wait. Items that are queued before the wait are served without the
            // descriptor.
            DispatchQueue.main.async {
                operation {
                    DispatchQueue.main.async {
                        DispatchQueue.main.async { one.finish() }
                        RawMainQueue.empty()
                    }
                }
            }
            expectInScene(one.wait()?.isFinished == true, "it finished")
        }
    }

    @Test func `items enqueued during a nested run loop are served`() async {
        #expect(await Self.nestedRunLoop.status() == 0)
    }

    private static let strangers = Scene("strangers") {
        let queue = COOperationQueue(runningLimit: 1, on: DispatchQueue.main)
        let other = COOperationQueue()
        let outer = COSyncOperation<Void>(on: queue) { attempt in
            for isScoped in [false, true] {
                let one = COOperation<Void>()
                expectInScene(COQueues.slots.count == 1, "the block has a slot")
                DispatchQueue.main.async {
                    expectInScene(COQueues.slots.isEmpty, "an item has no slot of the block that waits")
                    expectInScene(COQueues.scoped == nil, "nor its default queue")
                    one.finish()
                }
                if isScoped { COQueues.withDefaultQueue(other) { _ = one.wait() } } else { one.wait() }
                expectInScene(one.isFinished, "it finished")
            }
            attempt.finish()
        }
        outer.start()
        expectInScene(outer.isFinished, "it finished")
    }

    @Test(.promises("G7"))
    func `an item that is served sees neither default queue nor slots of the waiter`() async {
        #expect(await Self.strangers.status() == 0)
    }

    private static let rounds = Scene("rounds") {
        for round in 0..<300 {
            let one = COOperation<Void>()
            if round.isMultiple(of: 2) {
                operation { one.finish() }
            } else {
                operation {
                    DispatchQueue.main.async { operation { DispatchQueue.main.async { one.finish() } } }
                }
            }
            expectInScene(one.wait()?.isFinished == true, "it finished")
        }
    }

    @Test func `an end that comes from elsewhere wakes a wait on the main thread`() async {
        #expect(await Self.rounds.status() == 0)
    }

    private static let sleeps = Scene("sleeps") {
        func timeOnProcessor() -> Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        // The turn of each rerun of the sync operation wakes its sleeping waiter.
        let runs = Count()
        let sync = COSyncOperation<Void> { attempt in
            if runs.add() < 3 { operation { attempt.rerun() } } else { attempt.finish() }
        }
        sync.start()
        let endless = operation { _ in }
        operation { DispatchQueue.main.async {} }
        let before = timeOnProcessor()
        expectInScene(endless.wait(timeout: .milliseconds(300)) == nil, "its time is over")
        expectInScene(timeOnProcessor() - before < .milliseconds(20), "it slept")
        endless.cancel()
    }

    @Test func `a wait on the main thread sleeps, though it was woken before`() async {
        #expect(await Self.sleeps.status() == 0)
    }

    // MARK: Waits that cannot be served

    /// Waits for an operation that ends when the diagnostics listener is called.
    static func waitUntilTold() {
        let inner = COOperation<Void>()
        Diagnostics.onReport { diagnostic in
            if diagnostic.message.contains("inside one of its items") { inner.finish() }
        }
        DispatchQueue.main.async { expectInScene(inner.isEnded, "nothing is served inside an item") }
        expectInScene(inner.wait(timeout: .seconds(10))?.isFinished == true, "the sink is told")
        Diagnostics.onReport(nil)
    }

    private static let inItem = Scene("in an item") {
        let outer = COOperation<Void>()
        DispatchQueue.main.async {
            waitUntilTold()
            DispatchQueue.main.async { outer.finish() }
        }
        expectInScene(outer.wait()?.isFinished == true, "what came meanwhile comes after")
    }

    @Test func `inside a main queue item nothing is served, and the sink is told why`() async {
        #expect(await Self.inItem.status() == 0)
    }

    /// This is the situation in a test process, where other threads run the main queue's items.
    @Test func `the same after the main thread exits`() async {
        await #expect(processExitsWith: .success) {
            await withCheckedContinuation { done in
                DispatchQueue.main.async {
                    MainQueueTests.waitUntilTold()
                    done.resume()
                }
            }
        }
    }

    private static let onAnotherThread = Scene("on another thread") {
        let served = Count()
        DispatchQueue.main.async { served.add() }
        _ = concurrently(2) { _ in
            let one = COOperation<Void>()
            operation { operation { one.finish() } }
            expectInScene(one.wait()?.isFinished == true, "it finished")
        }
        expectInScene(served.value == 0, "nobody but the main thread serves its queue")
    }

    @Test func `a wait on another thread leaves the main queue alone`() async {
        #expect(await Self.onAnotherThread.status() == 0)
    }

    // MARK: Time

    private static let times = Scene("times") {
        let endless = operation { _ in }
        for timeout in [Duration.milliseconds(20), .zero, .seconds(-1)] {
            let served = Count()
            DispatchQueue.main.async { served.add() }
            expectInScene(endless.wait(timeout: timeout) == nil, "its time is over")
            expectInScene(served.value == 1, "what was there before it is served")
        }
        endless.cancel()
    }

    @Test func `a wait on the main thread times out`() async {
        #expect(await Self.times.status() == 0)
    }

    private static let longTimes = Scene("long times") {
        for timeout in [Duration.seconds(1 << 22), .seconds(1 << 40)] {
            let one = operation { _ in }
            operation { DispatchQueue.main.async { operation { one.finish() } } }
            expectInScene(one.wait(timeout: timeout)?.isFinished == true, "it finished")
        }
    }

    @Test func `a wait on the main thread may have more time than poll takes`() async {
        #expect(await Self.longTimes.status() == 0)
    }

    // MARK: Pumps

    private static let pump = Scene("pump") {
        let calls = Count()
        MainQueue.install { _ in
            calls.add()
            if RawMainQueue.awaitItems() { RawMainQueue.serve() }
            return true
        }
        for _ in 0..<300 {
            let one = COOperation<Void>()
            operation { one.finish() }
            expectInScene(one.wait()?.isFinished == true, "it finished")
        }
        expectInScene(calls.value > 0, "the pump has served")
    }

    @Test func `an end that comes from elsewhere wakes a pump`() async {
        #expect(await Self.pump.status() == 0)
    }

    /// A pump that serves twice, like a run loop whose timer runs a nested run loop.
    private static let eaten = Scene("eaten") {
        let calls = Count()
        let one = COOperation<Void>()
        MainQueue.install { _ in
            if calls.add() == 1 {
                RawMainQueue.empty()  // discards wake-ups from before the wait
                operation { one.finish() }
            }
            for _ in 0..<2 where RawMainQueue.awaitItems() { RawMainQueue.serve() }
            return true
        }
        expectInScene(one.wait()?.isFinished == true, "it finished")
        // One more item is on its way. It will find that the wait is over.
        let more = Count()
        while RawMainQueue.awaitItems(50) {
            RawMainQueue.serve()
            expectInScene(more.add() < 20, "it comes no more when the wait has seen it")
        }
    }

    @Test func `a wake-up consumed by a nested run loop repeats until the wait sees it`() async {
        #expect(await Self.eaten.status() == 0)
    }

    private static let uselessPump = Scene("a pump that can do nothing") {
        let (one, calls) = (COOperation<Void>(), Count())
        MainQueue.install { _ in
            if calls.add() == 1 { DispatchQueue.main.async { one.finish() } }
            return false
        }
        expectInScene(one.wait(timeout: .seconds(5))?.isFinished == true, "it finished")
    }

    @Test func `where a pump can do nothing, the main queue is served without it`() async {
        #expect(await Self.uselessPump.status() == 0)
    }
}
