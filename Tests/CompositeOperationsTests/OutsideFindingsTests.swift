// OutsideFindingsTests.swift - defects found by outside programs, each as a minimal test.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import Foundation
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct OutsideFindingsTests {
    // MARK: Queues

    /// [The first cancelled operation freed its slot, and the next one began before its own cancel.]
    @Test(.promises("G35"), arguments: [false, true])
    func `cancelAll starts no waiting operation and no dependent`(blockHasReturned: Bool) async {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        let ran = Count()
        let begun = Mail<COOperation<Void>.Attempt>()
        let gate = Gate()
        let first = operation(on: queue) { attempt in
            begun.send(attempt)
            if !blockHasReturned { gate.wait() }
        }
        let attempt = await begun.next()
        let waiting = (0..<200).map { _ in operation(on: queue) { ran.add() } }
        let dependents = waiting.prefix(100).map { one in
            let dependent = COOperation<Int>(on: queue) { ran.add() }
            dependent.addDependency(one)
            dependent.start()
            return dependent
        }
        let cascade = cascadeOperation(on: queue) { cascade in cascade.operation { ran.add() } }
        queue.cancelAll()
        #expect(attempt.isCancelled)
        gate.open()
        for one in waiting + dependents { #expect(await one.outcome.reason?.kind == .requested) }
        #expect(await cascade.outcome.isCancelled)
        #expect(await first.outcome.isCancelled)
        await queue.idle()
        #expect(ran.value == 0)
        // The queue admits again.
        #expect(await operation(on: queue) { 1 }.outcome.value == 1)
    }

    /// [New operations were held back, or were displaced because operations about to leave still counted.]
    @Test func `operations added during cancelAll run`() async throws {
        for order in [COOperationQueue.Order.fifo, .lifo] {
            let queue = COOperationQueue(order, runningLimit: 1, on: elsewhere)
            let added = Log<COOperation<Int>>()
            let (begun, gate) = (Mail<Void>(), Gate())
            operation(on: queue) { attempt in
                begun.send(())
                gate.wait()
            }
            await begun.next()
            let waiting = (0..<20).map { number in
                operation(on: queue) { -1 }.onOutcome { _ in added.add(operation(on: queue) { number }) }
            }
            queue.cancelAll()
            gate.open()
            for one in waiting { #expect(await one.outcome.isCancelled) }
            #expect(await eventually { added.entries.count == 20 })
            for one in added.entries { #expect(try await one.value >= 0) }
            await queue.idle()
            added.removeAll()
        }
    }

    @Test func `an aggressive queue displaces its oldest waiter; a requeued one is newest`()
        async throws
    {
        let queue = COOperationQueue(.aggressiveLIFO, runningLimit: 2, pendingLimit: 3, on: elsewhere)
        let attempts = Mail<COOperation<Int>.Attempt>()
        let first = operation(returning: Int.self, on: queue) { attempts.send($0) }
        let token = await attempts.next()
        let second = operation(returning: Int.self, on: queue) { attempts.send($0) }
        let other = await attempts.next()
        let waiting = (0..<3).map { number in operation(on: queue) { number } }
        // The next attempt is placed last: it is the newest.
        #expect(token.rerun())
        let again = await attempts.next()
        #expect(again.number == 2)
        let more = (3..<5).map { number in operation(on: queue) { number } }
        for one in waiting.prefix(2) { #expect(await one.outcome.reason?.kind == .displaced) }
        again.finish(10)
        other.finish(11)
        #expect(try await first.value == 10)
        #expect(try await second.value == 11)
        for (number, one) in (waiting + more).enumerated().dropFirst(2) {
            #expect(try await one.value == number)
        }
        await queue.idle()
    }

    /// [The queue and the target were kept as long as the handle.]
    @Test func `an ended operation's handle keeps neither queue nor target`() async {
        final class Target: ExecutionTarget {
            func submit(_ work: ExecutionWork) { elsewhere.submit(work) }
            var isCurrent: Bool { false }
        }
        func run() async -> (AnyOperation, AnyOperation, Weak<COOperationQueue>, Weak<Target>) {
            let target = Target()
            let queue = COOperationQueue(runningLimit: 1, on: target)
            let (leaf, cascade) = (
                operation(on: queue) { 1 }, cascadeOperation(on: target) { $0.operation {} }
            )
            _ = await (leaf.outcome, cascade.outcome)
            await queue.idle()
            return (leaf, cascade, Weak(queue), Weak(target))
        }
        let (leaf, cascade, queue, target) = await run()
        #expect(await eventually { queue.object == nil && target.object == nil })
        #expect(leaf.isFinished && cascade.isFinished)
    }

    /// [The turn read the target while the end was releasing it.]
    @Test func `a pending turn and the end of its operation race for the target`() async {
        for number in 0..<scaled(2_000) {
            let one = COOperation<Void>(
                on: number % 2 == 0 ? serialQueue() : COOperationQueue(runningLimit: 1)
            ) {
                $0.finish()
            }
            _ = await race(2) { index in index == 0 ? one.start() : one.cancel() }
            #expect(await !one.outcome.isFailed)
        }
    }

    @Test func `a copy of an ended operation has no target and no queue`() async throws {
        let own = CountingTarget(to: elsewhere)
        let behind = CountingTarget(to: elsewhere)
        for _ in 0..<20 {
            let before = (own.submitted.value, behind.submitted.value)
            let one = operation(on: own) { _ = $0.finish() }
            _ = await one.outcome
            let copy = one.copy()
            copy.operation = { $0.finish() }
            #expect(COOperationQueue(on: behind).add(copy))
            try await copy.value
            #expect(own.submitted.value == before.0 + 1 && behind.submitted.value == before.1 + 1)
        }
    }

    private final class Weak<Object: AnyObject & Sendable>: Sendable {
        weak let object: Object?
        init(_ object: Object) { self.object = object }
    }

    @Test func `a block and its tasks see its slot within another default queue, too`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1, on: elsewhere)
        @Sendable func isWithin() -> Bool {
            syncOperation(on: queue, timeout: .seconds(30)) { $0.finish() }.isFinished
        }
        let one = operation(returning: Bool.self, on: queue) { attempt in
            COQueues.withDefaultQueue(elsewhere) {
                _ = Task {
                    let answer = isWithin() && COQueues.defaultQueue is DispatchQueue
                    attempt.finish(answer)
                }
            }
        }
        #expect(try await one.value)
    }

    /// [The wait hung, and nothing was reported.]
    @Test func `waiting in a queue's only slot for its pending work is reported`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            let queue = COOperationQueue(runningLimit: 1)
            let outer = operation(on: queue) { () async throws -> Int in
                let inner = operation(on: queue) { 1 }
                let waits = Task { await inner.outcome }
                _ = await eventually { !told.entries.isEmpty }
                queue.runningLimit = 2
                return try await waits.value.get()
            }
            let value = try await outer.value
            try #require(value == 1)
            try #require(told.entries.count == 1 && told.entries[0].contains("the slots of its queue"))
        }
    }

    // MARK: Decisions

    /// A resolver asks for another attempt after a pause while the block of a cascade still runs. When the block returns, the
    /// steps wait for the end of the pause.
    @Test func `steps of a block that returns during a pause start after the pause`() async throws {
        let queue = DispatchQueue(label: "block and steps", attributes: .concurrent)
        let (attempts, pauses) = (ManualClock(), ManualClock())
        let resolver = COOperationResolver(backoff: .constant(.seconds(1)), redo: .awake, clock: pauses)
        let options = OperationOptions(resolver: resolver, attemptTimeout: .seconds(1), clock: attempts)
        let (runs, isOver) = (Count(), Locked(false))
        let (hasBegun, mayReturn) = (Mail<Void>(), Gate())
        let root = cascadeOperation(on: queue, options: options) { cascade in
            for _ in 0..<3 {
                cascade.operation(on: queue) { () -> Int in
                    #expect(isOver.withLock { $0 })
                    return runs.add()
                }
            }
            hasBegun.send(())
            mayReturn.wait()
        }
        await hasBegun.next()
        #expect(await eventually { attempts.sleepers == 1 })
        attempts.advance(by: .seconds(1))
        #expect(await eventually { root.state == .delayed && pauses.sleepers == 1 })
        mayReturn.open()
        // The first barrier waits for the block, and the second for a step that its end has started.
        for _ in 0..<2 {
            await withCheckedContinuation { done in queue.async(flags: .barrier) { done.resume() } }
        }
        #expect(root.state == .delayed && runs.value == 0)
        isOver.withLock { $0 = true }
        pauses.advance(by: .seconds(1))
        let outcome = await root.outcome
        #expect(outcome.isFinished && runs.value == 3)
    }

    private enum Late: CaseIterable {
        /// The block registers the rest while the decision is open.
        case registers
        /// The block registers the rest after the decision.
        case registersLater
        /// The block checks `isCancelled`, and registers nothing more.
        case looks
        /// The block throws.
        case `throws`
    }

    /// [If the block had not returned, awake acted as rerun: finished children ran again.]
    @Test(.promises("G28"), arguments: Late.allCases)
    private func `awake keeps what has finished, though the block still registers`(late: Late) async throws {
        for isNested in [false, true] {
            let runs = (0..<3).map { _ in Count() }
            let fails = Count()
            let (isAsked, answer, isDecided) = (Gate(), Gate(), Gate())
            let options = OperationOptions(handlerTarget: elsewhere)
            @Sendable func register(_ group: TransactionScope) throws {
                let first = group.operation { runs[0].add() }
                first.wait()
                group.operation { () throws -> Int in
                    guard fails.add() > 1 else { throw TestError() }
                    return runs[1].add()
                }
                let control = group.control
                if control.attempt > 1 { return _ = group.operation { runs[2].add() } }
                isAsked.wait()
                #expect(control.state == .deciding)
                func registerTheRest() {
                    let rest = group.operation { runs[2].add() }
                    #expect(rest.state == .ready, "it waits for the next attempt")
                }
                switch late {
                case .registers: registerTheRest()
                case .looks: #expect(group.isCancelled)
                case .registersLater, .throws: break
                }
                answer.open()
                if late == .looks { return }
                isDecided.wait()
                #expect(control.state == .delayed)
                if late == .throws { throw TestError() }  // had it thrown earlier, awake would be refused
                if late == .registersLater { registerTheRest() }
            }
            let decided = Count()
            @Sendable func decide(_ group: COTransaction<Void>) {
                isAsked.open()
                answer.wait()
                if decided.add() == 1 { group.awake() }
                isDecided.open()
            }
            let group: AnyOperation
            let outcome: Outcome<Void>
            if isNested {
                let root = cascadeOperation(on: elsewhere) { cascade in
                    cascade.transactionalOperation(on: elsewhere, options: options) { group in
                        try register(group)
                    } cancellation: { group in
                        decide(group)
                    }
                }
                outcome = await root.outcome
                group = root
            } else {
                let root = transactionalOperation(on: elsewhere, options: options) { group in
                    try register(group)
                } cancellation: { group in
                    decide(group)
                }
                outcome = await root.outcome
                group = root
            }
            #expect(outcome.isFinished && group.isFinished)
            #expect(
                runs.map(\.value) == (late == .registers || late == .registersLater ? [1, 1, 1] : [2, 1, 1]))
        }
    }

    // MARK: Time

    /// [Lengths beyond the range of a clock crashed the process.]
    @Test func `a time limit or pause may be of any length`() async throws {
        let ages = Duration.seconds(Int64.max)
        for clock in [ContinuousClock(), SuspendingClock()] as [any Clock<Duration>] {
            let limits = OperationOptions(
                timeout: ages, attemptTimeout: ages, deadline: .now + ages, clock: clock)
            #expect(try await operation(options: limits) { 1 }.value == 1)
            #expect(try await operation(options: limits) { () async in 2 }.value == 2)
            let tokens = Mail<COOperation<Void>.Attempt>()
            let paused = operation(options: OperationOptions(clock: clock)) { tokens.send($0) }
            #expect(await tokens.next().rerun(after: ages))
            #expect(await eventually { paused.state == .delayed })
            paused.cancel()
            #expect(await paused.outcome.isCancelled)
            let resolver = COOperationResolver(maxAttempts: 2, backoff: .constant(ages), clock: clock)
            let failing = operation(options: OperationOptions(resolver: resolver)) { throw TestError() }
            #expect(await eventually { failing.state == .delayed })
            failing.cancel()
            #expect(await failing.outcome.isCancelled)
        }
    }

    /// A defective clock.
    private struct Broken: Clock {
        /// The clock fails when this message arrives; nil: it fails at once.
        var told: Mail<Void>?
        let continuous = ContinuousClock()
        var now: ContinuousClock.Instant { continuous.now }
        var minimumResolution: Duration { continuous.minimumResolution }
        func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
            await told?.next()
            throw TestError()
        }
    }

    /// [The operation was delayed for ever.]
    @Test func `an operation fails with the error of the clock that measures its timeout`() async {
        let options = OperationOptions(clock: Broken())
        let tokens = Mail<COOperation<Void>.Attempt>()
        let paused = operation(options: options) { tokens.send($0) }
        #expect(await tokens.next().rerun(after: .seconds(1)))
        #expect(await paused.outcome.error is TestError)
        let limited = operation(options: OperationOptions(timeout: .seconds(1000), clock: Broken())) { _ in }
        #expect(await limited.outcome.error is TestError)
        // A limit on the whole operation covers all attempts.
        let resolver = COOperationResolver(maxAttempts: 3)
        let told = Mail<Void>()
        let tried = operation(
            options: OperationOptions(
                resolver: resolver, timeout: .seconds(1000), clock: Broken(told: told))
        ) { tokens.send($0) }
        _ = await tokens.next()
        told.send(())
        #expect(await tried.outcome.error is TestError)
        #expect(tried.attempt == 1)
        let group = transactionalOperation(options: options) { group in
            group.operation { (_) throws -> Void in throw CancellationError() }
        } cancellation: { group in
            group.rerun(after: .seconds(1))
        }
        #expect(await group.outcome.error is TestError)
    }

    // MARK: Errors

    /// [The error was lost silently.]
    @Test func `an error thrown after the end is reported`() async {
        await #expect(processExitsWith: .success) {
            let told = Log<String>()
            Diagnostics.onReport { told.add($0.message) }
            let finished = operation { attempt in
                attempt.finish()
                throw TestError()
            }
            _ = await finished.outcome
            try #require(await eventually { told.entries.count == 1 })
            try #require(told.entries[0].contains("threw, but it had ended: TestError"))
            // Throwing is the usual reaction to a cancellation or a rerun. It is not reported.
            let tokens = Mail<COOperation<Void>.Attempt>()
            for (isCancelled, isFinishedThen) in [(false, false), (true, false), (false, true)] {
                let one = operation { attempt in
                    if attempt.number > 1 { return _ = attempt.finish() }
                    if isCancelled { attempt.cancel() } else { attempt.rerun() }
                    if isFinishedThen { attempt.operation.finish() }
                    tokens.send(attempt)
                    throw TestError()
                }
                _ = await (tokens.next(), one.outcome)
            }
            // While its resolver is being asked, an operation has not ended.
            let resolver = COOperationResolver(maxAttempts: 2, retryIf: { _ in true })
            let asked = operation(options: OperationOptions(resolver: resolver)) { attempt in
                if attempt.number > 1 { return _ = attempt.finish() }
                attempt.fail(TestError())
                throw TestError()
            }
            _ = await asked.outcome
            try #require(told.entries.count == 1)
            // The same for a registration block.
            let group = transactionalOperation(on: elsewhere) { group in
                let child = group.operation { (_) throws -> Void in throw TestError() }
                while group.control.state != .ending { sched_yield() }
                withExtendedLifetime(child) {}
                throw TestError()
            }
            _ = await group.outcome
            try #require(told.entries.contains { $0.contains("its block threw") })
        }
    }

    /// [The listener called itself until the stack overflowed.]
    @Test func `a listener is not notified of a diagnostic that it causes`() async {
        await #expect(processExitsWith: .success) {
            let told = Count()
            Diagnostics.onReport { _ in
                told.add()
                COOperation<Void>().start()
            }
            for count in 1...3 {
                COOperation<Void>().start()
                try #require(told.value == count)
            }
        }
    }

    // MARK: Interface

    @Test func `an operation whose block returns, or is asynchronous, can be prepared`() async throws {
        let one = COOperation { 3 }
        let two = COOperation<Int> { await Task { 4 }.value }
        let void = COOperation<Void> { _ in }
        #expect(one.state == .ready && two.state == .ready && void.state == .ready)
        #expect(try await one.run() == 3)
        #expect(try await two.run() == 4)
        void.cancel()
        let queue = COOperationQueue(runningLimit: 1)
        let three = COOperation(on: queue) { 5 }
        #expect(three.addDependency(one) && three.start())
        #expect(try await three.value == 5)
    }

    @Test func `the DSL's operation takes the closures of the seed`() async throws {
        let log = Log<String>()
        operation { attempt in
            attempt.finish()
        } completion: {
            log.add("completed")
        }
        #expect(await eventually { log.entries == ["completed"] })
        operation(returning: Int.self) { attempt in
            attempt.cancel()
        } completion: {
            log.add("never")
        } cancellation: {
            log.add("cancelled")
        }
        #expect(await eventually { log.entries == ["completed", "cancelled"] })
        operation {
            throw TestError()
        } cancellation: {
            log.add("never")
        } failure: {
            log.add("\($0)")
        }
        #expect(await eventually { log.entries.count == 3 })
        operation {
            await Task.yield()
        } completion: {
            log.add("asynchronously")
        }
        #expect(await eventually { log.entries.last == "asynchronously" })
        #expect(!log.entries.contains("never") && log.entries.count == 4)
    }

    @Test func `a block without a value can be a composite's`() async throws {
        let runs = Count()
        let (cascade, group) = (COCascade<Void>(), COTransaction<Void>())
        cascade.operation = { cascade in cascade.operation { runs.add() } }
        group.operation = { group in
            group.operation { runs.add() }
            return .nothing
        }
        #expect(cascade.start() && group.start())
        try await cascade.value
        try await group.value
        #expect(runs.value == 2)
    }

    @Test func `a serial queue keeps its label`() {
        #expect("\(serialQueue("log"))" == "serial lane \"log\"" && serialQueue("log").label == "log")
        #expect("\(serialQueue())" == "serial lane")
    }

    /// [Only `state` showed that the queue was suspended.]
    @Test func `predicates agree with the state, in a suspended queue too`() async throws {
        let queue = COOperationQueue()
        queue.suspend()
        let one = operation(on: queue) { 1 }
        #expect(one.state == .suspended && one.isSuspended && !one.isReady && !one.isExecuting)
        queue.resume()
        #expect(try await one.value == 1)
    }

    @Test func `the documented table of states and predicates matches the operations`() async throws {
        var rows: [String] = []
        func row(_ one: AnyOperation, _ state: OperationState) {
            #expect(one.state == state)
            let ends = [
                one.isFinished ? "isFinished" : nil, one.isFailed ? "isFailed" : nil,
                one.isCancelled ? "isCancelled" : nil,
            ].compactMap(\.self)
            let cells = [
                "\(state)", one.isReady ? "yes" : "", one.isExecuting ? "yes" : "",
                one.isSuspended ? "yes" : "",
                state == .ending ? (ends.count == 1 ? "one of them" : "?") : ends.joined(separator: ", "),
                one.isEnded ? "yes" : "",
            ]
            rows.append("| \(cells.joined(separator: " | ")) |".replacing("  ", with: " "))
        }
        let held = HeldTarget()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = COOperation<Void>(on: held, options: OperationOptions(clock: ManualClock())) {
            tokens.send($0)
        }
        row(one, .ready)
        one.start()
        row(one, .queued)
        held.runAll()
        row(one, .executing)
        one.suspend()
        row(one, .suspended)
        one.resume()
        let (asked, decided) = (Mail<Void>(), Gate())
        let group = transactionalOperation(options: OperationOptions(handlerTarget: elsewhere)) { group in
            group.operation { (attempt: COOperation<Void>.Attempt) in attempt.cancel() }
        } cancellation: { _ in
            asked.send(())
            decided.wait()
        }
        await asked.next()
        row(group, .deciding)
        decided.open()
        await tokens.next().rerun(after: .seconds(1))
        row(one, .delayed)
        let gate = Gate()
        let leaving = operation(on: elsewhere) { attempt in
            tokens.send(attempt)
            gate.wait()
        }
        await tokens.next().fail(TestError())
        row(leaving, .ending)
        gate.open()
        let finished = operation {}
        _ = await (finished.outcome, leaving.outcome)
        row(finished, .finished)
        row(leaving, .failed)
        one.cancel()
        _ = await one.outcome
        row(one, .cancelled)
        _ = await group.outcome
        let article = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Sources/CompositeOperations/CompositeOperations.docc/Operations.md")
        let text = try String(contentsOf: article, encoding: .utf8)
        #expect(text.contains(rows.joined(separator: "\n")), "\(rows.joined(separator: "\n"))")
    }

    /// [Each line was indented by its depth: 10 GB for a depth of 100,000.]
    @Test func `a deep tree is printed with lines of bounded length`() async {
        let depth = scaled(2_000)
        let held = Mail<COOperation<Void>.Attempt>()
        @Sendable func nest(_ scope: some CompositeScope, _ level: Int) {
            if level == depth { return _ = scope.operation { held.send($0) } }
            scope.cascadeOperation { nest($0, level + 1) }
        }
        let root = cascadeOperation { nest($0, 1) }
        let token = await held.next()
        root.suspend()
        let lines = root.tree.split(separator: "\n")
        #expect(lines.count == depth + 1)
        #expect(lines.allSatisfy { $0.count < 200 })
        #expect(lines.last?.contains("(level \(depth))") == true)
        #expect(lines.allSatisfy { $0.contains("suspended") })
        root.resume()
        token.finish()
        #expect(await root.outcome.isFinished)
    }
}
