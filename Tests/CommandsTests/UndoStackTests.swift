// The undo stack: against a pure model, and case by case.

import Commands
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct UndoStackTests {
    /// The state that the stack's commands change.
    struct Page: Hashable, Sendable {
        var text: [Int] = []
        var offset = 0
    }

    private struct Write: UndoableCommand {
        let number: Int
        let page: Locked<Page>
        var fails = false
        func perform(_ context: CommandContext) async throws -> Performed<Void, [Int]> {
            if fails { throw TestError() }
            return page.withLock { page in
                defer { page.text.append(number) }
                return Performed(undo: page.text)
            }
        }
        func undo(_ undo: [Int], _ context: CommandContext) async throws { page.withLock { $0.text = undo } }
    }

    private struct Move: MergeableCommand {
        let distance: Int
        let page: Locked<Page>
        func perform(_ context: CommandContext) async throws -> Performed<Void, Int> {
            page.withLock { $0.offset += distance }
            return Performed(undo: distance)
        }
        func undo(_ undo: Int, _ context: CommandContext) async throws { page.withLock { $0.offset -= undo } }
        func merging(_ undo: Int, after earlier: Move, _ earlierUndo: Int) -> Merge<Move, Int> {
            let sum = undo + earlierUndo
            if sum == 0 { return .dropBoth }
            return abs(sum) > 4 ? .keepBoth : .replace(Move(distance: sum, page: page), sum)
        }
    }

    enum Call: Sendable {
        case write(Int, key: Int?)
        case failingWrite
        case move(Int)
        case undo
        case redo
        case group([Int], fails: Bool, keeps: Bool)
        case markClean
        case clear
        case wait

        static let generator = Generator<Call>.frequency([
            (
                6,
                Generator<Int>.int(in: 0...99).map { number in
                    .write(number, key: number % 3 == 0 ? nil : number % 3)
                }
            ),
            (1, Generator<Int>.int(in: 0...0).map { _ in .failingWrite }),
            (4, Generator<Int>.int(in: -2...2).map { .move($0 == 0 ? 3 : $0) }),
            (5, Generator<Int>.int(in: 0...0).map { _ in .undo }),
            (4, Generator<Int>.int(in: 0...0).map { _ in .redo }),
            (
                2,
                Generator<(Int, [Int])>.zip(.int(in: 0...5), .array(of: .int(in: 0...9), count: 0...3)).map {
                    .group($1, fails: $0 % 3 == 0, keeps: $0 > 2)
                }
            ),
            (1, Generator<Int>.int(in: 0...0).map { _ in .markClean }),
            (1, Generator<Int>.int(in: 0...9).map { $0 == 0 ? .clear : .wait }),
        ])
    }

    /// A stack as a list of pages, without commands or proofs. Each page that the stack was on has a number.
    private struct Model {
        struct Step {
            var before: (Page, Int)
            var after: (Page, Int)
            var key: Int?
            var time: Int
            var distance: Int?
        }

        let limit: Int
        var now: (Page, Int) = (Page(), 0)
        var last = 0
        var steps: [Step] = []
        var index = 0
        var clean = 0
        var canMerge = false
        var time = 0

        mutating func change(
            _ key: Int?, distance: Int? = nil, isGroup: Bool = false, _ body: (inout Page) -> Void
        ) {
            let before = now
            body(&now.0)
            last += 1
            now.1 = last
            steps.removeLast(steps.count - index)
            let couldMerge = canMerge
            canMerge = !isGroup
            if couldMerge, !isGroup, before.1 != clean, let step = steps.last {
                if let distance, let former = step.distance {
                    if distance + former == 0 {
                        now = (now.0, step.before.1)
                        steps.removeLast()
                        index -= 1
                        canMerge = false
                        return
                    }
                    if abs(distance + former) <= 4 {
                        steps[index - 1].distance = distance + former
                        steps[index - 1].after = now
                        steps[index - 1].time = time
                        return
                    }
                }
                if let key, step.key == key, time - step.time <= 1 {
                    steps[index - 1].after = now
                    steps[index - 1].time = time
                    steps[index - 1].distance = nil
                    return
                }
            }
            steps.append(Step(before: before, after: now, key: key, time: time, distance: distance))
            index += 1
            if steps.count > limit {
                steps.removeFirst()
                index -= 1
            }
        }

        mutating func apply(_ call: Call) {
            switch call {
            case .write(let number, let key): change(key) { $0.text.append(number) }
            case .failingWrite: break
            case .move(let distance): change(nil, distance: distance) { $0.offset += distance }
            case .undo where index > 0:
                index -= 1
                now = steps[index].before
                canMerge = false
            case .redo where index < steps.count:
                now = steps[index].after
                index += 1
                canMerge = false
            case .group(let numbers, let fails, let keeps):
                if numbers.isEmpty || (fails && !keeps) { return }
                change(nil, isGroup: true) { $0.text += numbers }
            case .markClean: clean = now.1
            case .clear:
                steps = []
                index = 0
                canMerge = false
            case .wait: time += 2
            case .undo, .redo: break
            }
        }
    }

    @Test(.promises("S8", "B9"), arguments: [2, 5, 100])
    func `S8: a stack matches the model, with merging, groups, limit and clean mark`(limit: Int) async {
        await forAll(.array(of: Call.generator, count: 0...40), cases: 250) { calls in
            let clock = StepClock()
            let page = Locked(Page())
            let stack = UndoStack(limit: limit, mergeWindow: .seconds(1), clock: clock)
            var model = Model(limit: limit)
            for call in calls {
                switch call {
                case .write(let number, let key):
                    try await stack.perform(Write(number: number, page: page), mergeKey: key)
                case .failingWrite:
                    await #expect(throws: TestError()) {
                        try await stack.perform(Write(number: 0, page: page, fails: true))
                    }
                case .move(let distance): try await stack.perform(Move(distance: distance, page: page))
                case .undo: #expect(try await stack.undo() == (model.index > 0))
                case .redo: #expect(try await stack.redo() == (model.index < model.steps.count))
                case .group(let numbers, let fails, let keeps):
                    do {
                        try await stack.group(onFailure: keeps ? .keep : .rollBack) {
                            for number in numbers {
                                try await stack.perform(Write(number: number, page: page))
                            }
                            if fails { throw TestError() }
                        }
                        #expect(!fails)
                    } catch {
                        #expect(fails && error as? TestError == TestError())
                    }
                case .markClean: stack.markClean()
                case .clear: stack.removeAll()
                case .wait: clock.advance(by: .seconds(2))
                }
                model.apply(call)
                #expect(page.withLock { $0 } == model.now.0)
                #expect(stack.index == model.index && stack.count == model.steps.count)
                #expect(stack.canUndo == (model.index > 0))
                #expect(stack.canRedo == (model.index < model.steps.count))
                #expect(stack.isClean == (model.now.1 == model.clean))
            }
        }
    }

    @Test(.promises("S9")) func `S9: undos issued before the first ends undo as many steps, in order`()
        async throws
    {
        try await quickUndos()
    }

    @MainActor
    private func quickUndos() async throws {
        let stack = UndoStack()
        let log = Log<Int>()
        for number in 0..<6 {
            try await stack.perform(
                UndoableClosure { _ in
                } undo: { _ in
                    await Task.yield()
                    log.add(number)
                })
        }
        var calls: [Task<Bool, any Error>] = []
        for _ in 0..<8 { calls.append(Task { try await stack.undo() }) }
        var answers: [Bool] = []
        for call in calls { answers.append(try await call.value) }
        #expect(answers == [true, true, true, true, true, true, false, false])
        #expect(log.entries == [5, 4, 3, 2, 1, 0])
    }

    @Test(.promises("B9")) @MainActor
    func `a waiting call can be cancelled, and one that has begun is finished`()
        async throws
    {
        let stack = UndoStack()
        let begun = Mail<Void>()
        let goOn = Mail<Void>()
        let log = Log<String>()
        try await stack.perform(
            UndoableClosure { _ in
            } undo: { _ in
                log.add("undo 0")
            })
        try await stack.perform(
            UndoableClosure { _ in
            } undo: { context in
                begun.send(())
                await goOn.next()
                #expect(!Task.isCancelled && !context.isCancelled)
                log.add("undo 1")
            })
        let first = Task { try await stack.undo() }
        await begun.next()
        #expect(stack.isBusy)
        let second = Task { try await stack.undo() }
        await Task.yield()
        second.cancel()
        first.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        goOn.send(())
        #expect(try await first.value)
        #expect(log.entries == ["undo 1"])
        #expect(stack.index == 1 && !stack.isBusy)
    }

    @Test(.promises("B9")) @MainActor
    func `any number of calls may wait and be cancelled, at the same cost each`()
        async throws
    {
        let stack = UndoStack()
        let begun = Mail<Void>()
        let goOn = Mail<Void>()
        let running = Task { @MainActor in
            try await stack.perform(
                UndoableClosure { (_: CommandContext) in
                    begun.send(())
                    await goOn.next()
                } undo: { _ in
                })
        }
        await begun.next()
        let calls = (0..<20_000).map { _ in Task { @MainActor in try await stack.undo() } }
        await Task.yield()
        for call in calls.dropFirst(2).reversed() { call.cancel() }
        goOn.send(())
        try await running.value
        var answers: [Bool] = []
        for call in calls { if let answer = try? await call.value { answers.append(answer) } }
        #expect(answers == [true, false])
        #expect(!stack.isBusy)
    }

    @Test(.promises("B9"), arguments: [false, true]) @MainActor
    func `a task left behind by a step is not the step's, wherever in memory it is`(byUndo: Bool)
        async throws
    {
        let stack = UndoStack()
        let goOn = Mail<Void>()
        let answer = Mail<Int>()
        @MainActor func call(leavesTask: Bool) -> Task<Bool, Never> {
            Task { @MainActor in
                do {
                    try await stack.perform(
                        UndoableClosure { @MainActor (_: CommandContext) in
                            if leavesTask, !byUndo { Task { @MainActor in answer.send(await callOften()) } }
                        } undo: { @MainActor _ in
                            if leavesTask { Task { @MainActor in answer.send(await callOften()) } }
                        })
                    return true
                } catch { return false }
            }
        }
        // One of these tasks may be allocated at the address of the step's former task.
        @MainActor func callOften() async -> Int {
            await goOn.next()
            var refused = 0
            let calls = (0..<500).map { _ in call(leavesTask: false) }
            for call in calls where await !call.value { refused += 1 }
            return refused
        }
        for _ in 0..<20 {
            #expect(await call(leavesTask: true).value)
            if byUndo { try await stack.undo() }
            goOn.send(())
            #expect(await answer.next() == 0)
        }
        stack.removeAll()  // its steps retain it
    }

    @Test(.promises("B9")) @MainActor
    func `a task begun and awaited by a group or step is refused instead of waiting for both`()
        async throws
    {
        let stack = UndoStack()
        let calls = StackCalls(stack)
        let answers = Log<CommandUsageError?>()
        @Sendable func callFromOutside() async {
            await Task { @MainActor in
                do { try await calls.perform() } catch { answers.add(error as? CommandUsageError) }
                do { try await calls.group() } catch { answers.add(error as? CommandUsageError) }
            }.value
        }
        try await stack.group { await callFromOutside() }
        try await stack.perform(
            UndoableClosure { (_: CommandContext) in
                await callFromOutside()
            } undo: { _ in
            })
        #expect(answers.entries == [.reentrant, .reentrant, .reentrant, .reentrant])
        // Also from inside a step of another stack, whether that step is still running or has ended.
        let other = StackCalls(UndoStack())
        try await stack.group {
            await Task { @MainActor in
                let command = UndoableClosure { (_: CommandContext) in
                    await callFromOutside()
                } undo: { _ in
                }
                do { try await other.perform(command) } catch { answers.add(nil) }
                let left = Locked<Task<Void, Never>?>(nil)
                let leaves = UndoableClosure { (_: CommandContext) in
                    left.withLock { $0 = Task { await callFromOutside() } }
                } undo: { _ in
                }
                do { try await other.perform(leaves) } catch { answers.add(nil) }
                await left.withLock { $0 }?.value
            }.value
        }
        #expect(answers.entries == Array(repeating: .reentrant, count: 8))
        // A detached task inherits nothing, and waits its turn. A task that was begun in the group, but calls only after
        // the group has ended, is treated like any other caller.
        let goOn = Mail<Void>()
        let (waiting, late) = try await stack.group {
            let waiting = Task.detached { try await calls.perform() }
            let late = Task {
                await goOn.next()
                try await calls.perform()
            }
            try await calls.perform()
            return (waiting, late)
        }
        try await waiting.value
        // The late call waits like any other.
        let held = Held()
        let running = Task { @MainActor in try await stack.perform(IrreversibleCommand(held, because: "test"))
        }
        await held.begun.next()
        let before = calls.waiting
        goOn.send(())
        while calls.waiting == before { await Task.yield() }
        held.release()
        try await running.value
        try await late.value
        #expect(stack.count == 5)
        stack.removeAll()  // its steps retain it
    }

    @Test(.promises("B9")) @MainActor func `a call from inside a running step is refused`() async throws {
        let stack = UndoStack()
        let answers = Log<CommandUsageError?>()
        let reentrant = UndoableClosure { @MainActor (_: CommandContext) in
            do { try await stack.undo() } catch { answers.add(error as? CommandUsageError) }
            do { try stack.undoNow() } catch { answers.add(error as? CommandUsageError) }
        } undo: { @MainActor _ in
            do { try await stack.redo() } catch { answers.add(error as? CommandUsageError) }
            do { try stack.redoNow() } catch { answers.add(error as? CommandUsageError) }
        }
        try await stack.perform(reentrant)
        try await stack.undo()
        #expect(answers.entries == [.reentrant, .reentrant, .reentrant, .reentrant])
        #expect(stack.count == 1 && stack.index == 0)
        try stack.register(
            undo: {}, redo: { answers.add((try? stack.undoNow()) == nil ? .reentrant : nil) })
        try stack.undoNow()
        try stack.redoNow()
        #expect(answers.entries.last == .some(.reentrant))
        stack.removeAll()  // its steps retain it
    }

    @Test func `a mark inside a group is reached only where the group begins or ends`()
        async throws
    {
        let receiver = Locked<[Int]>([])
        func change(_ number: Int) -> Append { Append(number: number, receiver: receiver) }
        // How many of the two changes precede the mark, and whether the stack is clean after the group, its undo, and its
        // redo.
        let ends: [(Int, [Bool])] = [
            (0, [false, true, false]), (1, [false, false, false]), (2, [true, false, true]),
        ]
        for (count, isClean) in ends {
            let stack = UndoStack()
            _ = try await stack.perform(change(0))
            try await stack.group {
                #expect(!stack.isClean)
                for number in 1...2 {
                    if number == count + 1 { stack.markClean() }
                    #expect(stack.isClean == (number == count + 1))
                    _ = try await stack.perform(change(number))
                }
                if count == 2 { stack.markClean() }
                #expect(stack.isClean == (count == 2))
            }
            var seen = [stack.isClean]
            try await stack.undo()
            seen.append(stack.isClean)
            try await stack.redo()
            seen.append(stack.isClean)
            #expect(seen == isClean, "\(count)")
            #expect((stack.cleanIndex == nil) == (count == 1))
        }
    }

    @Test func `a mark of rolled-back or running changes is void`() async throws {
        let receiver = Locked<[Int]>([])
        let stack = UndoStack()
        try await stack.group {
            _ = try await stack.perform(Append(number: 1, receiver: receiver))
            await #expect(throws: TestError.self) {
                try await stack.group {
                    _ = try await stack.perform(Append(number: 2, receiver: receiver))
                    stack.markClean()
                    #expect(stack.isClean)
                    throw TestError()
                }
            }
            #expect(!stack.isClean)
            _ = try await stack.perform(Append(number: 3, receiver: receiver))
            #expect(!stack.isClean)
        }
        #expect(!stack.isClean && stack.cleanIndex == nil)
        stack.markClean()
        await #expect(throws: TestError.self) {
            try await stack.group {
                _ = try await stack.perform(Append(number: 3, receiver: receiver))
                stack.markClean()
                _ = try await stack.perform(Append(number: 4, receiver: receiver, failsToUndo: true))
                throw TestError()
            }
        }
        #expect(stack.isBroken && !stack.isClean && stack.cleanIndex == nil)
        stack.removeAll()
        stack.markClean()
        #expect(stack.isClean)
    }

    @Test @MainActor func `a mark made while a command runs is void`() async throws {
        let stack = UndoStack()
        let marking = UndoableClosure { @MainActor (_: CommandContext) in
            stack.markClean()
        } undo: { @MainActor _ in
        }
        try await stack.perform(marking)
        #expect(!stack.isClean && stack.cleanIndex == nil)
        stack.markClean()
        try await stack.group {
            try await stack.perform(marking)
            #expect(!stack.isClean)
        }
        #expect(!stack.isClean && stack.cleanIndex == nil)
        stack.removeAll()  // its steps retain it
    }

    @Test func `a run with a mapped error breaks the stack if its compensation was incomplete`() async {
        struct Mapped: Error {}
        let receiver = Locked<[Int]>([])
        let stack = UndoStack()
        let run = TransactionCommand(
            commands: [
                Append(number: 1, receiver: receiver, failsToUndo: true),
                Append(number: 2, receiver: receiver, failsToPerform: true),
            ], options: TransactionOptions(mapError: { _ in Mapped() }))
        do { try await stack.perform(run) } catch {
            let failure = error as? TransactionFailure
            #expect(failure?.rollback == .incomplete && failure?.cause is Mapped)
        }
        #expect(stack.isBroken && receiver.withLock { $0 } == [1])
    }

    @Test @MainActor func `a step in a group in a command belongs to all three`() async {
        let invoker = SerialInvoker(), answers = Log<CommandUsageError?>()
        let outcome = await invoker.submit(
            ClosureCommand { @MainActor in
                let stack = UndoStack()
                try await stack.group {
                    do { try await stack.undo() } catch { answers.add(error as? CommandUsageError) }
                    try await stack.perform(
                        UndoableClosure { @MainActor (_: CommandContext) in
                            do { try await stack.undo() } catch { answers.add(error as? CommandUsageError) }
                            do { try await invoker.flush() } catch {
                                answers.add(error as? CommandUsageError)
                            }
                        } undo: { _ in
                        })
                }
                stack.removeAll()  // its step retains it
            }
        ).outcome
        #expect(outcome.isFinished)
        #expect(answers.entries == [.busy, .reentrant, .reentrant])
    }

    @Test func `a group is one step, inner groups join, and a failing inner one undoes its own part`()
        async throws
    {
        let page = Locked(Page())
        let stack = UndoStack()
        try await stack.group("Outer") {
            try await stack.perform(Write(number: 1, page: page))
            _ = try? await stack.group("Inner") {
                try await stack.perform(Write(number: 2, page: page))
                throw TestError()
            }
            try await stack.group("Inner") { try await stack.perform(Write(number: 3, page: page)) }
            await #expect(throws: CommandUsageError.busy) { try await stack.undo() }
        }
        #expect(page.withLock { $0.text } == [1, 3])
        #expect(stack.count == 1 && stack.undoName == "Outer")
        try await stack.undo()
        #expect(page.withLock { $0.text } == [])
        #expect(stack.redoName == "Outer")
        try await stack.redo()
        #expect(page.withLock { $0.text } == [1, 3])
    }

    @Test @MainActor func `a group runs in its stack's isolation, and includes registered changes`()
        async throws
    {
        let stack = UndoStack()
        var value = 0
        func add(_ number: Int) throws {
            value += number
            try stack.register(
                undo: {
                    MainActor.assertIsolated()
                    value -= number
                },
                redo: {
                    MainActor.assertIsolated()
                    value += number
                })
        }
        try await stack.group("Twice") {
            MainActor.assertIsolated()
            try add(1)
            await Task.yield()
            try add(2)
        }
        #expect(stack.count == 1 && value == 3)
        try await stack.undo()
        #expect(value == 0)
        try await stack.redo()
        #expect(value == 3)
        try stack.undoNow()
        #expect(value == 0)
        await #expect(throws: TestError()) {
            try await stack.group(onFailure: .keep) {
                try add(5)
                throw TestError()
            }
        }
        #expect(value == 5 && stack.count == 1 && stack.index == 1)
    }

    @Test func `an unrecorded change leaves no step, and keeps the redo steps`() async throws {
        let page = Locked(Page())
        let stack = UndoStack()
        try await stack.perform(Write(number: 1, page: page))
        try await stack.undo()
        try await stack.perform(Move(distance: 1, page: page), recording: .none)
        #expect(stack.count == 1 && stack.canRedo)
        try await stack.perform(Move(distance: 1, page: page))
        #expect(stack.count == 1 && !stack.canRedo)
    }

    @Test(.promises("B9")) func `an undo that fails breaks the stack, or clears it`() async throws {
        for policy in [UndoStack.FailedUndo.breaks, .clears] {
            let stack = UndoStack(onFailedUndo: policy)
            try await stack.perform(
                UndoableClosure { _ in
                } undo: { _ in
                })
            try await stack.perform(
                UndoableClosure { _ in
                } undo: { _ in
                    throw TestError()
                })
            await #expect(throws: TestError()) { try await stack.undo() }
            if policy == .breaks {
                #expect(stack.isBroken && !stack.canUndo && !stack.canRedo)
                await #expect(throws: CommandUsageError.broken) { try await stack.redo() }
                await #expect(throws: CommandUsageError.broken) {
                    try await stack.perform(
                        UndoableClosure { _ in
                        } undo: { _ in
                        })
                }
                #expect(throws: CommandUsageError.broken) { try stack.undoNow() }
                stack.removeAll()
            }
            #expect(!stack.isBroken && stack.isEmptyForTests)
            try await stack.perform(
                UndoableClosure { _ in
                } undo: { _ in
                })
            #expect(try await stack.undo())
        }
    }

    @Test func `an undo that fails inside groups empties them; their later changes are a step`()
        async throws
    {
        for isOuterKept in [true, false] {
            let page = Locked(Page())
            let stack = UndoStack(onFailedUndo: .clears)
            try await stack.perform(Write(number: 0, page: page))
            let outer: Void? = try? await stack.group(onFailure: isOuterKept ? .keep : .rollBack) {
                try await stack.perform(Write(number: 1, page: page))
                let inner: Void? = try? await stack.group {
                    try await stack.perform(Write(number: 2, page: page))
                    try await stack.group {
                        try await stack.perform(
                            UndoableClosure { _ in
                            } undo: { _ in
                                throw TestError()
                            })
                        throw TestError()
                    }
                }
                #expect(inner == nil && stack.isEmptyForTests)
                try await stack.perform(Write(number: 3, page: page))
                throw TestError()
            }
            #expect(outer == nil && !stack.isBroken && !stack.isClean)
            #expect(page.withLock { $0.text } == (isOuterKept ? [0, 1, 2, 3] : [0, 1, 2]))
            let isUndone = try await stack.undo()
            #expect(isUndone == isOuterKept && !stack.canUndo)
            #expect(page.withLock { $0.text } == [0, 1, 2])
        }
    }

    @Test(.promises("B9"))
    func `a step with a key counts from its last change, whether that had a key or not`() async throws {
        let clock = StepClock(), page = Locked(Page())
        let stack = UndoStack(mergeWindow: .seconds(1), clock: clock)
        clock.advance(by: .seconds(10))
        try await stack.perform(Move(distance: 1, page: page), mergeKey: "key")
        clock.advance(by: .milliseconds(900))
        try await stack.perform(Move(distance: 1, page: page))
        clock.advance(by: .milliseconds(900))
        try await stack.perform(Write(number: 1, page: page), mergeKey: "key")
        #expect(stack.count == 1)
        clock.advance(by: .milliseconds(1100))
        try await stack.perform(Write(number: 2, page: page), mergeKey: "key")
        #expect(stack.count == 2)
    }

    @Test(.promises("B9")) func `changes that cancel out permit no merge across an undo or a group's edge`()
        async throws
    {
        let page = Locked(Page())
        let stack = UndoStack()
        try await stack.group { try await stack.perform(Move(distance: 1, page: page)) }
        try await stack.perform(Move(distance: 2, page: page))
        try await stack.perform(Move(distance: -2, page: page))
        try await stack.perform(Move(distance: 3, page: page))
        #expect(stack.count == 2)
        try await stack.undo()
        try await stack.redo()
        try await stack.perform(Move(distance: 2, page: page))
        try await stack.perform(Move(distance: -2, page: page))
        try await stack.perform(Move(distance: 1, page: page))
        #expect(stack.count == 3)
        for offset in [4, 1, 0] {
            try await stack.undo()
            #expect(page.withLock { $0.offset } == offset)
        }
    }

    @Test(.promises("B9")) func `after a failed undo nothing is clean, before or after forgetting all`()
        async throws
    {
        for policy in [UndoStack.FailedUndo.breaks, .clears] {
            let page = Locked(Page())
            let stack = UndoStack(onFailedUndo: policy)
            try await stack.group("Both") {
                try await stack.perform(
                    UndoableClosure { _ in
                    } undo: { _ in
                        throw TestError()
                    })
                try await stack.perform(Write(number: 1, page: page))
            }
            stack.markClean()
            // The page is as before, although the group was not undone.
            await #expect(throws: TestError()) { try await stack.undo() }
            #expect(page.withLock { $0.text } == [])
            #expect(!stack.isClean && stack.cleanIndex == nil)
            stack.removeAll()
            #expect(!stack.isClean)
            stack.markClean()
            #expect(stack.isClean)
        }
    }

    @Test(.promises("C10")) func `C10: where an irreversible one stays, nothing is clean`() async throws {
        let sent = Count()
        let send = IrreversibleCommand(ClosureCommand { _ = sent.add() }, because: "sent")
        let plain = TransactionCommand(ClosureCommand { _ = sent.add() })
        let macro = MacroCommand([Write(number: 1, page: Locked(Page())), send])
        for isFirst in [true, false] {
            for one in [send, plain, macro] as [any UndoableCommand] {
                func perform<C: UndoableCommand>(_ command: C, _ stack: UndoStack) async throws {
                    if isFirst {
                        _ = try await stack.perform(command)
                        return
                    }
                    // In a group that is rolled back.
                    await #expect(throws: TestError.self) {
                        try await stack.group {
                            stack.markClean()
                            _ = try await stack.perform(command)
                            throw TestError()
                        }
                    }
                }
                let stack = UndoStack()
                try await stack.perform(Write(number: 0, page: Locked(Page())))
                stack.markClean()
                let before = sent.value
                try await perform(one, stack)
                if isFirst { #expect(try await stack.undo()) }
                #expect(stack.index == 1 && sent.value == before + 1)
                #expect(!stack.isClean && stack.cleanIndex == nil)
                stack.markClean()
                #expect(stack.isClean)
            }
        }
    }

    @Test(.promises("C20")) func `C20: a redo replaces the proof, and one that fails changes nothing`()
        async throws
    {
        let fails = Locked(false)
        struct Counter: UndoableCommand {
            let log: Log<String>
            let fails: Locked<Bool>
            func perform(_ context: CommandContext) async throws -> Performed<Void, Int> {
                Performed(undo: 1)
            }
            func undo(_ undo: Int, _ context: CommandContext) async throws { log.add("undo \(undo)") }
            func redo(_ undone: Int, _ context: CommandContext) async throws -> Performed<Void, Int> {
                log.add("redo \(undone)")
                if fails.withLock({ $0 }) { throw TestError() }
                return Performed(undo: undone + 1)
            }
        }
        let log = Log<String>()
        let stack = UndoStack()
        try await stack.perform(Counter(log: log, fails: fails))
        try await stack.undo()
        try await stack.redo()
        try await stack.undo()
        fails.withLock { $0 = true }
        await #expect(throws: TestError()) { try await stack.redo() }
        #expect(stack.canRedo && !stack.isBroken && stack.index == 0)
        fails.withLock { $0 = false }
        try await stack.redo()
        #expect(log.entries == ["undo 1", "redo 1", "undo 2", "redo 2", "redo 2"])
    }

    @Test func `a failing redo of a group undoes what it had redone`() async throws {
        let page = Locked(Page())
        let fails = Locked(false)
        let stack = UndoStack()
        try await stack.group {
            try await stack.perform(Write(number: 1, page: page))
            try await stack.perform(
                UndoableClosure { _ in
                    if fails.withLock({ $0 }) { throw TestError() }
                } undo: { _ in
                })
        }
        try await stack.undo()
        fails.withLock { $0 = true }
        await #expect(throws: TestError()) { try await stack.redo() }
        #expect(page.withLock { $0.text } == [])
        #expect(stack.index == 0 && stack.canRedo)
    }

    @Test func `changes already made are undone and redone at once`() async throws {
        let stack = UndoStack()
        var value = 5
        var changes = 0
        stack.onChange = { changes += 1 }
        try stack.register(name: "Set", undo: { value = 0 }, redo: { value = 5 })
        #expect(stack.undoName == "Set")
        #expect(try stack.undoNow())
        #expect(value == 0)
        #expect(try stack.redoNow())
        #expect(value == 5)
        #expect(try await stack.undo())
        #expect(value == 0)
        #expect(changes == 4)
        #expect(try !stack.undoNow())
        try await stack.perform(
            UndoableClosure { _ in
            } undo: { _ in
            })
        #expect(throws: CommandUsageError.notUndoable) { try stack.undoNow() }
    }

    @Test func `removing a target's steps removes the way to a clean mark beyond them`() async throws {
        let page = Locked(Page())
        let one = Count()
        let other = Count()
        let stack = UndoStack()
        try await stack.perform(Write(number: 1, page: page), name: "1", target: one)
        stack.markClean()
        try await stack.perform(Write(number: 2, page: page), name: "2", target: other)
        try await stack.perform(Move(distance: 1, page: page), name: "3", target: one)
        stack.removeAll(target: other)
        #expect(stack.count == 2 && stack.cleanIndex == nil)
        stack.markClean()
        stack.removeAll(target: one)
        #expect(stack.count == 0 && stack.index == 0 && stack.isClean)
    }

    @Test func `a target's changes are removed from groups, which keep others or end with the last`()
        async throws
    {
        let receiver = Locked<[Int]>([])
        let one = Count()
        let other = Count()
        let stack = UndoStack()
        try await stack.group("both") {
            _ = try await stack.perform(Append(number: 1, receiver: receiver), target: one)
            _ = try await stack.perform(Append(number: 2, receiver: receiver), target: other)
        }
        try await stack.group("one") {
            _ = try await stack.perform(
                Append(number: 3, receiver: receiver, undoability: .noEffect), target: one)
            stack.removeAll(target: other)  // takes effect when the group has ended
        }
        #expect(stack.count == 2 && stack.cleanIndex == nil)
        stack.markClean()
        // The group "both" now holds change 1 alone. Change 2 stays, and does not block the undo of other changes.
        receiver.withLock { $0 = [1] }
        try await stack.undo()
        try await stack.undo()
        #expect(receiver.withLock { $0 } == [])
        try await stack.redo()
        stack.removeAll(target: one)
        #expect(stack.count == 0 && stack.index == 0 && stack.cleanIndex == nil)
    }

    @Test(.promises("B9")) func `changes of two targets do not merge, so each goes with its target`()
        async throws
    {
        let page = Locked(Page())
        let one = Count()
        let other = Count()
        let stack = UndoStack()
        try await stack.perform(Move(distance: 1, page: page), target: one)
        try await stack.perform(Move(distance: 1, page: page), target: one)
        try await stack.perform(Move(distance: 2, page: page), target: other)
        #expect(stack.count == 2)
        stack.removeAll(target: one)
        #expect(stack.count == 1)
        try await stack.undo()
        #expect(page.withLock { $0.offset } == 2 && stack.count == 1)
    }

    /// Calls a closure when deallocated.
    private final class Going {
        private let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
        deinit { body() }
    }

    @Test(.promises("B9"), arguments: [false, true])
    func `a target may forget its changes in its deinit, even while a call runs`(isBusy: Bool)
        async throws
    {
        let stack = UndoStack()
        let kept = Count()
        try stack.register(target: kept, undo: {}, redo: {})
        var target: Leaver? = Leaver(stack)
        try stack.register(target: target, undo: {}, redo: {})
        if isBusy {
            try await stack.group {
                target = nil
                #expect(stack.count == 2)
            }
        } else {
            target = nil
        }
        #expect(stack.count == 1 && target == nil)
        stack.removeAll(target: kept)
        #expect(stack.count == 0)
    }

    /// Removes its changes from the stack when deallocated.
    private final class Leaver {
        private let stack: UndoStack
        init(_ stack: UndoStack) { self.stack = stack }
        deinit { stack.removeAll(target: self) }
    }

    @Test(.promises("B9"), arguments: 0..<5)
    func `objects released by a stack may read it in deinit`(way: Int) async throws {
        let stack = UndoStack(limit: 2)
        let counts = Log<Int>()
        let target = Count()
        func step() throws {
            let going = Going { counts.add(stack.count) }
            try stack.register(target: target, undo: { withExtendedLifetime(going) {} }, redo: {})
        }
        try step()
        switch way {
        case 0: stack.removeAll()
        case 1: stack.removeAll(target: target)
        case 2:
            try stack.undoNow()
            try stack.register(undo: {}, redo: {})
        case 3: for _ in 0..<2 { try stack.register(undo: {}, redo: {}) }
        default:
            try await stack.group {
                try stack.register(undo: {}, redo: {})
                stack.removeAll(target: target)
            }
        }
        #expect(counts.entries == [[0], [0], [1], [2], [1]][way])
    }

    @Test(.promises("B9")) @MainActor func `the work of a command leaves the stack's actor`() async throws {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        defer { DispatchQueue.main.setSpecific(key: key, value: nil) }
        await Task { @MainActor in }.value
        @Sendable func isOnMain() -> Bool { DispatchQueue.getSpecific(key: key) == true }
        #expect(isOnMain())
        let answers = Log<Bool>()
        let stack = UndoStack()
        try await stack.perform(
            UndoableClosure { (_: CommandContext) in
                answers.add(isOnMain())
            } undo: { _ in
                answers.add(isOnMain())
            })
        #expect(isOnMain())
        try await stack.undo()
        #expect(isOnMain())
        try await stack.redo()
        #expect(isOnMain())
        #expect(answers.entries == [false, false, false])
    }

    /// A proof that calls a closure when it is deallocated, on the main thread.
    private final class Proof: Sendable {
        let onEnd: @MainActor @Sendable () -> Void
        init(_ onEnd: @escaping @MainActor @Sendable () -> Void) { self.onEnd = onEnd }
        deinit { MainActor.assumeIsolated { [onEnd] in onEnd() } }
    }

    private struct Proving: UndoableCommand {
        let suspends: Bool
        let onEnd: @MainActor @Sendable () -> Void
        func perform(_ context: CommandContext) async throws -> Performed<Proof, Proof> {
            if suspends { await Task.yield() }
            return Performed(Proof(onEnd), undo: Proof(onEnd))
        }
        func undo(_ undo: Proof, _ context: CommandContext) async throws {}
    }

    private struct ProvingNow: SynchronousUndoableCommand {
        let onEnd: @MainActor @Sendable () -> Void
        func perform(_ context: CommandContext) throws -> Performed<Proof, Proof> {
            Performed(Proof(onEnd), undo: Proof(onEnd))
        }
        func undo(_ undo: Proof, _ context: CommandContext) throws {}
    }

    @Test(.promises("B9"), arguments: 0..<3) @MainActor
    func `a redo releases the former proof and its output in the stack's isolation, outside the step`(
        way: Int
    )
        async throws
    {
        for _ in 0..<50 {
            let stack = UndoStack()
            let answers = Log<CommandUsageError?>()
            let isAsked = Locked(false)
            @MainActor func ask() {
                guard isAsked.withLock({ $0 }) else { return }
                do { try stack.undoNow() } catch { answers.add(error as? CommandUsageError) }
            }
            if way == 2 {
                _ = try await stack.perform(ProvingNow { ask() })
            } else {
                _ = try await stack.perform(Proving(suspends: way == 1) { ask() })
            }
            try await stack.undo()
            isAsked.withLock { $0 = true }
            try await stack.redo()
            isAsked.withLock { $0 = false }
            #expect(answers.entries == [.busy, .busy])
            stack.removeAll()  // its step retains it
        }
    }

    /// Calls a closure when compared.
    private struct Key: Hashable {
        let onComparison: () -> Void
        static func == (left: Key, right: Key) -> Bool {
            left.onComparison()
            return true
        }
        func hash(into hasher: inout Hasher) {}
    }

    @Test(.promises("B9")) func `a merge closure may read the stack`() async throws {
        let page = Locked(Page())
        let stack = UndoStack()
        var counts: [Int] = []
        let key = Key { [unowned stack] in counts.append(stack.count) }
        for number in 0..<3 { try await stack.perform(Write(number: number, page: page), mergeKey: key) }
        #expect(stack.count == 1 && counts == [1, 1])
    }

    @Test func `forgetting all during a call takes effect at its end`() async throws {
        try await forgetsWhileBusy()
    }

    @MainActor
    private func forgetsWhileBusy() async throws {
        let stack = UndoStack()
        let begun = Mail<Void>()
        let goOn = Mail<Void>()
        try await stack.perform(
            UndoableClosure { _ in
            } undo: { _ in
                begun.send(())
                await goOn.next()
            })
        let call = Task { try await stack.undo() }
        await begun.next()
        stack.removeAll()
        #expect(throws: CommandUsageError.busy) { try stack.register(undo: {}, redo: {}) }
        goOn.send(())
        #expect(try await call.value)
        #expect(stack.count == 0)
    }

    @Test func `a transaction command is a step, and runs again when redone`() async throws {
        let receiver = Locked<[Int]>([])
        let stack = UndoStack()
        let command = TransactionCommand(commands: [
            Append(number: 1, receiver: receiver), Append(number: 2, receiver: receiver),
        ])
        try await stack.perform(command)
        try await stack.undo()
        #expect(receiver.withLock { $0 } == [])
        try await stack.redo()
        #expect(receiver.withLock { $0 } == [1, 2])
    }

    @Test func `a stack with a limit takes time for each step once`() async throws {
        let stack = UndoStack(limit: 1_000)
        for _ in 0..<20_000 { try stack.register(undo: {}, redo: {}) }
        #expect(stack.count == 1_000)
        var undone = 0
        while try stack.undoNow() { undone += 1 }
        #expect(undone == 1_000)
    }
}

extension UndoStack {
    fileprivate var isEmptyForTests: Bool { count == 0 && index == 0 }
}
