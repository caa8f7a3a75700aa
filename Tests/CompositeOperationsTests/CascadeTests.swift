// Cascades: order, what a step sees of earlier steps, and empty composites: G17, G19.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct CascadeTests {
    /// No lock: the cascade alone orders the accesses, and ThreadSanitizer checks that.
    private final class Unguarded: @unchecked Sendable {
        // Unchecked, because the ordering is under test.
        var steps: [Int] = []
    }

    // MARK: G17

    @Test(.promises("G17")) func `steps start in order, and see the writes of earlier ones`() async {
        // Each number encodes the kind of a step (number % 8; 0 to 5: leaves, 6 and 7: composites) and its target
        // (number / 8).
        let steps = Generator<[Int]>.array(of: .int(in: 0...31), count: 0...12)
        await forAll(steps, cases: scaled(200)) { kinds in
            let written = Unguarded()
            let lane = serialQueue()
            let cascade = cascadeOperation { cascade in
                for (number, kind) in kinds.enumerated() {
                    let target: (any ExecutionTarget)? = [nil, lane, elsewhere, serialQueue()][kind / 8]
                    let write: @Sendable () -> Void = { written.steps.append(number) }
                    switch kind % 8 {
                    case 0: cascade.operation(on: target, write)
                    case 1:
                        cascade.operation(on: target) { (attempt: COOperation<Void>.Attempt) in
                            write()
                            attempt.finish()
                        }
                    case 2:
                        cascade.operation(on: target) { (attempt: COOperation<Void>.Attempt) in
                            write()
                            elsewhere.async { attempt.finish() }
                        }
                    case 3:
                        cascade.operation(on: target) { (attempt: COOperation<Void>.Attempt) in
                            elsewhere.async {
                                write()
                                attempt.finish()
                            }
                        }
                    case 4: cascade.operation(on: target) { () async throws in write() }
                    case 5:
                        cascade.operation(on: target) { () async throws in
                            await Task.yield()
                            write()
                        }
                    case 6:
                        cascade.cascadeOperation(on: target) { inner in
                            inner.operation {}
                            inner.operation(on: target, write)
                        }
                    default:
                        cascade.transactionalOperation(on: target) { group in
                            group.operation(on: target, write)
                            group.operation {}
                        }
                    }
                }
            }
            #expect(await cascade.outcome.isFinished)
            #expect(written.steps == Array(kinds.indices))
        }
    }

    @Test func `no two steps overlap, whatever finishes them`() async {
        await forAll(Generator<[Bool]>.array(of: .bool, count: 1...10), cases: scaled(100)) { kinds in
            let (under, log, attempts) = (Count(), Log<Int>(), Locked<[COOperation<Void>.Attempt]>([]))
            let cascade = cascadeOperation { cascade in
                for (number, isNested) in kinds.enumerated() {
                    let block: COOperation<Void>.Block = { attempt in
                        #expect(under.add() == 1)
                        log.add(number)
                        attempts.withLock { $0.append(attempt) }
                    }
                    if isNested {
                        cascade.transactionalOperation { $0.operation(block) }
                    } else {
                        cascade.operation(block)
                    }
                }
            }
            for number in kinds.indices {
                #expect(await eventually { attempts.withLock { $0.count == number + 1 } })
                let attempt = attempts.withLock { $0[number] }
                under.add(-1)
                let answers = await racing(2) { _ in attempt.finish() }
                #expect(answers.filter { $0 }.count == 1)
            }
            #expect(await cascade.outcome.isFinished)
            #expect(log.entries == Array(kinds.indices))
        }
    }

    @Test(.promises("G17")) func `late children go last, in the order of their registration`() async {
        await forAll(Generator<[Int]>.array(of: .int(in: 0...3), count: 1...8), cases: scaled(100)) {
            additions in
            let written = Unguarded()
            let registered = Log<Int>()
            let next = Count()
            @Sendable func register(_ depth: Int, _ cascade: CascadeScope) {
                let number = next.add()
                registered.add(number)
                cascade.operation { (attempt: COOperation<Void>.Attempt) in
                    written.steps.append(number)
                    if number <= additions.count, depth < 3 {
                        for _ in 0..<additions[number - 1] { register(depth + 1, cascade) }
                    }
                    attempt.finish()
                }
            }
            let cascade = cascadeOperation { cascade in for _ in 0..<3 { register(0, cascade) } }
            #expect(await cascade.outcome.isFinished)
            #expect(written.steps == registered.entries)
        }
    }

    @Test func `children registered late by several threads all run in turn`() async {
        for _ in 0..<scaled(30) {
            let (scopes, attempts) = (Locked<[CascadeScope]>([]), Locked<[COOperation<Void>.Attempt]>([]))
            let written = Unguarded()
            let cascade = cascadeOperation { cascade in
                cascade.operation { (attempt: COOperation<Void>.Attempt) in
                    attempts.withLock { $0.append(attempt) }
                    scopes.withLock { $0.append(cascade) }
                }
            }
            #expect(await eventually { scopes.withLock { !$0.isEmpty } })
            let (scope, first) = (scopes.withLock { $0[0] }, attempts.withLock { $0[0] })
            let accepted = await racing(4) { thread -> Int in
                if thread == 3 {
                    first.finish()
                    return 0
                }
                var count = 0
                for _ in 0..<20 {
                    let step = scope.operation { written.steps.append(thread) }
                    if !step.isFailed { count += 1 }
                }
                return count
            }
            #expect(await cascade.outcome.isFinished)
            #expect(written.steps.count == accepted.reduce(0, +))
        }
    }

    @Test func `a step's tail overlaps the next step, and not the outcome`() async throws {
        let (gate, second) = (Gate(), Gate())
        let cascade = cascadeOperation { cascade in
            cascade.operation(on: elsewhere) { (attempt: COOperation<Void>.Attempt) in
                attempt.finish()
                gate.wait()
            }
            cascade.operation(on: elsewhere) { second.open() }
        }
        await second.opened()
        #expect(await eventually { cascade.isFinished })
        #expect(cascade.state == .ending && cascade.result == nil)
        gate.open()
        try await cascade.value
    }

    @Test func `the first step starts after the registration block has returned`() async throws {
        let (log, gate) = (Log<String>(), Gate())
        let cascade = cascadeOperation(on: elsewhere) { cascade in
            let step = cascade.operation(on: elsewhere) { log.add("step") }
            #expect(step.numberOfRuns == 0 && step.state == .ready)
            gate.wait()
            #expect(step.numberOfRuns == 0)
            log.add("registered")
        }
        gate.open()
        try await cascade.value
        #expect(log.entries == ["registered", "step"])
    }

    // MARK: G19

    @Test(.promises("G19")) func `an empty composite completes, once`() async {
        let places = Generator<[Int]>.array(of: .int(in: 0...3), count: 1...1)
        await forAll(places, cases: scaled(40)) { choices in
            for isCascade in [true, false] {
                let queue = COOperationQueue(runningLimit: 1)
                let target: (any ExecutionTarget)? = [nil, elsewhere, serialQueue(), queue][choices[0]]
                let log = Log<String>()
                let composite: CompositeOperation<Void> =
                    if isCascade {
                        cascadeOperation(on: target) { (_: CascadeScope) -> Void in
                        } completion: {
                            log.add("completed")
                        } cancellation: { _ in
                            log.add("asked")
                        }
                    } else {
                        transactionalOperation(on: target) { (_: TransactionScope) -> Void in
                        } completion: {
                            log.add("completed")
                        } cancellation: { _ in
                            log.add("asked")
                        }
                    }
                composite.onOutcome { outcome in log.add(outcome.isFinished ? "finished" : "ended") }
                #expect(await composite.outcome.isFinished)
                await composite.handlersAreOver()
                #expect(log.entries == ["completed", "finished"])
                #expect(composite.attempt == 1 && composite.numberOfRuns == 1)
            }
        }
    }

    @Test func `nested empty composites complete, also after a suspension`() async {
        await forAll(Generator<[Bool]>.array(of: .bool, count: 1...6), cases: scaled(60)) { levels in
            let (completions, registered) = (Count(), Gate())
            @Sendable func register(_ level: Int, _ scope: any CompositeScope) {
                guard level < levels.count else { return registered.open() }
                if levels[level] {
                    scope.cascadeOperation {
                        register(level + 1, $0)
                    } completion: {
                        completions.add()
                    }
                } else {
                    scope.transactionalOperation {
                        register(level + 1, $0)
                    } completion: {
                        completions.add()
                    }
                }
            }
            let isSuspended = levels.count % 2 == 0
            let root = cascadeOperation { cascade in
                if isSuspended { cascade.suspend() }
                register(0, cascade)
            }
            if isSuspended {
                #expect(await eventually { root.isSuspended && root.children.count == 1 })
                #expect(!root.isFinished && completions.value == 0)
                #expect(root.resume())
            }
            #expect(await root.outcome.isFinished)
            #expect(await eventually { completions.value == levels.count })
        }
    }
}
