// SmallCompositeTests - composites without options or handlers, which allocate nothing beyond themselves: they report,
// release and retain the same as all other composites.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Reads an operation's state in `deinit`: releasing this object under the operation's lock would deadlock.
private final class Looking: Sendable {
    private let operation: @Sendable () -> AnyOperation?
    private let released: Count

    init(_ released: Count, at operation: @escaping @Sendable () -> AnyOperation?) {
        self.released = released
        self.operation = operation
    }

    deinit {
        _ = operation()?.state
        released.add()
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SmallCompositeTests {
    // MARK: The completion

    @Test func `handlers added while the completion is called, or pending, follow it`() async {
        for isCascade in [false, true] {
            let log = Log<String>()
            let (isOut, mayReturn) = (Mail<Void>(), Gate())
            let completion: @Sendable () -> Void = {
                isOut.send(())
                mayReturn.wait()
                log.add("completion")
            }
            let composite: CompositeOperation<Void> =
                isCascade
                ? cascadeOperation({ $0.operation {} }, completion: completion)
                : transactionalOperation({ $0.operation {} }, completion: completion)
            await isOut.next()
            #expect(composite.isEnded)
            let told = Mail<Void>()
            for number in 1...3 {
                composite.onOutcome { _ in
                    log.add("handler \(number)")
                    if number == 3 { told.send(()) }
                }
            }
            mayReturn.open()
            await told.next()
            #expect(log.entries == ["completion", "handler 1", "handler 2", "handler 3"])
            // Afterwards a new handler is called as usual.
            await withCheckedContinuation { continuation in
                composite.onOutcome { _ in continuation.resume() }
            }
        }
    }

    @Test func `a handler that is added before the end is called after the completion`() async {
        for _ in 0..<scaled(200) {
            let log = Log<String>()
            let told = Mail<Void>()
            let composite = transactionalOperation {
                $0.operation {}
            } completion: {
                log.add("completion")
            }
            composite.onOutcome { _ in
                log.add("handler")
                told.send(())
            }
            await told.next()
            #expect(log.entries == ["completion", "handler"])
        }
    }

    @Test func `a copy made while the completion runs has none, unless blocks are kept`() async {
        for keepsBlock in [false, true] {
            let completions = Count()
            let (isOut, mayReturn) = (Mail<Void>(), Gate())
            let composite = transactionalOperation(options: OperationOptions(keepsBlock: keepsBlock)) {
                $0.operation {}
            } completion: {
                completions.add()
                isOut.send(())
                mayReturn.wait()
            }
            await isOut.next()
            let copy = composite.copy()
            mayReturn.open()
            #expect(copy.start() == keepsBlock)
            if keepsBlock { #expect(await copy.outcome.isFinished) }
            #expect(await eventually { completions.value == (keepsBlock ? 2 : 1) })
        }
    }

    @Test func `a completion that is not called, one that is, and a decision are released under no lock`()
        async
    {
        for ends in [false, true] {
            let released = Count()
            let operation = Locked<AnyOperation?>(nil)
            let isOpen = Gate()
            func make() -> COCascade<Void> {
                let look: @Sendable () -> AnyOperation? = { operation.withLock { $0 } }
                let (first, second) = (Looking(released, at: look), Looking(released, at: look))
                return cascadeOperation { cascade in
                    cascade.operation { isOpen.wait() }
                    cascade.operation {}
                } completion: {
                    withExtendedLifetime(first) {}
                } cancellation: { _ in
                    withExtendedLifetime(second) {}
                }
            }
            let cascade = make()
            operation.withLock { $0 = cascade }
            if ends { cascade.cancel() }
            isOpen.open()
            #expect(await cascade.outcome.isFinished == !ends)
            #expect(await eventually { released.value == 2 })
            operation.withLock { $0 = nil }
            withExtendedLifetime(cascade) {}
        }
    }

    // MARK: Completed plain children

    @Test func `plain steps before one that ends badly are neither taken nor run again by an awake`()
        async throws
    {
        let ran = [Count(), Count(), Count()]
        let steps = Locked<[Child<Int>]>([])
        let tries = Count()
        let cascade = cascadeOperation { cascade in
            steps.withLock { $0 = [] }
            for index in 0..<2 {
                let step = cascade.operation {
                    ran[index].add()
                    return index
                }
                steps.withLock { $0.append(step) }
            }
            cascade.operation { attempt in
                ran[2].add()
                tries.add()
                if tries.value < 5 { attempt.cancel() } else { attempt.finish() }
            }
        } cancellation: { cascade in
            let all = steps.withLock { $0 }
            #expect(all.allSatisfy { $0.isFinished && !$0.hasObject })
            if tries.value == 3 { cascade.rerun() } else { cascade.awake() }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(ran.map(\.value) == [2, 2, 5])
        let all = steps.withLock { $0 }
        #expect(all.allSatisfy { !$0.hasObject })
        for (number, step) in all.enumerated() { #expect(try await step.value == number) }
    }

    @Test func `queries on plain steps that are over are answered while a later one waits`()
        async throws
    {
        let steps = Mail<[Child<Int>]>()
        let (isOut, isOpen) = (Mail<Void>(), Gate())
        let cascade = cascadeOperation { cascade in
            let first = (0..<3).map { number in cascade.operation { number } }
            cascade.operation { attempt in
                isOut.send(())
                isOpen.wait()
                attempt.finish()
            }
            let last = cascade.operation { 42 }
            steps.send(first + [last])
            return .values(of: first + [last])
        }
        let all = await steps.next()
        await isOut.next()
        #expect(cascade.suspend() && cascade.isSuspended)
        #expect(all[..<3].allSatisfy { $0.isFinished && !$0.hasObject })
        #expect(cascade.resume())
        #expect(try await all[1].value == 1)
        let children = cascade.children
        #expect(children.count == 5 && children[2] === all[2].operation && children[2].isFinished)
        #expect(children[4].state == .ready)
        isOpen.open()
        #expect(try await cascade.value == [0, 1, 2, 42])
    }

    /// A query made after `awake()`, while the composite waits to continue.
    private enum Look: CaseIterable, Sendable { case children, tree, child }

    @Test(arguments: Look.allCases, [false, true])
    private func `a query between an awake and its resumption loses nothing`(
        look: Look, isCascade: Bool
    ) async {
        for _ in 0..<scaled(20) {  // in most rounds, the plain children are already known to have ended
            let tries = Count()
            let first = Mail<Child<Int>>()
            let (isAwake, mayEnd, isOpen) = (Mail<AnyOperation>(), Gate(), Gate())
            let block: @Sendable (any CompositeScope) -> Void = { scope in
                first.send(scope.operation { 7 })
                scope.operation { attempt in
                    tries.add()
                    mayEnd.wait()
                    if tries.value == 1 { attempt.cancel() } else { attempt.finish() }
                    // The block keeps running until the query has been made.
                    if tries.value == 1 { isOpen.wait() }
                }
                scope.operation {}
            }
            let decision: @Sendable (CompositeOperation<Void>) -> Void = { composite in
                composite.awake()
                isAwake.send(composite)
            }
            let composite: CompositeOperation<Void> =
                isCascade
                ? cascadeOperation({ block($0) }, cancellation: { decision($0) })
                : transactionalOperation({ block($0) }, cancellation: { decision($0) })
            let child = await first.next()
            #expect(await eventually { child.isFinished })
            mayEnd.open()
            let awake = await isAwake.next()
            #expect(awake === composite && composite.state == .delayed)
            switch look {
            case .children: #expect(composite.children.count == 3)
            case .tree: #expect(composite.tree.contains("finished"))
            case .child: #expect(child.operation.isFinished)
            }
            isOpen.open()
            #expect(await composite.outcome.isFinished)
            #expect(tries.value == 2)
        }
    }

    @Test func `a query in the pause before a nested group's awake loses nothing`() async {
        let tries = Count()
        let first = Mail<Child<Int>>()
        let mayEnd = Gate()
        let nested = Mail<COTransaction<Void>>()
        let clock = ManualClock()
        var options = OperationOptions()
        options.resolver = COOperationResolver(
            backoff: .constant(.seconds(1)), redo: .awake, clock: clock)
        let root = transactionalOperation(options: options) { group in
            nested.send(
                group.transactionalOperation { inner in
                    first.send(inner.operation { 1 })
                    inner.operation { attempt in
                        tries.add()
                        mayEnd.wait()
                        if tries.value == 1 { attempt.fail(TestError()) } else { attempt.finish() }
                    }
                })
        }
        let (inner, child) = (await nested.next(), await first.next())
        #expect(await eventually { child.isFinished })
        mayEnd.open()
        #expect(await eventually { clock.sleepers == 1 })
        #expect(root.state == .delayed && inner.children.count == 2)
        #expect(root.tree.contains("finished"))
        clock.advance(by: .seconds(1))
        #expect(await root.outcome.isFinished)
        #expect(tries.value == 2)
    }

    @Test func `handles of a dropped run keep their results`() async throws {
        let former = Mail<[Child<Int>]>()
        let tries = Count()
        let cascade = cascadeOperation { cascade in
            let steps = (0..<20).map { number in cascade.operation { number } }
            cascade.operation { attempt in
                tries.add()
                if tries.value == 1 { attempt.cancel() } else { attempt.finish() }
            }
            if tries.value == 0 { former.send(steps) }
        } cancellation: {
            $0.rerun()
        }
        #expect(await cascade.outcome.isFinished)
        for (number, step) in await former.next().enumerated() {
            #expect(try await step.value == number)
            #expect(step.operation.isFinished && step.operation.attempt == 1)
        }
    }

    // MARK: Many at once

    @Test func `a child that runs while a cancel settles its siblings keeps its queue until it returns`()
        async
    {
        let queue = COOperationQueue(runningLimit: 1)
        let (registered, begun, isOpen) = (Mail<Void>(), Mail<Void>(), Gate())
        let group = transactionalOperation { group in
            group.operation { (_: COOperation<Void>.Attempt) in }
            group.operation(on: queue) { (_: COOperation<Void>.Attempt) in
                begun.send(())
                isOpen.wait()
            }
            group.operation { (_: COOperation<Void>.Attempt) in }
            registered.send(())
        }
        await registered.next()
        await begun.next()  // its block runs, so it holds the queue's slot
        let returned = ", its block has returned without an end"
        #expect(
            await eventually {
                group.tree.split(separator: "\n").count { $0.hasSuffix(returned) } == 2
            })
        group.cancel()
        #expect(queue.operationCount == 1 && group.isCancelled && !group.isEnded)
        isOpen.open()
        #expect(await group.outcome.isCancelled)
        await queue.idle()
        #expect(await operation(on: queue) {}.outcome.isFinished)
    }

    @Test func `in a cancelled group each block is released once, whatever the gaps`() async {
        await forAll(Generator<[Bool]>.array(of: .bool, count: 1...40), cases: scaled(60)) { finishes in
            let released = Count()
            let children = Locked<[AnyOperation]>([])
            let registered = Mail<Void>()
            func make() -> COTransaction<Void> {
                transactionalOperation { group in
                    group.suspend()
                    for number in finishes.indices {
                        let token = Token(released)
                        let child: AnyOperation =
                            number % 7 == 3
                            ? group.transactionalOperation { _ in withExtendedLifetime(token) {} }
                            : group.operation { (_: COOperation<Void>.Attempt) in
                                withExtendedLifetime(token) {}
                            }
                        children.withLock { $0.append(child) }
                    }
                    registered.send(())
                }
            }
            let group = make()
            await registered.next()
            for (child, finish) in zip(children.withLock { $0 }, finishes) where finish {
                (child as? COOperation<Void>)?.finish()
            }
            #expect(group.cancel())
            #expect(await group.outcome.isCancelled)
            for (child, finish) in zip(children.withLock { $0 }, finishes) {
                #expect(child.isEnded && child.isFinished == (finish && child is COOperation<Void>))
            }
            #expect(await eventually { released.value == finishes.count })
            children.withLock { $0 = [] }
        }
    }
}
