// R49: what a settled composite releases.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ReleaseRegressions {
    private struct Weak: Sendable {
        weak let operation: AnyOperation?
        init(_ operation: AnyOperation) { self.operation = operation }
    }

    @Test(.promises("R49"), arguments: Ending.allCases, [false, true])
    func `R49: a settled parent frees its children, and what their blocks hold`(
        ending: Ending, isCascade: Bool
    ) async {
        let released = Count()
        let children = Log<Weak>()
        let block: @Sendable (any CompositeScope) -> Void = { [token = Token(released)] scope in
            for _ in 0..<3 {
                let inner = Token(released)
                let child = scope.operation(returning: Int.self) { [inner] attempt in
                    withExtendedLifetime(inner) { _ = ending.end(attempt) }
                }
                children.add(Weak(child))
                let nested = scope.transactionalOperation { [inner] group in
                    withExtendedLifetime(inner) { _ = group.operation {} }
                } completion: { [inner] in
                    withExtendedLifetime(inner) {}
                } cancellation: { [inner] _ in
                    withExtendedLifetime(inner) {}
                }
                children.add(Weak(nested))
            }
            withExtendedLifetime(token) {}
        }
        let composite = RegistrationRegressions.composite(
            isCascade: isCascade, { block($0) },
            completion: { [token = Token(released)] in withExtendedLifetime(token) {} },
            cancellation: { [token = Token(released)] _ in withExtendedLifetime(token) {} })
        _ = await composite.outcome
        #expect(await eventually { children.entries.allSatisfy { $0.operation == nil } })
        #expect(composite.children.isEmpty)
        // All tokens except the first one, which `block` still holds.
        #expect(await eventually { released.value == 3 + 2 })
        withExtendedLifetime(block) {}
        #expect(composite.isEnded)
    }

    @Test(.promises("R49")) func `R49: a child that outlives its parent does not keep it`() async {
        let children = Log<OperationHandle<Void>>()
        var parents: [Weak] = []
        for isCascade in [false, true] {
            for isCancelled in [false, true] {
                let parent = RegistrationRegressions.composite(isCascade: isCascade) { scope in
                    children.add(scope.operation { _ = isCancelled ? $0.cancel() : $0.finish() })
                    children.add(scope.cascadeOperation { $0.operation {} })
                }
                _ = await parent.outcome
                parents.append(Weak(parent))
            }
        }
        #expect(await eventually { parents.allSatisfy { $0.operation == nil } })
        #expect(children.entries.count == 8)
        #expect(children.entries.allSatisfy { $0.isEnded })
    }

    @Test(.promises("R49")) func `R49: children that a rerun dropped are freed before the composite ends`()
        async throws
    {
        let released = Count()
        let tries = Count()
        let children = Log<Weak>()
        let isLast = Count()
        let group = transactionalOperation { group in
            let isFirst = tries.add() == 1
            let token = Token(released)
            let child = group.operation { [token] attempt in
                withExtendedLifetime(token) { if isFirst { attempt.cancel() } else { isLast.add() } }
            }
            children.add(Weak(child))
        } cancellation: { group in
            group.rerun()
        }
        #expect(await eventually { isLast.value == 1 })
        #expect(await eventually { children.entries[0].operation == nil })
        #expect(released.value == 1)
        #expect(group.children.count == 1)
        (group.children.first as? COOperation<Void>)?.finish()
        try await group.value
        #expect(await eventually { released.value == 2 })
    }

    @Test(.promises("R49")) func `R49: without any handle, a tree leaves nothing, whatever ends it`()
        async
    {
        for ending in Ending.allCases {
            let released = Count()
            let tokens = Log<COOperation<Int>.Attempt>()
            do {
                let token = Token(released)
                transactionalOperation { [token] group in
                    group.cascadeOperation { [token] cascade in
                        cascade.operation(returning: Int.self) { [token] attempt in
                            withExtendedLifetime(token) { tokens.add(attempt) }
                        }
                        cascade.operation { [token] in withExtendedLifetime(token) {} }
                    }
                    withExtendedLifetime(token) {}
                }
            }
            #expect(await eventually { tokens.entries.count == 1 })
            #expect(released.value == 0)
            #expect(ending.end(tokens.entries[0]))
            #expect(await eventually { released.value == 1 })
        }
    }

    @Test(.promises("R49"))
    func `R49: an operation dropped before its start is freed at once, with its captures`() {
        let released = Count()
        do {
            let token = Token(released)
            let one = COOperation<Void> { [token] _ in withExtendedLifetime(token) {} }
            one.onOutcome { [token] _ in withExtendedLifetime(token) {} }
            let cascade = COCascade<Void> { [token] _ in withExtendedLifetime(token) {} }
            _ = (one.copy(), cascade.copy(), one.addDependency(cascade))
        }
        #expect(released.value == 1)
    }
}
