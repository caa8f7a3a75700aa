// ReleaseCornerTests - corner cases that no other test covered: what is released and when, and that no lock is held
// meanwhile. Each was found by a defect that the other tests let pass (Verification/Mutants/swift-by-hand.txt).

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Calls a closure when it is released, as a user's object may. No lock of ours may be held at that time.
private final class Sentinel: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    deinit { body() }
}

private struct SentinelError: Error {
    let sentinel: Sentinel
}

/// Makes sentinels that use the watched operation, and counts their releases.
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

private struct WeakChild {
    weak var child: AnyObject?
    init(_ child: AnyObject) { self.child = child }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ReleaseCornerTests {
    @Test func `an ended operation has released its resolver and its default queue`() async {
        let released = Count()
        weak var gone: HeldTarget?
        func make() -> COOperation<Void> {
            let (token, target) = (Token(released), HeldTarget())
            gone = target
            let resolver = COOperationResolver(retryIf: { _ in withExtendedLifetime(token) { false } })
            return COQueues.withDefaultQueue(target) {
                operation(on: elsewhere, options: OperationOptions(resolver: resolver)) { $0.finish() }
            }
        }
        let one = make()
        #expect(await one.outcome.isFinished)
        #expect(await eventually { released.value == 1 && gone == nil })
        withExtendedLifetime(one) {}
    }

    @Test func `after the end a composite does not hold what its value is made of`() async throws {
        let children = Locked<[WeakChild]>([])
        let cascade = cascadeOperation { cascade -> Results<Int> in
            let child = cascade.operation { 1 }
            children.withLock { $0 = [WeakChild(child.operation)] }
            return .value(of: child)
        }
        #expect(try await cascade.value == 1)
        #expect(await eventually { children.withLock { $0[0].child == nil } })
        withExtendedLifetime(cascade) {}
    }

    @Test func `a queue does not list an unstarted operation, even if its gate moved`() async {
        let queue = COOperationQueue(runningLimit: 1)
        weak var gone: COOperation<Void>?
        func prepare() {
            let one = COOperation<Void>(on: queue) { $0.finish() }
            gone = one
            #expect(one.suspend() && one.resume() && one.suspend())
            #expect(queue.operationCount == 0)
        }
        prepare()
        #expect(gone == nil)
        await queue.idle()

        let other = COOperation<Void>(on: queue) { $0.finish() }
        #expect(other.suspend() && other.resume())
        #expect(queue.add(other), "it is ready")
        #expect(await other.outcome.isFinished)
        let child = COOperation<Void>(on: queue) { $0.finish() }
        #expect(child.suspend() && child.resume())
        let cascade = cascadeOperation { cascade in try cascade.add(child) }
        #expect(await cascade.outcome.isFinished)
        await queue.idle()
    }

    @Test func `a composite dropped by a rerun is told of its end even if unreferenced`() async {
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

    @Test func `a block's error is released under no lock when another attempt begins`() async {
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

    @Test(.promises("G37")) func `a leaf's retry cause is released at its end`() async {
        let watch = Watch()
        let clock = ManualClock()
        let one = COOperation<Int>(
            options: OperationOptions(
                resolver: COOperationResolver(maxAttempts: 2, backoff: .constant(.seconds(1)), clock: clock))
        ) { attempt in
            attempt.fail(SentinelError(sentinel: watch.sentinel))
        }
        watch.watch(one)
        one.start()
        #expect(await eventually { clock.sleepers == 1 })
        #expect(one.finish(1))
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 1 })
        #expect(one.isEnded, "it is alive")
        watch.watch(nil)
    }

    @Test func `a token's handlers and uncalled closures are released under no lock`() async {
        let watch = Watch()
        let one = COOperation<Void>()
        watch.watch(one)
        @Sendable func listen(_ attempt: COOperation<Void>.Attempt) {
            let sentinel = watch.sentinel
            attempt.onCancel { _ in withExtendedLifetime(sentinel) {} }
        }
        func run() {
            let (inCancellation, inFailure) = (watch.sentinel, watch.sentinel)
            one.run { attempt in
                listen(attempt)
                attempt.finish()
            } cancellation: {
                withExtendedLifetime(inCancellation) {}
            } failure: { _ in
                withExtendedLifetime(inFailure) {}
            }
        }
        run()
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 3 })
        watch.watch(nil)
    }

    @Test func `a leaf attempt's error is released under no lock when the next one begins`() async {
        let watch = Watch()
        let one = COOperation<Void>(options: OperationOptions(resolver: COOperationResolver(maxAttempts: 2)))
        watch.watch(one)
        one.run { attempt in
            if attempt.number == 1 { throw SentinelError(sentinel: watch.sentinel) }
            attempt.finish()
        }
        #expect(await one.outcome.isFinished)
        #expect(await eventually { watch.released.value == 1 })
        watch.watch(nil)
    }

    @Test func `a plain leaf leaves nothing: neither block, nor value, nor itself`() async {
        let (blocks, values) = (Count(), Count())
        weak var gone: COOperation<Token>?
        // Nothing waits for this leaf: with a waiter it would no longer be a plain one.
        func run() {
            let inBlock = Token(blocks)
            gone = operation {
                withExtendedLifetime(inBlock) {}
                return Token(values)
            }
        }
        run()
        #expect(await eventually { gone == nil })
        #expect(await eventually { blocks.value == 1 && values.value == 1 })
    }
}
