// How a composite decides when a child does not finish, and which handlers are called when: G3, G4, G13.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct DecisionTests {
    /// A composite with its children. Its handler is held in a mailbox until the test runs it.
    private struct Case {
        let composite: CompositeOperation<Void>
        let mailbox: Mailbox
        let log: Log<String>
        let first: COOperation<Void>
        let second: COOperation<Void>

        /// Runs the handlers until the composite has ended, and then the remaining ones.
        func runHandlersToTheEnd() async {
            let isOver = Gate()
            composite.onOutcome { _ in isOver.open() }
            #expect(
                await eventually {
                    mailbox.runAll()
                    return isOver.wait(timeout: .zero)
                })
        }
    }

    private func makeCase(
        _ isCascade: Bool, depth: Int = 0,
        _ decide: @escaping @Sendable (CompositeOperation<Void>) -> Void = { _ in }
    ) async throws -> Case {
        let (mailbox, log, leaves) = (Mailbox(), Log<String>(), Locked<[COOperation<Void>]>([]))
        let options = OperationOptions(handlerTarget: mailbox)
        let queue = COOperationQueue()
        let register: @Sendable (any CompositeScope) -> Void = { scope in
            leaves.withLock { leaves in
                leaves = []
                for _ in 0..<2 { leaves.append(scope.operation { (_: COOperation<Void>.Attempt) in }) }
            }
        }
        let nested: @Sendable (any CompositeScope) -> Void = { scope in
            if depth == 0 { return register(scope) }
            scope.cascadeOperation { inner in
                if depth == 1 { return register(inner) }
                inner.transactionalOperation { register($0) }
            }
        }
        let composite: CompositeOperation<Void> =
            if isCascade {
                cascadeOperation(on: queue, options: options) {
                    nested($0)
                } completion: {
                    log.add("completed")
                } cancellation: { composite in
                    log.add("asked \(composite.attempt)")
                    decide(composite)
                }
            } else {
                transactionalOperation(on: queue, options: options) {
                    nested($0)
                } completion: {
                    log.add("completed")
                } cancellation: { composite in
                    log.add("asked \(composite.attempt)")
                    decide(composite)
                }
            }
        composite.onOutcome { outcome in log.add(outcome.isFinished ? "finished" : "ended") }
        #expect(await eventually { leaves.withLock { $0.count == 2 && $0[0].isExecuting } })
        // Wait until each block has returned: an awake before that would run the block again.
        #expect(await eventually { queue.waitingComposites.count == depth + 1 })
        let found = leaves.withLock { $0 }
        return Case(composite: composite, mailbox: mailbox, log: log, first: found[0], second: found[1])
    }

    // MARK: G3

    @Test(.promises("G3")) func `a decision is posted before the call that ended the child returns`()
        async throws
    {
        let ends: [@Sendable (COOperation<Void>) -> Bool] = [{ $0.cancel() }, { $0.fail(TestError()) }]
        for isCascade in [true, false] {
            for depth in 0...2 {
                for end in ends {
                    let made = try await makeCase(isCascade, depth: depth)
                    #expect(end(made.first))
                    #expect(made.mailbox.count == 1)
                    #expect(made.composite.state == .deciding)
                    #expect(made.second.isCancelled)
                    #expect(made.log.entries.isEmpty)
                    await made.runHandlersToTheEnd()
                    #expect(made.log.entries == ["asked 1", "ended"])
                }
            }
        }
    }

    @Test func `a cancelled composite notifies its handler once before the return`() async throws {
        for isCascade in [true, false] {
            for isSuspended in [true, false] {
                let made = try await makeCase(isCascade) { composite in
                    // There is nothing left to decide.
                    #expect(!composite.awake() && !composite.rerun() && !composite.cancel())
                    #expect(composite.deferDecision() == nil)
                }
                if isSuspended { #expect(made.composite.suspend()) }
                #expect(made.composite.cancel())
                #expect(made.mailbox.count == 1)
                #expect(!made.composite.cancel())
                await made.runHandlersToTheEnd()
                #expect(made.log.entries == ["asked 1", "ended"])
            }
        }
    }

    @Test func `a composite cancelled before its start notifies its handler once`() async {
        let (mailbox, log) = (Mailbox(), Log<Int>())
        let suspended = COOperationQueue()
        suspended.suspend()
        let composite = COCascade<Void>(on: suspended, options: OperationOptions(handlerTarget: mailbox))
        composite.run({ _ in }, cancellation: { log.add($0.attempt) })
        #expect(composite.cancel())
        #expect(mailbox.count == 1)
        mailbox.runAll()
        #expect(log.entries == [1])
        #expect(composite.numberOfRuns == 0)
    }

    @Test func `a child cancelled before its turn notifies its handler once, whoever decides above`()
        async
    {
        for isAwoken in [false, true] {
            let (asked, hold, cancelled) = (Log<String>(), Gate(), Gate())
            let options = OperationOptions(handlerTarget: elsewhere)
            let child = Locked<COCascade<Void>?>(nil)
            let root = cascadeOperation(options: options) { cascade in
                cascade.operation(on: elsewhere) { cancelled.wait() }
                let inner = cascade.cascadeOperation { inner in
                    inner.operation { (attempt: COOperation<Void>.Attempt) in attempt.cancel() }
                } cancellation: { inner in
                    asked.add("inner \(inner.attempt)")
                }
                child.withLock { $0 = inner }
            } cancellation: { root in
                asked.add("root \(root.attempt)")
                hold.wait()
                if isAwoken, root.attempt == 1 { root.awake() }
            }
            #expect(await eventually { root.numberOfRuns == 1 && child.withLock { $0 != nil } })
            #expect(await eventually { child.withLock { $0?.cancel() ?? false } })
            #expect(await eventually { asked.entries.count == 2 })
            hold.open()
            cancelled.open()
            #expect(await root.outcome.isCancelled)
            await root.handlersAreOver()
            await child.withLock { $0 }?.handlersAreOver()
            #expect(
                asked.entries.sorted()
                    == (isAwoken ? ["inner 0", "inner 1", "root 1", "root 2"] : ["inner 0", "root 1"]))
        }
    }

    @Test func `cancel in an open decision asks no handler again`() async throws {
        for isCascade in [true, false] {
            let made = try await makeCase(isCascade)
            #expect(made.first.cancel())
            #expect(made.composite.cancel(CancelReason(.requested, underlying: TestError(number: 4))))
            #expect(made.composite.isCancelled)
            await made.runHandlersToTheEnd()
            #expect(made.log.entries == ["asked 1", "ended"])
            let reason = try #require(await made.composite.outcome.reason)
            #expect(reason.underlying as? TestError == TestError(number: 4))
        }
    }

    @Test func `cancel without a reason lets the causes of a decision give the outcome`() async throws {
        let fromHandler = try await makeCase(false) { $0.cancel() }
        #expect(fromHandler.first.fail(TestError(number: 3)))
        await fromHandler.runHandlersToTheEnd()
        #expect(fromHandler.composite.result?.error as? TestError == TestError(number: 3))

        let fromOutside = try await makeCase(true)
        #expect(fromOutside.first.cancel())
        #expect(fromOutside.composite.cancel())
        await fromOutside.runHandlersToTheEnd()
        #expect(fromOutside.composite.result?.reason?.kind == .child)
        #expect(fromOutside.composite.result?.reason?.origin == fromOutside.first.id)
    }

    @Test(.promises("G3")) func `racing ends ask once per attempt, before the outcome is reported`() async {
        await forAll(Generator<[Int]>.array(of: .int(in: 0...7), count: 1...6), cases: scaled(100)) {
            choices in
            let isCascade = choices[0] % 2 == 0
            let attempts = 1 + choices.count / 2
            let log = Log<String>()
            let asked = Log<Int>()
            let leaves = Locked<[COOperation<Void>]>([])
            let handler: @Sendable (CompositeOperation<Void>) -> Void = { composite in
                asked.add(composite.attempt)
                log.add("asked")
                guard composite.attempt < attempts else { return }
                // Each answer is accepted, or the composite has been cancelled from outside.
                let isAccepted =
                    choices.last! % 2 == 0 ? composite.awake() : composite.rerun()
                if !isAccepted { log.add("refused") }
            }
            let register: @Sendable (any CompositeScope) -> Void = { scope in
                for _ in 0..<3 {
                    let leaf = scope.operation { (_: COOperation<Void>.Attempt) in }
                    leaves.withLock { $0.append(leaf) }
                }
            }
            let composite: CompositeOperation<Void> =
                if isCascade {
                    cascadeOperation {
                        register($0)
                    } completion: {
                        log.add("completed")
                    } cancellation: {
                        handler($0)
                    }
                } else {
                    transactionalOperation {
                        register($0)
                    } completion: {
                        log.add("completed")
                    } cancellation: {
                        handler($0)
                    }
                }
            composite.onOutcome { _ in log.add("told") }
            _ = await racing(3) { thread in
                while !composite.isEnded {
                    for leaf in leaves.withLock({ $0 }) where leaf.isExecuting {
                        switch choices[(thread + leaf.attempt) % choices.count] {
                        case 0, 1, 2: leaf.cancel()
                        case 3: leaf.fail(TestError())
                        case 4:
                            if thread == 0, composite.attempt > 1 {
                                composite.cancel()
                            } else {
                                leaf.cancel()
                            }
                        default: if thread == 1 { leaf.finish() } else { leaf.cancel() }
                        }
                    }
                }
            }
            await withCheckedContinuation { continuation in composite.onOutcome { _ in continuation.resume() }
            }
            let attemptsAsked = asked.entries
            #expect(Set(attemptsAsked).count == attemptsAsked.count, "\(attemptsAsked)")
            #expect(attemptsAsked == attemptsAsked.sorted())
            #expect(log.entries.last == "told")
            #expect(log.entries.filter { $0 == "told" }.count == 1)
            let last = composite.isFinished ? "completed" : nil
            #expect(log.entries.dropLast().last == last || last == nil)
            if !composite.isFinished { #expect(attemptsAsked.last == composite.attempt) }
        }
    }

    @Test func `a decision that is held open is made by its holder`() async throws {
        let held = Locked<DecisionHold?>(nil)
        let made = try await makeCase(false) { composite in
            let hold = composite.deferDecision()
            held.withLock { $0 = hold }
        }
        #expect(made.first.cancel())
        made.mailbox.runAll()
        #expect(made.composite.state == .deciding)
        #expect(made.composite.awake())
        held.withLock { $0 = nil }
        #expect(await eventually { made.first.state == .executing && made.second.state == .executing })
        #expect(made.composite.attempt == 2)
        made.first.finish()
        made.second.finish()
        #expect(await made.composite.outcome.isFinished)
        await made.runHandlersToTheEnd()

        let other = try await makeCase(false) { composite in
            let hold = composite.deferDecision()
            held.withLock { $0 = hold }
        }
        #expect(other.first.cancel())
        other.mailbox.runAll()
        #expect(!other.composite.isEnded)
        held.withLock { $0 = nil }
        #expect(other.composite.isCancelled)
        await other.runHandlersToTheEnd()
    }

    @Test func `a resolver that a handler uses may ask, and its fallback may decide`() async throws {
        // A resolver with a retry predicate, which has to be called.
        let asking = try await makeCase(false) { composite in
            composite.resolve(using: COOperationResolver(maxAttempts: 2, retryIf: { $0.index == 0 }))
        }
        #expect(asking.first.cancel())
        asking.mailbox.runAll()
        #expect(asking.composite.attempt == 2)
        #expect(await eventually { asking.first.isExecuting })
        #expect(asking.first.cancel())
        await asking.runHandlersToTheEnd()
        #expect(asking.log.entries == ["asked 1", "asked 2", "ended"])

        // A fallback that is called while the decision is open.
        let fallbacks = Log<OperationState>()
        let reason = CancelReason(.requested, underlying: TestError(number: 8))
        let falling = try await makeCase(true) { composite in
            composite.resolve(
                using: COOperationResolver(
                    maxAttempts: 1,
                    fallback: { operation in
                        fallbacks.add(operation.state)
                        operation.cancel(reason)
                    }))
        }
        #expect(falling.first.cancel())
        await falling.runHandlersToTheEnd()
        #expect(fallbacks.entries == [.deciding])
        #expect(falling.composite.result?.reason?.underlying as? TestError == TestError(number: 8))
    }

    @Test func `a resolver without a cause and without attempts ends a composite as exhausted`() async throws
    {
        let made = try await makeCase(true)
        #expect(made.composite.resolve(using: COOperationResolver(maxAttempts: 1)))
        #expect(made.composite.isCancelled)
        #expect(await made.composite.outcome.reason?.kind == .exhausted)
        await made.runHandlersToTheEnd()
    }

    // MARK: G4

    @Test(.promises("G4")) func `a composite completes if and only if every child finished`() async {
        let cases = Generator<(Bool, [LeafEnd])>.zip(
            .bool,
            Generator.element(of: LeafEnd.allCases + [.finish, .returning, .late, .finish]).array(
                count: 0...5))
        await forAll(
            cases, cases: scaled(300),
            covering: [.cover(10, "completes") { $0.1.allSatisfy(\.isGood) && !$0.1.isEmpty }]
        ) { isCascade, ends in
            let leaves = ends.enumerated().map { Shape.leaf($1, Place.allCases[$0 % 3]) }
            let root = Node(isCascade ? .cascade(leaves, .builtIn) : .transaction(leaves, .builtIn))
            root.start()
            let outcome = try #require(await root.operation?.outcome)
            let isGood = ends.allSatisfy(\.isGood)
            #expect(outcome.isFinished == isGood)
            if isCascade, let bad = ends.first(where: { !$0.isGood }) {
                #expect(outcome.isFailed == bad.isFailure)
            }
            await root.expectEnd()  // also checks that exactly one closure was called
        }
    }

    @Test(.promises("G4")) func `only the last attempt decides if a composite completes`() async {
        let cases = Generator<[Int]>.array(of: .int(in: 1...3), count: 1...4)
        await forAll(Generator<([Int], Int)>.zip(cases, .int(in: 0...3)), cases: scaled(150)) {
            tries, choice in
            // Child k finishes on its try number tries[k].
            let (isCascade, isAwake) = (choice % 2 == 0, choice / 2 == 0)
            let begun = tries.map { _ in Count() }
            let (completions, asked) = (Count(), Log<Int>())
            let register: @Sendable (any CompositeScope) -> Void = { scope in
                for (index, last) in tries.enumerated() {
                    scope.operation { (attempt: COOperation<Void>.Attempt) in
                        if begun[index].add() >= last {
                            attempt.finish()
                        } else if index % 2 == 0 {
                            attempt.cancel()
                        } else {
                            attempt.fail(TestError())
                        }
                    }
                }
            }
            let handler: @Sendable (CompositeOperation<Void>) -> Void = { composite in
                asked.add(composite.attempt)
                let isAccepted = isAwake ? composite.awake() : composite.rerun()
                #expect(isAccepted)
            }
            let composite: CompositeOperation<Void> =
                if isCascade {
                    cascadeOperation {
                        register($0)
                    } completion: {
                        completions.add()
                    } cancellation: {
                        handler($0)
                    }
                } else {
                    transactionalOperation {
                        register($0)
                    } completion: {
                        completions.add()
                    } cancellation: {
                        handler($0)
                    }
                }
            #expect(await composite.outcome.isFinished)
            await withCheckedContinuation { continuation in composite.onOutcome { _ in continuation.resume() }
            }
            #expect(completions.value == 1)
            #expect(asked.entries == Array(1..<composite.attempt))
            for (index, last) in tries.enumerated() { #expect(begun[index].value >= last) }
            if isCascade, isAwake { #expect(begun.map(\.value) == tries) }
        }
    }

    @Test func `a child that ends badly and the last one that finishes race: one closure`() async {
        for round in 0..<scaled(300) {
            let closures = Log<String>()
            let leaves = Locked<[COOperation<Void>]>([])
            let composite = transactionalOperation { group in
                for _ in 0..<2 {
                    let leaf = group.operation { (_: COOperation<Void>.Attempt) in }
                    leaves.withLock { $0.append(leaf) }
                }
            } completion: {
                closures.add("completed")
            } cancellation: { _ in
                closures.add("asked")
            }
            #expect(await eventually { leaves.withLock { $0.count == 2 } })
            let found = leaves.withLock { $0 }
            let answers = await racing(3) { thread in
                switch thread {
                case 0: found[0].finish()
                case 1: found[1].finish()
                default: round % 2 == 0 ? found[1].cancel() : found[1].fail(TestError())
                }
            }
            let outcome = await composite.outcome
            await withCheckedContinuation { continuation in composite.onOutcome { _ in continuation.resume() }
            }
            let isWhole = answers[0] && answers[1]
            #expect(outcome.isFinished == isWhole)
            #expect(closures.entries == [isWhole ? "completed" : "asked"])
        }
    }

    // MARK: G13

    @Test(.promises("G13")) func `a leaf's cancel ends each level once, inner before outer`() async {
        // On one lane, so handlers run in the order in which they are posted.
        await forAll(Generator<[Bool]>.array(of: .bool, count: 1...8), cases: scaled(60)) { levels in
            let log = Log<Int>()
            let asked = Log<Int>()
            let lane = serialQueue()
            let root = Self.nest(levels, at: 0, lane, asked, log) { _, _ in }
            #expect(await root.outcome.reason?.kind == .child)
            await withCheckedContinuation { continuation in root.onOutcome { _ in continuation.resume() } }
            let inward = Array(levels.indices)
            #expect(log.entries == inward.reversed())
            #expect(asked.entries == inward.reversed())
        }
    }

    @Test(.promises("G13")) func `a cancel propagates up to the level that overrides it, no further`()
        async
    {
        let cases = Generator<([Bool], Int)>.zip(
            Generator<[Bool]>.array(of: .bool, count: 1...6), .int(in: 0...11))
        await forAll(cases, cases: scaled(60)) { levels, choice in
            let (decider, isAwake) = (choice / 2 % levels.count, choice % 2 == 0)
            let (log, asked, lane) = (Log<Int>(), Log<Int>(), serialQueue())
            let root = Self.nest(levels, at: 0, lane, asked, log) { level, composite in
                guard level == decider else { return }
                let isAccepted = isAwake ? composite.awake() : composite.rerun()
                #expect(isAccepted)
            }
            #expect(await root.outcome.isFinished)
            await withCheckedContinuation { continuation in root.onOutcome { _ in continuation.resume() } }
            // Each level from the innermost to the deciding one is asked, and no level beyond it.
            #expect(asked.entries == Array(levels.indices.reversed().prefix(levels.count - decider)))
            // An awake keeps all levels, so each one ends once. A rerun creates new levels, and the old ones end too,
            // perhaps after the root.
            let ends = levels.indices.flatMap {
                Array(repeating: $0, count: $0 > decider && !isAwake ? 2 : 1)
            }
            #expect(await eventually { log.entries.count >= ends.count })
            #expect(log.entries.sorted() == ends)
            #expect(root.attempt == (decider == 0 ? 2 : 1))
        }
    }

    /// Nested composites. The leaf in the innermost one is cancelled on its first run, and finishes on its second.
    private static func nest(
        _ levels: [Bool], at level: Int, _ lane: any ExecutionTarget, _ asked: Log<Int>, _ ended: Log<Int>,
        _ decide: @escaping @Sendable (Int, CompositeOperation<Void>) -> Void
    ) -> CompositeOperation<Void> {
        let runs = Count()
        let options = OperationOptions(handlerTarget: lane)
        let handler: @Sendable (Int, CompositeOperation<Void>) -> Void = { level, composite in
            asked.add(level)
            decide(level, composite)
        }
        @Sendable func register(_ level: Int, _ scope: any CompositeScope) {
            guard level < levels.count else {
                scope.operation { (attempt: COOperation<Void>.Attempt) in
                    if runs.add() == 1 { attempt.cancel() } else { attempt.finish() }
                }
                return
            }
            let inner: CompositeOperation<Void> =
                if levels[level] {
                    scope.cascadeOperation(options: options) {
                        register(level + 1, $0)
                    } cancellation: {
                        handler(level, $0)
                    }
                } else {
                    scope.transactionalOperation(options: options) {
                        register(level + 1, $0)
                    } cancellation: {
                        handler(level, $0)
                    }
                }
            inner.onOutcome { _ in ended.add(level) }
        }
        let root: CompositeOperation<Void> =
            levels[level]
            ? cascadeOperation(options: options) {
                register(1, $0)
            } cancellation: {
                handler(0, $0)
            }
            : transactionalOperation(options: options) {
                register(1, $0)
            } cancellation: {
                handler(0, $0)
            }
        return root.onOutcome { _ in ended.add(0) }
    }
}
