// R33 to R38, R50, R51, R58: two concurrent threads, and handlers that inspect operations.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct RaceRegressions {
    // MARK: R33

    @Test(.promises("R33")) func `R33: threads start one leaf: one block, one success`() async {
        for _ in 0..<scaled(200) {
            let runs = Count()
            let one = COOperation<Void> { attempt in
                runs.add()
                attempt.finish()
            }
            let answers = await atOnce(3) { _ in one.start() }
            #expect(answers.count { $0 } == 1)
            #expect(await one.outcome.isFinished)
            #expect(runs.value == 1)
            #expect(one.numberOfRuns == 1)
        }
    }

    @Test(.promises("R33")) func `R33: threads start one composite, by start and by awake: one block`() async
    {
        for _ in 0..<scaled(200) {
            let runs = Count()
            let one = COCascade<Void> { cascade in
                runs.add()
                cascade.operation {}
            }
            let answers = await atOnce(3) { index in index == 0 ? one.awake() : one.start() }
            #expect(answers.count { $0 } == 1)
            #expect(await one.outcome.isFinished)
            #expect(runs.value == 1)
        }
    }

    @Test(.promises("R33")) func `R33: threads add one operation to queues and start it: one wins`()
        async
    {
        for _ in 0..<scaled(150) {
            let queues = [COOperationQueue(runningLimit: 1), COOperationQueue(runningLimit: 1)]
            let runs = Count()
            let one = COOperation<Void> { attempt in
                runs.add()
                attempt.finish()
            }
            let answers = await atOnce(3) { index in index < 2 ? queues[index].add(one) : one.start() }
            #expect(answers.count { $0 } == 1)
            #expect(await one.outcome.isFinished)
            for queue in queues {
                await queue.idle()
                #expect(queue.operationCount == 0)
            }
            #expect(runs.value == 1)
        }
    }

    // MARK: R34

    @Test(.promises("R34"))
    func `R34: finish against fail against cancel: one winner, one handler, and they agree`() async {
        for round in 0..<scaled(300) {
            let called = Log<Ending>()
            let tokens = Log<COOperation<Int>.Attempt>()
            let one = COOperation<Int>()
            one.run({ tokens.add($0) }) {
                called.add(.finish)
            } cancellation: {
                called.add(.cancel)
            } failure: { _ in
                called.add(.fail)
            }
            #expect(await eventually { !tokens.entries.isEmpty })
            let token = tokens.entries[0]
            let endings: [Ending] = [.finish, .fail, .cancel]
            let answers = await atOnce(3) { index in
                (round + index) % 2 == 0 ? endings[index].end(token) : endings[index].end(one)
            }
            let winners = answers.indices.filter { answers[$0] }.map { endings[$0] }
            #expect(winners.count == 1)
            let outcome = await one.outcome
            #expect(winners.allSatisfy { $0.fits(outcome) })
            await withCheckedContinuation { done in one.onOutcome { _ in done.resume() } }
            #expect(called.entries == winners)
        }
    }

    @Test(.promises("R34")) func `R34: a child's finish against its parent's cancel: both agree`()
        async
    {
        for _ in 0..<scaled(200) {
            let called = Log<String>()
            let group = transactionalOperation { group in
                group.operation { _ in }
            } completion: {
                called.add("completion")
            } cancellation: { _ in
                called.add("cancellation")
            }
            #expect(await eventually { group.children.first?.hasLeftOpen == true })
            guard let child = group.children.first as? COOperation<Void> else { continue }
            let answers = await atOnce(2) { index in index == 0 ? child.finish() : group.cancel() }
            let outcome = await group.outcome
            await withCheckedContinuation { done in group.onOutcome { _ in done.resume() } }
            #expect(outcome.isCancelled == answers[1])
            #expect(called.entries == [answers[1] ? "cancellation" : "completion"])
            // A child that finished in time stays finished, whatever happens to the group.
            #expect(child.result?.isFinished == answers[0])
        }
    }

    // MARK: R35

    @Test(.promises("R35")) func `R35: children that cancel at once: one notice, and one outcome`() async {
        for count in [2, 3, 4] {
            for _ in 0..<scaled(80) {
                let notices = Count()
                let tokens = Log<COOperation<Void>.Attempt>()
                let group = transactionalOperation { group in
                    for index in 0..<count {
                        if index == 0 {
                            group.cascadeOperation { cascade in cascade.operation { tokens.add($0) } }
                        } else {
                            group.operation { tokens.add($0) }
                        }
                    }
                } cancellation: { _ in
                    notices.add()
                }
                #expect(await eventually { tokens.entries.count == count })
                let answers = await atOnce(count) { index in tokens.entries[index].cancel() }
                #expect(answers.contains(true))
                #expect(await group.outcome.reason?.kind == .child)
                await withCheckedContinuation { done in group.onOutcome { _ in done.resume() } }
                #expect(notices.value == 1)
            }
        }
    }

    // MARK: R37

    @Test(.promises("R37"))
    func `R37: concurrent child-to-parent and parent-to-child calls return`() async {
        for _ in 0..<scaled(60) {
            let tokens = Log<COOperation<Void>.Attempt>()
            let cascade = cascadeOperation { cascade in
                cascade.transactionalOperation { group in
                    group.operation { tokens.add($0) }
                    group.operation { tokens.add($0) }
                }
            }
            #expect(await eventually { tokens.entries.count == 2 })
            let child = tokens.entries[0]
            let group = cascade.children[0]
            _ = await atOnce(4) { index in
                for _ in 0..<30 {
                    switch index {
                    case 0:
                        cascade.suspend()
                        cascade.resume()
                    case 1:
                        child.suspend()
                        child.resume()
                    case 2:
                        group.suspend()
                        _ = child.isSuspended
                        group.resume()
                    default: _ = (cascade.tree, group.state, child.isCancelled)
                    }
                }
                if index == 1 { child.cancel() }
                if index == 3 { cascade.cancel() }
            }
            #expect(await cascade.outcome.isCancelled)
            #expect(await child.operation.outcome.isCancelled)
        }
    }

    @Test(.promises("R37"))
    func `R37: operations of two trees that depend on each other's neighbours end at once, and return`()
        async
    {
        for _ in 0..<scaled(100) {
            let first = transactionalOperation { group in group.operation { _ in } }
            let second = transactionalOperation { group in group.operation { _ in } }
            #expect(await eventually { first.children.count + second.children.count == 2 })
            let (ofFirst, ofSecond) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
            _ = await atOnce(2) { index in
                if index == 0 {
                    ofFirst.addDependency(second)
                    ofFirst.start()
                    (first.children[0] as? COOperation<Void>)?.finish()
                } else {
                    ofSecond.addDependency(first)
                    ofSecond.start()
                    (second.children[0] as? COOperation<Void>)?.finish()
                }
            }
            #expect(await ofFirst.outcome.isFinished)
            #expect(await ofSecond.outcome.isFinished)
        }
    }

    // MARK: R38

    /// Has another thread use an operation, and waits until that thread is done.
    private static func look(at operation: AnyOperation?) {
        let hasLooked = Gate()
        elsewhere.async {
            if let operation {
                _ = (operation.state, operation.tree, operation.attempt)
                operation.suspend()
                operation.resume()
                _ = (operation as? CompositeOperation<Void>)?.children
            }
            hasLooked.open()
        }
        hasLooked.wait()
    }

    /// Has another thread use an operation when it is released.
    private final class Looker: Sendable {
        private let operation: Locked<AnyOperation?>
        private let gone: Count
        init(_ operation: Locked<AnyOperation?>, _ gone: Count) {
            self.operation = operation
            self.gone = gone
        }
        func stay() {}
        deinit {
            let looked = operation.withLock { $0 }
            RaceRegressions.look(at: looked)
            operation.withLock { $0 = nil }
            gone.add()
        }
    }

    @Test(.promises("R38")) func `R38: a handler waits for another thread that uses its composite`() async {
        let called = Log<String>()
        let options = OperationOptions(handlerTarget: elsewhere)
        let cascade = cascadeOperation(options: options) { cascade in
            cascade.operation(options: options) { attempt in
                attempt.onCancel { _ in
                    Self.look(at: cascade.control)
                    called.add("onCancel")
                }
                attempt.cancel()
            }
        } cancellation: { cascade in
            Self.look(at: cascade)
            called.add("cancellation")
        }
        cascade.onOutcome { [weak cascade] _ in
            Self.look(at: cascade)
            called.add("outcome")
        }
        _ = await cascade.outcome
        await withCheckedContinuation { done in cascade.onOutcome { _ in done.resume() } }
        #expect(await eventually { called.entries.count == 3 })
        #expect(Set(called.entries) == ["onCancel", "cancellation", "outcome"])
    }

    @Test(.promises("R38")) func `R38: completions, predicates, pauses and fallbacks may wait`() async {
        let called = Log<String>()
        let box = Locked<AnyOperation?>(nil)
        let resolver = COOperationResolver(
            maxAttempts: 2,
            backoff: .custom { _ in
                RaceRegressions.look(at: box.withLock { $0 })
                called.add("pause")
                return .zero
            },
            retryIf: { _ in
                RaceRegressions.look(at: box.withLock { $0 })
                called.add("predicate")
                return true
            },
            fallback: { operation in
                RaceRegressions.look(at: operation)
                called.add("fallback")
                (operation as? COOperation<Void>)?.finish()
            })
        let one = COOperation<Void>(options: OperationOptions(handlerTarget: elsewhere, resolver: resolver))
        box.withLock { $0 = one }
        one.run { attempt in
            throw TestError()
        } completion: {
            RaceRegressions.look(at: box.withLock { $0 })
            called.add("completion")
        }
        #expect(await one.outcome.isFinished)
        await withCheckedContinuation { done in one.onOutcome { _ in done.resume() } }
        #expect(called.entries == ["predicate", "pause", "fallback", "completion"])
        box.withLock { $0 = nil }
    }

    @Test(.promises("R38")) func `R38: the release of block and closure captures may wait, too`() async {
        for ending in Ending.allCases {
            let box = Locked<AnyOperation?>(nil)
            let gone = Count()
            do {
                let (first, second) = (Looker(box, gone), Looker(box, gone))
                let one = COOperation<Int>(on: elsewhere, options: OperationOptions(handlerTarget: elsewhere))
                box.withLock { $0 = one }
                one.run({ [first] attempt in
                    first.stay()
                    ending.end(attempt)
                }) { [second] in
                    second.stay()
                } cancellation: { [second] in
                    second.stay()
                } failure: { [second] _ in
                    second.stay()
                }
                _ = await one.outcome
            }
            #expect(await eventually { gone.value == 2 })
        }
    }

    @Test(.promises("R38"))
    func `R38: the release of a replaced block, and of a refused child's closures, may wait too`()
        async
    {
        let box = Locked<AnyOperation?>(nil)
        let gone = Count()
        let one = COOperation<Void>()
        box.withLock { $0 = one }
        await aside {
            do {
                let looker = Looker(box, gone)
                one.operation = { [looker] _ in looker.stay() }
            }
            one.operation = { $0.finish() }
            #expect(gone.value == 1)
            do {
                let looker = Looker(box, gone)
                one.operation = { [looker] _ in looker.stay() }
            }
            box.withLock { $0 = one }
            one.run { $0.finish() }
            #expect(gone.value == 2)
        }
        #expect(await one.outcome.isFinished)
    }

    @Test(.promises("R38")) func `R38: a target may wait too when given the turn of a step`() async throws {
        final class LookingTarget: ExecutionTarget {
            let operation = Locked<AnyOperation?>(nil)
            let looks = Count()
            func submit(_ work: ExecutionWork) {
                RaceRegressions.look(at: operation.withLock { $0 })
                looks.add()
                elsewhere.async { work.run() }
            }
            var isCurrent: Bool { false }
        }
        let target = LookingTarget()
        let cascade = COCascade<Void>(on: elsewhere) { cascade in
            for _ in 0..<3 { cascade.operation(on: target) { $0.finish() } }
        }
        let first = COOperation<Void>(on: target) { $0.finish() }
        target.operation.withLock { $0 = first }
        first.start()
        cascade.start()
        try await cascade.value
        #expect(await first.outcome.isFinished)
        #expect(target.looks.value >= 4)
        target.operation.withLock { $0 = nil }
    }

    // MARK: R50

    @Test(.promises("R50")) func `R50: children end while their siblings are walked: each ends once`() async {
        for _ in 0..<scaled(60) {
            let outcomes = Count()
            let group = transactionalOperation { group in
                for _ in 0..<40 { group.operation { _ in }.onOutcome { _ in outcomes.add() } }
            }
            #expect(await eventually { group.children.count == 40 })
            let children = group.children.compactMap { $0 as? COOperation<Void> }
            let answers = await atOnce(4) { index -> [Bool] in
                switch index {
                case 0: return children.map { $0.finish() }
                case 1: return children.reversed().map { $0.finish() }.reversed()
                case 2:
                    for _ in 0..<10 {
                        group.suspend()
                        _ = group.tree
                        group.resume()
                    }
                    return []
                default:
                    _ = group.children
                    return [group.cancel()]
                }
            }
            #expect(await group.outcome.isCancelled == answers[3][0])
            #expect(await eventually { outcomes.value == 40 })
            for (index, child) in children.enumerated() {
                let wasFinished = answers[0][index] || answers[1][index]
                #expect(child.result?.isFinished == wasFinished)
                #expect(!(answers[0][index] && answers[1][index]))
            }
        }
    }

    // MARK: R51

    @Test(.promises("R51"))
    func `R51: a nested composite cancelled by itself and its parent calls its handler once`() async {
        for _ in 0..<scaled(150) {
            let called = Log<String>()
            let isOpen = Count()
            let group = transactionalOperation { group in
                group.cascadeOperation { cascade in
                    cascade.operation { _ in isOpen.add() }
                } completion: {
                    called.add("completion")
                } cancellation: { _ in
                    called.add("cancellation")
                }
            }
            #expect(await eventually { isOpen.value == 1 })
            let nested = group.children[0]
            let answers = await atOnce(2) { index in index == 0 ? nested.cancel() : group.cancel() }
            #expect(answers[1] || answers[0])
            #expect(await group.outcome.isCancelled)
            guard let nested = nested as? COCascade<Void> else { continue }
            await withCheckedContinuation { done in nested.onOutcome { _ in done.resume() } }
            #expect(called.entries == ["cancellation"])
        }
    }

    @Test(.promises("R51"))
    func `R51: a refused cancel calls nothing, of a finished child and of a finished composite`() async {
        let called = Log<String>()
        let mayEnd = Gate()
        let group = transactionalOperation { group in
            group.cascadeOperation { cascade in
                cascade.operation {}
            } completion: {
                called.add("completion")
            } cancellation: { _ in
                called.add("cancellation")
            }
            group.operation(on: elsewhere) { mayEnd.wait() }
        }
        #expect(await eventually { called.entries.count == 1 })
        let nested = group.children[0]
        #expect(!nested.cancel())
        mayEnd.open()
        #expect(await group.outcome.isFinished)
        #expect(!group.cancel())
        #expect(!nested.cancel())
        await withCheckedContinuation { done in group.onOutcome { _ in done.resume() } }
        #expect(called.entries == ["completion"])
    }

    // MARK: R58

    @Test(.promises("R58"), arguments: [false, true])
    func `R58: the handler of a child that cancels sees its parent cancelled`(isNested: Bool) async {
        let seen = Log<[Bool]>()
        let outer = cascadeOperation { outer in
            outer.cascadeOperation { inner in
                if isNested {
                    inner.cascadeOperation { innermost in
                        innermost.operation { $0.cancel() }
                    } cancellation: { innermost in
                        innermost.cancel()
                        seen.add([innermost, inner.control, outer.control].map(\.isCancelled))
                    }
                } else {
                    inner.operation { attempt in
                        attempt.onCancel { _ in
                            seen.add([attempt.operation, inner.control, outer.control].map(\.isCancelled))
                        }
                        attempt.cancel()
                    }
                }
            }
        }
        #expect(await outer.outcome.isCancelled)
        #expect(await eventually { !seen.entries.isEmpty })
        #expect(seen.entries == [[true, true, true]])
    }

    @Test(.promises("R58"))
    func `R58: the handler of a child that its parent cancels sees the parent cancelled`() async {
        let seen = Log<[Bool]>()
        let isOpen = Count()
        let group = transactionalOperation { group in
            for _ in 0..<3 {
                group.operation { attempt in
                    attempt.onCancel { _ in seen.add([attempt.isCancelled, group.control.isCancelled]) }
                    isOpen.add()
                }
            }
        }
        #expect(await eventually { isOpen.value == 3 })
        #expect(group.cancel())
        #expect(await group.outcome.isCancelled)
        #expect(await eventually { seen.entries.count == 3 })
        #expect(seen.entries.allSatisfy { $0 == [true, true] })
    }
}
