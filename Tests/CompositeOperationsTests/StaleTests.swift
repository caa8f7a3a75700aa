// StaleTests - nothing of an old attempt or an old epoch affects a newer one (G21); of several calls that would
// end one attempt, one wins (G22).

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct StaleTests {
    // MARK: G21

    @Test(.promises("G21")) func `everything that an old token can do is inert, and answers false`()
        async throws
    {
        let tokens = Mail<COOperation<Int>.Attempt>()
        let one = operation(returning: Int.self) { tokens.send($0) }
        let old = await tokens.next()
        #expect(old.isCurrent && !old.isCancelled)
        #expect(old.rerun())
        let new = await tokens.next()
        #expect(new.number == 2 && new.isCurrent)

        #expect(!old.isCurrent && old.isCancelled)
        let answers = [
            old.finish(1), old.fail(TestError()), old.cancel(), old.suspend(), old.resume(), old.rerun(),
            old.rerun(after: .seconds(1)), old.resolve(using: COOperationResolver()),
        ]
        #expect(answers.allSatisfy { !$0 })
        #expect(one.state == .executing && one.attempt == 2 && one.numberOfRuns == 2)

        // The old token cannot open the gate that the new attempt has closed, either.
        #expect(new.suspend())
        #expect(!old.resume())
        #expect(new.isSuspended)
        #expect(new.resume())
        #expect(new.finish(2))
        #expect(try await one.value == 2)
        #expect(!old.cancel() && !new.cancel())
    }

    @Test(.promises("G21"))
    func `an old token's handler is not notified of the new attempt's cancel`()
        async throws
    {
        let tokens = Mail<COOperation<Int>.Attempt>()
        let heard = Log<Int>()
        let one = operation(returning: Int.self) { tokens.send($0) }
        let old = await tokens.next()
        old.onCancel { _ in heard.add(1) }
        old.rerun()
        let new = await tokens.next()
        old.onCancel { _ in heard.add(-1) }
        let told = Mail<CancelReason.Kind>()
        new.onCancel { told.send($0.kind) }
        #expect(one.cancel(CancelReason(.timedOut)))
        #expect(await told.next() == .timedOut)
        _ = await one.outcome
        #expect(heard.entries.isEmpty)
    }

    @Test(.promises("G21")) func `a late throw or return of an old block does not end the new attempt`()
        async throws
    {
        for isThrowing in [false, true] {
            let (begun, left) = (Mail<Int>(), Gate())
            let runs = Count()
            let one = operation(on: elsewhere) { () throws -> Int in
                let run = runs.add()
                if run > 1 { return run }
                begun.send(run)
                left.wait()
                if isThrowing { throw TestError(number: run) }
                return run
            }
            _ = await begun.next()
            #expect(one.rerun())
            #expect(one.attempt == 2)
            left.open()
            #expect(try await one.value == 2)
            #expect(one.numberOfRuns == 2)
        }
    }

    @Test(.promises("G21"))
    func `an old epoch's scope is closed, and can neither cancel nor suspend the new one`() async throws {
        let scopes = Mail<TransactionScope>()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { scope in
            scope.operation { tokens.send($0) }
            scopes.send(scope)
        }
        let old = await scopes.next()
        _ = await tokens.next()
        #expect(group.rerun())
        let new = await scopes.next()
        let token = await tokens.next()

        #expect(!old.isOpen && old.isCancelled)
        #expect(new.isOpen && !new.isCancelled)
        #expect(!old.cancel() && !old.suspend() && !old.resume())
        let refused = old.operation { 1 }
        #expect(await refused.outcome.error as? RegistrationError == .stale)
        let ready = COOperation<Void> { $0.finish() }
        #expect(throws: RegistrationError.stale) { try old.add(ready) }
        #expect(ready.state == .ready)
        #expect(group.state == .executing && group.children.count == 1)

        #expect(token.finish())
        try await group.value
    }

    @Test(.promises("G21")) func `a child of an old epoch that ends late does not count in the new one`()
        async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { scope in
            for _ in 0..<3 { scope.operation { tokens.send($0) } }
        }
        var old: [COOperation<Void>.Attempt] = []
        for _ in 0..<3 { old.append(await tokens.next()) }
        let first = old[0].operation
        #expect(old[0].finish())
        #expect(group.rerun())
        var new: [COOperation<Void>.Attempt] = []
        for _ in 0..<3 { new.append(await tokens.next()) }
        #expect(first.isFinished)
        for token in old {
            #expect(!token.finish() && !token.fail(TestError()) && !token.cancel())
            #expect(!token.operation.cancel() && !token.operation.rerun() && !token.operation.suspend())
        }
        #expect(await old[1].operation.outcome.reason?.kind == .parent)
        #expect(group.state == .executing)
        #expect(new[0].finish() && new[1].finish())
        #expect(group.state == .executing, "a child of the new epoch is left")
        #expect(new[2].finish())
        try await group.value
    }

    /// The scope's epoch has to be compared in the same step that cancels the composite.
    @Test(.promises("G21")) func `an old scope's cancel and a rerun that race exclude each other`()
        async throws
    {
        for _ in 0..<scaled(1_500) {
            let scopes = Mail<TransactionScope>()
            let group = transactionalOperation { scope in
                scope.operation { _ in }
                scopes.send(scope)
            }
            let scope = await scopes.next()
            let answers = await race(2) { index in index == 0 ? group.rerun() : scope.cancel() }
            #expect(answers[0] != answers[1], "both, or none, were accepted")
            group.cancel()
            _ = await group.outcome
        }
    }

    // MARK: G22

    @Test(.promises("G22")) func `of racing ends one is accepted, and it gives the outcome`()
        async throws
    {
        let ends = Generator.array(of: .int(in: 0...4), count: 2...4)
        await forAll(ends, cases: scaled(150)) { ends in
            let tokens = Mail<COOperation<Int>.Attempt>()
            let calls = Count()
            let one = COOperation<Int>()
            let labels = Self.labels(of: one)
            one.run({ tokens.send($0) }, completion: { calls.add() }, cancellation: { calls.add(100) }) { _ in
                calls.add(10_000)
            }
            let token = await tokens.next()
            let answers = await race(ends.count) { index in
                switch ends[index] {
                case 0: token.finish(index)
                case 1: token.fail(TestError(number: index))
                case 2: token.cancel(CancelReason(.timedOut))
                case 3: token.operation.finish(index)
                default: token.operation.cancel()
                }
            }
            let winners = answers.indices.filter { answers[$0] }
            #expect(winners.count == 1)
            let winner = try #require(winners.first)
            let outcome = await one.outcome
            switch (ends[winner], outcome) {
            case (0, .finished(let value)), (3, .finished(let value)): #expect(value == winner)
            case (1, .failed(let error)): #expect(error as? TestError == TestError(number: winner))
            case (2, .cancelled(let reason)): #expect(reason.kind == .timedOut)
            case (4, .cancelled(let reason)): #expect(reason.kind == .requested)
            default: Issue.record("\(ends[winner]) gave \(outcome)")
            }
            let seen = await labels.value
            #expect(seen.filter { $0 == .ending }.count <= 1)
            #expect(seen.filter(\.isTerminal).count == 1 && seen.last?.isTerminal == true)
            #expect(!token.finish(7) && !token.fail(TestError()) && !token.cancel())
            #expect(await eventually { calls.value != 0 })
            #expect([1, 100, 10_000].contains(calls.value))
        }
    }

    private static func labels(of operation: AnyOperation) -> Task<[OperationState], Never> {
        let transitions = operation.transitions
        return Task {
            var seen: [OperationState] = []
            for await transition in transitions { seen.append(transition.to) }
            return seen
        }
    }

    /// Several threads share the tokens of all attempts so far.
    @Test(.promises("G22"))
    func `with tokens of many attempts shared by threads, only the last attempt's end is accepted`()
        async
    {
        let plan = Generator.array(of: .array(of: .int(in: 0...9), count: 1...12), count: 3...3)
        await forAll(plan, cases: scaled(80)) { plan in
            let tokens = Locked<[COOperation<Int>.Attempt]>([])
            let begun = Mail<Void>()
            let one = operation(returning: Int.self) { token in
                tokens.withLock { $0.append(token) }
                begun.send(())
            }
            await begun.next()
            let accepted = await race(plan.count) { thread -> [Int] in
                var accepted: [Int] = []
                for step in plan[thread] {
                    let token = tokens.withLock { $0[(step * 7) % $0.count] }
                    switch step {
                    case 0...6: _ = token.rerun()
                    case 7: if token.finish(token.number) { accepted.append(token.number) }
                    case 8: if token.fail(TestError()) { accepted.append(token.number) }
                    default: if token.cancel() { accepted.append(token.number) }
                    }
                }
                return accepted
            }.flatMap(\.self)
            if accepted.isEmpty { one.cancel() }
            let outcome = await one.outcome
            #expect(accepted.count <= 1)
            if let number = accepted.first {
                #expect(number == one.attempt)
                if case .finished(let value) = outcome { #expect(value == number) }
            }
            #expect(one.numberOfRuns <= one.attempt)
        }
    }

    @Test(.promises("G22")) func `of a composite's racing cancels one is accepted`() async throws {
        for _ in 0..<scaled(200) {
            let group = transactionalOperation { scope in
                for _ in 0..<3 { scope.operation { _ in } }
            }
            let kinds: [CancelReason.Kind] = [.requested, .removed, .timedOut]
            let answers = await race(3) { group.cancel(CancelReason(kinds[$0])) }
            #expect(answers.filter { $0 }.count == 1)
            let winner = try #require(answers.firstIndex(of: true))
            #expect(await group.outcome.reason?.kind == kinds[winner])
        }
    }
}
