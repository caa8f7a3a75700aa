// Every operation ends once, after everything that it started, and every observer sees the same end: G1, G2, G8, G10,
// G15, G16, G22.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct EndTests {
    // MARK: G1, G2

    @Test(.promises("G2")) func `each operation of a tree ends once, after all below it`() async {
        await forAll(
            Shape.composite(depth: 4, badness: 12), cases: scaled(150),
            covering: [
                .cover(10, "finishes") { $0.isGood }, .cover(10, "ends otherwise") { !$0.isGood },
                .cover(10, "is large") { $0.count > 12 },
            ]
        ) { shape in
            let root = Node(shape)
            root.start()
            let outcome = try #require(await root.operation?.outcome)
            #expect(outcome.isFinished == shape.isGood, "\(outcome)")
            await root.expectEnd()
        }
    }

    @Test(.promises("G1")) func `each operation of a tree ends once despite concurrent calls`() async {
        let cases = Generator<(Shape, [Int])>.zip(
            Shape.composite(depth: 3, badness: 20), Generator<Int>.int(in: 0...999).array(count: 3...30))
        await forAll(cases, cases: scaled(150)) { shape, choices in
            let root = Node(shape)
            let nodes = root.all
            root.start()
            _ = await racing(3) { thread in
                for (place, choice) in choices.enumerated() where place % 3 == thread {
                    let node = nodes[choice / 10 % nodes.count]
                    guard let operation = node.operation else { continue }
                    switch choice % 10 {
                    case 0: operation.cancel()
                    case 1: node.leaf?.finish()
                    case 2: node.leaf?.fail(TestError(number: 3))
                    case 3, 4, 5: operation.suspend()
                    case 6, 7: operation.resume()
                    case 8: operation.rerun()
                    default: _ = operation.tree
                    }
                }
            }
            // In half of the cases, resume operations that are still suspended until the tree ends by itself. Otherwise
            // the cancel below ends it.
            if choices[0] % 2 == 0 {
                for operation in root.registered { operation.resume() }
                let isOver = await eventually {
                    for operation in root.registered { operation.resume() }
                    return root.operation?.isEnded ?? false
                }
                #expect(isOver, "\(root.operation?.tree ?? "")")
            }
            root.operation?.cancel()
            _ = await root.operation?.outcome
            // A redo runs blocks more than once, so the test checks only that each block that began has returned.
            for node in nodes {
                guard let operation = node.operation else { continue }
                _ = await operation.outcome
                await withCheckedContinuation { continuation in
                    operation.onOutcome { _ in continuation.resume() }
                }
                #expect(node.begun.value == node.left.value)
            }
        }
    }

    @Test(.promises("G1"), arguments: Ended.allCases) func `an end before start is reported once`(
        _ how: Ended
    ) async {
        for kind in Kind.allCases {
            let told = Log<Outcome<Void>>()
            let closures = Log<String>()
            let operation = kind.make(closures)
            operation.onOutcome { told.add($0) }
            guard how.end(operation) else { continue }  // a composite cannot be finished
            #expect(!operation.start())
            #expect(!operation.cancel())
            let outcome = await operation.outcome
            await withCheckedContinuation { continuation in operation.onOutcome { _ in continuation.resume() }
            }
            #expect(told.entries.count == 1)
            #expect(told.entries.allSatisfy { isSame($0, outcome) })
            #expect(operation.numberOfRuns == 0)
            #expect(
                closures.entries == [how == .finish ? "completed" : how == .fail ? "failed" : "cancelled"])
        }
    }

    @Test(.promises("G2")) func `an end from outside the block waits for the block`() async throws {
        let ends: [@Sendable (COOperation<Void>) -> Bool] = [
            { $0.finish() }, { $0.fail(TestError()) }, { $0.cancel() },
        ]
        for end in ends {
            let (gate, hasBegun) = (Gate(), Gate())
            let operation = operation(on: elsewhere) { (_: COOperation<Void>.Attempt) in
                hasBegun.open()
                gate.wait()
            }
            let told = Count()
            operation.onOutcome { _ in told.add() }
            await hasBegun.opened()
            #expect(end(operation))
            #expect(operation.state == .ending)
            #expect(operation.result == nil)
            #expect(!operation.isEnded)
            #expect(told.value == 0)
            gate.open()
            _ = await operation.outcome
            #expect(operation.isEnded)
        }
    }

    @Test(.promises("G2")) func `an end of a composite waits for each block below, and for each task`()
        async throws
    {
        for isCancelledFromOutside in [true, false] {
            let gate = Gate()
            let begun = Count()
            let inside = Gate()
            let (open, opened) = AsyncStream<Void>.makeStream()
            let culprit = Locked<COOperation<Void>.Attempt?>(nil)
            let root = transactionalOperation { group in
                group.cascadeOperation { cascade in
                    cascade.operation(on: elsewhere) { attempt in
                        attempt.finish()  // the next step starts while this block keeps running
                        begun.add()
                        gate.wait()
                    }
                    cascade.operation(on: elsewhere) { (_: COOperation<Void>.Attempt) in
                        begun.add()
                        gate.wait()
                    }
                }
                group.operation { () async throws in
                    begun.add()
                    for await _ in open {}  // ends at once if the task is cancelled
                    await withCheckedContinuation { continuation in
                        elsewhere.async {
                            gate.wait()
                            continuation.resume()
                        }
                    }
                }
                group.operation { attempt in
                    culprit.withLock { $0 = attempt }
                    inside.open()
                }
            }
            await inside.opened()
            #expect(await eventually { begun.value == 3 })
            if isCancelledFromOutside {
                #expect(root.cancel())
            } else {
                let attempt = try #require(culprit.withLock { $0 })
                #expect(attempt.fail(TestError()))
            }
            #expect(root.state == .ending)
            #expect(root.result == nil)
            opened.finish()
            gate.open()
            let outcome = await root.outcome
            #expect(outcome.isCancelled == isCancelledFromOutside)
        }
    }

    // MARK: G8

    @Test(.promises("G8")) func `after an end the outcome is available`() async {
        await forAll(Generator<Int>.int(in: 0...8), cases: scaled(200)) { choice in
            let (kind, end) = (choice / 3, choice % 3)
            let attempt = Locked<COOperation<Int>.Attempt?>(nil)
            let operation = COOperation<Int> { given in attempt.withLock { $0 = given } }
            let completions = Count()
            let told = Log<Outcome<Int>>()
            operation.onOutcome { told.add($0) }
            if kind > 0 { operation.start() }
            if kind > 1 { #expect(await eventually { attempt.withLock { $0 != nil } }) }
            let seen = await racing(4) { thread -> Outcome<Int>? in
                if thread == 0 {
                    switch end {
                    case 0: operation.finish(7)
                    case 1: operation.fail(TestError(number: 7))
                    default: operation.cancel()
                    }
                    return operation.wait()
                }
                if thread == 1 { return operation.wait() }
                while !operation.isEnded {}
                completions.add()
                return operation.result
            }
            let value = await Result { try await operation.value }
            for outcome in seen + [operation.result, await operation.outcome] {
                switch (outcome, value, end) {
                case (.finished(7), .success(7), 0): break
                case (.failed(let error as TestError), .failure(let other as TestError), 1):
                    #expect(error == other)
                case (.cancelled(let reason), .failure(let other as CancelReason), 2):
                    #expect(reason.kind == other.kind && reason.kind == .requested)
                default: Issue.record("\(outcome as Any), and \(value)")
                }
            }
            #expect(await eventually { told.entries.count == 1 })
        }
    }

    @Test(.promises("G8")) func `closures, handlers, waiters and the result of each kind agree`() async {
        for kind in Kind.allCases {
            for how in [Ended.finish, .fail, .cancel] {
                let closures = Log<String>()
                let told = Log<Outcome<Void>>()
                let (operation, start) = kind.prepare(closures, ending: how)
                operation.onOutcome { told.add($0) }
                let waiting = Log<Outcome<Void>?>()
                let waits = Gate()
                elsewhere.async {
                    waiting.add(operation.wait())
                    waits.open()
                }
                elsewhere.async { _ = start() }
                let outcome = await operation.outcome
                await withCheckedContinuation { continuation in
                    operation.onOutcome { _ in continuation.resume() }
                }
                #expect(await eventually { waiting.entries.count == 1 })
                let result = operation.result
                for other in told.entries + waiting.entries.compactMap(\.self) + [result].compactMap(\.self) {
                    #expect(isSame(other, outcome), "\(kind): \(other), but \(outcome)")
                }
                #expect(told.entries.count == 1)
                #expect(operation.isFinished == (how == .finish))
                #expect(operation.isFailed == (how == .fail))
                #expect(operation.isCancelled == (how == .cancel))
                #expect(
                    closures.entries == [
                        how == .finish ? "completed" : how == .fail ? "failed" : "cancelled"
                    ],
                    "\(kind), \(how)")
            }
        }
    }

    // MARK: G10, G22

    @Test func `of racing ends one wins, and all agree on it`() async {
        await forAll(Generator<[Int]>.array(of: .int(in: 0...5), count: 2...4), cases: scaled(300)) { ends in
            for isChild in [false, true] {
                let given = Locked<COOperation<Int>.Attempt?>(nil)
                let closures = Log<String>()
                let child: COOperation<Int>
                var parent: COTransaction<Void>?
                if isChild {
                    let made = Locked<COOperation<Int>?>(nil)
                    parent = transactionalOperation { group in
                        let leaf = group.operation(returning: Int.self) { attempt in
                            given.withLock { $0 = attempt }
                        }
                        made.withLock { $0 = leaf }
                    } completion: {
                        closures.add("completed")
                    } cancellation: { parent in
                        closures.add(parent.causes.first?.outcome.isFailed == true ? "failed" : "cancelled")
                    }
                    #expect(await eventually { given.withLock { $0 != nil } && made.withLock { $0 != nil } })
                    child = made.withLock { $0 }!
                } else {
                    child = COOperation()
                    child.run { attempt in
                        given.withLock { $0 = attempt }
                    } completion: {
                        closures.add("completed")
                    } cancellation: {
                        closures.add("cancelled")
                    } failure: { _ in
                        closures.add("failed")
                    }
                    #expect(await eventually { given.withLock { $0 != nil } })
                }
                let attempt = given.withLock { $0 }!
                let states = Log<OperationState>()
                let observer = Task {
                    for await transition in child.transitions { states.add(transition.to) }
                }
                #expect(await eventually { !states.entries.isEmpty })
                let answers = await racing(ends.count) { thread in
                    switch ends[thread] {
                    case 0: attempt.finish(thread)
                    case 1: attempt.fail(TestError(number: thread))
                    case 2: attempt.cancel(CancelReason(.requested, underlying: TestError(number: thread)))
                    case 3: child.finish(thread)
                    case 4: child.fail(TestError(number: thread))
                    default: child.cancel(CancelReason(.requested, underlying: TestError(number: thread)))
                    }
                }
                #expect(answers.filter { $0 }.count == 1)
                let winner = answers.firstIndex(of: true) ?? -1
                let outcome = await child.outcome
                let expected: String
                switch (ends[winner] % 3, outcome) {
                case (0, .finished(winner)): expected = "completed"
                case (1, .failed(let error as TestError)) where error.number == winner: expected = "failed"
                case (2, .cancelled(let reason)) where (reason.underlying as? TestError)?.number == winner:
                    expected = "cancelled"
                default:
                    expected = ""
                    Issue.record("\(outcome), but \(ends[winner]) of thread \(winner) was accepted")
                }
                await observer.value
                let ended = states.entries.filter(\.isTerminal)
                #expect(ended.count == 1 && states.entries.last?.isTerminal == true)
                #expect(states.entries.filter { $0 == .ending }.count <= 1)
                if let parent {
                    let outer = await parent.outcome
                    #expect(outer.isFinished == outcome.isFinished)
                    #expect(outer.isFailed == outcome.isFailed)
                    await withCheckedContinuation { continuation in
                        parent.onOutcome { _ in continuation.resume() }
                    }
                } else {
                    await withCheckedContinuation { continuation in
                        child.onOutcome { _ in continuation.resume() }
                    }
                }
                #expect(closures.entries == [expected])
            }
        }
    }

    @Test(.promises("G10")) func `of racing cancels one is accepted, and an end is void after it`() async {
        for kind in Kind.allCases {
            for _ in 0..<scaled(50) {
                let closures = Log<String>()
                let operation = kind.make(closures)
                let answers = await racing(3) { _ in operation.cancel() }
                #expect(answers.filter { $0 }.count == 1)
                #expect(
                    !operation.cancel() && !operation.suspend() && !operation.resume() && !operation.rerun())
                #expect(!operation.start())
                if let leaf = operation as? COOperation<Void> {
                    #expect(!leaf.finish())
                    #expect(!leaf.fail(TestError()))
                }
                #expect(await operation.outcome.reason?.kind == .requested)
                await withCheckedContinuation { continuation in
                    operation.onOutcome { _ in continuation.resume() }
                }
                #expect(closures.entries == ["cancelled"])
            }
        }
    }

    @Test(.promises("G10")) func `cancel is void after an end of each kind`() async {
        for kind in Kind.allCases {
            for how in [Ended.finish, .fail] {
                let closures = Log<String>()
                let (operation, start) = kind.prepare(closures, ending: how)
                elsewhere.async { _ = start() }
                let outcome = await operation.outcome
                #expect(!operation.cancel())
                #expect(!operation.isCancelled)
                #expect(isSame(await operation.outcome, outcome))
                await withCheckedContinuation { continuation in
                    operation.onOutcome { _ in continuation.resume() }
                }
                #expect(closures.entries == [how == .finish ? "completed" : "failed"])
            }
        }
    }

    // MARK: G15

    @Test(.promises("G15")) func `a sync waiter returns on each end, however early it comes`() async {
        await forAll(Generator<[Int]>.array(of: .int(in: 0...2), count: 3...3), cases: scaled(300)) {
            choices in
            let (end, place, isEarly) = (choices[0], choices[1], choices[2] == 0)
            let given = Locked<COOperation<Int>.Attempt?>(nil)
            let sync = place == 2 ? COSyncOperation<Int>(on: elsewhere) : COSyncOperation<Int>()
            let endIt: @Sendable (COOperation<Int>.Attempt) -> Void = { attempt in
                switch end {
                case 0: attempt.finish(7)
                case 1: attempt.fail(TestError(number: 7))
                default: attempt.cancel()
                }
            }
            let outcomes = await racing(2) { thread -> Outcome<Int>? in
                if thread == 0 {
                    return sync.run { attempt in
                        if isEarly { endIt(attempt) } else { given.withLock { $0 = attempt } }
                    }
                }
                if isEarly { return nil }
                var attempt: COOperation<Int>.Attempt?
                while attempt == nil { attempt = given.withLock { $0 } }
                endIt(attempt!)
                return nil
            }
            switch (outcomes[0], end) {
            case (.finished(7), 0), (.failed, 1), (.cancelled, 2): break
            default: Issue.record("\(outcomes[0] as Any)")
            }
        }
    }

    @Test func `a sync operation ended while it starts blocks no caller`() async {
        for _ in 0..<scaled(300) {
            for target in [nil, elsewhere] {
                let runs = Count()
                let sync = COSyncOperation<Void>(on: target) { attempt in
                    runs.add()
                    attempt.suspend()  // does not keep an end from the waiter
                }
                let answers = await racing(2) { thread in thread == 0 ? sync.start() : sync.cancel() }
                #expect(answers[1])
                #expect(answers[0] || runs.value == 0)
                #expect(await sync.outcome.isCancelled)
            }
        }
    }

    // MARK: G16

    @Test(.promises("G16")) func `the outcome of a root tells which leaf ended it, and how`() async {
        await forAll(Shape.composite(depth: 4, badness: 6).filter { !$0.isGood }, cases: scaled(150)) {
            shape in
            let root = Node(shape)
            root.start()
            let outcome = try #require(await root.operation?.outcome)
            let culprits = root.all.filter { node in
                guard case .leaf(let end, _) = node.shape else { return false }
                return !end.isGood && node.begun.value == 1
            }
            switch outcome {
            case .finished: Issue.record("it finished")
            case .failed(let error):
                let numbers = culprits.compactMap { node in node.operation?.result?.error as? TestError }
                let number = try #require(error as? TestError)
                #expect(numbers.contains(number))
            case .cancelled(let reason):
                #expect(reason.kind == .child)
                let culprit = culprits.first { $0.operation?.id == reason.origin }
                #expect(culprit != nil, "\(reason)")
                if case .leaf(.throwingCancellation, _)? = culprit?.shape {
                    #expect(reason.underlying is CancellationError)
                }
            }
            // Follow the first cause at each level, from the root down to the leaf that caused the end.
            var node = root
            while !node.children.isEmpty {
                let causes = (node.operation as? CompositeOperation<Void>)?.causes ?? []
                let cause = try #require(causes.first)
                let child = node.children[try #require(cause.index)]
                #expect(child.operation?.id == cause.child)
                node = child
            }
            guard case .leaf(let end, _) = node.shape else { return }
            #expect(!end.isGood)
        }
    }

    @Test(.promises("G16")) func `the outcome tells who cancelled, and why`() async throws {
        let underlying = TestError(number: 5)
        for kind in Kind.allCases {
            let operation = kind.make(Log())
            operation.cancel(CancelReason(.requested, underlying: underlying))
            let reason = try #require(await operation.outcome.reason)
            #expect(reason.kind == .requested && reason.underlying as? TestError == underlying)
            #expect(reason.origin == nil)
        }
        let children = Locked<[COOperation<Void>]>([])
        let root = transactionalOperation { group in
            group.cascadeOperation { cascade in
                let leaf = cascade.operation { (_: COOperation<Void>.Attempt) in }
                children.withLock { $0 = [leaf] }
            }
        }
        #expect(await eventually { children.withLock { $0.first?.isExecuting ?? false } })
        root.cancel(CancelReason(.requested, underlying: underlying))
        let leaf = try #require(await children.withLock { $0.first }?.outcome.reason)
        #expect(leaf.kind == .parent && leaf.origin == root.id)
        #expect(await root.outcome.reason?.underlying as? TestError == underlying)
        #expect(root.causes.isEmpty)
    }

    @Test func `siblings learn which end ended them`() async throws {
        let sibling = Locked<COOperation<Void>?>(nil)
        let culprit = Locked<COOperation<Void>?>(nil)
        let root = transactionalOperation { group in
            let first = group.operation { (_: COOperation<Void>.Attempt) in }
            let second = group.operation { (attempt: COOperation<Void>.Attempt) in
                attempt.fail(TestError(number: 9))
            }
            sibling.withLock { $0 = first }
            culprit.withLock { $0 = second }
        }
        #expect(await root.outcome.error as? TestError == TestError(number: 9))
        let reason = try #require(await sibling.withLock { $0 }?.outcome.reason)
        #expect(reason.kind == .parent)
        #expect(reason.origin == culprit.withLock { $0 }?.id)
        #expect(root.causes.map(\.index) == [1])
    }

    @Test func `a throwing registration block is a cause without a child`() async throws {
        struct Wrong: Error {}
        let root = cascadeOperation { (cascade: CascadeScope) throws -> Void in
            cascade.operation {}
            throw Wrong()
        }
        #expect(await root.outcome.error is Wrong)
        #expect(root.causes.count == 1)
        #expect(root.causes.first?.index == nil && root.causes.first?.child == nil)
        let other = cascadeOperation { (_: CascadeScope) throws -> Void in throw CancellationError() }
        #expect(await other.outcome.reason?.kind == .threwCancellation)
    }
}

