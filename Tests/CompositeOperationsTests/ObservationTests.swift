// ObservationTests - what observers see: labels follow the table, attempt numbers never decrease, nothing comes after
// the end (G39); and the tree as text.

@testable import CompositeOperations
import CompositeOperationsBasics
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// The labels that may follow each label, by the state table. A closed gate, `suspended`, hides four of them: the gate
/// may close and open, and the hidden state may change meanwhile.
private let successors: [OperationState: Set<OperationState>] = {
    let gated: Set<OperationState> = [.ready, .queued, .executing, .delayed]
    return [
        .ready: [.queued, .ending, .suspended],
        .queued: [.executing, .ending, .suspended],
        .executing: [.deciding, .delayed, .ending, .suspended],
        .suspended: gated.union([.deciding, .ending]),
        .deciding: [.delayed, .ending, .suspended],
        .delayed: [.queued, .executing, .ending, .suspended],
        .ending: [.finished, .failed, .cancelled, .ready, .delayed, .suspended],
        .finished: [], .failed: [], .cancelled: [],
    ]
}()

private func record(_ operation: AnyOperation) -> Task<[Transition], Never> {
    var iterator = operation.transitions.makeAsyncIterator()
    return Task {
        var seen: [Transition] = []
        while let transition = await iterator.next() { seen.append(transition) }
        return seen
    }
}

