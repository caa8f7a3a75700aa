// Cancelling anything, at any time, from any thread: G9, G11, G12, G14.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct CancelTests {
    // MARK: G9

    private enum Moment: CaseIterable {
        case ready, queued, registering, executing, suspended, deciding, delayed
    }

    private enum Level: CaseIterable {
        case root, child, nestedChild, leaf
    }

    @Test(.promises("G9")) func `cancel has one effect at each level and at each moment`() async throws {
        for moment in Moment.allCases {
            for level in Level.allCases {
                for isCascade in [true, false] {
                    try await cancel(level, at: moment, isCascade)
                }
            }
        }
    }

    /// Builds a root, a composite inside it, a second composite inside the first, and a leaf. Brings the operation at
    /// `level` to `moment`, and cancels it.
    private func cancel(_ level: Level, at moment: Moment, _ isCascade: Bool) async throws {
        let (mailbox, clock, hold) = (Mailbox(), ManualClock(), Gate())
        let (registering, told, asked) = (Gate(), Log<Int>(), Log<Int>())
        let operations = Locked<[Int: OperationHandle<Void>]>([:])
        let depth = Level.allCases.firstIndex(of: level)!
        let isDeciding = moment == .deciding && level != .leaf
        if moment == .registering && level == .leaf || moment == .deciding && level == .leaf { return }

        /// The target for the block of a level.
        @Sendable func target(_ at: Int) -> any ExecutionTarget {
            at == depth && moment == .queued ? mailbox : elsewhere
        }
        let options = OperationOptions(clock: clock)
        @Sendable func keep(_ at: Int, _ operation: OperationHandle<Void>) {
            operations.withLock { $0[at] = operation }
            operation.onOutcome { _ in told.add(at) }
        }
        @Sendable func decide(_ at: Int, _ composite: CompositeOperation<Void>) {
            asked.add(at)
            if at == depth, isDeciding { hold.wait() }
        }
        @Sendable func register(_ at: Int, in scope: any CompositeScope) {
            defer {
                if at - 1 == depth, moment == .registering {
                    registering.open()
                    hold.wait()
                }
            }
            if at == 3 {
                keep(
                    3, scope.operation(on: target(3), options: options) { (_: COOperation<Void>.Attempt) in })
                return
            }
            let options = OperationOptions(handlerTarget: elsewhere, clock: clock)
            if isCascade {
                keep(
                    at,
                    scope.cascadeOperation(on: target(at), options: options) {
                        register(at + 1, in: $0)
                    } cancellation: {
                        decide(at, $0)
                    })
            } else {
                keep(
                    at,
                    scope.transactionalOperation(on: target(at), options: options) {
                        register(at + 1, in: $0)
                    } cancellation: {
                        decide(at, $0)
                    })
            }
        }
        let rootOptions = OperationOptions(handlerTarget: elsewhere, clock: clock)
        let root: CompositeOperation<Void>
        if isCascade {
            let cascade = COCascade<Void>(on: target(0), options: rootOptions)
            keep(0, cascade)
            if level == .root, moment == .ready {
            } else {
                cascade.run(
                    { (scope: CascadeScope) -> Void in register(1, in: scope) },
                    cancellation: { decide(0, $0) })
            }
            root = cascade
        } else {
            let transaction = COTransaction<Void>(on: target(0), options: rootOptions)
            keep(0, transaction)
            if level == .root, moment == .ready {
            } else {
                transaction.run(
                    { (scope: TransactionScope) -> Void in register(1, in: scope) },
                    cancellation: { decide(0, $0) })
            }
            root = transaction
        }
        if moment == .ready, level != .root {
            // Children are ready only while they wait for their turn. A separate test covers that.
            root.cancel()
            _ = await root.outcome
            return
        }
        let subject = { operations.withLock { $0[depth] } }
        switch moment {
        case .ready: break
        case .queued: #expect(await eventually { mailbox.count == 1 && subject()?.state == .queued })
        case .registering: await registering.opened()
        case .executing, .suspended, .delayed, .deciding:
            // A block may begin before the code that registered it has recorded its handle.
            #expect(
                await eventually {
                    operations.withLock { ($0[3]?.isExecuting ?? false) && $0[depth] != nil }
                })
            switch moment {
            case .suspended: #expect(subject()?.suspend() ?? false)
            case .delayed: #expect(subject()?.rerun(after: .seconds(1)) ?? false)
            case .deciding:
                #expect(operations.withLock { $0[3] }?.cancel() ?? false)
                #expect(await eventually { subject()?.state == .deciding && asked.entries.contains(depth) })
            default: break
            }
        }
        #expect(await eventually { subject() != nil })
        let operation = try #require(subject())
        let answers = await racing(2) { _ in operation.cancel() }
        #expect(answers.filter { $0 }.count == 1, "\(moment), \(level)")
        #expect(operation.isCancelled)
        hold.open()
        mailbox.runAll()
        let outcome = await root.outcome
        #expect(outcome.isCancelled, "\(moment), \(level)")
        #expect(outcome.reason?.kind == (depth == 0 && !isDeciding ? .requested : .child))
        for (at, each) in operations.withLock({ $0 }) {
            let outcome = await each.outcome
            // A descendant may be registered too late if its composite runs concurrently with the held block.
            var isTooLate = false
            if moment == .registering, at > depth + 1, case .failed(let error) = outcome {
                isTooLate = error is RegistrationError
            }
            #expect(outcome.isCancelled || isTooLate, "\(moment), \(level), \(isCascade), \(at): \(outcome)")
            await each.handlersAreOver()
        }
        #expect(Set(told.entries).count == told.entries.count, "\(told.entries)")
        #expect(Set(asked.entries).count == asked.entries.count, "\(asked.entries)")
        if !(level == .root && moment == .ready) { #expect(asked.entries.contains(0)) }
        #expect(await eventually { clock.sleepers == 0 })
    }

    @Test(.promises("G9")) func `threads that cancel anywhere leave one end each`() async {
        let cases = Generator<(Shape, [Int])>.zip(
            Shape.composite(depth: 4, badness: 0), Generator<Int>.int(in: 0...99).array(count: 1...6))
        await forAll(cases, cases: scaled(150)) { shape, choices in
            let root = Node(shape)
            let nodes = root.all
            let accepted = Count()
            root.start()
            _ = await racing(3) { _ in
                for choice in choices {
                    if nodes[choice % nodes.count].operation?.cancel() ?? false { accepted.add() }
                }
            }
            let outcome = try #require(await root.operation?.outcome)
            #expect(outcome.isFinished == (accepted.value == 0))
            if let reason = outcome.reason { #expect(reason.kind == .requested || reason.kind == .child) }
            await root.expectEnd()
        }
    }

    // MARK: G11

    @Test(.promises("G11")) func `an operation cancelled before its start never runs or blocks`() async {
        for kind in Kind.allCases where kind != .sync {
            for isQueued in [true, false] {
                let queue = COOperationQueue()
                queue.suspend()
                let (operation, log) = (kind.make(Log()), Log<String>())
                if isQueued {
                    #expect(queue.add(operation))
                    #expect(queue.operationCount == 1)
                }
                let dependent = COOperation<Void> { attempt in
                    log.add("dependent")
                    attempt.finish()
                }
                #expect(dependent.addDependency(operation))
                dependent.start()
                let waiting = Task { await operation.outcome }
                async let waited = racing(1) { _ in operation.wait() }
                #expect(dependent.numberOfRuns == 0)
                #expect(operation.cancel())
                #expect(operation.isEnded)
                #expect(await waiting.value.isCancelled)
                #expect(await waited.first??.isCancelled ?? false)
                #expect(await dependent.outcome.isFinished)
                #expect(queue.operationCount == 0 && queue.pendingOperations.isEmpty)
                await queue.idle()
                queue.resume()
                #expect(!operation.start())
                #expect(operation.numberOfRuns == 0)
            }
        }
    }

    @Test(.promises("G11")) func `a start and a cancel race: the block runs only if it was first`() async {
        for kind in Kind.allCases where kind != .sync {
            for _ in 0..<scaled(50) {
                let operation = kind.make(Log())
                let answers = await racing(2) { thread in thread == 0 ? operation.start() : operation.cancel()
                }
                #expect(answers[1])
                #expect(await operation.outcome.isCancelled)
                if !answers[0] { #expect(operation.numberOfRuns == 0) }
            }
        }
    }

    // MARK: G12

    @Test(.promises("G12")) func `after a child's cancel no later step starts`() async {
        await forAll(
            Generator<(Int, Int)>.zip(.int(in: 1...8), .int(in: 0...15)), cases: scaled(100)
        ) { count, choice in
            let (bad, isEarly) = (choice / 2 % count, choice % 2 == 0)
            let runs = (0..<count).map { _ in Count() }
            let cascade = cascadeOperation { cascade in
                for step in 0..<count {
                    let leaf = cascade.operation { (attempt: COOperation<Void>.Attempt) in
                        runs[step].add()
                        if step == bad { attempt.cancel() } else { attempt.finish() }
                    }
                    if isEarly, step == bad { leaf.cancel() }  // before any step has begun
                }
            }
            #expect(await cascade.outcome.reason?.kind == .child)
            #expect(cascade.causes.first?.index == bad)
            for step in 0..<count {
                #expect(runs[step].value == (isEarly ? 0 : step <= bad ? 1 : 0), "step \(step)")
            }
        }
    }

    @Test(.promises("G12"))
    func `after a child's cancel no unstarted sibling starts, and running ones are awaited`()
        async throws
    {
        for isFailure in [true, false] {
            let (mailbox, gate) = (Mailbox(), Gate())
            let (running, late, notified) = (Count(), Count(), Count())
            let attempts = Locked<[COOperation<Void>.Attempt]>([])
            let group = transactionalOperation { group in
                for _ in 0..<3 {
                    group.operation(on: elsewhere) { (attempt: COOperation<Void>.Attempt) in
                        running.add()
                        attempt.onCancel { _ in notified.add() }
                        attempts.withLock { $0.append(attempt) }
                        gate.wait()
                    }
                }
                for _ in 0..<3 {
                    group.operation(on: mailbox) { (attempt: COOperation<Void>.Attempt) in
                        late.add()
                        attempt.finish()
                    }
                }
                group.cascadeOperation(on: mailbox) { (_: CascadeScope) -> Void in late.add() }
            }
            #expect(await eventually { attempts.withLock { $0.count == 3 } && mailbox.count == 4 })
            let all = attempts.withLock { $0 }
            let isAccepted = isFailure ? all[0].fail(TestError()) : all[0].cancel()
            #expect(isAccepted)
            #expect(all[1].isCancelled && all[2].isCancelled)
            mailbox.runAll()
            #expect(late.value == 0)
            #expect(group.state == .ending && group.result == nil)
            #expect(await eventually { notified.value == (isFailure ? 2 : 3) })
            gate.open()
            let outcome = await group.outcome
            #expect(outcome.isFailed == isFailure && outcome.isCancelled == !isFailure)
            #expect(late.value == 0 && running.value == 3)
        }
    }

    @Test func `with a width, a waiting child does not start after a cancel`() async {
        for _ in 0..<scaled(50) {
            let (runs, attempts) = (Count(), Locked<[COOperation<Void>.Attempt]>([]))
            let group = transactionalOperation(options: OperationOptions(width: 2)) { group in
                for _ in 0..<6 {
                    group.operation { (attempt: COOperation<Void>.Attempt) in
                        runs.add()
                        attempts.withLock { $0.append(attempt) }
                    }
                }
            }
            #expect(await eventually { attempts.withLock { $0.count == 2 } })
            let all = attempts.withLock { $0 }
            let answers = await racing(2) { thread in thread == 0 ? all[0].cancel() : all[1].finish() }
            #expect(answers[0])
            #expect(await group.outcome.isCancelled)
            // If the finish came first, it made room for one more child.
            #expect(runs.value <= (answers[1] ? 3 : 2))
        }
    }

    // MARK: G14

    @Test(.promises("G14"))
    func `when cancel returns everything below is cancelled, and no block starts any more`() async {
        let cases = Generator<(Shape, [Int])>.zip(
            Shape.composite(depth: 4, badness: 0), Generator<Int>.int(in: 0...200).array(count: 1...3))
        await forAll(
            cases, cases: scaled(250), covering: [.cover(10, "is large") { $0.0.count > 8 }]
        ) { shape, choices in
            let root = Node(shape)
            let composites = root.all.filter { if case .leaf = $0.shape { false } else { true } }
            let subject = composites[choices[0] % composites.count]
            root.start()
            let violations = Log<String>()
            // Checks only operations whose handles have been recorded. Others may be registered already without a
            // recorded handle, or may still be refused.
            typealias Found = [(operation: OperationHandle<Void>, runs: Int)]
            let found = await racing(2) { thread -> Found in
                for _ in 0..<(choices.last! * 20) where subject.operation?.isEnded == true { break }
                guard thread == 0, let operation = subject.operation else { return [] }
                let before = subject.registered
                guard operation.cancel() else { return [] }
                for each in before where !each.isCancelled && !each.isFinished {
                    violations.add("\(each) goes on")
                }
                return subject.registered.map { ($0, $0.numberOfRuns) }
            }
            _ = await root.operation?.outcome
            #expect(violations.entries.isEmpty, "\(violations.entries)")
            await root.expectEnd()
            for (operation, runs) in found.joined() {
                #expect(operation.numberOfRuns == runs, "\(operation)")
            }
        }
    }

    @Test func `a descendant waiting to start never starts once cancel has returned`() async {
        let mailbox = Mailbox()
        let runs = Count()
        let root = transactionalOperation { group in
            for _ in 0..<3 {
                group.cascadeOperation { cascade in
                    cascade.operation(on: mailbox) { (_: COOperation<Void>.Attempt) in runs.add() }
                    cascade.operation { runs.add() }
                }
            }
        }
        #expect(await eventually { mailbox.count == 3 })
        #expect(root.cancel())
        #expect(root.children.allSatisfy(\.isCancelled) || root.isEnded)
        mailbox.runAll()
        #expect(await root.outcome.isCancelled)
        #expect(runs.value == 0)
    }
}
