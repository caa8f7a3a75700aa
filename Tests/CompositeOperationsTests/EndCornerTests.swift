// EndCornerTests - corner cases that no other test covered: which observers are notified of an end. Each was found by a
// defect that the other tests let pass (Verification/Mutants/swift-by-hand.txt).

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct EndCornerTests {
    // MARK: Ends

    @Test func `without a failure closure, the cancellation closure gets the failure`() async {
        let told = Log<String>()
        let one = COOperation<Void>()
        one.run({ $0.fail(TestError()) }, completion: { told.add("completion") }) { told.add("cancellation") }
        #expect(await one.outcome.isFailed)
        #expect(await eventually { told.entries == ["cancellation"] })
    }

    @Test func `a handler is told if a composite's value cannot be made`() async {
        let told = Count()
        let stranger = COOperation<Int> { $0.finish(1) }
        let cascade = COCascade<Int>()
        cascade.run({ _ in .value(of: stranger) }, cancellation: { _ in told.add() })
        #expect(await cascade.outcome.error as? RegistrationError == .notAnEarlierStep)
        #expect(await eventually { told.value == 1 })
    }

    @Test func `an unobserved failure is reported once, for the root`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<Diagnostic>()
            Diagnostics.onReport { told.add($0) }
            var cascade: AnyOperation? = cascadeOperation { cascade in
                cascade.cascadeOperation { inner in
                    inner.operation { () throws -> Void in throw TestError() }
                }
            }
            let id = cascade?.id
            try #require(await eventually { cascade?.isEnded == true })
            try #require(told.entries.isEmpty)
            cascade = nil
            try #require(await eventually { !told.entries.isEmpty })
            try #require(told.entries.map(\.operation) == [id])
        }
    }

    @Test func `tasks that begin to wait during the end see it`() async {
        let all = (0..<scaled(10_000)).map { _ in COOperation<Int>() }
        let waits = Count()
        // The finisher follows the waiting task closely. It has a dedicated thread, so it does not occupy a thread that
        // runs tasks.
        async let isOver = onSmallStack {
            for (index, one) in all.enumerated() {
                while waits.value <= index { sched_yield() }
                one.finish(index)
            }
            return true
        }
        for (index, one) in all.enumerated() {
            waits.add()
            for _ in 0..<index % 100 { _ = waits.value }  // varies the distance between the two threads
            #expect(await one.outcome.isFinished)
        }
        #expect(await isOver)
    }

    @Test func `readers that start waiting during a transition see it`() async {
        for _ in 0..<scaled(5_000) {
            let one = COOperation<Int>()
            var transitions = one.transitions.makeAsyncIterator()
            let ends = Task { one.finish(1) }
            var last: OperationState?
            while let transition = await transitions.next() { last = transition.to }
            #expect(last == .finished)
            _ = await ends.value
        }
    }

    @Test func `a handler whose target runs its work several times is called once`() async {
        for _ in 0..<scaled(100) {
            let calls = Count()
            let one = COOperation<Void>()
            let target = RepeatingTarget(3)
            one.onOutcome(on: target) { _ in calls.add() }
            one.finish()
            await withCheckedContinuation { done in one.onOutcome(on: target) { _ in done.resume() } }
            #expect(calls.value == 1)
        }
    }

    @Test func `a running block is not called forgotten`() async {
        let (begun, left) = (Mail<Void>(), Gate())
        let one = operation(on: elsewhere) { (_: COOperation<Void>.Attempt) in
            begun.send(())
            left.wait()
        }
        await begun.next()
        #expect(!one.hasLeftOpen)
        left.open()
        #expect(await eventually { one.hasLeftOpen })
        one.finish()
    }

    // MARK: Names

    @Test func `threads asking at once for an operation's identity get the same one`() async {
        for _ in 0..<scaled(10) {
            let all = (0..<1_000).map { _ in COOperation<Void>() }
            let arrived = Count()
            let answers = await race(2) { _ in
                // In lockstep, so that the two threads reach some operations at the same time.
                all.enumerated().map { index, operation in
                    arrived.add()
                    var looks = 0
                    while arrived.value < 2 * (index + 1) {
                        looks += 1
                        if looks > 10_000 { sched_yield() }
                    }
                    return operation.id
                }
            }
            #expect(answers[0] == answers[1])
        }
    }
}
