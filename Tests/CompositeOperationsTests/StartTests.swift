// A block starts at most once per attempt, whichever thread starts, resumes, awakes or admits its operation: G20.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct StartTests {
    @Test func `of racing starts one is accepted, and the block runs once`() async {
        for kind in Kind.allCases {
            for _ in 0..<scaled(60) {
                let runs = Count()
                let block: COOperation<Void>.Block = { attempt in
                    runs.add()
                    attempt.finish()
                }
                let operation: OperationHandle<Void> =
                    switch kind {
                    case .leaf: COOperation<Void>(block)
                    case .sync: COSyncOperation<Void>(block)
                    case .cascade: COCascade<Void> { cascade in cascade.operation(block) }
                    case .transaction: COTransaction<Void> { group in group.operation(block) }
                    case .nested:
                        COTransaction<Void> { group in
                            group.cascadeOperation { cascade in cascade.operation(block) }
                        }
                    }
                let answers = await racing(4) { thread in
                    guard thread == 3, let composite = operation as? CompositeOperation<Void> else {
                        return operation.start()
                    }
                    return composite.awake()  // on a ready composite, the same as start()
                }
                #expect(answers.filter { $0 }.count == 1)
                #expect(await operation.outcome.isFinished)
                #expect(runs.value == 1)
                #expect(operation.numberOfRuns == 1 && operation.attempt == 1)
            }
        }
    }

    @Test(.promises("G20"))
    func `start, suspend, resume and a queue's events race: one run for each attempt`() async {
        let threads = Generator<[Int]>.array(of: .int(in: 0...9), count: 1...24)
        await forAll(Generator<([Int], Int)>.zip(threads, .int(in: 0...7)), cases: scaled(200)) {
            choices, setting in
            let queue = COOperationQueue(
                [.fifo, .lifo][setting % 2], runningLimit: 1,
                slots: setting / 2 % 2 == 0 ? .releaseWhileSuspended : .holdWhileSuspended)
            let isQueued = setting >= 4
            let (attempts, wrong) = (Log<Int>(), Log<String>())
            let (under, other) = (Count(), Count())
            let operation = COOperation<Void>(on: isQueued ? queue : nil) { attempt in
                if under.add() != 1 { wrong.add("two blocks at once") }
                attempts.add(attempt.number)
                under.add(-1)
                // The attempt stays open until a rerun, or until the operation is ended.
            }
            let blocker = CompositeOperations.operation(on: queue) { other.add() }
            _ = await racing(3) { thread in
                for (place, choice) in choices.enumerated() where place % 3 == thread {
                    switch choice {
                    case 0: operation.start()
                    case 1, 2: operation.suspend()
                    case 3, 4: operation.resume()
                    case 5: queue.suspend()
                    case 6: queue.resume()
                    case 7: operation.rerun()
                    case 8: operation.resume(.restart)
                    default: queue.runningLimit = 1 + choice % 2
                    }
                }
            }
            operation.start()
            queue.resume()
            operation.resume()
            // No start is lost: the block of the current attempt has run, or is running.
            #expect(await eventually { attempts.entries.last == operation.attempt }, "\(operation.tree)")
            #expect(operation.finish())
            #expect(await operation.outcome.isFinished)
            #expect(await blocker.outcome.isFinished)
            await queue.idle()
            let seen = attempts.entries
            #expect(Set(seen).count == seen.count, "\(seen)")
            #expect(seen == seen.sorted())
            #expect(operation.numberOfRuns == seen.count)
            #expect(wrong.entries.isEmpty)
        }
    }

    @Test(.promises("G20"))
    func `awake, rerun and resume race: each child runs once for each of its attempts`() async {
        await forAll(Generator<[Int]>.array(of: .int(in: 0...5), count: 2...12), cases: scaled(120)) {
            choices in
            let isCascade = choices[0] % 2 == 0
            let seen = Log<String>()
            let (epochs, decisions) = (Count(), Count())
            let register: @Sendable (any CompositeScope) -> Void = { scope in
                let epoch = epochs.add()
                for number in 0..<3 {
                    scope.operation { (attempt: COOperation<Void>.Attempt) in
                        seen.add("\(epoch).\(number).\(attempt.number)")
                        if scope.control.attempt < 4, choices[(number + attempt.number) % choices.count] < 3 {
                            attempt.cancel()
                        } else {
                            attempt.finish()
                        }
                    }
                }
            }
            let handler: @Sendable (CompositeOperation<Void>) -> Void = { composite in
                // Two threads decide concurrently. The second one may decide about the attempt that the first one has
                // begun, before the handler is called for that attempt. Hence the test checks only that each accepted
                // decision adds one attempt.
                let answers = concurrently(2) { thread in
                    choices[thread] % 2 == 0 ? composite.awake() : composite.rerun()
                }
                decisions.add(answers.filter { $0 }.count)
            }
            let options = OperationOptions(handlerTarget: elsewhere)
            let composite: CompositeOperation<Void> =
                isCascade
                ? cascadeOperation(options: options) {
                    register($0)
                } cancellation: {
                    handler($0)
                }
                : transactionalOperation(options: options) {
                    register($0)
                } cancellation: {
                    handler($0)
                }
            _ = await racing(2) { thread in
                for choice in choices {
                    if choice % 2 == thread { composite.suspend() } else { composite.resume() }
                    if choice == 5 { composite.start() }
                }
            }
            let isOver = await eventually {
                composite.resume()
                return composite.isEnded
            }
            #expect(isOver, "\(composite.tree)")
            #expect(composite.isFinished)
            await composite.handlersAreOver()
            let runs = seen.entries
            #expect(Set(runs).count == runs.count, "\(runs)")
            // If an attempt is redone before its turn has called the block, that turn no longer calls it.
            #expect(composite.numberOfRuns >= epochs.value)
            #expect(composite.attempt == decisions.value + 1)
        }
    }

    @Test func `a late turn and the turn of the next attempt start one block`() async throws {
        let (mailbox, runs) = (Mailbox(), Count())
        let (waiting, leaf) = (Locked<COOperation<Void>?>(nil), Locked<COOperation<Void>.Attempt?>(nil))
        let lane = try SerialLane()
        let group = transactionalOperation(on: lane) { group in
            let child = group.operation(on: mailbox) { (_: COOperation<Void>.Attempt) in runs.add() }
            waiting.withLock { $0 = child }
            group.operation(on: lane) { (attempt: COOperation<Void>.Attempt) in
                if attempt.number == 1 { leaf.withLock { $0 = attempt } } else { attempt.finish() }
            }
        } cancellation: { group in
            group.awake()
        }
        #expect(await eventually { mailbox.count == 1 && leaf.withLock { $0 != nil } })
        #expect(leaf.withLock { $0 }?.cancel() ?? false)
        #expect(await eventually { mailbox.count == 2 })
        mailbox.runAll()
        #expect(runs.value == 1)
        let child = try #require(waiting.withLock { $0 })
        #expect(child.numberOfRuns == 1 && child.attempt == 1)
        #expect(child.finish())
        #expect(await group.outcome.isFinished)
    }

    @Test func `a child is started by its composite alone, and once`() async {
        for isCascade in [true, false] {
            for _ in 0..<scaled(50) {
                let (runs, made) = (Count(), Locked<[COOperation<Void>]>([]))
                let gate = Gate()
                let register: @Sendable (any CompositeScope) -> Void = { scope in
                    for _ in 0..<3 {
                        scope.operation { runs.add() }
                        let leaf = scope.operation { (attempt: COOperation<Void>.Attempt) in
                            runs.add()
                            attempt.finish()
                        }
                        made.withLock { $0.append(leaf) }
                    }
                    gate.open()
                }
                let composite: CompositeOperation<Void> =
                    isCascade ? cascadeOperation { register($0) } : transactionalOperation { register($0) }
                await gate.opened()
                let answers = await racing(3) { _ in made.withLock { $0 }.map { $0.start() } }
                #expect(!answers.joined().contains(true))
                #expect(await composite.outcome.isFinished)
                #expect(runs.value == 6)
            }
        }
    }

    @Test func `an operation started and queued at once runs once`() async {
        for _ in 0..<scaled(100) {
            let (runs, queue) = (Count(), COOperationQueue(runningLimit: 2))
            let operation = COOperation<Void> { attempt in
                runs.add()
                attempt.finish()
            }
            let answers = await racing(3) { thread in thread == 0 ? operation.start() : queue.add(operation) }
            #expect(answers.filter { $0 }.count == 1)
            #expect(await operation.outcome.isFinished)
            await queue.idle()
            #expect(runs.value == 1)
        }
    }

    @Test func `an operation started and adopted at once runs once`() async {
        for _ in 0..<scaled(100) {
            let (runs, scopes) = (Count(), Locked<TransactionScope?>(nil))
            let hold = Locked<COOperation<Void>.Attempt?>(nil)
            let group = transactionalOperation { group in
                group.operation { (attempt: COOperation<Void>.Attempt) in hold.withLock { $0 = attempt } }
                scopes.withLock { $0 = group }
            }
            #expect(await eventually { hold.withLock { $0 != nil } && scopes.withLock { $0 != nil } })
            let scope = scopes.withLock { $0! }
            let operation = COOperation<Void> { attempt in
                runs.add()
                attempt.finish()
            }
            let answers = await racing(2) { thread -> Bool in
                if thread == 0 { return operation.start() }
                do {
                    try scope.add(operation)
                    return true
                } catch { return false }
            }
            #expect(answers.filter { $0 }.count == 1)
            #expect(await operation.outcome.isFinished)
            hold.withLock { $0 }?.finish()
            #expect(await group.outcome.isFinished)
            #expect(runs.value == 1)
        }
    }
}
