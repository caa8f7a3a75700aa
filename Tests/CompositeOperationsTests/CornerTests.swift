// CornerTests - corners that no other test looked into: each was found by a defect that the others let pass
// (Tests/Mutants/swift-by-hand.txt).

import CompositeOperations
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// Calls something when it goes: in an object of a user's, where that may be done, no lock of ours is held.
private final class Sentinel: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    deinit { body() }
}

private struct SentinelError: Error {
    let sentinel: Sentinel
}

/// What a sentinel of a composite does: looks at it, and counts.
private final class Watch: Sendable {
    private let operation = Locked<AnyOperation?>(nil)
    let released = Count()

    func watch(_ operation: AnyOperation?) { self.operation.withLock { $0 = operation } }

    var sentinel: Sentinel {
        Sentinel { [self] in
            _ = operation.withLock { $0 }?.state
            released.add()
        }
    }
}

@Suite(.watched(testLimit)) struct CornerTests {
    // MARK: Order

    @Test func `a step that is finished by hand while its cascade's block is out starts no other one`() async
    {
        let (runs, seen) = (Count(), Locked<OperationState?>(nil))
        let cascade = cascadeOperation { cascade in
            let first = cascade.operation { _ in runs.add() }
            let second = cascade.operation { runs.add() }
            first.finish()
            seen.withLock { $0 = second.state }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(seen.withLock { $0 } == .ready)
        #expect(runs.value == 1)
    }

    @Test func `a child that is finished by hand while its composite pauses starts no other one`() async {
        let clock = ManualClock()
        let children = Locked<[COOperation<Void>]>([])
        let resolver = COOperationResolver(maxAttempts: 5, backoff: .constant(.seconds(1)), clock: clock)
        let cascade = cascadeOperation(options: OperationOptions(resolver: resolver)) { cascade in
            let first = cascade.operation { attempt in if attempt.number == 1 { attempt.cancel() } }
            let second = cascade.operation { $0.finish() }
            children.withLock { $0 = [first, second] }
        }
        #expect(await eventually { clock.sleepers == 1 })
        let (first, second) = children.withLock { ($0[0], $0[1]) }
        #expect(first.finish())
        #expect(second.state == .ready && second.attempt == 0)
        clock.advance(by: .seconds(1))
        #expect(await cascade.outcome.isFinished)
        #expect(second.numberOfRuns == 1)
    }

    // MARK: Decisions

    @Test func `a block that returns while a decision is open completes nothing`() async {
        let clock = ManualClock()
        let (left, begun) = (Gate(), Mail<Void>())
        let holds = Mail<DecisionHold?>()
        let options = OperationOptions(attemptTimeout: .seconds(1), clock: clock)
        let queue = COOperationQueue(on: elsewhere)
        let group = transactionalOperation(on: queue, options: options) { _ in
            begun.send(())
            left.wait()
        } cancellation: {
            holds.send($0.deferDecision())
        }
        await begun.next()
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(1))
        var hold = await holds.next()
        #expect(hold != nil)
        left.open()
        #expect(await eventually { queue.runningOperations.isEmpty })
        #expect(group.state == .deciding)
        hold = nil
        #expect(await group.outcome.reason?.kind == .timedOut)
    }

    @Test func `after a rerun, what the old block threw does not count`() async {
        let epochs = Count()
        let cascade = cascadeOperation { cascade in
            if epochs.add() == 1 { throw TestError() }
            cascade.operation { attempt in
                if attempt.number == 1 { attempt.cancel() } else { attempt.finish() }
            }
        } cancellation: { cascade in
            if cascade.attempt == 1 { #expect(cascade.rerun()) } else { #expect(cascade.awake()) }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(cascade.attempt == 3)
        #expect(epochs.value == 2, "the second redo was of the children, not of the block")
    }

    @Test func `after a rerun, a child that the old block lost does not count`() async {
        let (epochs, asked, lost) = (Count(), Gate(), Gate())
        let options = OperationOptions(handlerTarget: elsewhere)
        let group = transactionalOperation(on: elsewhere, options: options) { group in
            let epoch = epochs.add()
            group.operation { attempt in
                if group.control.attempt < 3 { attempt.cancel() } else { attempt.finish() }
            }
            if epoch > 1 { return }
            asked.wait()
            #expect(group.operation {}.isFailed, "a decision is open")
            lost.open()
        } cancellation: { group in
            guard group.attempt == 1 else {
                #expect(group.awake())
                return
            }
            asked.open()
            lost.wait()
            #expect(group.rerun())
        }
        #expect(await group.outcome.isFinished)
        #expect(group.attempt == 3)
        #expect(epochs.value == 2, "the second redo was of the children, not of the block")
    }

    @Test func `a child's late end does not count in the attempt that a composite around its own asks for`()
        async
    {
        let clock = ManualClock()
        let only = Locked<COOperation<Void>?>(nil)
        let asked = Count()
        let resolver = COOperationResolver(maxAttempts: 9, backoff: .constant(.seconds(1)), clock: clock)
        let other = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { group in
            group.transactionalOperation(options: OperationOptions(resolver: resolver)) { inner in
                let child = inner.operation { attempt in
                    if attempt.number == 1 { attempt.cancel() } else { attempt.finish() }
                }
                only.withLock { $0 = child }
            }
            group.operation { attempt in
                if attempt.number == 1 { other.send(attempt) } else { attempt.finish() }
            }
        } cancellation: {
            asked.add()
            $0.awake()
        }
        let token = await other.next()
        #expect(await eventually { clock.sleepers == 1 })
        // Its composite pauses, and would begin its next attempt with a round.
        #expect(only.withLock { $0! }.cancel())
        #expect(token.cancel())
        #expect(await group.outcome.isFinished, "without a pause")
        #expect(asked.value == 1)
    }

    @Test func `a child that is done again, and finishes, has finished`() async throws {
        let children = Locked<[AnyOperation]>([])
        let outcomes = Log<Bool>()
        let cascade = cascadeOperation { cascade in
            let leaf = cascade.operation { () throws -> Int in
                if cascade.control.attempt == 1 { throw TestError() }
                return 7
            }
            let composite = cascade.cascadeOperation { inner in
                inner.operation { () throws -> Void in if cascade.control.attempt == 2 { throw TestError() } }
            }
            leaf.onOutcome { outcomes.add($0.isFinished) }
            composite.onOutcome { outcomes.add($0.isFinished) }
            children.withLock { $0 = [leaf, composite] }
        } cancellation: {
            if $0.attempt < 3 { $0.awake() }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(await eventually { outcomes.entries.count == 2 })
        #expect(outcomes.entries == [true, true])
        #expect(children.withLock { $0 }.allSatisfy { $0.isFinished && $0.state == .finished })
    }

    @Test func `a plain leaf that is done again, and finishes, has finished`() async {
        let leaf = Locked<COOperation<Int>?>(nil)
        let cascade = cascadeOperation { cascade in
            let one = cascade.operation { () throws -> Int in
                if cascade.control.attempt == 1 { throw TestError() }
                return 7
            }
            leaf.withLock { $0 = one }
            cascade.operation {}
        } cancellation: {
            if $0.attempt == 1 { $0.awake() }
        }
        #expect(await cascade.outcome.isFinished)
        #expect((try? leaf.withLock { $0 }?.result?.get()) == 7)
    }

    @Test func `a composite that a round around it ends as it goes on asks nobody`() async {
        let clock = ManualClock()
        let (tokens, fallbacks, told) = (Mail<COOperation<Void>.Attempt>(), Count(), Count())
        let resolver = COOperationResolver(maxAttempts: 2, backoff: .constant(.seconds(1)), clock: clock)
        let withFallback = COOperationResolver(maxAttempts: 2, fallback: { _ in fallbacks.add() })
        // In the middle the one that ends all of them, so that either order in which they go on will do.
        let resolvers = [withFallback, nil, withFallback]
        let group = transactionalOperation(options: OperationOptions(resolver: resolver)) { group in
            for resolver in resolvers {
                group.transactionalOperation(options: OperationOptions(resolver: resolver)) { inner in
                    inner.operation { tokens.send($0) }
                }.onOutcome { _ in told.add() }
            }
            group.operation(options: OperationOptions(name: "first")) { tokens.send($0) }
        }
        var all: [COOperation<Void>.Attempt] = []
        while all.count < 4 { all.append(await tokens.next()) }
        for token in all where token.operation.name == "first" { #expect(token.fail(TestError())) }
        #expect(await eventually { clock.sleepers == 1 })
        // Each composite will begin with a round; that of the one in the middle leaves the group no attempt.
        for token in all where token.operation.name != "first" { #expect(token.operation.cancel()) }
        clock.advance(by: .seconds(1))
        #expect(!(await group.outcome.isFinished))
        #expect(await eventually { told.value == 3 })
        #expect(group.attempt == 2)
        #expect(fallbacks.value == 1, "of the one before it")
    }

    @Test func `a leaf that pauses before its last attempt, and is failed, fails`() async {
        let (clock, fallbacks) = (ManualClock(), Count())
        let resolver = COOperationResolver(
            maxAttempts: 2, backoff: .constant(.seconds(1)), clock: clock, fallback: { _ in fallbacks.add() })
        let leaf = operation(options: OperationOptions(resolver: resolver)) { () throws -> Void in
            throw TestError()
        }
        #expect(await eventually { clock.sleepers == 1 })
        #expect(leaf.fail(TestError(number: 3)))
        #expect(leaf.isFailed)
        #expect(await leaf.outcome.error as? TestError == TestError(number: 3))
        #expect(fallbacks.value == 0 && leaf.numberOfRuns == 1)
    }

    @Test func `what never ran settles while its sibling is still out`() async {
        let (begun, left) = (Mail<Void>(), Gate())
        let group = transactionalOperation(options: OperationOptions(width: 1)) { group in
            group.operation(on: elsewhere) { () -> Void in
                begun.send(())
                left.wait()
            }
            group.operation {}
        }
        await begun.next()
        #expect(await eventually { group.children.count == 2 })
        let idle = group.children[1]
        #expect(group.cancel())
        #expect(idle.isEnded && !group.isEnded)
        left.open()
        #expect(await group.outcome.isCancelled)
    }

    // MARK: Time

    @Test func `the time of a composite stops with its end`() async {
        let clock = ManualClock()
        let options = OperationOptions(timeout: .seconds(5), clock: clock)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let completes = cascadeOperation(options: options) { $0.operation { tokens.send($0) } }
        let fails = cascadeOperation(options: options) { $0.operation { tokens.send($0) } }
        let (one, other) = (await tokens.next(), await tokens.next())
        #expect(await eventually { clock.sleepers == 2 })
        one.finish()
        other.fail(TestError())
        _ = await (completes.outcome, fails.outcome)
        #expect(await eventually { clock.sleepers == 0 })
    }

    // MARK: Memory

    @Test func `a composite that a rerun drops is told of its end, though nobody holds it`() async {
        let (begun, left) = (Mail<Void>(), Gate())
        let (told, epochs) = (Log<Bool>(), Count())
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { group in
            if epochs.add() > 1 { return }
            group.transactionalOperation { inner in
                inner.operation(on: elsewhere) { () -> Void in
                    begun.send(())
                    left.wait()
                }
            }.onOutcome { told.add($0.isCancelled) }
            group.operation { tokens.send($0) }
        } cancellation: {
            $0.rerun()
        }
        await begun.next()
        #expect(await tokens.next().cancel())
        #expect(await eventually { group.attempt == 2 })
        left.open()
        #expect(await group.outcome.isFinished)
        #expect(await eventually { told.entries.count == 1 })
        #expect(told.entries == [true])
    }

    @Test func `the values of children that a rerun drops, and at the end, are released under no lock`() async
    {
        let watch = Watch()
        let one = COCascade<Void>()
        watch.watch(one)
        let block: @Sendable (CascadeScope) throws -> Void = { cascade in
            cascade.operation { watch.sentinel }
            cascade.operation { attempt in
                if cascade.control.attempt == 1 { attempt.cancel() } else { attempt.finish() }
            }
        }
        one.run(block, cancellation: { $0.rerun() })
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 2 })
        watch.watch(nil)
    }

    @Test func `what a block threw is released under no lock when another attempt begins`() async {
        let watch = Watch()
        let one = COCascade<Void>()
        watch.watch(one)
        let block: @Sendable (CascadeScope) throws -> Void = { cascade in
            if cascade.control.attempt == 1 { throw SentinelError(sentinel: watch.sentinel) }
        }
        one.run(block, cancellation: { $0.rerun() })
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 1 })
        watch.watch(nil)
    }

    // MARK: Queues

    @Test func `children with a target of their own pass through the queue of their composite`() async {
        let queue = COOperationQueue(runningLimit: 1)
        let (inside, most) = (Count(), Locked(0))
        let group = transactionalOperation(on: queue) { group in
            for _ in 0..<20 {
                group.operation(on: elsewhere) {
                    let now = inside.add()
                    most.withLock { $0 = max($0, now) }
                    #expect(queue.runningOperations.count == 1)
                    inside.add(-1)
                }
            }
        }
        #expect(await group.outcome.isFinished)
        #expect(most.withLock { $0 } == 1)
    }

    @Test func `children without a target run where the queue of their composite says`() async throws {
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

    @Test func `an operation that a round has ended gives its slot back while the decision is open`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let (tokens, holds) = (Mail<COOperation<Void>.Attempt>(), Mail<DecisionHold?>())
        let waiting = Locked<COOperation<Void>?>(nil)
        let group = transactionalOperation(on: queue) { group in
            group.operation { tokens.send($0) }
            let other = group.operation {}
            waiting.withLock { $0 = other }
        } cancellation: {
            holds.send($0.deferDecision())
        }
        let token = await tokens.next()
        #expect(await eventually { token.operation.hasLeftOpen })
        #expect(waiting.withLock { $0! }.cancel())
        let hold = await holds.next()
        #expect(hold != nil && group.state == .deciding)
        // The slot of the one that runs is the only one.
        try await operation(on: queue) {}.value
        #expect(group.state == .deciding)
        withExtendedLifetime(hold) {}
    }

    // MARK: Names

    @Test func `threads that ask at once for the identity of an operation are told the same`() async {
        for _ in 0..<scaled(2_000) {
            let one = COOperation<Void>()
            let answers = await race(4) { _ in one.id }
            #expect(Set(answers).count == 1)
        }
    }
}
