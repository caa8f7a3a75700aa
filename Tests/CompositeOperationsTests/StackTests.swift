// StackTests - steps, children, attempts and depth cost no stack (G25): on the workers of the scheduler, and on
// threads whose stack is small.

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

#if DEBUG
    private let million = scaled(1_000_000)
    private let depth = scaled(10_000)
    private let many = scaled(100_000)
#else
    private let million = scaled(1_000_000)
    private let depth = scaled(10_000)
    private let many = scaled(1_000_000)
#endif

/// A sanitizer makes everything many times slower, and stack frames many times larger.
private let isSlow = isThreadSanitized || isAddressSanitized
private let steps = isSlow ? million / 20 : million

@Suite(.inTurn, .watched(testLimit), .leavesNothing, .serialized) struct StackTests {
    // MARK: Steps

    @Test(.promises("G25")) func `a million steps that are registered at once, and finish synchronously`()
        async throws
    {
        let count = Count()
        try await cascade(of: steps, count).value
        #expect(count.value == steps)
    }

    @Test(.promises("G25")) func `a million steps on a small stack`() async throws {
        try await withSmallTarget { _ in
            let count = Count()
            try await cascade(of: steps, count).value
            #expect(count.value == steps)
        }
    }

    private func cascade(of steps: Int, _ count: Count) -> COCascade<Void> {
        cascadeOperation { cascade in
            for _ in 0..<steps {
                cascade.operation { attempt in
                    count.add()
                    attempt.finish()
                }
            }
        }
    }

    @Test(.promises("G25")) func `many steps, each registered by its predecessor`() async throws {
        try await withSmallTarget { _ in
            let count = Count()
            @Sendable func step(_ scope: CascadeScope, _ left: Int) {
                scope.operation { attempt in
                    count.add()
                    if left > 1 { step(scope, left - 1) }
                    attempt.finish()
                }
            }
            try await cascadeOperation { step($0, many) }.value
            #expect(count.value == many)
        }
    }

    @Test(.promises("G25")) func `many attempts of a leaf, and of a composite that is awoken or rerun`()
        async throws
    {
        let attempts = many / 10
        try await withSmallTarget { target in
            let leaf = operation { attempt in
                if attempt.number < attempts { attempt.rerun() } else { attempt.finish() }
            }
            try await leaf.value
            #expect(leaf.attempt == attempts)
            for redo in [COOperationResolver.Redo.awake, .rerun] {
                let runs = Count()
                let resolver = COOperationResolver(maxAttempts: .max, redo: redo)
                let options = OperationOptions(handlerTarget: target, resolver: resolver)
                let group = cascadeOperation(options: options) { cascade in
                    cascade.operation { (attempt: COOperation<Void>.Attempt) in
                        if runs.add() < attempts { attempt.cancel() } else { attempt.finish() }
                    }
                }
                try await group.value
                #expect(group.attempt == attempts)
            }
        }
    }

    // MARK: Depth

    /// Nested composites, with a leaf in the innermost one.
    private func nest(
        _ depth: Int, options: OperationOptions = .standard,
        decide: (@Sendable (COTransaction<Void>) -> Void)? = nil,
        _ leaf: @escaping @Sendable (COOperation<Void>.Attempt) throws -> Void
    ) -> COTransaction<Void> {
        @Sendable func fill(_ scope: any CompositeScope, _ left: Int) {
            if left == 0 {
                scope.operation(leaf)
            } else if left % 2 == 0 {
                scope.cascadeOperation { fill($0, left - 1) }
            } else {
                scope.transactionalOperation { fill($0, left - 1) }
            }
        }
        return transactionalOperation(
            options: options, { (scope: TransactionScope) -> Void in fill(scope, depth) },
            cancellation: decide)
    }

    @Test(.promises("G25")) func `deep nesting completes, and is released`() async throws {
        try await withSmallTarget { target in
            let leaves = Count()
            try await nest(depth, options: OperationOptions(handlerTarget: target)) { attempt in
                leaves.add()
                attempt.finish()
            }.value
            #expect(leaves.value == 1)
        }
    }

    @Test(.promises("G25")) func `a leaf's cancel, and its failure, go up through deep nesting`() async {
        await withSmallTarget { _ in
            #expect(await nest(depth) { $0.cancel() }.outcome.reason?.kind == .child)
            #expect(await nest(depth) { _ in throw TestError(number: 4) }.outcome.error as? TestError != nil)
        }
    }

    @Test(.promises("G25")) func `cancel, suspend and resume go down through deep nesting, on a small stack`()
        async
    {
        await withSmallTarget { _ in
            let tokens = Mail<COOperation<Void>.Attempt>()
            let root = nest(depth) { tokens.send($0) }
            let token = await tokens.next()
            #expect(await onSmallStack { root.suspend() && token.isSuspended && root.resume() })
            #expect(await onSmallStack { root.resume(.restart) } == false)
            #expect(await onSmallStack { root.cancel() && token.isCancelled })
            #expect(await root.outcome.isCancelled)
        }
    }

    @Test(.promises("G25")) func `awake goes down through deep nesting, on a small stack`() async throws {
        try await withSmallTarget { target in
            let runs = Count()
            let root = nest(
                depth, options: OperationOptions(handlerTarget: target), decide: { $0.awake() }
            ) { attempt in
                if runs.add() < 3 { attempt.cancel() } else { attempt.finish() }
            }
            try await root.value
            #expect(runs.value == 3 && root.attempt == 3)
        }
    }

    @Test(.promises("G25")) func `rerun drops deep nesting, on a small stack`() async throws {
        try await withSmallTarget { target in
            let runs = Count()
            let root = nest(
                depth, options: OperationOptions(handlerTarget: target), decide: { $0.rerun() }
            ) { attempt in
                if runs.add() < 3 { throw TestError() }
                attempt.finish()
            }
            try await root.value
            #expect(runs.value == 3 && root.attempt == 3)
        }
    }

    @Test(.promises("G34")) func `deep nesting in a queue of one slot`() async throws {
        try await withSmallTarget { _ in
            let queue = COOperationQueue(runningLimit: 1)
            let tokens = Mail<COOperation<Void>.Attempt>()
            let depth = depth / 10
            @Sendable func fill(_ scope: any CompositeScope, _ left: Int) {
                if left == 0 {
                    scope.operation { tokens.send($0) }
                } else {
                    scope.cascadeOperation { fill($0, left - 1) }
                }
            }
            let root = cascadeOperation(on: queue) { fill($0, depth) }
            let token = await tokens.next()
            #expect(queue.waitingComposites.count == depth + 1)
            #expect(await onSmallStack { root.suspend() && root.resume() })
            token.finish()
            try await root.value
            await queue.idle()
        }
    }

    // MARK: Width

    @Test(.promises("G25")) func `cancel and suspend of a wide composite, on a small stack`() async {
        await withSmallTarget { _ in
            let scopes = Mail<Void>()
            let runs = Count()
            let root = transactionalOperation { group in
                group.suspend()
                for _ in 0..<many { group.operation { runs.add() } }
                scopes.send(())
            }
            await scopes.next()
            let children = root.children
            #expect(children.count == many)
            #expect(await onSmallStack { root.cancel() })
            #expect(await root.outcome.isCancelled)
            #expect(children.allSatisfy { $0.state == .cancelled })
            #expect(runs.value == 0)
        }
    }

    // MARK: Release

    /// Each operation waits for its predecessor.
    private func chain(_ count: Int, released: Count) -> [COOperation<Void>] {
        var all: [COOperation<Void>] = []
        all.reserveCapacity(count)
        for _ in 0..<count {
            let one = COOperation<Void> { attempt in
                released.add()
                attempt.finish()
            }
            // Built from the end to the beginning, so the search for cycles has nothing to traverse.
            if let later = all.last { later.addDependency(one) }
            all.append(one)
        }
        all.reverse()
        return all
    }

    @Test(.promises("G25")) func `a long chain of unstarted dependents is released`()
        async throws
    {
        let first = Locked<COOperation<Void>?>(nil)
        let gone = await onSmallStack {
            let all = chain(many, released: Count())
            first.withLock { $0 = all[0] }
            weak let last = all[many - 1]
            return { @Sendable in last == nil }
        }
        #expect(gone(), "also while the one that all of them wait for is there")
        first.withLock { $0 = nil }
    }

    @Test(.promises("G25"))
    func
        `a long chain of dependents goes on, on a small stack, when nobody can start the first one any more`()
        async
    {
        await withSmallTarget { _ in
            let ran = Count()
            let first = Locked<COOperation<Void>?>(nil)
            let last: COOperation<Void>
            do {
                let all = chain(many, released: ran)
                first.withLock { $0 = all[0] }
                for one in all.dropFirst() { one.start() }
                last = all[many - 1]
            }
            await onSmallStack {
                let held = first.withLock { first in
                    defer { first = nil }
                    return first
                }
                withExtendedLifetime(held) {}
            }
            #expect(await last.outcome.isFinished)
            #expect(ran.value == many - 1)
        }
    }

    @Test(.promises("G25")) func `a long chain of dependents runs, and is released, on a small stack`()
        async throws
    {
        try await withSmallTarget { _ in
            let ran = Count()
            let count = many
            let last: COOperation<Void>
            do {
                let all = chain(count, released: ran)
                for one in all.reversed() { one.start() }
                last = all[count - 1]
            }
            try await last.value
            #expect(ran.value == count)
        }
    }

    @Test func `a long chain of dependents is cancelled on a small stack`() async throws {
        let count = many
        let ran = Count()
        let all = Locked(chain(count, released: ran))
        for one in all.withLock({ $0 }).dropFirst() { one.start() }
        let last = all.withLock { $0[count - 1] }
        await onSmallStack {
            let held = all.withLock { all in
                defer { all = [] }
                return all
            }
            for one in held { one.cancel() }
        }
        // Some may have run: each cancel lets the next one begin.
        _ = await last.outcome
        #expect(ran.value < count)
    }

    /// The target drops its work. Each end makes the next operation due, and that operation's turn is refused at once.
    @Test(.promises("G25"))
    func `a long chain of dependents whose target refuses them ends on a small stack`() async throws {
        final class Refusing: ExecutionTarget {
            func submit(_ work: ExecutionWork) {}
            var isCurrent: Bool { false }
        }
        let count = many
        let refusing = Refusing()
        let all = COQueues.withDefaultQueue(refusing) { chain(count, released: Count()) }
        for one in all.dropFirst() { one.start() }
        #expect(await onSmallStack { all[0].start() })
        #expect(await all[count - 1].outcome.reason?.kind == .shutDown)
    }

    @Test func `a wide composite's children are released on a small stack`() async throws {
        try await withSmallTarget { _ in
            let released = Count()
            let root = transactionalOperation { group in
                for _ in 0..<many / 10 {
                    let token = Token(released)
                    group.operation { [token] in withExtendedLifetime(token) {} }
                }
            }
            try await root.value
            #expect(await eventually { released.value == many / 10 })
        }
    }
}
