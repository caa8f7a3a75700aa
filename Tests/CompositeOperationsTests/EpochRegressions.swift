// R26, R27 of the specification: what remains of attempts and epochs that are over.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct EpochRegressions {
    @Test(.promises("R26")) func `R26: a late end of an attempt leaves the next one alone`() async {
        let tokens = Log<COOperation<Int>.Attempt>()
        let one = operation(returning: Int.self) { attempt in
            tokens.add(attempt)
            if attempt.number == 1 { attempt.rerun() }
        }
        #expect(await eventually { tokens.entries.count == 2 })
        let first = tokens.entries[0]
        let second = tokens.entries[1]
        #expect(!first.isCurrent && first.isCancelled)
        #expect(!first.finish(1) && !first.fail(TestError()) && !first.cancel())
        #expect(!first.suspend() && !first.resume() && !first.rerun())
        #expect(!first.resolve(using: COOperationResolver()))
        #expect(one.state == .executing && one.attempt == 2)
        #expect(second.finish(2))
        guard case .finished(2) = await one.outcome else {
            Issue.record("\(await one.outcome)")
            return
        }
    }

    @Test(.promises("R27")) func `R27: children of an old epoch do not count in the new one`() async {
        let olds = Log<COOperation<Void>.Attempt>()
        let news = Log<COOperation<Void>.Attempt>()
        let completions = Count()
        let group = transactionalOperation { group in
            let attempts = group.control.attempt == 1 ? olds : news
            for _ in 0..<3 { group.operation { attempts.add($0) } }
        } completion: {
            completions.add()
        }
        #expect(await eventually { olds.entries.count == 3 })
        let dropped = group.children
        #expect(group.rerun())
        for child in dropped { #expect(child.isCancelled) }
        #expect(await eventually { news.entries.count == 3 })
        for token in olds.entries { #expect(!token.finish()) }
        #expect(!dropped[0].cancel())
        #expect(group.state == .executing)
        #expect(news.entries[0].finish())
        #expect(news.entries[1].finish())
        #expect(group.state == .executing && completions.value == 0)
        #expect(news.entries[2].finish())
        #expect(await group.outcome.isFinished)
        #expect(await eventually { completions.value == 1 })
        for child in dropped { #expect(child.isEnded && child.isCancelled) }
    }

    @Test(.promises("R27"))
    func `R27: an old child whose block is still out holds the new epoch back, and ends once`() async {
        let isOpen = Gate()
        let began = Gate()
        let epochs = Log<Bool>()
        let isOut = Locked(false)
        let outcomes = Count()
        let group = transactionalOperation { group in
            epochs.add(isOut.withLock { $0 })
            guard group.control.attempt == 1 else { return }
            let child = group.operation(on: elsewhere) { attempt in
                isOut.withLock { $0 = true }
                began.open()
                isOpen.wait()
                isOut.withLock { $0 = false }
                #expect(!attempt.finish())
            }
            child.onOutcome { outcome in if outcome.reason?.kind == .parent { outcomes.add() } }
        }
        await elsewhere.waits(for: began)
        #expect(group.rerun())
        #expect(group.state == .delayed)
        isOpen.open()
        #expect(await group.outcome.isFinished)
        #expect(epochs.entries == [false, false])
        #expect(await eventually { outcomes.value == 1 })
    }
}
