// R47, R52, R54, R56, R57, R60: ends that were lost, doubled or mixed up.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct OutcomeRegressions {
    // MARK: R47

    @Test(.promises("R47"))
    func `R47: without a block, start is refused, and the operation may still be prepared`()
        async throws
    {
        let one = COOperation<Int>()
        let cascade = COCascade<Void>()
        let group = COTransaction<Int>()
        for operation in [one, cascade, group] as [AnyOperation] {
            #expect(!operation.start())
            #expect(operation.state == .ready)
            #expect(operation.attempt == 0)
        }
        #expect(await aside { !COSyncOperation<Void>().start() })
        #expect(!COOperationQueue().add(one))
        one.operation = { $0.finish(4) }
        cascade.operation = { scope in .value(of: scope.operation {}) }
        #expect(one.start())
        #expect(cascade.start())
        #expect(group.run { scope in .value(of: scope.operation { 6 }) })
        #expect(try await one.value == 4)
        try await cascade.value
        #expect(try await group.value == 6)
    }

    @Test(.promises("R47")) func `R47: a block that was removed does not count`() {
        let one = COOperation<Int> { $0.finish(4) }
        one.operation = nil
        #expect(!one.start())
        #expect(one.operation == nil)
        #expect(one.state == .ready)
    }

    @Test(.promises("R47"))
    func `R47: cancelled without a block, it stays cancelled after start`() async {
        let one = COOperation<Int>()
        let cascade = COCascade<Void>()
        #expect(one.cancel())
        #expect(cascade.cancel(CancelReason(.removed)))
        #expect(!one.start())
        #expect(!cascade.start())
        #expect(!one.run { $0.finish(1) })
        #expect(await one.outcome.reason?.kind == .requested)
        #expect(await cascade.outcome.reason?.kind == .removed)
        #expect(one.numberOfRuns == 0)
    }

    // MARK: R52

    @Test(.promises("R52")) func `R52: cancelled while suspended before its block, it never begins`() async {
        let runs = Count()
        let outcomes = Count()
        let one = COOperation<Void> { _ in runs.add() }
        one.onOutcome { _ in outcomes.add() }
        #expect(one.suspend())
        #expect(one.start())
        #expect(one.state == .suspended)
        #expect(one.cancel())
        #expect(!one.resume())
        #expect(!one.start())
        #expect(await one.outcome.reason?.kind == .requested)
        #expect(await eventually { outcomes.value == 1 })
        #expect(runs.value == 0)
        #expect(!one.isSuspended)
    }

    @Test(.promises("R52"), arguments: [false, true])
    func `R52: a suspended composite that is cancelled starts nothing more, also when resumed`(
        byParent: Bool
    ) async {
        let runs = Count()
        let called = Log<String>()
        let isRegistered = Count()
        let outer = transactionalOperation { outer in
            outer.cascadeOperation { cascade in
                cascade.suspend()
                for _ in 0..<3 { cascade.operation { _ = runs.add() } }
                isRegistered.add()
            } completion: {
                called.add("completion")
            } cancellation: { _ in
                called.add("cancellation")
            }
        }
        #expect(await eventually { isRegistered.value == 1 && outer.children.first?.isSuspended == true })
        let cascade = outer.children[0] as? COCascade<Void>
        #expect((byParent ? outer.cancel() : cascade?.cancel()) == true)
        #expect(cascade?.resume() == false)
        #expect(await outer.outcome.reason?.kind == (byParent ? .requested : .child))
        #expect(await cascade?.outcome.isCancelled == true)
        #expect(runs.value == 0)
        if let cascade { await withCheckedContinuation { done in cascade.onOutcome { _ in done.resume() } } }
        #expect(called.entries == ["cancellation"])
    }

    @Test(.promises("R52"))
    func `R52: cancelled while its block runs and suspended, it ends as that returns`() async {
        let isIn = Gate()
        let mayLeave = Gate()
        let one = operation(on: elsewhere) { attempt in
            attempt.suspend()
            isIn.open()
            mayLeave.wait()
            attempt.finish()
        }
        await aside { isIn.wait() }
        #expect(one.cancel())
        #expect(one.state == .ending)
        #expect(one.result == nil)
        mayLeave.open()
        #expect(await one.outcome.isCancelled)
        #expect(one.numberOfRuns == 1)
    }

    // MARK: R54

    @Test(.promises("R54")) func `R54: taking over another outcome distinguishes the three ways`()
        async throws
    {
        let finished = operation { 5 }
        let failed = operation { () throws -> Int in throw TestError(number: 5) }
        let cancelled = operation(returning: Int.self) {
            $0.cancel(CancelReason(.removed, underlying: TestError()))
        }
        func takeOver(_ other: COOperation<Int>) -> COOperation<Int> { operation { try await other.value } }
        #expect(try await takeOver(finished).value == 5)
        #expect(await takeOver(failed).outcome.error as? TestError == TestError(number: 5))
        let reason = await takeOver(cancelled).outcome.reason
        #expect(reason?.kind == .removed)
        #expect(reason?.underlying is TestError)
    }

    @Test(.promises("R54")) func `R54: a step that passes on an outcome ends alike, as does its parent`()
        async
    {
        for ending in Ending.allCases {
            let inner = operation(returning: Int.self) { _ in }
            let outer = cascadeOperation { cascade in
                let step = cascade.operation(returning: Int.self) { attempt in
                    inner.onOutcome { outcome in
                        switch outcome {
                        case .finished(let value): attempt.finish(value)
                        case .failed(let error): attempt.fail(error)
                        case .cancelled(let reason): attempt.cancel(reason)
                        }
                    }
                }
                return .value(of: step)
            }
            ending.end(inner)
            let outcome = await outer.outcome
            switch ending {
            case .finish, .fail: #expect(ending.fits(outcome))
            case .cancel: #expect(outcome.reason?.kind == .child)
            }
            #expect(
                [outer.isFinished, outer.isFailed, outer.isCancelled] == Ending.allCases.map { $0 == ending })
        }
    }

    @Test(.promises("R54"))
    func `R54: a cancelled task, a cancellation error and a reason are distinguished`() async {
        let isIn = Count()
        let asynchronous = operation { () async throws -> Int in
            isIn.add()
            while !Task.isCancelled { await Task.yield() }
            throw CancellationError()
        }
        #expect(await eventually { isIn.value == 1 })
        asynchronous.cancel(CancelReason(.removed))
        #expect(await asynchronous.outcome.reason?.kind == .removed)
        let thrown = operation { () async throws -> Int in throw CancellationError() }
        #expect(await thrown.outcome.reason?.kind == .threwCancellation)
        let runner = COOperation<Void> { _ in }
        let task = Task { try await runner.run() }
        #expect(await eventually { runner.attempt == 1 })
        task.cancel()
        #expect(await runner.outcome.reason?.kind == .taskCancelled)
        await #expect(throws: CancelReason.self) { try await task.value }
    }

    // MARK: R56

    @Test(.promises("R56")) func `R56: a cancelled child that ends late is waited for, and counted once`()
        async
    {
        for count in 1...3 {
            let isIn = Count()
            let mayLeave = Gate()
            let answers = Log<Bool>()
            let ends = Log<String>()
            let group = transactionalOperation { group in
                for _ in 0..<count {
                    group.operation(on: elsewhere) { attempt in
                        isIn.add()
                        mayLeave.wait()
                        ends.add("child")
                        answers.add(attempt.finish())
                        answers.add(attempt.cancel())
                    }
                }
                group.operation(on: elsewhere) { () async in
                    isIn.add()
                    await aside { mayLeave.wait() }
                    ends.add("child")
                }
            } completion: {
                ends.add("completion")
            }
            group.onOutcome { _ in ends.add("outcome") }
            #expect(await eventually { isIn.value == count + 1 })
            let children = group.children
            #expect(group.cancel())
            #expect(group.state == .ending)
            #expect(children.allSatisfy { $0.isCancelled && !$0.isEnded })
            mayLeave.open()
            #expect(await group.outcome.isCancelled)
            #expect(children.allSatisfy { $0.state == .cancelled })
            await withCheckedContinuation { done in group.onOutcome { _ in done.resume() } }
            #expect(ends.entries == Array(repeating: "child", count: count + 1) + ["outcome"])
            #expect(answers.entries == Array(repeating: false, count: 2 * count))
        }
    }

    @Test(.promises("R56"))
    func `R56: a child cancelled by its sibling's end that throws late counts once`() async {
        let isIn = Gate()
        let mayLeave = Gate()
        let decisions = Count()
        let cascade = transactionalOperation { group in
            group.operation(on: elsewhere) { _ in
                isIn.open()
                mayLeave.wait()
                throw TestError()
            }
            group.operation(on: elsewhere) { attempt in
                isIn.wait()
                attempt.cancel()
            }
        } cancellation: { group in
            decisions.add()
            mayLeave.open()
            group.cancel(CancelReason(.removed))
        }
        #expect(await cascade.outcome.reason?.kind == .removed)
        #expect(decisions.value == 1)
        #expect(cascade.causes.count == 1)
    }

    // MARK: R57

    @Test(.promises("R57"), arguments: Ending.allCases)
    func `R57: after an end every other call is refused, and changes nothing`(ending: Ending) async {
        let called = Log<Ending>()
        let tokens = Log<COOperation<Int>.Attempt>()
        let one = COOperation<Int>()
        one.run {
            tokens.add($0)
            ending.end($0)
        } completion: {
            called.add(.finish)
        } cancellation: {
            called.add(.cancel)
        } failure: { _ in
            called.add(.fail)
        }
        _ = await one.outcome
        let token = tokens.entries[0]
        for again in Ending.allCases {
            #expect(!again.end(token))
            #expect(!again.end(one))
        }
        #expect(!one.start())
        #expect(!one.suspend())
        #expect(!one.resume())
        #expect(!one.resume(.restart))
        #expect(!one.rerun())
        #expect(!one.resolve(using: COOperationResolver()))
        #expect(!one.addDependency(COOperation<Void>()))
        #expect(!one.run { $0.finish(1) })
        #expect(!COOperationQueue().add(one))
        #expect(!token.suspend())
        #expect(!token.resume())
        #expect(!token.rerun())
        #expect(!token.resolve(using: COOperationResolver()))
        #expect(!token.isCurrent)
        #expect(token.isCancelled == (ending == .cancel))
        #expect(ending.fits(one.result))
        #expect(one.attempt == 1)
        #expect(one.numberOfRuns == 1)
        await withCheckedContinuation { done in one.onOutcome { _ in done.resume() } }
        #expect(called.entries == [ending])
    }

    @Test(.promises("R57")) func `R57: a composite that ended in any way refuses every call`() async {
        for ending in Ending.allCases {
            let scopes = Log<CascadeScope>()
            let cascade = cascadeOperation { cascade in
                scopes.add(cascade)
                cascade.operation(returning: Int.self) { ending.end($0) }
            }
            _ = await cascade.outcome
            #expect(!cascade.cancel())
            #expect(!cascade.awake())
            #expect(!cascade.rerun())
            #expect(!cascade.suspend())
            #expect(!cascade.resume())
            #expect(!cascade.start())
            #expect(!cascade.resolve(using: COOperationResolver()))
            #expect(cascade.deferDecision() == nil)
            #expect(!scopes.entries[0].isOpen)
            #expect(!scopes.entries[0].cancel())
            #expect(throws: RegistrationError.ended) {
                try scopes.entries[0].add(COOperation<Void> { $0.finish() })
            }
            #expect(await scopes.entries[0].operation {}.outcome.error as? RegistrationError == .ended)
            #expect(cascade.isEnded)
        }
    }

    @Test(.promises("R57"))
    func `R57: before the start and during execution, invalid calls are refused`() async {
        let one = COOperation<Int> { _ in }
        #expect(!one.resume())
        #expect(!one.rerun())
        #expect(!one.resolve(using: COOperationResolver()))
        #expect(!one.addDependency(one))
        #expect(one.state == .ready)
        #expect(one.start())
        #expect(!one.start())
        #expect(!one.run { $0.finish(0) })
        one.operation = { $0.finish(0) }
        #expect(await eventually { one.hasLeftOpen })
        #expect(!one.addDependency(COOperation<Void>()))
        #expect(one.suspend())
        #expect(!one.suspend())
        #expect(one.resume())
        #expect(!one.resume())
        let cascade = cascadeOperation { cascade in cascade.operation { _ in } }
        #expect(await eventually { cascade.children.first?.hasLeftOpen == true })
        #expect(!cascade.awake())
        #expect(cascade.deferDecision() == nil)
        #expect(!cascade.children[0].start())
        cascade.cancel()
        #expect(one.finish(8))
        #expect(await one.outcome.isFinished)
        _ = await cascade.outcome
    }

    // MARK: R60

    @Test(.promises("R60")) func `R60: an operation cancelled before its start notifies all`() async {
        let heard = Log<String>()
        let one = COOperation<Int> { $0.finish(1) }
        one.onOutcome { heard.add("onOutcome \($0.reason?.kind == .removed)") }
        let value = Task { try await one.value }
        #expect(one.cancel(CancelReason(.removed)))
        #expect(one.isCancelled)
        #expect(one.result?.reason?.kind == .removed)
        await #expect(throws: CancelReason.self) { _ = try await value.value }
        #expect(await aside { one.wait() }?.isCancelled == true)
        await withCheckedContinuation { done in one.onOutcome { _ in done.resume() } }
        #expect(heard.entries == ["onOutcome true"])
        #expect(one.numberOfRuns == 0)
        #expect(one.attempt == 0)
    }

    @Test(.promises("R60")) func `R60: cancelled before its block begins, it notifies closures too`() async {
        let heard = Log<String>()
        let target = HoldingTarget()
        let one = COOperation<Void>(on: target)
        one.run {
            $0.finish()
        } completion: {
            heard.add("completion")
        } cancellation: {
            heard.add("leaf")
        }
        let cascade = cascadeOperation(on: target) { _ in
        } completion: {
            heard.add("completion")
        } cancellation: { cascade in
            heard.add("cascade \(cascade.isCancelled) \(cascade.awake())")
        }
        #expect(one.cancel())
        #expect(cascade.cancel())
        // Their turns still arrive, and do nothing.
        target.letGo()
        #expect(await one.outcome.isCancelled)
        #expect(await cascade.outcome.isCancelled)
        await withCheckedContinuation { done in one.onOutcome { _ in done.resume() } }
        await withCheckedContinuation { done in cascade.onOutcome { _ in done.resume() } }
        #expect(heard.entries.sorted() == ["cascade true false", "leaf"])
        #expect(one.numberOfRuns + cascade.numberOfRuns == 0)
    }

    @Test(.promises("R60"))
    func `R60: cancelled before its start, it leaves its queue and releases dependents`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        queue.suspend()
        let first = operation(on: queue) {}
        let second = COOperation<Void> { $0.finish() }
        #expect(second.addDependency(first))
        #expect(second.start())
        #expect(queue.operationCount == 1)
        #expect(first.cancel())
        #expect(queue.operationCount == 0)
        try await second.value
        await queue.idle()
    }
}