// MARK: Kinds

/// The kinds of operations.
enum Kind: CaseIterable, Sendable {
    case leaf, sync, cascade, transaction, nested

    /// Makes a ready operation that reports its end to `log`. Its leaf waits for an end from outside.
    func make(_ log: Log<String>) -> OperationHandle<Void> {
        let open: COOperation<Void>.Block = { _ in }
        let operation: OperationHandle<Void> =
            switch self {
            case .leaf: COOperation<Void>(open)
            case .sync: COSyncOperation<Void>(open)
            case .cascade: COCascade<Void> { cascade in cascade.operation(open) }
            case .transaction: COTransaction<Void> { group in group.operation(open) }
            case .nested:
                COCascade<Void> { cascade in cascade.transactionalOperation { group in group.operation(open) }
                }
            }
        return operation.onOutcome { outcome in
            log.add(outcome.isFinished ? "completed" : outcome.isFailed ? "failed" : "cancelled")
        }
    }

    /// Makes a ready operation, and a function that runs it with closures that add to `log`. Its leaf ends as `ending`
    /// specifies.
    func prepare(
        _ log: Log<String>, ending: Ended
    ) -> (operation: OperationHandle<Void>, start: @Sendable () -> Bool) {
        let end: COOperation<Void>.Block = { attempt in
            switch ending {
            case .finish: attempt.finish()
            case .fail: attempt.fail(TestError())
            case .cancel: attempt.cancel()
            }
        }
        let completed: @Sendable () -> Void = { log.add("completed") }
        @Sendable func decide(_ causes: [Cause]) {
            log.add(causes.first?.outcome.isFailed == true ? "failed" : "cancelled")
        }
        switch self {
        case .leaf, .sync:
            let operation = self == .leaf ? COOperation<Void>() : COSyncOperation<Void>()
            return (
                operation,
                {
                    operation.run(
                        end, completion: completed, cancellation: { log.add("cancelled") },
                        failure: { _ in log.add("failed") })
                }
            )
        case .cascade:
            let operation = COCascade<Void>()
            return (
                operation,
                {
                    operation.run(
                        { cascade in cascade.operation(end) }, completion: completed,
                        cancellation: { decide($0.causes) })
                }
            )
        case .transaction:
            let operation = COTransaction<Void>()
            return (
                operation,
                {
                    operation.run(
                        { group in group.operation(end) }, completion: completed,
                        cancellation: { decide($0.causes) })
                }
            )
        case .nested:
            let operation = COTransaction<Void>()
            return (
                operation,
                {
                    operation.run(
                        { group in group.cascadeOperation { cascade in cascade.operation(end) } },
                        completion: completed, cancellation: { decide($0.causes) })
                }
            )
        }
    }
}

/// Ways to end an operation.
enum Ended: CaseIterable, Sendable {
    case finish, fail, cancel

    /// - Returns: whether the call was accepted; false if the operation has no such call.
    func end(_ operation: OperationHandle<Void>) -> Bool {
        switch self {
        case .cancel: return operation.cancel()
        case .finish: return (operation as? COOperation<Void>)?.finish() ?? false
        case .fail: return (operation as? COOperation<Void>)?.fail(TestError()) ?? false
        }
    }
}

extension Result where Failure == any Error {
    init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
