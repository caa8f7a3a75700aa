// RegistrationTests - children that are registered too late, or should not be registered at all (G23), and registration
// blocks that throw (G24).

import CompositeOperations
import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct RegistrationTests {
    // MARK: G23

    @Test(.promises("G23")) func `after the end a registration is refused with an error, and nothing runs`()
        async throws
    {
        let scopes = Mail<TransactionScope>()
        let group = transactionalOperation { scopes.send($0) }
        let scope = await scopes.next()
        try await group.value
        let runs = Count()
        let refused: [AnyOperation] = [
            scope.operation { runs.add() },
            scope.operation { (attempt: COOperation<Void>.Attempt) in runs.add() },
            scope.cascadeOperation { _ in runs.add() }, scope.transactionalOperation { _ in runs.add() },
        ]
        for child in refused { #expect(child.isFailed && child.isEnded && child.numberOfRuns == 0) }
        let leaf = scope.operation { 1 }
        #expect(await leaf.outcome.error as? RegistrationError == .ended)
        #expect(!scope.isOpen)

        // A ready-made operation is unchanged, and can be used elsewhere.
        let ready = COOperation<Void> { $0.finish() }
        #expect(throws: RegistrationError.ended) { try scope.add(ready) }
        #expect(ready.state == .ready)
        #expect(ready.start())
        try await ready.value
        #expect(runs.value == 0)
        #expect(group.isFinished)
    }

    @Test(.promises("G23")) func `while a decision is open, and during a pause, a registration is refused`()
        async throws
    {
        let clock = ManualClock()
        let scopes = Mail<TransactionScope>()
        let (asked, decided) = (Mail<Void>(), Gate())
        let group = transactionalOperation(options: OperationOptions(handlerTarget: elsewhere, clock: clock))
        {
            scope in
            if scope.control.numberOfRuns == 1 { scope.operation { (_) throws -> Void in throw TestError() } }
            scopes.send(scope)
        } cancellation: { group in
            asked.send(())
            decided.wait()
            group.rerun(after: .seconds(1))
        }
        let scope = await scopes.next()
        await asked.next()
        #expect(await eventually { !scope.isOpen })  // the block has returned
        #expect(group.state == .deciding && scope.isCancelled)
        #expect(await scope.operation { 1 }.outcome.error as? RegistrationError == .deciding)
        decided.open()
        #expect(await eventually { group.state == .delayed })
        #expect(await scope.operation { 1 }.outcome.error as? RegistrationError == .stale)
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(1))
        try await group.value
    }

    @Test(.promises("G23")) func `a child that a running child registers is counted`() async throws {
        let scopes = Mail<TransactionScope>()
        let done = Count()
        let late = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { scope in
            scope.operation { attempt in
                scope.operation { late.send($0) }
                attempt.finish()
                done.add()
            }
            scopes.send(scope)
        }
        let token = await late.next()
        #expect(await eventually { done.value == 1 })
        #expect(group.result == nil && group.state == .executing)
        #expect(token.finish())
        try await group.value
        #expect(await scopes.next().operation { 1 }.outcome.isFailed)
    }

    @Test(.promises("G23"))
    func `children that race with the end of the last one are refused, or run and counted`()
        async throws
    {
        for _ in 0..<scaled(300) {
            let scopes = Mail<TransactionScope>()
            let tokens = Mail<COOperation<Void>.Attempt>()
            let group = transactionalOperation { scope in
                scope.operation { tokens.send($0) }
                scopes.send(scope)
            }
            let (scope, token) = (await scopes.next(), await tokens.next())
            let ran = Count()
            let atTheEnd = Mail<Int>()
            group.onOutcome { _ in atTheEnd.send(ran.value) }
            let late = await race(3) { index -> COOperation<Int>? in
                if index == 0 {
                    _ = token.finish()
                    return nil
                }
                return scope.operation {
                    ran.add()
                    return index
                }
            }.compactMap(\.self)
            try await group.value
            let counted = await atTheEnd.next()
            var accepted = 0
            for child in late {
                switch await child.outcome {
                case .finished: accepted += 1
                case .failed(let error): #expect(error as? RegistrationError == .ended)
                case .cancelled(let reason): Issue.record("\(reason)")
                }
            }
            #expect(counted == accepted && ran.value == accepted)
        }
    }

    @Test(.promises("G23")) func `children that race with a cancel all end`() async throws {
        for isCascade in [false, true] {
            for _ in 0..<scaled(150) {
                let scopes = Mail<any CompositeScope>()
                let group: AnyOperation =
                    isCascade
                    ? cascadeOperation { scope in
                        scope.operation { _ in }
                        scopes.send(scope)
                    }
                    : transactionalOperation { scope in
                        scope.operation { _ in }
                        scopes.send(scope)
                    }
                let scope = await scopes.next()
                let children = await race(3) { index -> [COOperation<Void>] in
                    if index == 0 {
                        group.cancel()
                        return []
                    }
                    return (0..<4).map { _ in scope.operation { _ in } }
                }.flatMap(\.self)
                for child in children {
                    switch await child.outcome {
                    case .finished: Issue.record("nobody has finished it")
                    case .failed(let error): #expect(error as? RegistrationError == .ended)
                    case .cancelled(let reason): #expect(reason.kind == .parent)
                    }
                }
                #expect(await eventually { group.isEnded })
            }
        }
    }

    @Test(.promises("G23"))
    func `a ready-made child has one owner: if add and start race, one is accepted`()
        async throws
    {
        for _ in 0..<scaled(300) {
            let scopes = Mail<TransactionScope>()
            let group = transactionalOperation { scope in
                scope.operation { _ in }
                scopes.send(scope)
            }
            let scope = await scopes.next()
            let runs = Count()
            let ready = COOperation<Void> { attempt in
                runs.add()
                attempt.finish()
            }
            let answers = await race(2) { index -> Bool in
                if index == 0 { return ready.start() }
                do {
                    try scope.add(ready)
                    return true
                } catch { return false }
            }
            #expect(answers[0] != answers[1])
            try await ready.value
            #expect(runs.value == 1)
            #expect(group.children.count == (answers[1] ? 2 : 1))
            group.cancel()
            _ = await group.outcome
        }
    }

    @Test(.promises("G23"))
    func `a ready-made child cancelled while it is added does not block its composite for ever`()
        async throws
    {
        for _ in 0..<scaled(400) {
            let scopes = Mail<TransactionScope>()
            let tokens = Mail<COOperation<Void>.Attempt>()
            let rounds = Count()
            let group = transactionalOperation { scope in
                scope.operation { tokens.send($0) }
                scopes.send(scope)
            } cancellation: { group in
                rounds.add()
                group.awake()
            }
            let (scope, token) = (await scopes.next(), await tokens.next())
            let ready = COOperation<Void> { $0.finish() }
            let answers = await race(2) { index -> Bool in
                if index == 0 { return ready.cancel() }
                do {
                    try scope.add(ready)
                    return true
                } catch { return false }
            }
            #expect(answers.contains(true))
            if !token.finish() { #expect(await tokens.next().finish()) }
            try await group.value
            _ = await ready.outcome
            if !answers[1] { #expect(ready.isCancelled && rounds.value == 0) }
        }
    }

    @Test(.promises("G26"))
    func `a ready-made child whose gate is closed holds its composite until it is resumed`()
        async throws
    {
        let ready = COOperation<Void> { $0.finish() }
        #expect(ready.suspend())
        let added = Mail<Void>()
        let group = transactionalOperation { scope in
            try scope.add(ready)
            scope.operation { added.send(()) }
        }
        await added.next()
        #expect(await eventually { ready.attempt == 1 })
        #expect(ready.isSuspended && ready.state == .suspended && ready.numberOfRuns == 0)
        #expect(group.result == nil)
        #expect(ready.resume())
        try await group.value
    }

    @Test(.promises("G26"))
    func `after a ready-made child was resumed, gates of its composite hold as before`() async throws {
        let ready = COOperation<Void> { $0.finish() }
        #expect(ready.suspend())
        let scopes = Mail<TransactionScope>()
        let group = transactionalOperation { scope in
            try scope.add(ready)
            scope.operation { _ in }
            scopes.send(scope)
        }
        let scope = await scopes.next()
        #expect(ready.resume())
        try await ready.value
        #expect(group.suspend())
        let late = scope.operation { 1 }
        #expect(late.state == .suspended && group.isSuspended)
        #expect(late.numberOfRuns == 0)
        #expect(group.resume())
        #expect(try await late.value == 1)
        group.cancel()
        _ = await group.outcome
    }

    @Test(.promises("G23")) func `ready-made children are ready and unowned`() async throws {
        let scopes = Mail<TransactionScope>()
        let group = transactionalOperation { scope in
            scope.operation { _ in }
            scopes.send(scope)
        }
        let scope = await scopes.next()
        let begun = operation { _ in }
        #expect(throws: RegistrationError.alreadyStarted) { try scope.add(begun) }
        #expect(throws: RegistrationError.hasParent) { try scope.add(scope.operation { _ in }) }
        #expect(throws: RegistrationError.alreadyStarted) { try scope.add(group) }
        let ended = COOperation<Void>()
        ended.cancel()
        #expect(throws: RegistrationError.alreadyStarted) { try scope.add(ended) }
        begun.cancel()
        group.cancel()
        _ = await group.outcome
        _ = await begun.outcome
    }

    @Test(.promises("G23")) func `a composite refuses a child without a block`() async throws {
        let made = COCascade<Void> { $0.operation {} }
        try await made.run()
        // The last one is a copy of a composite that has released its block.
        let all = [COOperation<Void>(), COCascade<Void>(), COTransaction<Void>(), made.copy()]
        let cascade = cascadeOperation { cascade in
            for one in all {
                #expect(throws: RegistrationError.hasNoBlock) { try cascade.add(one) }
            }
        }
        #expect(await cascade.outcome.isFinished)
        #expect(all.allSatisfy { $0.state == .ready })
    }

    @Test(.promises("G12"))
    func `a scope reports as cancelled when the composite has failed`() async {
        for isCancelled in [false, true] {
            let group = transactionalOperation(on: elsewhere) { group in
                group.operation { attempt in
                    if isCancelled { attempt.cancel() } else { attempt.fail(TestError()) }
                }
                while !group.isCancelled { sched_yield() }
            }
            #expect(await !group.outcome.isFinished)
        }
    }

    @Test(.promises("G23")) func `a step that takes the value of no earlier step is refused`()
        async throws
    {
        let foreign = operation { 1 }
        _ = try await foreign.value
        let cascade = cascadeOperation { cascade in
            let refused = cascade.operation(using: foreign) { $0 }
            #expect(refused.isFailed && refused.result?.error as? RegistrationError == .notAnEarlierStep)
            cascade.operation {}
        }
        try await cascade.value
    }

    // MARK: G24

    @Test(.promises("G24"))
    func `a registration block that throws fails the composite; started children are awaited`()
        async throws
    {
        let (begun, left) = (Mail<Void>(), Gate())
        let hasBegun = Gate()
        let atTheEnd = Mail<(Bool, Int)>()
        let children = Log<AnyOperation>()
        let threw = Gate()
        let group = transactionalOperation(on: elsewhere) { scope in
            children.add(
                scope.operation(on: elsewhere) { (_) throws -> Void in
                    hasBegun.open()
                    begun.send(())
                    left.wait()
                })
            hasBegun.wait()
            threw.open()
            throw TestError(number: 24)
        }
        group.onOutcome { [unowned group] outcome in
            atTheEnd.send((children.entries.allSatisfy(\.isEnded), group.causes.count))
        }
        await begun.next()
        #expect(await eventually { group.isFailed })
        #expect(group.result == nil && !group.isEnded, "the child's block is still out")
        #expect(children.entries[0].isCancelled && !children.entries[0].isEnded)
        left.open()
        #expect(await group.outcome.error as? TestError == TestError(number: 24))
        let (areEnded, causes) = await atTheEnd.next()
        #expect(areEnded && causes == 1)
        #expect(group.causes.first?.index == nil)
        #expect(children.entries[0].isCancelled)
    }

    @Test(.promises("G24")) func `a cascade whose block throws starts none of its steps`() async throws {
        let runs = Count()
        let steps = Log<COOperation<Int>>()
        let cascade = cascadeOperation { cascade in
            for _ in 0..<3 { steps.add(cascade.operation { runs.add() }) }
            throw TestError(number: 1)
        }
        #expect(await cascade.outcome.error as? TestError == TestError(number: 1))
        for step in steps.entries { #expect(await step.outcome.reason?.kind == .parent) }
        #expect(runs.value == 0)
    }

    @Test(.promises("G24")) func `after a throw awake is refused, and rerun is not`() async throws {
        let answers = Log<Bool>()
        let cascade = cascadeOperation { cascade in
            cascade.operation {}
            if cascade.control.numberOfRuns == 1 { throw TestError() }
        } cancellation: { cascade in
            answers.add(cascade.causes.first?.index == nil && cascade.causes.count == 1)
            answers.add(cascade.awake())
            answers.add(cascade.rerun())
        }
        try await cascade.value
        // The last attempt may end before the call that began it returns.
        #expect(await eventually { answers.entries == [true, false, true] })
        #expect(cascade.attempt == 2 && cascade.numberOfRuns == 2)
    }

    @Test(.promises("G24")) func `a cancellation that a registration block throws cancels`() async throws {
        let one = cascadeOperation { _ in throw CancellationError() }
        #expect(await one.outcome.reason?.kind == .threwCancellation)
        let two = transactionalOperation { _ in throw CancelReason(.timedOut) }
        #expect(await two.outcome.reason?.kind == .timedOut)
    }

    @Test(.promises("G24")) func `a nested composite whose block throws is a failed child`() async throws {
        let causes = Log<Cause>()
        let cascade = cascadeOperation { cascade in
            cascade.operation {}
            cascade.transactionalOperation { group in
                group.operation {}
                throw TestError(number: 3)
            }
        } cancellation: { cascade in
            for cause in cascade.causes { causes.add(cause) }
        }
        #expect(await cascade.outcome.error as? TestError == TestError(number: 3))
        #expect(causes.entries.map(\.index) == [1])
    }
}
