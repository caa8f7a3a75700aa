// SuspendTests - gates: how they hold back starts and completions (G26, G27), and how a suspended operation affects its
// queue (G36).

@testable import CompositeOperations
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SuspendTests {
    // MARK: G26

    @Test(.promises("G26"))
    func `an operation that is suspended before its start runs once, when it is resumed`() async throws {
        let runs = Count()
        let one = COOperation<Void> { attempt in
            runs.add()
            attempt.finish()
        }
        #expect(one.suspend() && !one.suspend())
        #expect(one.state == .suspended && one.isSuspended)
        #expect(one.start() && !one.start())
        #expect(one.state == .suspended && one.attempt == 1)
        // When this returns, the target has run everything submitted earlier.
        try await operation {}.value
        #expect(runs.value == 0)
        #expect(one.resume() && !one.resume())
        try await one.value
        #expect(runs.value == 1 && one.numberOfRuns == 1)
        #expect(!one.suspend() && !one.resume())
    }

    @Test(.promises("G26")) func `an operation suspended and resumed with a turn pending begins once`()
        async throws
    {
        for _ in 0..<scaled(300) {
            let runs = Count()
            let group = transactionalOperation { group in
                for _ in 0..<4 { group.operation { runs.add() } }
            }
            _ = await race(2) { _ in
                for _ in 0..<20 {
                    group.suspend()
                    group.resume()
                }
            }
            group.resume()
            try await group.value
            #expect(runs.value == 4)
        }
    }

    @Test(.promises("G26")) func `while a composite is suspended nothing below it begins`() async throws {
        let isCascade = Generator.bool
        await forAll(Generator.zip(isCascade, .int(in: 1...12)), cases: scaled(40)) { isCascade, count in
            let runs = Count()
            let scopes = Mail<any CompositeScope>()
            let group: AnyOperation =
                isCascade
                ? cascadeOperation { scope in Self.fill(scope, count, runs, scopes) }
                : transactionalOperation { scope in Self.fill(scope, count, runs, scopes) }
            _ = await scopes.next()
            while !group.isEnded {
                guard group.suspend() else { break }
                // No block begins from here on. Count those that already had.
                let begun = Self.runs(below: group)
                try await operation {}.value
                let later = Self.runs(below: group)
                // The count shrinks if a finished composite has released its children.
                #expect(later <= begun)
                #expect(group.state == .suspended || group.state == .ending || group.isEnded)
                group.resume()
            }
            #expect(await eventually { group.isEnded })
            #expect(group.isFinished)
            #expect(runs.value == 3 * count)
        }
    }

    private static func fill(
        _ scope: any CompositeScope, _ count: Int, _ runs: Count, _ scopes: Mail<any CompositeScope>
    ) {
        for _ in 0..<count {
            scope.operation { runs.add() }
            scope.cascadeOperation { cascade in
                for _ in 0..<2 { cascade.operation { runs.add() } }
            }
        }
        scopes.send(scope)
    }

    private static func runs(below operation: AnyOperation) -> Int {
        // Each read is under the tree's lock. A block that begins between two reads would be seen by the second.
        let children = (operation as? CompositeOperation<Void>)?.children ?? []
        return children.reduce(operation.numberOfRuns) { $0 + runs(below: $1) }
    }

    @Test(.promises("G26")) func `a cascade suspended during a step starts the next one when it is resumed`()
        async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let cascade = cascadeOperation { cascade in
            for _ in 0..<2 { cascade.operation { tokens.send($0) } }
        }
        let first = await tokens.next()
        #expect(cascade.suspend())
        #expect(first.isSuspended)
        #expect(first.finish(), "what runs may end")
        let second = cascade.children[1]
        #expect(second.state == .suspended && second.attempt == 1)
        try await operation {}.value
        #expect(second.numberOfRuns == 0)
        #expect(cascade.resume())
        let token = await tokens.next()
        #expect(token.operation === second)
        token.finish()
        try await cascade.value
    }

    @Test(.promises("G26")) func `a block begins once each gate above it is open`() async throws {
        let gates = Generator.array(of: .int(in: 0...2), count: 1...20)
        await forAll(gates, cases: scaled(60)) { toggles in
            let inner = COOperation<Void> { $0.finish() }
            let scopes = Mail<Void>()
            let boxes = Log<AnyOperation>()
            let outer = transactionalOperation { outer in
                outer.suspend()
                boxes.add(
                    outer.transactionalOperation { group in
                        try group.add(inner)
                        scopes.send(())
                    })
            }
            #expect(await eventually { outer.isSuspended })
            #expect(outer.resume())
            await scopes.next()
            // The nested block may begin before the call that registers it has returned.
            #expect(await eventually { !boxes.entries.isEmpty })
            let nested = boxes.entries[0]
            let all: [AnyOperation] = [outer, nested, inner]
            // The inner operation may run before the first toggle. Once it has run, it refuses every call.
            var closed: Set<Int> = []
            for index in toggles {
                if closed.contains(index) {
                    if all[index].resume() { closed.remove(index) }
                } else if all[index].suspend() {
                    closed.insert(index)
                }
                let runs = inner.numberOfRuns
                if !closed.isEmpty, runs == 0 {
                    #expect(inner.state == .suspended || inner.state == .ready)
                    #expect(inner.isSuspended)
                }
            }
            for index in closed { #expect(all[index].resume() || all[index].isEnded || index == 2) }
            try await outer.value
            #expect(inner.numberOfRuns == 1)
        }
    }

    @Test(.promises("G26"))
    func `threads that toggle gates in a tree neither lose nor repeat a start`() async throws {
        await forAll(Generator.array(of: .int(in: 0...6), count: 3...40), cases: scaled(60)) { toggles in
            let runs = Slots(count: 6)
            let built = Mail<Void>()
            let nested = Log<AnyOperation>()
            let root = transactionalOperation { root in
                root.suspend()
                for branch in 0..<2 {
                    let cascade = COCascade<Void> { cascade in
                        for leaf in 0..<3 {
                            nested.add(cascade.operation { runs[branch * 3 + leaf] += 1 })
                        }
                    }
                    nested.add(cascade)
                    try root.add(cascade)
                }
                built.send(())
            }
            await built.next()
            _ = await race(3) { thread in
                for (place, toggle) in toggles.enumerated() where place % 3 == thread {
                    let all = [root] + nested.entries
                    let one = all[toggle % all.count]
                    if !one.suspend() { one.resume() }
                }
            }
            let isOpen = await eventually {
                for one in [root] + nested.entries { one.resume() }
                return root.isEnded
            }
            #expect(isOpen && root.isFinished)
            #expect((0..<6).allSatisfy { runs[$0] == 1 })
        }
    }

    @Test(.promises("G26")) func `resume leaves a block in flight alone; restart makes a new attempt of it`()
        async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let group = transactionalOperation { scope in
            scope.operation { tokens.send($0) }
        }
        let first = await tokens.next()
        #expect(group.suspend())
        #expect(group.resume(.continue))
        #expect(first.isCurrent && first.operation.numberOfRuns == 1)
        #expect(group.suspend())
        #expect(group.resume(.restart))
        let second = await tokens.next()
        #expect(second.number == 2 && second.operation === first.operation && !first.isCurrent)
        #expect(group.attempt == 1)
        #expect(!first.finish() && second.finish())
        try await group.value
    }

    @Test(.promises("G26")) func `after a pause ends behind a gate, work resumes when it opens`()
        async throws
    {
        let clock = ManualClock()
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation(options: OperationOptions(clock: clock)) { tokens.send($0) }
        let first = await tokens.next()
        #expect(first.rerun(after: .seconds(5)))
        #expect(one.state == .delayed && one.attempt == 2)
        #expect(one.suspend())
        #expect(one.state == .suspended)
        #expect(await eventually { clock.sleepers == 1 })
        clock.advance(by: .seconds(5))
        #expect(await eventually { one.look { one.machine.phase == .queued } })
        #expect(one.state == .suspended && one.numberOfRuns == 1)
        #expect(one.resume())
        let second = await tokens.next()
        #expect(second.number == 2)
        second.finish()
        try await one.value
        #expect(one.numberOfRuns == 2)
    }

    @Test func `an opened gate resumes its waiters; a cancel makes them throw`() async throws {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation { tokens.send($0) }
        let token = await tokens.next()
        #expect(one.suspend())
        let waiting = Task { try await token.resumed() }
        #expect(one.resume())
        try await waiting.value
        #expect(one.suspend())
        let stopped = Task { try await token.resumed() }
        #expect(one.cancel(CancelReason(.timedOut)))
        let answer = await stopped.result
        #expect(throws: CancelReason.self) { try answer.get() }
        #expect(await one.outcome.isCancelled)
    }

    @Test func `a composite that is awoken while it is suspended goes on when it is resumed`() async throws {
        let runs = Count()
        let asked = Mail<Bool>()
        let cascade = cascadeOperation { cascade in
            cascade.operation {}
            cascade.operation { () throws -> Void in if runs.add() == 1 { throw TestError() } }
        } cancellation: { cascade in
            let answers = [cascade.suspend(), cascade.awake()]
            asked.send(answers == [true, true])
        }
        #expect(await asked.next())
        #expect(await eventually { cascade.state == .suspended })
        try await operation {}.value
        #expect(runs.value == 1 && cascade.attempt == 2)
        #expect(cascade.resume())
        try await cascade.value
        #expect(runs.value == 2)
    }

    // MARK: G27

    @Test(.promises("G27"))
    func `a composite whose children finished while it was suspended completes only on resume`()
        async throws
    {
        let lane = try SerialLane()
        for isCascade in [false, true] {
            let tokens = Mail<COOperation<Void>.Attempt>()
            let completions = Count()
            let group: OperationHandle<Void> =
                isCascade
                ? cascadeOperation(on: lane) {
                    $0.operation(on: lane) { tokens.send($0) }
                } completion: {
                    completions.add()
                }
                : transactionalOperation(on: lane) {
                    $0.operation(on: lane) { tokens.send($0) }
                } completion: {
                    completions.add()
                }
            let token = await tokens.next()
            #expect(group.suspend())
            #expect(token.finish())
            #expect(token.operation.isFinished)
            try await operation {}.value
            #expect(group.state == .suspended && group.result == nil && completions.value == 0)
            #expect(group.resume())
            #expect(group.isFinished, "nothing else was missing")
            try await group.value
            #expect(await eventually { completions.value == 1 })
        }
    }

    @Test(.promises("G27")) func `the gate of an outer composite holds inner completions too`()
        async throws
    {
        let tokens = Mail<COOperation<Void>.Attempt>()
        let cascade = cascadeOperation { cascade in
            cascade.transactionalOperation { $0.cascadeOperation { $0.operation { tokens.send($0) } } }
        }
        let token = await tokens.next()
        let inner = cascade.children[0]
        #expect(cascade.suspend())
        #expect(token.finish())
        try await operation {}.value
        #expect(inner.state == .suspended && cascade.state == .suspended && cascade.result == nil)
        #expect(cascade.resume())
        try await cascade.value
        #expect(inner.isFinished)
    }

    @Test(.promises("G27"))
    func `a cascade suspended in its last step, and one suspended while empty, complete on resume`()
        async throws
    {
        let scopes = Mail<Void>()
        let empty = cascadeOperation { scope in
            scope.suspend()
            scopes.send(())
        }
        await scopes.next()
        try await operation {}.value
        #expect(await eventually { empty.state == .suspended })
        #expect(empty.result == nil)
        #expect(empty.resume())
        try await empty.value
    }

    @Test(.promises("G27")) func `a resume that races with the last child's end completes once`() async throws
    {
        for _ in 0..<scaled(300) {
            let tokens = Mail<COOperation<Void>.Attempt>()
            let completions = Count()
            let group = transactionalOperation { scope in
                for _ in 0..<2 { scope.operation { tokens.send($0) } }
            } completion: {
                completions.add()
            }
            let (one, two) = (await tokens.next(), await tokens.next())
            group.suspend()
            let answers = await race(3) { [one.finish, two.finish, { group.resume() }][$0]() }
            #expect(answers == [true, true, true])
            try await group.value
            #expect(await eventually { completions.value > 0 })
            #expect(completions.value == 1)
        }
    }

    // MARK: Cancel

    @Test func `cancel wins over a closed gate: one outcome, and no later start`() async throws {
        let runs = Count()
        let group = COTransaction<Void> { $0.operation { runs.add() } }
        group.suspend()
        group.start()
        #expect(group.cancel())
        #expect(await group.outcome.isCancelled)
        #expect(!group.resume() && !group.isSuspended)
        try await operation {}.value
        #expect(runs.value == 0 && group.numberOfRuns == 0)
    }

    // MARK: G36

    @Test(.promises("G36")) func `a leaf that is suspended after its block has left gives its slot back`()
        async throws
    {
        let queue = COOperationQueue(runningLimit: 1)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation(on: queue) { tokens.send($0) }
        let token = await tokens.next()
        let two = operation(on: queue) { 2 }
        #expect(await eventually { one.tree.contains("returned without an end") })
        #expect(two.numberOfRuns == 0)
        #expect(token.suspend())
        #expect(try await two.value == 2)
        #expect(token.isCurrent && one.state == .suspended)
        #expect(token.resume())
        #expect(token.finish())
        try await one.value
        await queue.idle()
    }

    @Test(.promises("G36")) func `a suspended leaf keeps its slot if its queue says so`() async throws {
        let queue = COOperationQueue(runningLimit: 1, slots: .holdWhileSuspended)
        let tokens = Mail<COOperation<Void>.Attempt>()
        let one = operation(on: queue) { tokens.send($0) }
        let token = await tokens.next()
        let two = operation(on: queue) { 2 }
        #expect(token.suspend())
        try await operation {}.value
        #expect(two.numberOfRuns == 0 && queue.runningOperations.map(\.id) == [one.id])
        #expect(token.finish())
        #expect(try await two.value == 2)
        await queue.idle()
    }

    @Test(.promises("G36"))
    func `suspended between admission and start: neither the slot nor the start is lost`() async throws {
        for _ in 0..<scaled(60) {
            // The target runs nothing until the test releases its work.
            let target = StoppedTarget()
            let queue = COOperationQueue(runningLimit: 1, on: target)
            let (first, second) = (Count(), Count())
            let one = operation(on: queue) { first.add() }
            let two = operation(on: queue) { second.add() }
            #expect(queue.runningOperations.map(\.id) == [one.id])
            #expect(one.suspend())
            target.release()
            try await withEventualRelease(of: target) { _ = try await two.value }
            #expect(first.value == 0 && one.numberOfRuns == 0)
            #expect(one.resume())
            try await withEventualRelease(of: target) { _ = try await one.value }
            #expect(first.value == 1 && second.value == 1)
            await queue.idle()
            #expect(queue.operationCount == 0)
        }
    }

    private func withEventualRelease(of target: StoppedTarget, _ body: () async throws -> Void) async throws {
        target.open()
        defer { target.close() }
        try await body()
    }

    @Test(.promises("G36"))
    func `operations suspended and resumed at random eventually leave a queue of few slots`()
        async throws
    {
        let plan = Generator.zip(.int(in: 1...3), .array(of: .int(in: 0...11), count: 0...60))
        await forAll(plan, cases: scaled(60)) { limit, toggles in
            let queue = COOperationQueue(runningLimit: limit)
            let runs = Slots(count: 12)
            let all = (0..<12).map { index in
                COOperation<Void> { attempt in
                    runs[index] += 1
                    attempt.finish()
                }
            }
            _ = await race(3) { thread in
                if thread == 0 {
                    for one in all { queue.add(one) }
                } else {
                    for (place, index) in toggles.enumerated() where place % 2 == thread - 1 {
                        if !all[index].suspend() { all[index].resume() }
                    }
                }
            }
            for one in all { one.resume() }
            for one in all { _ = await one.outcome }
            #expect((0..<12).allSatisfy { runs[$0] == 1 })
            await queue.idle()
            #expect(queue.operationCount == 0 && queue.runningOperations.isEmpty)
        }
    }
}

/// A target that holds its work until the work is released, or the target is opened.
private final class StoppedTarget: ExecutionTarget {
    private let held = Locked<(work: [ExecutionWork], isOpen: Bool)>(([], false))

    func submit(_ work: ExecutionWork) {
        let isOpen = held.withLock { held in
            if !held.isOpen { held.work.append(work) }
            return held.isOpen
        }
        if isOpen { elsewhere.async { work.run() } }
    }

    var isCurrent: Bool { false }

    func release() {
        let work = held.withLock { held in
            defer { held.work = [] }
            return held.work
        }
        for piece in work { elsewhere.async { piece.run() } }
    }

    func open() {
        held.withLock { $0.isOpen = true }
        release()
    }

    func close() { held.withLock { $0.isOpen = false } }
}
