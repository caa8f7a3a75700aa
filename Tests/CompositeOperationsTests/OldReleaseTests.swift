// OldReleaseTests - what the 2013 release did and this one does not: one test for each difference (G40).

import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// The result of `finish` and `fail` for an operation type that does not declare them itself.
private struct Absent {}

extension AnyOperation {
    /// Chosen by the compiler only if the type declares no `finish` itself. If it does, the call does not compile, or
    /// calls that one.
    fileprivate func finish() -> Absent { Absent() }
    fileprivate func fail(_ error: any Error) -> Absent { Absent() }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct OldReleaseTests {
    @Test(.promises("G40")) func `cancel while suspended counts`() async throws {
        let runs = Count()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let all: [AnyOperation] = [
            COOperation<Void> { _ in runs.add() }, COCascade<Void> { $0.operation { runs.add() } },
            COTransaction<Void> { $0.operation { runs.add() } }, operation { tokens.send($0) },
        ]
        let token = await tokens.next()
        for one in all {
            #expect(one.suspend())
            one.start()
            #expect(one.cancel() && one.isCancelled)
            #expect(!one.resume())
        }
        #expect(await eventually { all.allSatisfy { $0.state == .cancelled } })
        #expect(runs.value == 0 && token.isCancelled)
    }

    @Test(.promises("G40")) func `resume does not run a block again`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        for _ in 0..<5 {
            #expect(one.suspend() && one.resume())
        }
        try await operation {}.value
        #expect(one.numberOfRuns == 1 && one.attempt == 1)
        token.finish()
        try await one.value
        #expect(one.numberOfRuns == 1)
    }

    @Test(.promises("G40")) func `an operation's block is never run by its caller`() async throws {
        // The block waits until the caller opens the gate: a block that ran inline would wait for ever.
        for makes in Self.makers {
            let gate = Gate()
            let ran = Count()
            let one = makes {
                gate.wait()
                ran.add()
            }
            #expect(ran.value == 0)
            gate.open()
            #expect(await eventually { one.isEnded })
            #expect(one.isFinished && ran.value == 1)
        }
    }

    private static let makers: [@Sendable (@escaping @Sendable () -> Void) -> AnyOperation] = [
        { block in
            operation(on: elsewhere) { (attempt: COOperation<Void>.Attempt) in
                block()
                attempt.finish()
            }
        },
        { block in operation(on: elsewhere, block) },
        { block in cascadeOperation(on: elsewhere) { _ in block() } },
        { block in transactionalOperation(on: elsewhere) { _ in block() } },
        { block in cascadeOperation { $0.operation(on: elsewhere, block) } },
        { block in transactionalOperation { $0.operation(on: elsewhere, block) } },
    ]

    @Test(.promises("G40")) func `an ended operation never changes`() async throws {
        let runs = Count()
        let leaf = operation { runs.add() }
        _ = try await leaf.value
        let cascade = cascadeOperation { $0.operation { (_) throws -> Void in throw TestError() } }
        _ = await cascade.outcome
        let group = COTransaction<Void> { $0.operation { runs.add() } }
        group.cancel()
        _ = await group.outcome
        let all: [(AnyOperation, OperationState)] = [
            (leaf, .finished), (cascade, .failed), (group, .cancelled),
        ]
        for (one, state) in all {
            let attempt = one.attempt
            let answers = [
                one.start(), one.rerun(), one.rerun(after: .seconds(1)), one.suspend(), one.resume(),
                one.resume(.restart), one.cancel(), one.resolve(using: COOperationResolver()),
                one.addDependency(COOperation<Void>()),
            ]
            #expect(answers.allSatisfy { !$0 })
            #expect(one.state == state && one.attempt == attempt)
        }
        #expect(!cascade.awake() && !group.awake() && !leaf.finish(2) && !leaf.fail(TestError()))
        #expect(runs.value == 1)
    }

