// R55: copies of operations.

import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct CopyRegressions {
    private static let keeping = OperationOptions(name: "kept", keepsBlock: true)

    @Test(.promises("R55"))
    func `R55: a copy of a used operation is ready, has no attempt, and runs its block once`()
        async throws
    {
        let runs = Count()
        let one = operation(returning: Int.self, options: Self.keeping) { $0.finish(runs.add()) }
        #expect(try await one.value == 1)
        let copy = one.copy()
        #expect(copy.state == .ready)
        #expect(copy.attempt == 0)
        #expect(copy.numberOfRuns == 0)
        #expect(copy.result == nil)
        #expect(copy.id != one.id)
        #expect(copy.name == "kept")
        #expect(copy.start())
        #expect(try await copy.value == 2)
        #expect(try await one.value == 1)
    }

    @Test func `a copy of a copy, 100,000 levels deep, has the original block and closures`()
        async
    {
        func copied<Operation>(_ one: OperationHandle<Operation>) -> OperationHandle<Operation> {
            var copy = one
            for _ in 0..<100_000 { copy = copy.copy() }
            return copy
        }
        let called = Log<String>()
        let leaf = operation(options: Self.keeping) { _ in
        } completion: {
            called.add("completed")
        } cancellation: {
            called.add("cancelled")
        }
        leaf.cancel()
        let group = transactionalOperation(options: Self.keeping) {
            $0.operation {}
        } completion: {
            called.add("completed")
        } cancellation: { _ in
            called.add("asked")
        }
        #expect(await group.outcome.isFinished)
        let cascade = cascadeOperation(options: Self.keeping) {
            $0.operation { (attempt: COOperation<Void>.Attempt) in attempt.cancel() }
        } cancellation: { _ in
            called.add("asked")
        }
        #expect(await cascade.outcome.isCancelled)
        #expect(await eventually { called.entries.sorted() == ["asked", "cancelled", "completed"] })
        let (lastLeaf, lastGroup, lastCascade) = (copied(leaf), copied(group), copied(cascade))
        #expect(lastLeaf.cancel())
        #expect(lastGroup.start() && lastCascade.start())
        #expect(await lastGroup.outcome.isFinished)
        #expect(await lastCascade.outcome.isCancelled)
        #expect(
            await eventually {
                called.entries.sorted()
                    == ["asked", "asked", "cancelled", "cancelled", "completed", "completed"]
            })
    }

    @Test(.promises("R55"), arguments: Ending.allCases)
    func `R55: however the original ended, and while it runs, suspended or not`(ending: Ending) async throws {
        let one = COOperation<Int>(options: Self.keeping) { attempt in
            if attempt.operation.name == nil { attempt.finish(0) }
        }
        #expect(one.start())
        #expect(one.suspend())
        let copies = [one.copy()]
        ending.end(one)
        _ = await one.outcome
        for copy in copies + [one.copy()] {
            #expect(copy.state == .ready)
            #expect(!copy.isSuspended)
            #expect(copy.start())
            #expect(copy.finish(3))
            #expect(try await copy.value == 3)
        }
    }

    @Test(.promises("R55")) func `R55: a copy of a used cascade has the same steps, in order`() async throws {
        let log = Log<Int>()
        let cascade = COCascade<Int>(options: Self.keeping) { cascade in
            for index in 0..<5 { cascade.operation { log.add(index) } }
            let last = cascade.transactionalOperation { group in .value(of: group.operation { 5 }) }
            return .value(of: cascade.operation(using: last) { $0 + 1 })
        }
        let fresh = cascade.copy()
        #expect(try await cascade.run() == 6)
        #expect(try await cascade.copy().run() == 6)
        #expect(try await fresh.run() == 6)
        #expect(log.entries == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    }

    @Test(.promises("R55")) func `R55: a copy has the closures of a composite, and its width`() async throws {
        let called = Log<String>()
        let inFlight = Count()
        let most = Locked(0)
        let tries = Count()
        let group = COTransaction<Void>(options: OperationOptions(width: 2))
        let copies = Log<COTransaction<Void>>()
        group.run { group in
            copies.add((group.control as? COTransaction<Void>)!.copy())
            for _ in 0..<10 {
                group.operation(on: elsewhere) { attempt in
                    let now = inFlight.add()
                    most.withLock { $0 = max($0, now) }
                    inFlight.add(-1)
                    if tries.add() % 7 == 3 { attempt.cancel() } else { attempt.finish() }
                }
            }
        } completion: {
            called.add("completion")
        } cancellation: { group in
            called.add("cancellation")
            group.awake()
        }
        try await group.value
        let copy = copies.entries[0]
        try await copy.run()
        for each in [group, copy] {  // runs after their closures
            await withCheckedContinuation { done in each.onOutcome { _ in done.resume() } }
        }
        #expect(called.entries.count { $0 == "completion" } == 2)
        #expect(called.entries.contains("cancellation"))
        #expect(most.withLock { $0 } <= 2)
        copies.removeAll()  // breaks a cycle: their blocks hold this log
    }

    @Test(.promises("R55"))
    func `R55: a copy depends neither on the original's dependencies nor on the original`()
        async throws
    {
        let never = COOperation<Void>()
        let one = COOperation<Int> { $0.finish(1) }
        #expect(one.addDependency(never))
        let copy = one.copy()
        #expect(try await copy.run() == 1)
        #expect(one.state == .ready)
        #expect(copy.copy().addDependency(one))
    }

    @Test(.promises("R55"))
    func `R55: a copy runs where the original does: own target, a queue, the default at its creation`()
        async throws
    {
        let own = CountingTarget(to: elsewhere)
        let one = COOperation<Void>(on: own) { $0.finish() }
        let copy = one.copy()
        // The same after a queue has admitted the original: the queue does not become the original's own target.
        let queue = COOperationQueue(on: serialQueue())
        #expect(queue.add(one))
        try await one.value
        try await copy.run()
        #expect(own.submitted.value == 2)

        let admitted = COOperation<Void>(on: own, options: Self.keeping) { $0.finish() }
        #expect(queue.add(admitted))
        try await admitted.value
        try await admitted.copy().run()
        #expect(own.submitted.value == 4)

        let behind = CountingTarget(to: elsewhere)
        let aimed = COOperation<Void>(on: COOperationQueue(on: behind), options: Self.keeping) { $0.finish() }
        try await aimed.run()
        try await aimed.copy().run()
        #expect(behind.submitted.value == 2)

        // The copy of a cascade has the original's target, too, although a queue admitted the original. The original's
        // child runs on the queue's target.
        let steps = CountingTarget(to: elsewhere)
        let cascade = COCascadeOperation(on: steps, options: Self.keeping) { $0.operation {} }
        #expect(queue.add(cascade))
        try await cascade.value
        try await cascade.copy().run()
        #expect(steps.submitted.value == 2)

        let scoped = CountingTarget(to: elsewhere)
        let inScope = COQueues.withDefaultQueue(scoped) { COOperation<Void> { $0.finish() } }
        try await inScope.copy().run()
        #expect(scoped.submitted.value == 1)
    }

    @Test(.promises("R55"))
    func `R55: a copy without its own target runs on the target of its queue`()
        async throws
    {
        let behind = CountingTarget(to: elsewhere)
        let queue = COOperationQueue(on: behind)
        let copy = COOperation<Void> { $0.finish() }.copy()
        #expect(queue.add(copy))
        try await copy.value
        #expect(behind.submitted.value == 1)

        // A composite and its child: two turns.
        let cascade = COCascadeOperation { $0.operation {} }.copy()
        #expect(queue.add(cascade))
        try await cascade.value
        #expect(behind.submitted.value == 3)
        let group = COTransactionalOperation { $0.operation {} }.copy()
        #expect(queue.add(group))
        try await group.value
        #expect(behind.submitted.value == 5)
    }

    @Test(.promises("R55")) func `R55: a copy of a child is no child, and may become one`() async throws {
        let copies = Log<COOperation<Int>>()
        let cascade = cascadeOperation { cascade in
            let step = cascade.operation(returning: Int.self) { attempt in
                copies.add(attempt.operation.copy())
                attempt.finish(1)
            }
            return .value(of: step)
        }
        #expect(try await cascade.value == 1)
        let copy = copies.entries[0]
        let other = cascadeOperation { cascade in .value(of: try cascade.add(copy)) }
        #expect(try await other.value == 1)
        #expect(try await copies.entries[1].run() == 1)
        copies.removeAll()  // breaks a cycle: their blocks hold this log
    }

    @Test func `R55: a copy of a step that takes a value uses the same value`() async throws {
        let copies = Log<COOperation<Int>>()
        let cascade = cascadeOperation { cascade in
            let first = cascade.operation { 20 }
            let kept = OperationOptions(keepsBlock: true)
            let second = cascade.operation(using: first, options: kept) { value in value + 1 }
            copies.add(second.copy())
            cascade.operation { copies.add(second.copy()) }
        }
        #expect(await cascade.outcome.isFinished)
        for copy in copies.entries { #expect(try await copy.run() == 21) }
        #expect(copies.entries.count == 2)
    }

    @Test func `R55: a copy of a step fails if the step that supplies its value has not finished`() async {
        let copies = Log<COOperation<Int>>()
        let cascade = cascadeOperation { cascade in
            let first = cascade.operation { 20 }
            copies.add(cascade.operation(using: first) { value in value + 1 }.copy())
            copies.add(cascade.operation(using: first) { value async in value + 1 }.copy())
            copies.add(
                cascade.operation(using: first, returning: Int.self) { attempt, value in
                    attempt.finish(value + 1)
                }.copy())
            cascade.cancel()
        }
        #expect(await cascade.outcome.isCancelled)
        for copy in copies.entries {
            await #expect(throws: RegistrationError.notAnEarlierStep) { try await copy.run() }
        }
        #expect(copies.entries.count == 3)
    }

    @Test(.promises("R55"))
    func `R55: if the block is not kept, a copy made after the end reports none`() async throws {
        let one = operation { 1 }
        #expect(try await one.value == 1)
        let copy = one.copy()
        #expect(!copy.start())
        #expect(copy.run { $0.finish(2) })
        #expect(try await copy.value == 2)
    }

    @Test(.promises("R55"))
    func `R55: if its block is kept, an ended operation passes its closures to a copy`()
        async throws
    {
        let called = Log<String>()
        let one = COOperation<Int>(options: Self.keeping)
        let runs = Count()
        one.run {
            _ = runs.add() == 1 ? $0.finish(1) : $0.cancel()
        } completion: {
            called.add("completion")
        } cancellation: {
            called.add("cancellation")
        }
        let cascade = COCascade<Void>(options: Self.keeping)
        cascade.run { cascade in
            cascade.operation { $0.cancel() }
        } cancellation: { cascade in
            called.add("decision")
            cascade.cancel()
        }
        await withCheckedContinuation { done in one.onOutcome { _ in done.resume() } }
        await withCheckedContinuation { done in cascade.onOutcome { _ in done.resume() } }
        let copies: [AnyOperation] = [one.copy(), cascade.copy()]
        for copy in copies { #expect(copy.start()) }
        #expect(await eventually { copies.allSatisfy { $0.isEnded } })
        #expect(await eventually { called.entries.count == 4 })
        #expect(called.entries.count { $0 == "decision" } == 2)
        #expect(called.entries.contains("cancellation"))
    }

    @Test(.promises("R55"))
    func `R55: children of a copy's block run where the original's do, wherever copied`()
        async throws
    {
        let other = CountingTarget(to: elsewhere)
        let one = COOperation<Bool> { $0.finish(CODefaultQueue() !== other) }
        let cascade = COCascade<Bool> { cascade in
            .value(of: cascade.operation { CODefaultQueue() !== other })
        }
        let copies = COQueues.withDefaultQueue(other) { (one.copy(), cascade.copy()) }
        #expect(try await copies.0.run())
        #expect(try await copies.1.run())
        #expect(other.submitted.value == 0)
    }

    @Test(.promises("R55")) func `R55: copies made by many threads while the original runs all work`()
        async throws
    {
        let runs = Count()
        let cascade = COCascade<Void>(options: Self.keeping) { cascade in
            for _ in 0..<10 { cascade.operation { _ = runs.add() } }
        }
        let copies = Log<COCascade<Void>>()
        _ = await atOnce(3) { index in
            if index == 0 { cascade.start() }
            for _ in 0..<20 { copies.add(cascade.copy()) }
        }
        try await cascade.value
        for copy in copies.entries { try await copy.run() }
        #expect(runs.value == 610)
    }
}
