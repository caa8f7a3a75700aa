// WaitingCornerTests - corner cases that no other test covered: waits for another operation, or for a gate. Each was
// found by a defect that the other tests let pass (Verification/Mutants/swift-by-hand.txt).

import CompositeOperations
import CompositeOperationsBasics
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct WaitingCornerTests {
    // MARK: Dependencies

    @Test func `a dependency that closes a cycle is refused, however long it is`() async {
        let all = (0..<4).map { _ in COOperation<Void> { $0.finish() } }
        #expect(!all[0].addDependency(all[0]))
        for index in 1..<4 { #expect(all[index].addDependency(all[index - 1])) }
        #expect(!all[0].addDependency(all[3]))
        #expect(!all[1].addDependency(all[3]))
        for one in all.reversed() { #expect(one.start()) }
        for one in all { #expect(await one.outcome.isFinished) }
    }

    /// If each search traversed everything built so far, this many operations would take minutes.
    @Test func `a chain that is built from its beginning is built at once`() async {
        var all: [COOperation<Void>] = []
        for _ in 0..<scaled(50_000) {
            let one = COOperation<Void> { $0.finish() }
            if let former = all.last { #expect(one.addDependency(former)) }
            all.append(one)
        }
        #expect(!all[0].addDependency(all[all.count - 1]))
        for one in all { #expect(one.start()) }
        #expect(await all[all.count - 1].outcome.isFinished)
    }

    @Test func `an operation with one dependency left still counts in cycle checks`() async {
        let (first, second) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
        let last = COOperation<Void> { $0.finish() }
        #expect(last.addDependency(first) && last.addDependency(second))
        #expect(last.start() && first.start())
        #expect(await first.outcome.isFinished)
        #expect(!second.addDependency(last), "that would be a cycle")
        #expect(last.state == .queued)
        #expect(second.start())
        #expect(await last.outcome.isFinished)
    }

    @Test func `a child cannot wait for its ancestors`() async {
        let last = Locked<COOperation<Void>?>(nil)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { tokens.send($0) }
            cascade.cascadeOperation { _ in }
            let child = cascade.operation {}
            last.withLock { $0 = child.operation }
        }
        let token = await tokens.next()
        #expect(last.withLock { $0! }.addDependency(cascade) == false)
        token.finish()
        #expect(await cascade.outcome.isFinished)
    }

    @Test
    func `a step waits neither for a later step, nor for its contents, nor for one added later`()
        async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let (steps, inner) = (Mail<COOperation<Void>>(), COOperation<Void> { $0.finish() })
        let (ready, late) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
        let errors = Log<RegistrationError>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { tokens.send($0) }
            let second = cascade.operation {}
            let third = cascade.operation {}
            #expect(!second.addDependency(third.operation))
            #expect(third.addDependency(second.operation), "which it waits for anyhow")
            // Ready-made operations that already have dependencies: `second` waits for `ready`, `ready` for `late`, and
            // `inner` for `third`.
            #expect(
                second.addDependency(ready) && ready.addDependency(late)
                    && inner.addDependency(third.operation))
            do throws(RegistrationError) { try cascade.add(late) } catch { errors.add(error) }
            do throws(RegistrationError) { try cascade.add(ready) } catch { errors.add(error) }
            try cascade.add(inner)
            steps.send(second.operation)
        }
        let second = await steps.next()
        #expect(errors.entries == [.wouldWaitForItself, .wouldWaitForItself])
        await tokens.next().finish()
        // The refused operations are unchanged.
        #expect(late.start() && ready.start())
        #expect(await second.outcome.isFinished)
        #expect(await cascade.outcome.isFinished)
    }

    @Test func `a step finished before its turn does not hide its predecessor`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let answers = Mail<Bool>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { tokens.send($0) }
            let second = cascade.operation {}
            let third = cascade.operation {}
            let fourth = cascade.operation {}
            third.finish()
            answers.send(second.addDependency(fourth.operation))
        }
        #expect(await answers.next() == false)
        await tokens.next().finish()
        #expect(await cascade.outcome.isFinished)
    }

    @Test func `a step ended by a round, and possibly redone, waits for its predecessor`() async {
        let other = COOperation<Void> { $0.finish() }
        let steps = Locked<[COOperation<Void>]>([])
        let answers = Log<Bool>()
        let cascade = cascadeOperation { cascade in
            cascade.operation { attempt in
                if attempt.number == 1 { attempt.cancel() } else { attempt.finish() }
            }
            let (second, third) = (cascade.operation {}, cascade.operation {})
            #expect(second.addDependency(other))
            steps.withLock { $0 = [third.operation] }
        } cancellation: { cascade in
            answers.add(other.addDependency(steps.withLock { $0[0] }))
            cascade.awake()
        }
        #expect(await eventually { cascade.attempt == 2 })
        #expect(answers.entries == [false])
        #expect(other.start())
        #expect(await cascade.outcome.isFinished)
    }

    @Test func `children of a group that run at once may wait for each other, and for later ones`() async {
        let ready = COOperation<Void> { $0.finish() }
        let group = transactionalOperation { group in
            group.suspend()
            let first = group.operation { $0.finish() }
            #expect(!first.addDependency(ready), "it has been started")
            #expect(ready.addDependency(first))
            try group.add(ready)
            // An operation that is added before its dependency.
            let (earlier, later) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
            #expect(earlier.addDependency(later))
            try group.add(earlier)
            try group.add(later)
            group.resume()
        }
        #expect(await group.outcome.isFinished)
    }

    @Test func `a child that waits for its composite, or for an ancestor of it, is refused`() async {
        let errors = Log<RegistrationError>()
        let (ofOuter, ofInner) = (COOperation<Void> { $0.finish() }, COOperation<Void> { $0.finish() })
        let between = COOperation<Void> { $0.finish() }
        let inner = COCascade<Void> { cascade in
            for one in [ofOuter, ofInner] {
                do throws(RegistrationError) { try cascade.add(one) } catch { errors.add(error) }
            }
        }
        let outer = COTransaction<Void> { group in try group.add(inner) }
        #expect(ofOuter.addDependency(between) && between.addDependency(outer))
        #expect(ofInner.addDependency(inner))
        outer.start()
        #expect(await outer.outcome.isFinished)
        #expect(errors.entries == [.wouldWaitForItself, .wouldWaitForItself])
        for one in [between, ofOuter, ofInner] {
            #expect(one.start())
            #expect(await one.outcome.isFinished)
        }
    }

    #if DEBUG
        @Test(.promises("G37")) func `an ended operation leaves no dependency behind`() async {
            // In a separate process, where no other test has operations.
            await #expect(processExitsWith: .success) {
                let other = COOperation<Void> { $0.finish() }
                weak var last: COOperation<Void>?
                var ended: [COOperation<Void>] = []
                for index in 0..<2000 {
                    let dependent = COOperation<Void> { $0.finish() }
                    precondition(dependent.addDependency(other))
                    if index % 2 == 0 {
                        dependent.start()
                        dependent.cancel()
                        ended.append(dependent)
                    } else {
                        last = dependent
                    }
                }
                precondition(last == nil, "also who was not started")
                let edges = InstanceCount.live["dependencies"] ?? 0
                precondition(edges < 100, "\(edges) edges")
                let waiting = COOperation<Void> { $0.finish() }
                precondition(waiting.addDependency(other))
                waiting.start()
                other.start()
                let outcome = await waiting.outcome
                precondition(outcome.isFinished)
            }
        }
    #endif

    @Test(.promises("G6")) func `operations found in a cycle search are released after it`() async {
        /// Starts another search for cycles when it is deallocated.
        final class Looking: Sendable {
            deinit { _ = COOperation<Void>().addDependency(COOperation<Void>()) }
        }
        for _ in 0..<scaled(2000) {
            let held = Locked<COOperation<Void>?>(nil)
            let middle = COOperation<Void> { $0.finish() }
            do {
                let looking = Looking()
                let last = COOperation<Void> { _ in withExtendedLifetime(looking) {} }
                #expect(middle.addDependency(last))
                held.withLock { $0 = last }
            }
            _ = await atOnce(2) { index in
                if index == 0 {
                    withExtendedLifetime(held.withLock { $0.take() }) {}
                } else {
                    let (asking, waiting) = (COOperation<Void>(), COOperation<Void>())
                    waiting.addDependency(asking)  // otherwise there is nothing to search for
                    _ = asking.addDependency(middle)
                }
            }
        }
    }

    // MARK: Gates

    @Test func `a cancelled task stops waiting for a gate`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        #expect(one.suspend())
        let alone = try Scheduler(Scheduler.Configuration(workers: 1))
        let waiting = Task(executorPreference: alone) { () -> CancelReason.Kind? in
            do throws(CancelReason) {
                try await token.resumed()
                return nil
            } catch {
                return error.kind
            }
        }
        // There is only one worker, so this task runs only once the other one is waiting.
        await Task(executorPreference: alone) {}.value
        waiting.cancel()
        #expect(await waiting.value == .taskCancelled)
        #expect(one.finish())
    }

    @Test func `a separate task waiting for an operation's gate sees the cancel`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        #expect(one.suspend())
        let alone = try Scheduler(Scheduler.Configuration(workers: 1))
        let waiting = Task(executorPreference: alone) { () -> CancelReason? in
            do throws(CancelReason) {
                try await token.resumed()
                return nil
            } catch {
                return error
            }
        }
        // There is only one worker, so this task runs only once the other one is waiting.
        await Task(executorPreference: alone) {}.value
        #expect(one.cancel(CancelReason(.removed)))
        #expect(await waiting.value?.kind == .removed)
    }

    @Test func `a task that waited for a gate passes once, although the gate moves again`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        for _ in 0..<3 {
            #expect(one.suspend())
            let waiting = Task { try await token.resumed() }
            for _ in 0..<100 { await Task.yield() }
            #expect(one.resume())
            try await waiting.value
        }
        #expect(one.finish())
        try await one.value
    }
}
