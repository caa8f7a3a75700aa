// MemoryTests - which objects are kept alive, by what, and for how long (G37, G38).

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Uses an operation when it is released, so it must not be released while a lock of ours is held.
private final class Visitor: Sendable {
    private let visited: Count
    private let operation = Locked<AnyOperation?>(nil)
    init(_ visited: Count) { self.visited = visited }
    func visit(_ operation: AnyOperation) { self.operation.withLock { $0 = operation } }
    deinit {
        let operation = operation.withLock { $0 }
        if operation?.state != nil { visited.add() }
    }
}

private struct Weak {
    weak var object: AnyObject?
    init(_ object: AnyObject) { self.object = object }
}

private struct Gone {
    private let all = Locked<[Weak]>([])
    func watch(_ object: AnyObject) { all.withLock { $0.append(Weak(object)) } }
    var left: Int { all.withLock { $0.filter { $0.object != nil }.count } }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct MemoryTests {
    /// How an operation ends.
    private enum End: CaseIterable {
        case finished, failed, cancelled, unstarted, threw, rerun, paused, resolved
    }

    // MARK: G37

    @Test func `a dependent of an operation dropped before its start stops waiting for it`() async {
        let dependent = COOperation<Void> { $0.finish() }
        do {
            let other = COOperation<Void> { $0.finish() }
            #expect(dependent.addDependency(other))
            #expect(dependent.start())
            withExtendedLifetime(other) { #expect(dependent.numberOfRuns == 0) }
        }
        #expect(await dependent.outcome.isFinished)
    }

    @Test(.promises("G37"))
    func `an ended leaf has released its block and closures, even if its handle is held`()
        async throws
    {
        for end in End.allCases {
            let released = Count()
            let one = COOperation<Int>(
                options: OperationOptions(
                    resolver: end == .resolved ? COOperationResolver(maxAttempts: 2) : nil))
            let clock = ManualClock()
            func prepare() {
                let (inBlock, inHandlers) = (Token(released), Token(released))
                let block: COOperation<Int>.Block = { [inBlock] attempt in
                    withExtendedLifetime(inBlock) {}
                    attempt.onCancel { [inBlock] _ in withExtendedLifetime(inBlock) {} }
                    switch end {
                    case .finished: attempt.finish(1)
                    case .failed, .resolved: attempt.fail(TestError())
                    case .cancelled: attempt.cancel()
                    case .threw: throw TestError()
                    case .rerun: if attempt.number == 1 { attempt.rerun() } else { attempt.finish(2) }
                    case .paused: attempt.rerun(after: .seconds(9_999))
                    case .unstarted: break
                    }
                }
                one.onOutcome { [inHandlers] _ in withExtendedLifetime(inHandlers) {} }
                if end == .unstarted {
                    one.operation = block
                } else {
                    one.run(block) { [inHandlers] in
                        withExtendedLifetime(inHandlers) {}
                    } cancellation: { [inHandlers] in
                        withExtendedLifetime(inHandlers) {}
                    } failure: { [inHandlers] _ in
                        withExtendedLifetime(inHandlers) {}
                    }
                }
            }
            prepare()
            if end == .paused { #expect(await eventually { one.state == .delayed }) }
            if end == .paused || end == .unstarted { one.cancel() }
            let outcome = await one.outcome
            #expect(await eventually { released.value == 2 }, "\(end): \(released.value)")
            withExtendedLifetime((one, clock)) {}
            #expect(one.isEnded)
            if case .finished(let value) = outcome { #expect(value == (end == .rerun ? 2 : 1)) }
        }
    }

    @Test(.promises("G37")) func `leaves leave no instances, however they ended`() async throws {
        let gone = Gone()
        for end in End.allCases {
            let one = operation(
                returning: Int.self,
                options: OperationOptions(
                    resolver: end == .resolved ? COOperationResolver(maxAttempts: 2) : nil)
            ) { attempt in
                switch end {
                case .finished: attempt.finish(1)
                case .failed, .resolved: attempt.fail(TestError())
                case .cancelled, .unstarted: attempt.cancel()
                case .threw: throw TestError()
                case .rerun: if attempt.number == 1 { attempt.rerun() } else { attempt.finish(2) }
                case .paused: attempt.rerun(after: .seconds(9_999))
                }
            }
            gone.watch(one)
            if end == .paused { #expect(await eventually { one.state == .delayed }) }
            if end == .paused { one.cancel() }
            _ = await one.outcome
        }
        #expect(await eventually { gone.left == 0 })
    }

    @Test func `a kept block is released with its operation, in any form`() async throws {
        let kept = OperationOptions(keepsBlock: true)
        for form in 0..<4 {
            let released = Count()
            let last = Locked<AnyOperation?>(nil)
            func make() -> AnyOperation {
                let token = Token(released)
                switch form {
                case 0:
                    return operation(options: kept) { [token] (attempt: COOperation<Void>.Attempt) in
                        withExtendedLifetime(token) { _ = attempt.finish() }
                    }
                case 1: return operation(options: kept) { [token] in withExtendedLifetime(token) {} }
                case 2:
                    return operation(options: kept) { [token] in
                        await Task.yield()
                        withExtendedLifetime(token) {}
                    }
                default:
                    return cascadeOperation { cascade in
                        let first = cascade.operation { 1 }
                        let second = cascade.operation(using: first, options: kept) { [token] _ in
                            withExtendedLifetime(token) {}
                        }
                        last.withLock { $0 = second }
                    }
                }
            }
            do {
                let one = make()
                #expect(await eventually { one.isFinished }, "\(form)")
                last.withLock { if $0 == nil { $0 = one } }
            }
            #expect(released.value == 0, "\(form)")
            last.withLock { $0 = nil }
            #expect(await eventually { released.value == 1 }, "\(form)")
        }
    }

    @Test(arguments: 0..<4)
    func `a long chain of steps that keep their blocks is released on a small stack`(form: Int) async {
        let steps = scaled(100_000)
        let released = Count()
        let last = Locked<AnyOperation?>(nil)
        let cascade = cascadeOperation { cascade in
            var step: COOperation = cascade.operation { 0 }
            let kept = OperationOptions(keepsBlock: true)
            for index in 0..<steps {
                let token = Token(released)
                switch form == 3 ? index % 3 : form {
                case 0:
                    step = cascade.operation(using: step, options: kept) { [token] value in
                        withExtendedLifetime(token) { value + 1 }
                    }
                case 1:
                    step = cascade.operation(using: step, options: kept) { [token] value async in
                        withExtendedLifetime(token) { value + 1 }
                    }
                default:
                    step = cascade.operation(using: step, returning: Int.self, options: kept) {
                        [token] attempt, value in
                        withExtendedLifetime(token) { _ = attempt.finish(value + 1) }
                    }
                }
            }
            last.withLock { $0 = step }
        }
        #expect(await cascade.outcome.isFinished)
        // From now on only this test holds the chain.
        #expect(await eventually { last.withLock { isKnownUniquelyReferenced(&$0) } })
        #expect(released.value == 0)
        await onSmallStack { last.withLock { $0 = nil } }
        #expect(await eventually { released.value == steps }, "a thread may hold a step for a while yet")
    }

    @Test(.promises("G37")) func `an unstarted operation is freed with its last reference, unreported`()
        async throws
    {
        let (gone, released, told) = (Gone(), Count(), Count())
        func make() {
            let token = Token(released)
            let leaf = COOperation<Void> { [token] in
                withExtendedLifetime(token) {}
                $0.finish()
            }
            let group = COTransaction<Void> { [token] (group: TransactionScope) -> Void in
                withExtendedLifetime(token) {}
                group.operation {}
            }
            leaf.onOutcome { _ in told.add() }
            group.onOutcome { _ in told.add() }
            leaf.suspend()
            let dependent = COOperation<Void> { $0.finish() }
            dependent.addDependency(leaf)
            let queued = COOperation<Void>(on: COOperationQueue()) { $0.finish() }
            queued.suspend()
            for one in [leaf, group, dependent, queued] as [AnyOperation] { gone.watch(one) }
        }
        make()
        #expect(gone.left == 0 && released.value == 1 && told.value == 0)
    }

    /// How a composite comes to its end.
    private enum Fate: CaseIterable {
        case finished, failed, cancelled, cancelledSuspended, undecided, awoken, rerun, threw, exhausted, late
    }

    @Test(.promises("G37"))
    func `an ended composite has released block, handlers and children, even if held`()
        async throws
    {
        for fate in Fate.allCases {
            for isNested in [false, true] {
                let (gone, released) = (Gone(), Count())
                let root = await build(fate, isNested, gone, released)
                _ = await root.outcome
                #expect(
                    await eventually { gone.left == 0 }, "\(fate), \(isNested): \(gone.left) children left")
                #expect(await eventually { released.value == 2 }, "\(fate), \(isNested): \(released.value)")
                #expect(root.children.isEmpty && root.isEnded)
            }
        }
    }

    private func build(
        _ fate: Fate, _ isNested: Bool, _ gone: Gone, _ released: Count
    ) async -> CompositeOperation<Void> {
        let (inBlock, inHandler) = (Token(released), Token(released))
        let built = Mail<Void>()
        let fails = Count()
        let fill: @Sendable (any CompositeScope) throws -> Void = { [inBlock] scope in
            withExtendedLifetime(inBlock) {}
            gone.watch(scope.operation { [inBlock] in withExtendedLifetime(inBlock) {} })
            switch fate {
            case .finished, .late: break
            case .cancelled, .cancelledSuspended:
                gone.watch(scope.operation { [inBlock] _ in withExtendedLifetime(inBlock) {} })
                if fate == .cancelledSuspended { scope.suspend() }
            case .failed, .undecided, .exhausted:
                gone.watch(scope.operation { (_) throws -> Void in throw TestError() })
            case .awoken, .rerun:
                gone.watch(
                    scope.operation { (attempt: COOperation<Void>.Attempt) in
                        if fails.add() < 3 { attempt.cancel() } else { attempt.finish() }
                    })
            case .threw: throw TestError()
            }
            built.send(())
            if fate == .late { gone.watch(scope.operation {}) }
        }
        let decide: @Sendable (COCascade<Void>) -> Void = { [inHandler] cascade in
            withExtendedLifetime(inHandler) {}
            switch fate {
            case .awoken: cascade.awake()
            case .rerun: cascade.rerun()
            case .exhausted: cascade.resolve(using: COOperationResolver(maxAttempts: 3))
            case .cancelled: cascade.cancel()
            default: break
            }
        }
        let root = cascadeOperation(
            { [inBlock] (cascade: CascadeScope) -> Void in
                withExtendedLifetime(inBlock) {}
                if isNested {
                    gone.watch(cascade.transactionalOperation { try fill($0) })
                } else {
                    try fill(cascade)
                }
            }, cancellation: decide)
        if fate == .cancelled || fate == .cancelledSuspended {
            await built.next()
            root.cancel()
        }
        return root
    }

    @Test(.promises("G37"))
    func `a queue retains no operation that left it: finished, displaced, removed, cancelled, refused`()
        async throws
    {
        let (gone, released) = (Gone(), Count())
        let queue = COOperationQueue(.aggressiveLIFO, runningLimit: 1, pendingLimit: 2)
        let bounded = COOperationQueue(runningLimit: 1, pendingLimit: 0)
        let (tokens, blocked) = (Mail<COOperation<Void>.Attempt>(), Mail<COOperation<Void>.Attempt>())
        func fill(_ queue: COOperationQueue, _ count: Int) {
            for _ in 0..<count {
                let token = Token(released)
                gone.watch(operation(on: queue) { [token] in withExtendedLifetime(token) {} })
            }
        }
        gone.watch(operation(on: queue) { tokens.send($0) })
        gone.watch(operation(on: bounded) { blocked.send($0) })
        let (first, second) = (await tokens.next(), await blocked.next())
        fill(queue, 40)
        fill(bounded, 5)
        // The displaced and refused operations of each queue are released, although the queue lives on.
        #expect(await eventually { released.value == 38 + 5 }, "\(released.value)")
        #expect(await eventually { gone.left == 4 })
        queue.suspend()
        #expect(queue.removeAllPending() == 2)
        #expect(await eventually { released.value == 45 }, "\(released.value)")
        fill(queue, 2)
        queue.cancelAll()
        #expect(await eventually { released.value == 47 }, "\(released.value)")
        second.finish()
        await queue.idle()
        await bounded.idle()
        withExtendedLifetime(first) {}
        #expect(queue.operationCount == 0 && bounded.operationCount == 0)
    }

    @Test(.promises("G37")) func `queues, targets and options are freed with their last operation`()
        async throws
    {
        let gone = Gone()
        func make() async {
            let queue = COOperationQueue(runningLimit: 1)
            let target = SmallTarget()
            defer { target.stop() }
            gone.watch(queue)
            gone.watch(target)
            let group = transactionalOperation(on: queue, options: OperationOptions(handlerTarget: target)) {
                for _ in 0..<3 { $0.operation(on: target) {} }
            }
            _ = await group.outcome
            await queue.idle()
        }
        await make()
        #expect(await eventually { gone.left == 0 })
    }

    @Test(.promises("G37")) func `an ended composite that keeps its block keeps no child`() async throws {
        let gone = Gone()
        let group = COTransaction<Int>(options: OperationOptions(keepsBlock: true)) { group in
            let child = group.operation { 1 }
            gone.watch(child.operation)
            return .value(of: child)
        }
        #expect(try await group.run() == 1)
        #expect(await eventually { gone.left == 0 })
        #expect(try await group.copy().run() == 1)
        #expect(await eventually { gone.left == 0 })
        withExtendedLifetime(group) {}
    }

    @Test(.promises("G37"))
    func `a sync operation that ends while its turn is sent to the waiting thread leaks nothing`()
        async throws
    {
        /// Calls a hook before it runs the first piece of work.
        final class Interposed: ExecutionTarget {
            private let before = Locked<(@Sendable () -> Void)?>(nil)
            var isCurrent: Bool { false }
            func interpose(_ body: @escaping @Sendable () -> Void) { before.withLock { $0 = body } }
            func submit(_ work: ExecutionWork) {
                let body = before.withLock { before in
                    defer { before = nil }
                    return before
                }
                body?()
                work.run()
            }
        }
        let gone = Gone()
        func make() async {
            let (queue, target, hasReturned) = (COOperationQueue(runningLimit: 1), Interposed(), Gate())
            let blocker = COOperation<Void>(on: queue)
            let first = COOperation<Void>(on: target) { $0.finish() }
            let sync = COSyncOperation<Void> { $0.finish() }
            gone.watch(sync)
            blocker.run { _ in }
            #expect(queue.add(first))
            elsewhere.async { [sync] in
                _ = queue.add(sync)
                hasReturned.open()
            }
            #expect(await eventually { queue.pendingOperations.count == 2 })
            // Both turns are taken from the queue together. While the first one is being sent, the second operation
            // ends, and the thread that waits for it returns.
            target.interpose { [unowned sync] in
                sync.cancel()
                hasReturned.wait()
            }
            await aside { queue.runningLimit = nil }
            #expect(await first.outcome.isFinished && sync.isCancelled && sync.numberOfRuns == 0)
            blocker.finish()
            await queue.idle()
        }
        await make()
        #expect(await eventually { gone.left == 0 })
    }

    @Test(.promises("G37"))
    func `an attempt's token, a decision's hold and a scope hold their operation, and nothing holds them`()
        async throws
    {
        let gone = Gone()
        let (scopes, holds) = (Mail<CascadeScope>(), Mail<DecisionHold?>())
        func make() async {
            let cascade = cascadeOperation { cascade in
                scopes.send(cascade)
                cascade.operation { (_) throws -> Void in throw TestError() }
            } cancellation: {
                holds.send($0.deferDecision())
            }
            gone.watch(cascade)
        }
        await make()
        func use() async {
            let (scope, hold) = (await scopes.next(), await holds.next())
            #expect(gone.left == 1)
            withExtendedLifetime((scope, hold)) {}
        }
        await use()
        #expect(await eventually { gone.left == 0 })
    }

    @Test(.promises("G37")) func `observers and waiters leave nothing behind`() async throws {
        let gone = Gone()
        func make() async throws {
            let tokens = Mail<COOperation<Void>.Attempt>()
            let one = operation { tokens.send($0) }
            gone.watch(one)
            let token = await tokens.next()
            let seen = Task { for await _ in one.transitions {} }
            let waiting = Task { try await token.resumed() }
            let value = Task { try await one.value }
            one.suspend()
            one.resume()
            token.finish()
            await seen.value
            _ = await waiting.result
            try await value.value
        }
        try await make()
        #expect(await eventually { gone.left == 0 })
    }

    /// The `deinit` of a captured object runs when the closure that captured it is released.
    @Test(.promises("G37")) func `diagnostics listeners are released under no lock`() async {
        // In a separate process, because the listener is global.
        await #expect(processExitsWith: .success) {
            final class Last: Sendable {
                deinit { Diagnostics.onReport(nil) }
            }
            let last = Last()
            Diagnostics.onReport { [last] _ in withExtendedLifetime(last) {} }
            _ = consume last
            Diagnostics.onReport(nil)
        }
    }

    @Test(.promises("G37")) func `user objects are released under no lock`() async throws {
        let visited = Count()
        // A cancel handler, of an attempt that finishes.
        let one = COOperation<Void>()
        do {
            let visitor = Visitor(visited)
            visitor.visit(one)
            one.run { [visitor] attempt in
                attempt.onCancel { [visitor] _ in withExtendedLifetime(visitor) {} }
                attempt.finish()
            }
        }
        try await one.value
        #expect(await eventually { visited.value == 1 })
        // An outcome handler, and closures.
        let two = COOperation<Void>()
        do {
            let visitor = Visitor(visited)
            visitor.visit(two)
            two.onOutcome { [visitor] _ in withExtendedLifetime(visitor) {} }
            two.run({ $0.finish() }, completion: { [visitor] in withExtendedLifetime(visitor) {} })
        }
        try await two.value
        #expect(await eventually { visited.value == 2 })
        // A block that is replaced.
        let three = COOperation<Void>()
        let cascade = COCascade<Void>()
        do {
            let visitor = Visitor(visited)
            visitor.visit(three)
            three.operation = { [visitor] _ in withExtendedLifetime(visitor) {} }
            let other = Visitor(visited)
            other.visit(cascade)
            cascade.operation = { [other] _ in
                withExtendedLifetime(other) {}
                throw TestError()
            }
        }
        three.run { $0.finish() }
        cascade.run { (scope: CascadeScope) -> Void in scope.operation {} }
        try await three.value
        try await cascade.value
        #expect(await eventually { visited.value == 4 })
        // A handler of an abandoned attempt.
        let four = COOperation<Void>()
        do {
            let visitor = Visitor(visited)
            visitor.visit(four)
            let box = Locked<Visitor?>(visitor)
            four.run { attempt in
                if attempt.number == 1 {
                    let visitor = box.withLock { $0 }
                    box.withLock { $0 = nil }
                    attempt.onCancel { [visitor] _ in withExtendedLifetime(visitor) {} }
                    attempt.rerun()
                } else {
                    attempt.finish()
                }
            }
        }
        try await four.value
        #expect(await eventually { visited.value == 5 })
        // The error of an attempt that is redone: by a leaf's resolver, by awake, and by rerun.
        final class Bad: Error {
            let visitor: Visitor
            init(_ visitor: Visitor) { self.visitor = visitor }
        }
        let five = COOperation<Void>(options: OperationOptions(resolver: COOperationResolver(maxAttempts: 2)))
        five.run { attempt in
            if attempt.number == 2 { return _ = attempt.finish() }
            let visitor = Visitor(visited)
            visitor.visit(attempt.operation)
            throw Bad(visitor)
        }
        try await five.value
        #expect(await eventually { visited.value == 6 })
        for isAwake in [true, false] {
            let runs = Count()
            let group = cascadeOperation { group in
                let control = group.control
                group.operation { () throws -> Void in
                    if runs.add() > 1 { return }
                    let visitor = Visitor(visited)
                    visitor.visit(control)
                    throw Bad(visitor)
                }
            } cancellation: { group in
                _ = isAwake ? group.awake() : group.rerun()
            }
            try await group.value
        }
        #expect(await eventually { visited.value == 8 })
    }

    // MARK: G38

    @Test(.promises("G38")) func `dropping every reference before the end changes no outcome`()
        async throws
    {
        for end in End.allCases where end != .unstarted && end != .paused {
            let told = Mail<String>()
            func start() {
                let one = COOperation<Int>(
                    options: OperationOptions(
                        resolver: end == .resolved ? COOperationResolver(maxAttempts: 2) : nil))
                one.run { attempt in
                    switch end {
                    case .finished: attempt.finish(1)
                    case .failed, .resolved: attempt.fail(TestError())
                    case .cancelled: attempt.cancel()
                    case .threw: throw TestError()
                    default: if attempt.number == 1 { attempt.rerun() } else { attempt.finish(2) }
                    }
                } completion: {
                    told.send("finished")
                } cancellation: {
                    told.send("cancelled")
                } failure: { _ in
                    told.send("failed")
                }
            }
            start()
            let expected: String =
                switch end {
                case .finished, .rerun: "finished"
                case .cancelled: "cancelled"
                default: "failed"
                }
            #expect(await told.next() == expected)
        }
    }

    @Test(.promises("G38")) func `a tree without any outside reference still ends`() async throws {
        await forAll(.int(in: 0...3), cases: scaled(30)) { fails in
            let (told, gone) = (Mail<Int>(), Gone())
            let runs = Count()
            func start() {
                let root = cascadeOperation { cascade in
                    for _ in 0..<3 {
                        cascade.transactionalOperation { group in
                            for _ in 0..<3 { group.operation {} }
                        }
                    }
                    cascade.operation { () throws -> Void in if runs.add() <= fails { throw TestError() } }
                } completion: {
                    told.send(runs.value)
                } cancellation: {
                    $0.awake()
                }
                gone.watch(root)
            }
            start()
            #expect(await told.next() == fails + 1)
            #expect(await eventually { gone.left == 0 })
        }
    }

    @Test(.promises("G38"))
    func `an operation cancelled before its start, and dropped, notifies its handlers`()
        async throws
    {
        let told = Mail<CancelReason.Kind?>()
        func cancel() {
            let one = COOperation<Void> { $0.finish() }
            one.onOutcome { told.send($0.reason?.kind) }
            one.cancel(CancelReason(.removed))
        }
        cancel()
        #expect(await told.next() == .removed)
    }

    @Test(.promises("G38")) func `a token that a callback keeps is enough to finish an operation`()
        async throws
    {
        let (tokens, told) = (Mail<COOperation<Int>.Attempt>(), Mail<Int?>())
        func start() {
            operation(returning: Int.self) { tokens.send($0) }.onOutcome { told.send(try? $0.get()) }
        }
        start()
        #expect(await tokens.next().finish(9))
        #expect(await told.next() == 9)
    }
}