    @Test(.promises("G40")) func `without a default queue operations run on the built-in scheduler`()
        async throws
    {
        // In a separate process: first before any default queue has been set, then after one has been set and removed.
        await #expect(processExitsWith: .success) {
            func isOnSharedScheduler() async throws -> Bool {
                let isOn: @Sendable () -> Bool = { Scheduler.current === Scheduler.shared }
                let cascade = cascadeOperation { cascade in
                    .value(of: cascade.operation(isOn))
                }
                let answers = (try await operation(isOn).value, try await cascade.value)
                return answers.0 && answers.1
            }
            try #require(CODefaultQueue() === Scheduler.shared)
            try #require(await isOnSharedScheduler())
            COQueues.setDefaultQueue(elsewhere)
            try #require(CODefaultQueue() === elsewhere)
            try #require(await !isOnSharedScheduler())
            COQueues.setDefaultQueue(nil)
            try #require(CODefaultQueue() === Scheduler.shared)
            try #require(await isOnSharedScheduler())
        }
    }

    @Test(.promises("G40")) func `an operation that suspends itself does not keep its slot`() async throws {
        let queue = COOperationQueue(runningLimit: 1)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation(on: queue) { attempt in
            attempt.suspend()
            tokens.send(attempt)
        }
        let token = await tokens.next()
        #expect(try await operation(on: queue) { 2 }.value == 2)
        #expect(one.isSuspended)
        token.resume()
        token.finish()
        try await one.value
        await queue.idle()
    }

    @Test(.promises("G40")) func `handlers do not run on the canceller's stack`() async throws {
        // Each handler waits until the call that causes it has returned: on the stack of that call, it would wait for
        // ever.
        let options = OperationOptions(handlerTarget: elsewhere)
        for kind in 0..<4 {
            let returned = Gate()
            let told = Mail<Bool>()
            let tokens = Mail<COOperation<Void>.Attempt>()
            let handler: @Sendable () -> Void = { told.send(returned.wait(timeout: .seconds(60))) }
            let one: AnyOperation
            switch kind {
            case 0:
                let leaf = COOperation<Void>(options: options)
                leaf.run({ tokens.send($0) }, cancellation: handler)
                one = leaf
            case 1:
                one = operation(options: options) { tokens.send($0) }.onOutcome { _ in handler() }
            case 2:
                one = cascadeOperation(options: options) {
                    $0.operation { tokens.send($0) }
                } cancellation: { _ in
                    handler()
                }
            default:
                one = operation(options: options) { attempt in
                    attempt.onCancel { _ in handler() }
                    tokens.send(attempt)
                }
            }
            let token = await tokens.next()
            #expect(kind == 2 ? token.cancel() : one.cancel())
            returned.open()
            #expect(await told.next())
            #expect(await eventually { one.isEnded })
        }
    }

    @Test(.promises("G40"))
    func `a round does not wait forever: a handler that returns has decided`() async throws {
        let asked = Count()
        let cascade = cascadeOperation { cascade in
            cascade.operation {}
            cascade.operation { $0.cancel() }
            cascade.operation {}
        } cancellation: { _ in
            asked.add()
        }
        #expect(await cascade.outcome.reason?.kind == .child)
        #expect(asked.value == 1)
        // The same with siblings that would never end, in a queue that lets none of them start.
        let queue = COOperationQueue(runningLimit: 1)
        let group = transactionalOperation(on: queue) { group in
            group.operation { $0.cancel() }
            for _ in 0..<3 { group.operation { _ in } }
        } cancellation: { _ in
            asked.add()
        }
        #expect(await group.outcome.isCancelled)
        #expect(asked.value == 2)
        await queue.idle()
    }

    @Test(.promises("G40")) func `composites cannot be finished by hand`() async throws {
        let cascade = COCascade<Void>()
        let group = COTransaction<Void>()
        // The method that the compiler finds shows whether the type has one.
        let answers: [Any] = [
            cascade.finish(), group.finish(), cascade.fail(TestError()), group.fail(TestError()),
        ]
        for answer in answers { #expect(answer is Absent) }
        #expect(!cascade.isFinished && !group.isFinished)
    }
}
