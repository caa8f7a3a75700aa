// R31, R32, R36, R46: what happens while a registration block runs.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct RegistrationRegressions {
    /// Starts a composite of either kind, with the same block.
    @discardableResult
    static func composite(
        isCascade: Bool, on target: (any ExecutionTarget)? = nil,
        _ block: @escaping @Sendable (any CompositeScope) throws -> Void,
        completion: (@Sendable () -> Void)? = nil,
        cancellation: (@Sendable (CompositeOperation<Void>) -> Void)? = nil
    ) -> CompositeOperation<Void> {
        if isCascade {
            return cascadeOperation(
                on: target, { try block($0) }, completion: completion, cancellation: cancellation)
        }
        return transactionalOperation(
            on: target, { try block($0) }, completion: completion, cancellation: cancellation)
    }

    // MARK: R31

    @Test(.promises("R31"))
    func `R31: cancelled inside its block, a composite ends, and so do the children before and after`()
        async
    {
        let cases = Generator.zip(
            .zip(.bool, .bool), .zip(.int(in: 0...4), .int(in: 0...4)))
        await forAll(cases, cases: scaled(200)) { (kinds, counts) in
            let (isCascade, isNested) = kinds
            let (before, after) = counts
            let children = Log<OperationHandle<Void>>()
            let late = Log<OperationHandle<Void>>()
            let lateRuns = Count()
            let called = Log<String>()
            let composite = Self.composite(isCascade: isCascade) { scope in
                for _ in 0..<before {
                    children.add(
                        isNested
                            ? scope.cascadeOperation { cascade in cascade.operation { _ in } }
                            : scope.operation { _ in })
                }
                #expect(scope.cancel())
                #expect(scope.isCancelled)
                #expect(!scope.isOpen)
                for _ in 0..<after {
                    late.add(
                        isNested
                            ? scope.transactionalOperation { _ in lateRuns.add() }
                            : scope.operation { attempt in
                                lateRuns.add()
                                attempt.finish()
                            })
                }
            } completion: {
                called.add("completion")
            } cancellation: { _ in
                called.add("cancellation")
            }
            #expect(await composite.outcome.reason?.kind == .requested)
            #expect(children.entries.count == before)
            for child in children.entries { #expect(child.result?.reason?.kind == .parent) }
            for child in late.entries {
                #expect(await child.outcome.error as? RegistrationError == .ended)
            }
            #expect(lateRuns.value == 0)
            await withCheckedContinuation { done in composite.onOutcome { _ in done.resume() } }
            #expect(called.entries == ["cancellation"])
        }
    }

    @Test(.promises("R31"))
    func `R31: cancelled by another thread during registration, each child ends once`() async {
        for round in 0..<scaled(100) {
            let children = Log<OperationHandle<Void>>()
            let outcomes = Count()
            let composite = Self.composite(isCascade: round % 2 == 0) { scope in
                let canceller = Gate()
                elsewhere.async {
                    canceller.open()
                    scope.control.cancel()
                }
                canceller.wait()
                for _ in 0..<50 {
                    let child = scope.operation { $0.finish() }
                    children.add(child.onOutcome { _ in outcomes.add() })
                }
            }
            let outcome = await composite.outcome
            // The cancellation may come after everything is done.
            #expect(!outcome.isFailed)
            for child in children.entries { _ = await child.outcome }
            #expect(await eventually { outcomes.value == 50 })
            #expect(children.entries.allSatisfy { $0.isEnded })
        }
    }

    // MARK: R32

    @Test(.promises("R32"), arguments: [false, true])
    func `R32: a block that throws fails its composite, and started children are cancelled`(
        isCascade: Bool
    ) async {
        let children = Log<COOperation<Void>>()
        let composite = Self.composite(isCascade: isCascade) { scope in
            children.add(scope.operation { _ in })
            throw TestError(number: 3)
        }
        #expect(await composite.outcome.error as? TestError == TestError(number: 3))
        #expect(composite.state == .failed)
        #expect(children.entries.map { $0.result?.reason?.kind } == [.parent])
    }

    @Test(.promises("R32"), arguments: [false, true])
    func `R32: a block that throws may be rerun, but not continued`(isCascade: Bool) async {
        let runs = Count()
        let answers = Log<Bool>()
        let causes = Log<Cause>()
        let composite = Self.composite(isCascade: isCascade) { scope in
            scope.operation {}
            if runs.add() < 3 { throw TestError() }
        } cancellation: { composite in
            for cause in composite.causes { causes.add(cause) }
            answers.add(composite.awake())
            answers.add(composite.rerun())
        }
        #expect(await composite.outcome.isFinished)
        #expect(runs.value == 3)
        // The last attempt may end before the call that began it returns.
        #expect(await eventually { answers.entries == [false, true, false, true] })
        #expect(causes.entries.count == 2)
        #expect(causes.entries.allSatisfy { $0.index == nil && $0.child == nil })
    }

    @Test(.promises("R32")) func `R32: a thrown cancellation is one, and a reason that is thrown is kept`()
        async
    {
        let first = cascadeOperation { _ in throw CancellationError() }
        let second = transactionalOperation { _ in throw CancelReason(.removed) }
        #expect(await first.outcome.reason?.kind == .threwCancellation)
        #expect(await second.outcome.reason?.kind == .removed)
    }

    // MARK: R36

    @Test(.promises("R36"), arguments: [false, true])
    func `R36: the last child ends while registration closes: one completion`(isCascade: Bool) async {
        for round in 0..<scaled(300) {
            let completions = Count()
            let isClosing = Count()
            let composite = Self.composite(isCascade: isCascade, on: elsewhere) { scope in
                let children = (0...round % 3).map { _ in scope.operation { _ in } }
                elsewhere.async {
                    while isClosing.value == 0 { sched_yield() }
                    for child in children { child.finish() }
                }
                isClosing.add()
            } completion: {
                completions.add()
            }
            #expect(await composite.outcome.isFinished)
            await withCheckedContinuation { done in composite.onOutcome { _ in done.resume() } }
            #expect(completions.value == 1)
        }
    }

    // MARK: R46

    @Test(.promises("R46"), arguments: [false, true])
    func `R46: many threads register nested composites: each is counted, and runs once`(isCascade: Bool) async
    {
        let perThread = scaled(40)
        for _ in 0..<5 {
            let leaves = Count()
            let composites = Count()
            let nested = Log<AnyOperation>()
            let composite = Self.composite(isCascade: isCascade, on: elsewhere) { scope in
                _ = concurrently(4) { thread in
                    for index in 0..<perThread {
                        if (index + thread) % 2 == 0 {
                            nested.add(
                                scope.cascadeOperation { cascade in
                                    composites.add()
                                    for _ in 0..<3 { cascade.operation { _ = leaves.add() } }
                                })
                        } else {
                            nested.add(
                                scope.transactionalOperation { group in
                                    composites.add()
                                    for _ in 0..<3 { group.operation { _ = leaves.add() } }
                                })
                        }
                    }
                }
            }
            #expect(await composite.outcome.isFinished)
            #expect(composites.value == 4 * perThread)
            #expect(leaves.value == 12 * perThread)
            #expect(nested.entries.allSatisfy { $0.state == .finished && $0.numberOfRuns == 1 })
        }
    }

    @Test(.promises("R46"))
    func `R46: children registered by many threads have distinct places, in the order of the list`()
        async
    {
        let places = Log<[OperationID]>()
        let ids = Log<OperationID>()
        let group = transactionalOperation(on: elsewhere) { group in
            _ = concurrently(4) { _ in for _ in 0..<50 { ids.add(group.operation { _ in }.id) } }
            let children = (group.control as? COTransaction<Void>)?.children ?? []
            places.add(children.map(\.id))
            for child in children { (child as? COOperation<Void>)?.finish() }
        }
        #expect(await group.outcome.isFinished)
        #expect(places.entries.first?.count == 200)
        #expect(Set(places.entries.first ?? []) == Set(ids.entries))
    }

    // MARK: Ready-made children

    @Test(.promises("G26")) func `a child that was suspended before it was added waits for its own resume`()
        async throws
    {
        let runs = Log<Int>()
        let first = COOperation<Void> { attempt in
            runs.add(1)
            attempt.finish()
        }
        #expect(first.suspend())
        let cascade = cascadeOperation { cascade in
            try cascade.add(first)
            cascade.operation { runs.add(2) }
        }
        #expect(await eventually { first.attempt == 1 })
        #expect(first.state == .suspended)
        // A turn sent by mistake would run before these operations, on the same workers.
        for _ in 0..<20 { _ = await operation {}.outcome }
        #expect(runs.entries.isEmpty)
        #expect(first.resume())
        try await cascade.value
        #expect(runs.entries == [1, 2])
        #expect(!cascade.isSuspended)
    }

    @Test(.promises("G26"))
    func `children moved while their gates open and close have correct gate counts`() async {
        for _ in 0..<scaled(150) {
            let child = COOperation<Void> { $0.finish() }
            let scopes = Log<TransactionScope>()
            let group = transactionalOperation { group in
                scopes.add(group)
                group.operation { _ in }
            }
            #expect(await eventually { group.children.count == 1 })
            _ = await atOnce(2) { index in
                if index == 0 {
                    _ = try? scopes.entries[0].add(child)
                } else {
                    for _ in 0..<10 {
                        child.suspend()
                        child.resume()
                    }
                }
            }
            // The gate of the tree still closes and opens.
            #expect(group.suspend())
            let late = scopes.entries[0].operation {}
            #expect(late.state == .suspended)
            #expect(group.resume())
            _ = await late.outcome
            (group.children.first as? COOperation<Void>)?.finish()
            #expect(await group.outcome.isFinished)
        }
    }

    @Test func `two composites add the same operation at once: one gets it`() async {
        for _ in 0..<scaled(150) {
            let child = COOperation<Void> { $0.finish() }
            let scopes = Log<TransactionScope>()
            let groups = (0..<2).map { _ in
                transactionalOperation { group in
                    group.operation { _ in }
                    scopes.add(group)
                }
            }
            #expect(await eventually { scopes.entries.count == 2 })
            let answers = await atOnce(3) { index -> Bool in
                if index == 2 { return child.start() }
                return (try? scopes.entries[index].add(child)) != nil
            }
            #expect(answers.count { $0 } == 1)
            _ = await child.outcome
            for group in groups {
                (group.children.first as? COOperation<Void>)?.finish()
                #expect(await group.outcome.isFinished)
            }
        }
    }
}
