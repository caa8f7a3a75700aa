// QueueCornerTests - corner cases that no other test covered: slots, and the places that queues give. Each was found by
// a defect that the other tests let pass (Verification/Mutants/swift-by-hand.txt).

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct QueueCornerTests {
    @Test func `a pausing operation releases its slot`() async throws {
        let clock = ManualClock()
        let queue = COOperationQueue(runningLimit: 1)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let pauses = operation(on: queue, options: OperationOptions(clock: clock)) { tokens.send($0) }
        let token = await tokens.next()
        #expect(await eventually { token.operation.hasLeftOpen })
        #expect(token.rerun(after: .seconds(1)))
        try await operation(on: queue) {}.value
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(1))
        await tokens.next().finish()
        try await pauses.value
    }

    @Test func `children with a target of their own pass through the queue of their composite`() async {
        let queue = COOperationQueue(runningLimit: 1)
        let (inside, running) = (Count(), Log<Int>())
        let group = transactionalOperation(on: queue) { group in
            for _ in 0..<20 {
                group.operation(on: elsewhere) {
                    running.add(inside.add())
                    running.add(queue.runningOperations.count)
                    inside.add(-1)
                }
            }
        }
        #expect(await group.outcome.isFinished)
        #expect(running.entries == Array(repeating: 1, count: 40))
    }

    @Test func `a queue's target overrides the default queue of an operation's creation`() async throws {
        let lane = try SerialLane()
        let one = COQueues.withDefaultQueue(elsewhere) {
            COOperation<Bool> { $0.finish(lane.isCurrent) }
        }
        #expect(COOperationQueue(on: lane).add(one))
        #expect(try await one.value)
    }

    @Test func `children without a target run on their composite queue's target`() async throws {
        let lane = try SerialLane()
        let queue = COOperationQueue(on: lane)
        let isThere = Log<Bool>()
        let cascade = cascadeOperation(on: queue) { cascade in
            isThere.add(lane.isCurrent)
            cascade.operation { isThere.add(lane.isCurrent) }
            cascade.transactionalOperation { inner in inner.operation { isThere.add(lane.isCurrent) } }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(isThere.entries == [true, true, true])
    }

    @Test func `an operation ended by a round releases its slot while the decision is open`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let (tokens, holds) = (Mail<COOperation<Void>.Attempt>(), Mail<DecisionHold?>())
        let waiting = Locked<COOperation<Void>?>(nil)
        let group = transactionalOperation(on: queue) { group in
            group.operation { tokens.send($0) }
            let other = group.operation {}
            waiting.withLock { $0 = other.operation }
        } cancellation: {
            holds.send($0.deferDecision())
        }
        let token = await tokens.next()
        #expect(await eventually { token.operation.hasLeftOpen })
        #expect(waiting.withLock { $0! }.cancel())
        let hold = await holds.next()
        #expect(hold != nil && group.state == .deciding)
        // The queue's only slot was held by the first child. The round has ended that child, so the slot is free.
        try await operation(on: queue) {}.value
        #expect(group.state == .deciding)
        withExtendedLifetime(hold) {}
    }
}
