// Every public member that no other suite covers, called as a user would call it.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct InterfaceTests {
    // MARK: Four forms of `operation`

    @Test func `at the top level: a token block, with a value, by returning, asynchronously`() async throws {
        try await operation { $0.finish() }.value
        #expect(try await operation(returning: Int.self) { $0.finish(1) }.value == 1)
        #expect(try await operation { 2 }.value == 2)
        let asynchronous = operation { () async throws -> Int in
            await Task.yield()
            return 3
        }
        #expect(try await asynchronous.value == 3)
    }

    @Test func `each of them ends by a throw, and takes a target and options`() async {
        let options = OperationOptions(name: "throws")
        let all: [AnyOperation] = [
            operation(on: elsewhere, options: options) { _ in throw TestError(number: 1) },
            operation(returning: Int.self, on: elsewhere, options: options) { _ in throw TestError(number: 1)
            },
            operation(on: elsewhere, options: options) { () throws -> Int in throw TestError(number: 1) },
            operation(on: elsewhere, options: options) { () async throws -> Int in throw TestError(number: 1)
            },
        ]
        #expect(await eventually { all.allSatisfy { $0.isEnded } })
        #expect(all.allSatisfy { $0.isFailed && $0.state == .failed && $0.name == "throws" })
        #expect(all.allSatisfy { $0.description.contains("\"throws\"") })
    }

    @Test(arguments: [false, true])
    func `in a scope: the same four, of a cascade and of a transaction`(isCascade: Bool) async throws {
        let composite = RegistrationRegressions.composite(isCascade: isCascade) { scope in
            let token = scope.operation(on: elsewhere) { $0.finish() }
            let valued = scope.operation(returning: Int.self, on: elsewhere) { $0.finish(1) }
            let returning = scope.operation(on: elsewhere) { 2 }
            let asynchronous = scope.operation(on: elsewhere) { () async throws -> Int in
                await Task.yield()
                return 3
            }
            scope.operation(on: elsewhere) { () async throws -> Void in
                // In a cascade the earlier children have finished. In a group they may not have.
                if isCascade {
                    #expect(token.isFinished)
                    #expect(try await [valued.value, returning.value, asynchronous.value] == [1, 2, 3])
                }
            }
        }
        #expect(await composite.outcome.isFinished)
    }

    @Test func `an asynchronous body is one task, cancelled with its operation`() async {
        let isIn = Gate()
        let wasCancelled = Count()
        let one = operation { () async -> Int in
            await withTaskCancellationHandler {
                isIn.open()
                while wasCancelled.value == 0 { await Task.yield() }
            } onCancel: {
                wasCancelled.add()
            }
            return Task.isCancelled ? 1 : 0
        }
        await aside { isIn.wait() }
        #expect(one.cancel(CancelReason(.removed)))
        #expect(await one.outcome.reason?.kind == .removed)
        #expect(wasCancelled.value == 1)
    }

    // MARK: using:

    @Test func `using: an earlier step's value, in all of its forms`() async throws {
        let cascade = cascadeOperation { cascade in
            let numbers = cascade.operation { [1, 2, 3] }
            let sum = cascade.operation(using: numbers, on: elsewhere) { $0.reduce(0, +) }
            let text = cascade.operation(using: sum) { (sum: Int) async throws -> String in
                await Task.yield()
                return "\(sum)"
            }
            let count = cascade.operation(using: text, returning: Int.self) { attempt, text in
                attempt.finish(text.count)
            }
            let group = cascade.transactionalOperation { group in .value(of: group.operation { 40 }) }
            let ofGroup = cascade.operation(using: group) { $0 + 2 }
            return .values(of: sum, text, count, ofGroup)
        }
        let (sum, text, count, ofGroup) = try await cascade.value
        #expect(sum == 6)
        #expect(text == "6")
        #expect(count == 1)
        #expect(ofGroup == 42)
    }

    @Test func `using: a step that throws fails the cascade, and later ones do not run`() async {
        let ran = Count()
        let cascade = cascadeOperation { cascade in
            let first = cascade.operation { 1 }
            let second = cascade.operation(using: first) { (_: Int) throws -> Int in
                throw TestError(number: 2)
            }
            let third = cascade.operation(using: second) { _ in ran.add() }
            return .value(of: third)
        }
        #expect(await cascade.outcome.error as? TestError == TestError(number: 2))
        #expect(ran.value == 0)
    }

    @Test func `using: anything but an earlier step of the cascade is refused, and fails the cascade`() async
    {
        let stranger = operation { 1 }
        _ = await stranger.outcome
        let ran = Count()
        let refused = Log<COOperation<Int>>()
        let withStranger = cascadeOperation { cascade in
            cascade.operation {}
            refused.add(cascade.operation(using: stranger) { _ in ran.add() })
        }
        let withOuter = cascadeOperation { cascade in
            let step = cascade.operation { 1 }
            cascade.cascadeOperation { inner in
                refused.add(inner.operation(using: step) { _ in ran.add() })
            }
        }
        _ = (await withStranger.outcome, await withOuter.outcome)
        #expect(refused.entries.count == 2)
        for child in refused.entries {
            #expect(await child.outcome.error as? RegistrationError == .notAnEarlierStep)
        }
        #expect(ran.value == 0)
    }

    @Test func `using: a step of an earlier epoch is refused`() async {
        let steps = Log<COOperation<Int>>()
        let refused = Log<COOperation<Int>>()
        let cascade = cascadeOperation { cascade in
            steps.add(cascade.operation { 1 })
            if steps.entries.count == 1 {
                cascade.operation { $0.cancel() }
            } else {
                refused.add(cascade.operation(using: steps.entries[0]) { $0 })
            }
        } cancellation: { cascade in
            cascade.rerun()
        }
        _ = await cascade.outcome
        #expect(await refused.entries[0].outcome.error as? RegistrationError == .notAnEarlierStep)
    }

    // MARK: Results

    @Test func `results: one value, many, several of different types`() async throws {
        let one = transactionalOperation { group in .value(of: group.operation { "a" }) }
        let many = transactionalOperation { group in
            .values(of: (0..<50).map { index in group.operation(on: elsewhere) { index } })
        }
        let none = transactionalOperation { _ in Results<[Int]>.values(of: [OperationHandle<Int>]()) }
        let several = transactionalOperation { group in
            .values(of: group.operation { 1 }, group.operation { "b" }, group.operation { [true] })
        }
        #expect(try await one.value == "a")
        #expect(try await many.value == Array(0..<50))
        #expect(try await none.value.isEmpty)
        let (number, text, truths) = try await several.value
        #expect(number == 1)
        #expect(text == "b")
        #expect(truths == [true])
    }

    /// Checked by ThreadSanitizer: all arrays without capacity share one storage object.
    @Test func `results: of no children, by several threads, share no memory`() {
        let made = concurrently(4) { _ in
            (0..<200).allSatisfy { _ in
                let none = transactionalOperation { _ in Results<[Int]>.values(of: [OperationHandle<Int>]()) }
                return none.wait(timeout: nil)?.isFinished == true
            }
        }
        #expect(made == [true, true, true, true])
    }

    @Test func `results: of a non-descendant: the composite fails with that error`() async {
        let stranger = operation { 1 }
        _ = await stranger.outcome
        let first = cascadeOperation { _ in .value(of: stranger) }
        let second = cascadeOperation { cascade in .values(of: [cascade.operation { 1 }, stranger]) }
        let third = cascadeOperation { cascade in .values(of: cascade.operation { 1 }, stranger) }
        #expect(await first.outcome.error as? RegistrationError == .notAnEarlierStep)
        #expect(await second.outcome.error as? RegistrationError == .notAnEarlierStep)
        #expect(await third.outcome.error as? RegistrationError == .notAnEarlierStep)
    }

    // MARK: Shared

    @Test func `shared: one value of its epoch, for one child at a time`() async throws {
        let group = transactionalOperation(on: elsewhere) { group in
            let sum = group.shared(0)
            for index in 1...100 {
                group.operation(on: elsewhere) {
                    for _ in 0..<10 { sum.withLock { $0 += index } }
                }
            }
            return .value(
                of: group.cascadeOperation { cascade in
                    let last = cascade.operation { () async -> Int in
                        while sum.withLock({ $0 }) < 50500 { await Task.yield() }
                        return sum.withLock { $0 }
                    }
                    return .value(of: last)
                })
        }
        #expect(try await group.value == 50500)
    }

    @Test func `shared: each epoch has its own, and an error passes through`() async throws {
        let seen = Log<Int>()
        let group = cascadeOperation { cascade in
            let count = cascade.shared(0)
            for _ in 0..<3 { cascade.operation { count.withLock { $0 += 1 } } }
            cascade.operation { attempt in
                seen.add(count.withLock { $0 })
                #expect(throws: TestError.self) {
                    try count.withLock { (_) throws(TestError) in throw TestError() }
                }
                _ = seen.entries.count < 2 ? attempt.cancel() : attempt.finish()
            }
        } cancellation: { cascade in
            cascade.rerun()
        }
        try await group.value
        #expect(seen.entries == [3, 3])
    }

    // MARK: Scopes

    @Test func `add: a ready-made child runs in its turn; one that is not ready or has a parent is refused`()
        async throws
    {
        let log = Log<Int>()
        let child = COOperation<Int> { attempt in
            log.add(2)
            attempt.finish(7)
        }
        let made = COCascade<Void> { cascade in cascade.operation { log.add(3) } }
        let started = operation { 1 }
        _ = await started.outcome
        let errors = Log<RegistrationError>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { log.add(1) }
            let added = try cascade.add(child)
            #expect(added === child)
            try cascade.add(made)
            do throws(RegistrationError) { try cascade.add(child) } catch { errors.add(error) }
            do throws(RegistrationError) { try cascade.add(started) } catch { errors.add(error) }
            return .value(of: child)
        }
        #expect(try await cascade.value == 7)
        #expect(log.entries == [1, 2, 3])
        #expect(errors.entries == [.hasParent, .alreadyStarted])
        #expect(!child.start())
    }

    @Test func `a scope that is kept registers while its composite executes; late children go last`()
        async throws
    {
        let log = Log<Int>()
        let scopes = Log<CascadeScope>()
        let tokens = Log<COOperation<Void>.Attempt>()
        let cascade = cascadeOperation { cascade in
            scopes.add(cascade)
            cascade.operation { tokens.add($0) }
            cascade.operation { log.add(2) }
        }
        #expect(await eventually { tokens.entries.count == 1 })
        #expect(scopes.entries[0].isOpen)
        #expect(scopes.entries[0].control === cascade)
        scopes.entries[0].operation { log.add(3) }
        scopes.entries[0].transactionalOperation { $0.operation { log.add(4) } }
        tokens.entries[0].finish()
        try await cascade.value
        #expect(log.entries == [2, 3, 4])
        #expect(!scopes.entries[0].isOpen)
        #expect(await scopes.entries[0].operation {}.outcome.error as? RegistrationError == .ended)
    }

    @Test(.promises("G21"))
    func `a scope of an earlier epoch is stale: nothing done with it concerns the new one`()
        async throws
    {
        let scopes = Log<TransactionScope>()
        let tokens = Log<COOperation<Void>.Attempt>()
        let group = transactionalOperation { group in
            scopes.add(group)
            if scopes.entries.count == 1 {
                group.operation { $0.cancel() }
            } else {
                group.operation { tokens.add($0) }
            }
        } cancellation: { group in
            group.rerun()
        }
        #expect(await eventually { tokens.entries.count == 1 })
        let stale = scopes.entries[0]
        #expect(!stale.isOpen)
        #expect(stale.isCancelled)
        #expect(!stale.cancel())
        #expect(!stale.suspend())
        #expect(!stale.resume())
        #expect(throws: RegistrationError.stale) { try stale.add(COOperation<Void> { $0.finish() }) }
        #expect(await stale.operation {}.outcome.error as? RegistrationError == .stale)
        #expect(scopes.entries[1].suspend())
        #expect(group.isSuspended)
        #expect(scopes.entries[1].resume())
        tokens.entries[0].finish()
        try await group.value
    }

    // MARK: Handles

    @Test func `onOutcome: on its target, in the order of addition, also after the end, after the closures`()
        async throws
    {
        let log = Log<String>()
        let serial = DispatchQueue(label: "serial")
        let one = COOperation<Int>()
        one.onOutcome { _ in log.add("first") }
            .onOutcome(on: serial) { outcome in
                dispatchPrecondition(condition: .onQueue(serial))
                log.add("second \(outcome.isFinished)")
            }
        one.run {
            $0.finish(1)
        } completion: {
            log.add("completion")
        }
        #expect(try await one.value == 1)
        await withCheckedContinuation { done in
            one.onOutcome(on: elsewhere) { outcome in
                log.add("late \(outcome.isFinished)")
                done.resume()
            }
        }
        #expect(log.entries == ["completion", "first", "second true", "late true"])
    }

    @Test func `handlers run on the handler target, wherever the blocks do`() async {
        let handlers = CountingTarget(to: elsewhere)
        let blocks = CountingTarget(to: elsewhere)
        let options = OperationOptions(handlerTarget: handlers)
        let cascade = cascadeOperation(on: blocks, options: options) { cascade in
            cascade.operation(on: blocks) { $0.cancel() }
        } cancellation: { cascade in
            cascade.cancel()
        }
        _ = await cascade.outcome
        await withCheckedContinuation { done in cascade.onOutcome { _ in done.resume() } }
        #expect((blocks.submitted.value, handlers.submitted.value) == (2, 2))
    }

    @Test
    func
        `run() starts and waits; cancelling its task cancels the operation, cancelling that of value does not`()
        async throws
    {
        let one = COOperation<Int> { $0.finish(5) }
        #expect(try await one.run() == 5)
        #expect(try await one.run() == 5)
        let cascade = COCascade<Int> { cascade in .value(of: cascade.operation { 6 }) }
        #expect(try await cascade.run() == 6)

        let open = COOperation<Int> { _ in }
        let waiting = Task { try await open.value }
        #expect(open.start())
        waiting.cancel()
        #expect(!open.isCancelled)
        #expect(open.finish(1))
        #expect(try await waiting.value == 1)

        let cancelled = COOperation<Int> { _ in }
        let running = Task { try await cancelled.run() }
        #expect(await eventually { cancelled.attempt == 1 })
        running.cancel()
        #expect(await cancelled.outcome.reason?.kind == .taskCancelled)
        await #expect(throws: CancelReason.self) { try await running.value }
        let hasNoBlock = COOperation<Int>()
        await #expect(throws: RegistrationError.hasNoBlock) { try await hasNoBlock.run() }
        #expect(hasNoBlock.state == .ready)
        let hasNoRegistration = COCascade<Int>()
        await #expect(throws: RegistrationError.hasNoBlock) { try await hasNoRegistration.run() }
        #expect(hasNoRegistration.state == .ready)
    }

    @Test func `running a child before its turn is refused: it has a parent`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let waiting = Mail<COOperation<Int>>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { tokens.send($0) }
            waiting.send(cascade.operation { 1 })
        }
        let (first, second) = (await tokens.next(), await waiting.next())
        await #expect(throws: RegistrationError.hasParent) { try await second.run() }
        #expect(second.state == .ready)
        first.finish()
        #expect(try await second.value == 1)
        try await cascade.value
    }

    @Test func `many waiting tasks each receive the value once`() async throws {
        let one = operation(returning: Int.self) { _ in }
        let values = try await withThrowingTaskGroup(of: Int.self) { tasks in
            for _ in 0..<20 { tasks.addTask { try await one.value } }
            tasks.addTask {
                await Task.yield()
                one.finish(1)
                return 1
            }
            return try await tasks.reduce(0, +)
        }
        #expect(values == 21)
    }

    @Test func `an outcome's get returns the value or throws the cause`() throws {
        #expect(try Outcome.finished(3).get() == 3)
        #expect(throws: TestError(number: 4)) { try Outcome<Int>.failed(TestError(number: 4)).get() }
        #expect(throws: CancelReason.self) { try Outcome<Int>.cancelled(CancelReason(.removed)).get() }
    }

    @Test func `identities, names, descriptions and trees`() async {
        let group = transactionalOperation(options: OperationOptions(name: "outer")) { group in
            group.operation(options: OperationOptions(name: "inner")) { _ in }
        }
        #expect(await eventually { group.children.first?.hasLeftOpen == true })
        let child = group.children[0]
        #expect(child.id != group.id)
        #expect(child.id == group.children[0].id)
        #expect(group.name == "outer")
        #expect(group.description == "transactional operation \"outer\" \(group.id)")
        let lines = group.tree.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines[0].contains("executing, attempt 1"))
        #expect(lines[1].hasPrefix("  operation \"inner\""))
        #expect(lines[1].contains("returned without an end"))
        group.cancel()
        _ = await group.outcome
        #expect(group.tree.contains("cancelled"))
    }

    @Test func `reasons, causes and diagnostics have clear descriptions`() async {
        #expect("\(CancelReason(.removed))" == "cancelled (removed)")
        #expect("\(CancelReason(.removed, underlying: TestError()))".contains("TestError"))
        let group = transactionalOperation { group in group.operation { _ in throw TestError() } }
        _ = await group.outcome
        #expect(group.causes.map(\.description).first?.hasPrefix("child 0 failed") == true)
        let cancelled = transactionalOperation { group in group.operation { $0.cancel() } }
        let reason = await cancelled.outcome.reason
        #expect(reason?.origin == cancelled.causes.first?.child)
        #expect("\(reason!)".contains("began in \(reason!.origin!)"))
    }

    @Test func `transitions start with the current state and end after the terminal one`() async throws {
        let one = COOperation<Void> { _ = $0.number < 2 ? $0.rerun() : $0.finish() }
        let observing = Task { () -> [Transition] in
            var all: [Transition] = []
            for await transition in one.transitions { all.append(transition) }
            return all
        }
        // The task begins to observe when it reads its first element. The operation may be started before that.
        await Task.yield()
        try await one.run()
        let all = await observing.value
        #expect(all.last?.to == .finished)
        for (former, latter) in zip(all, all.dropFirst()) {
            #expect(former.to == latter.from)
            #expect(former.attempt <= latter.attempt)
            #expect(former.instant <= latter.instant)
        }
        var ended = one.transitions.makeAsyncIterator()
        #expect(await ended.next()?.to == .finished)
        #expect(await ended.next() == nil)
    }

    // MARK: Options

    @Test func `a timeout of the operation, and one of an attempt, run on its clock`() async throws {
        let clock = ManualClock()
        let one = operation(
            returning: Int.self, options: OperationOptions(timeout: .seconds(5), clock: clock)
        ) { _ in }
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(4))
        #expect(!one.isCancelled)
        clock.advance(by: .seconds(1))
        #expect(await one.outcome.reason?.kind == .timedOut)

        let runs = Count()
        let again = operation(
            returning: Int.self,
            options: OperationOptions(
                resolver: COOperationResolver(maxAttempts: 3, clock: clock), attemptTimeout: .seconds(1),
                clock: clock)
        ) { attempt in
            if runs.add() == 3 { attempt.finish(attempt.number) }
        }
        for _ in 0..<2 {
            #expect(await eventually { clock.sleepers == 1 })
            clock.advance(by: .seconds(1))
        }
        #expect(try await again.value == 3)
        #expect(await eventually { clock.sleepers == 0 })

        let late = operation(options: OperationOptions(deadline: .now)) { _ in }
        #expect(await late.outcome.reason?.kind == .timedOut)
    }

    @Test func `the end cancels the timeout`() async throws {
        let clock = ManualClock()
        let one = operation(options: OperationOptions(timeout: .seconds(5), clock: clock)) { _ in }
        #expect(await eventually { clock.sleepers == 1 })
        #expect(one.finish())
        try await one.value
        #expect(await eventually { clock.sleepers == 0 })
    }

    @Test func `a width bounds how many children are in flight`() async throws {
        for width in 1...3 {
            let inFlight = Count()
            let most = Locked(0)
            let group = transactionalOperation(on: elsewhere, options: OperationOptions(width: width)) {
                group in
                for _ in 0..<30 {
                    group.operation(on: elsewhere) {
                        let now = inFlight.add()
                        most.withLock { $0 = max($0, now) }
                        sched_yield()
                        inFlight.add(-1)
                    }
                }
            }
            try await group.value
            #expect(most.withLock { $0 } <= width)
        }
    }
}