private func check(_ seen: [Transition], of operation: AnyOperation) {
    guard let first = seen.first, let last = seen.last else {
        Issue.record("nothing was seen")
        return
    }
    #expect(first.from == first.to, "the first one is the state that it was found in")
    #expect(last.to.isTerminal && last.to == operation.state)
    #expect(seen.dropLast().allSatisfy { !$0.to.isTerminal })
    for (one, next) in zip(seen, seen.dropFirst()) {
        #expect(next.from == one.to, "\(one), then \(next)")
        #expect(successors[next.from]?.contains(next.to) ?? false, "\(next)")
        #expect(next.attempt >= one.attempt, "\(one), then \(next)")
        #expect(next.attempt <= one.attempt + 1 || next.from == .suspended)
        #expect(next.instant >= one.instant)
        if next.to == .executing { #expect(next.attempt > 0) }
    }
    #expect(last.attempt == operation.attempt)
    // Only a composite may pass from a pause directly to its children, by being awoken.
    if !(operation is CompositeOperation<Void>) {
        for transition in seen { #expect(!(transition.from == .delayed && transition.to == .executing)) }
        #expect(operation.numberOfRuns <= operation.attempt)
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ObservationTests {
    // MARK: G39

    @Test(.promises("G39"))
    func `an observer sees each state of an operation, from the current to the terminal one`()
        async throws
    {
        let clock = ManualClock()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = COOperation<Void>(options: OperationOptions(clock: clock)) { tokens.send($0) }
        let seen = record(one)
        one.suspend()
        one.resume()
        one.start()
        let token = await tokens.next()
        token.rerun(after: .seconds(1))
        one.suspend()
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(1))
        #expect(await eventually { one.look { one.machine.phase == .queued } })
        one.resume()
        await tokens.next().finish()
        let transitions = await seen.value
        check(transitions, of: one)
        #expect(
            transitions.map(\.to) == [
                .ready, .suspended, .ready, .queued, .executing, .delayed, .suspended, .queued, .executing,
                .ending,
                .finished,
            ])
        #expect(transitions.map(\.attempt) == [0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2])
        // A late observer is notified of how the operation ended.
        let late = await record(one).value
        #expect(late.map(\.to) == [.finished] && late.first?.from == .finished)
    }

    @Test(.promises("G39")) func `a round, its decision and what becomes of the children are seen`()
        async throws
    {
        let runs = Count()
        let scopes = Mail<[AnyOperation]>()
        let seen = Locked<[Task<[Transition], Never>]>([])
        let cascade = COCascade<Void>()
        let outer = record(cascade)
        cascade.run { (scope: CascadeScope) -> Void in
            let all: [AnyOperation] = [
                scope.operation {},
                scope.operation { () throws -> Void in if runs.add() == 1 { throw TestError() } },
                scope.operation {},
            ]
            seen.withLock { seen in seen = all.map(record) }
            scopes.send(all)
        } cancellation: {
            $0.awake()
        }
        let all = await scopes.next()
        try await cascade.value
        #expect(
            await outer.value.map(\.to)
                == [
                    .ready, .queued, .executing, .deciding, .delayed, .executing, .finished,
                ].flatMap { $0 == .finished ? [.ending, .finished] : [$0] })
        let expected: [[OperationState]] = [
            [.ready, .queued, .executing, .ending, .finished],
            [
                .ready, .queued, .executing, .ending, .delayed, .queued, .executing, .ending, .finished,
            ],
            [.ready, .ending, .ready, .queued, .executing, .ending, .finished],
        ]
        let tasks = seen.withLock { $0 }
        for index in 0..<3 {
            let transitions = await tasks[index].value
            check(transitions, of: all[index])
            #expect(transitions.map(\.to) == expected[index])
        }
    }

    /// Everything that threads can do to a tree, concurrently, with observers that arrive at any time.
    @Test(.promises("G39")) func `observed transitions follow the table despite many threads`()
        async throws
    {
        let plan = Generator.array(of: .array(of: .int(in: 0...59), count: 4...24), count: 3...3)
        await forAll(plan, cases: scaled(120)) { plan in
            let tasks = Locked<[(AnyOperation, Task<[Transition], Never>)]>([])
            let all = Locked<[AnyOperation]>([])
            @Sendable func join(_ operation: AnyOperation) {
                tasks.withLock { $0.append((operation, record(operation))) }
                all.withLock { $0.append(operation) }
            }
            let decisions = Count()
            let resolver = COOperationResolver(maxAttempts: 3)
            let block: @Sendable (COOperation<Void>.Attempt) throws -> Void = { attempt in
                switch attempt.number % 3 {
                case 0: throw TestError()
                case 1: break
                default: attempt.finish()
                }
            }
            let root = COTransaction<Void>()
            join(root)
            root.run { (group: TransactionScope) -> Void in
                for index in 0..<3 {
                    join(
                        group.operation(
                            options: OperationOptions(resolver: index == 0 ? resolver : nil), block))
                }
                join(
                    group.cascadeOperation { cascade in
                        for _ in 0..<2 { join(cascade.operation(block)) }
                        cascade.operation {}
                    } cancellation: { cascade in
                        if decisions.add() % 3 == 0 { cascade.awake() }
                    })
            } cancellation: { group in
                switch decisions.add() % 4 {
                case 0: group.awake()
                case 1: group.rerun()
                case 2: group.resolve(using: resolver)
                default: break
                }
            }
            _ = await race(plan.count) { thread in
                for step in plan[thread] {
                    let one = all.withLock { $0[(step / 10) % $0.count] }
                    switch step % 10 {
                    case 0, 1: one.suspend()
                    case 2, 3: one.resume()
                    case 4: one.resume(.restart)
                    case 5: one.rerun()
                    case 6: (one as? COOperation<Void>)?.finish()
                    case 7: (one as? COOperation<Void>)?.fail(TestError())
                    case 8: if !(one === root) { one.cancel() }
                    default: tasks.withLock { $0.append((one, record(one))) }
                    }
                }
            }
            root.cancel()
            _ = await root.outcome
            for (operation, task) in tasks.withLock({ $0 }) { check(await task.value, of: operation) }
        }
    }

    @Test(.promises("G39")) func `two observers of one operation see the same from their arrival`()
        async throws
    {
        await forAll(.int(in: 1...5), cases: scaled(30)) { attempts in
            let tokens = Mail<COOperation<Void>.Attempt>()
            let one = COOperation<Void> { tokens.send($0) }
            var seen = [record(one)]
            one.start()
            for _ in 1..<attempts {
                let token = await tokens.next()
                seen.append(record(one))
                token.rerun()
            }
            await tokens.next().finish()
            let longest = await seen[0].value
            for task in seen {
                let transitions = await task.value
                check(transitions, of: one)
                let rest = transitions.dropFirst().map(\.to)
                #expect(rest == Array(longest.map(\.to).suffix(rest.count)))
            }
        }
    }

    @Test func `a task that is cancelled stops observing; the operation goes on`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        let seen = record(one)
        seen.cancel()
        #expect(await seen.value.allSatisfy { !$0.to.isTerminal })
        #expect(token.finish())
        try await one.value
    }

    #if DEBUG
        @Test func `unread transitions are not kept`() async {
            // In a separate process, where nothing else is observed.
            await #expect(processExitsWith: .success) {
                let tokens = Mail<COOperation<Void>.Attempt>()
                let one = operation { tokens.send($0) }
                let token = await tokens.next()
                var kept = one.transitions.makeAsyncIterator()
                for _ in 0..<10 {
                    for await transition in one.transitions where transition.to == .executing { break }
                }
                try #require(token.suspend() && token.resume())
                let live = InstanceCount.live["observers of transitions"] ?? 0
                try #require(live == 1, "\(live) are kept")
                try #require(token.finish())
                var seen: [OperationState] = []
                while let transition = await kept.next() { seen.append(transition.to) }
                try #require(seen == [.executing, .suspended, .executing, .ending, .finished])
            }
        }
    #endif

    @Test func `a cancelled task reads no further transitions, whether it was asleep or not`() async {
        let one = COOperation<Void>()
        let executor = StepExecutor()
        let ends = Count()
        let isCancelledBefore = Task(executorPreference: executor) {
            var transitions = one.transitions.makeAsyncIterator()
            #expect(await transitions.next()?.to == .ready)
            withUnsafeCurrentTask { $0?.cancel() }
            if await transitions.next() == nil { ends.add() }
        }
        let isCancelledAsleep = Task(executorPreference: executor) {
            var transitions = one.transitions.makeAsyncIterator()
            #expect(await transitions.next()?.to == .ready)
            if await transitions.next() == nil { ends.add() }
        }
        executor.runAll()
        #expect(ends.value == 1)
        isCancelledAsleep.cancel()
        executor.runAll()
        #expect(ends.value == 2)
        one.cancel()
        executor.runAll()
        await isCancelledBefore.value
        await isCancelledAsleep.value
    }

    @Test(.promises("G39")) func `predicates agree with the state, before and after each step`() async throws
    {
        let one = COOperation<Void>()
        func expect(
            _ state: OperationState, ready: Bool = false, executing: Bool = false, suspended: Bool = false
        ) {
            #expect(one.state == state)
            #expect(one.isReady == ready && one.isExecuting == executing && one.isSuspended == suspended)
            #expect(!one.isFinished && !one.isCancelled && !one.isFailed && !one.isEnded)
        }
        expect(.ready, ready: true)
        one.suspend()
        expect(.suspended, suspended: true)
        let tokens = Mail<COOperation<Void>.Attempt>()
        one.run { tokens.send($0) }
        expect(.suspended, suspended: true)
        one.resume()
        let token = await tokens.next()
        expect(.executing, executing: true)
        one.suspend()
        expect(.suspended, suspended: true)
        one.cancel()
        #expect(one.isCancelled && !one.isFinished && !one.isSuspended && !one.isReady && !one.isExecuting)
        _ = await one.outcome
        #expect(one.isEnded && one.state == .cancelled && token.isCancelled)
    }

    // MARK: Tree

    @Test func `the tree shows each operation below, indented, and a forgotten finish`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let cascade = cascadeOperation(options: OperationOptions(name: "outer")) { cascade in
            cascade.transactionalOperation(options: OperationOptions(name: "inner")) { group in
                group.operation(options: OperationOptions(name: "forgotten")) { tokens.send($0) }
            }
            cascade.operation(options: OperationOptions(name: "later")) {}
        }
        let token = await tokens.next()
        #expect(await eventually { cascade.tree.contains("returned without an end") })
        let lines = cascade.tree.split(separator: "\n").map(String.init)
        try #require(lines.count == 4)
        #expect(lines[0].hasPrefix("cascade \"outer\" ") && lines[0].contains("executing, attempt 1"))
        #expect(lines[1].hasPrefix("  transactional operation \"inner\" "))
        #expect(lines[2].hasPrefix("    operation \"forgotten\" "))
        #expect(lines[2].hasSuffix("its block has returned without an end"))
        #expect(lines[3].hasPrefix("  operation \"later\" ") && lines[3].contains("ready, attempt 0"))
        #expect(lines.filter { $0.contains("without an end") }.count == 1)
        token.finish()
        try await cascade.value
        #expect(cascade.tree.split(separator: "\n").count == 1)
    }
}
