// ExploredCommandTests.swift - transaction commands, groups and undo stacks in every order of the tasks that execute, undo
// and cancel them.

import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// An undoable command that suspends while it is executed and while it is undone.
private struct Add: UndoableCommand {
    let number: Int
    let numbers: Locked<[Int]>
    var fails = false

    func perform(_ context: CommandContext) async throws -> Performed<Int, Void> {
        await explorationPoint("performs")
        if fails { throw TestError(number: number) }
        numbers.withLock { $0.append(number) }
        await explorationPoint("performed")
        return Performed(number)
    }

    func undo(_ undo: Void, _ context: CommandContext) async throws {
        await explorationPoint("undoes")
        numbers.withLock { numbers in
            if let place = numbers.lastIndex(of: number) {
                numbers.remove(at: place)
            } else {
                numbers.append(-number)
            }
        }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ExploredCommandTests {
    /// The results seen, over all orders.
    private let seen = Locked<Set<String>>([])
    private func see(_ text: String) { seen.withLock { _ = $0.insert(text) } }
    private var all: Set<String> { seen.withLock { $0 } }

    @Test
    func `of concurrent execute calls one runs it, and the delegate is told once`()
        async
    {
        await explore {
            let (numbers, listener) = (Locked<[Int]>([]), Listener())
            let command = TransactionCommand(Add(number: 1, numbers: numbers), delegate: listener)
            let errors = await withTaskGroup(of: (any Error)?.self) { group in
                for _ in 0..<3 { group.addTask { await thrown { _ = try await command.execute() } } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(errors.count { $0 == nil } == 1)
            #expect(errors.count { ($0 as? CommandUsageError) == .alreadyExecuted } == 2)
            #expect(listener.log.entries.count == 1 && numbers.withLock { $0 } == [1])
        }
    }

    @Test func `a run that is cancelled and executed at once has one end`()
        async
    {
        await explore {
            let (numbers, listener) = (Locked<[Int]>([]), Listener())
            let command = TransactionCommand(
                ClosureCommand { (context: CommandContext) async throws in
                    numbers.withLock { $0.append(1) }
                    await explorationPoint("executes")
                    try context.checkCancellation()
                    numbers.withLock { $0.append(2) }
                }, delegate: listener)
            async let isInTime = command.handle.cancel()
            async let executing = thrown { try await command.execute() }
            let error = await executing
            let wasInTime = await isInTime
            let outcome = await command.handle.outcome
            let done = numbers.withLock { $0 }
            switch outcome {
            case .finished: #expect(error == nil && done == [1, 2])
            case .cancelled: #expect(error != nil && done.count < 2 && wasInTime)
            case .failed(let error): Issue.record("\(error)")
            }
            #expect(listener.log.entries.count == 1)
            #expect((listener.log.entries[0].error == nil) == outcome.isFinished)
            see("\(done) \(outcome.isFinished)")
        }
        #expect(all == ["[1, 2] true", "[1] false", "[] false"])
    }

    @Test func `of several in parallel, one of which fails, none stays`() async {
        await explore(departures: 2) {
            let numbers = Locked<[Int]>([])
            let events = Log<String>()
            let options = TransactionOptions(
                order: .parallel(limit: 2),
                observer: { event in
                    switch event {
                    case .finished(let member): events.add("finished \(member)")
                    case .compensated(let member): events.add("compensated \(member)")
                    default: break
                    }
                })
            let command = TransactionCommand(
                commands: [
                    Add(number: 1, numbers: numbers), Add(number: 2, numbers: numbers, fails: true),
                    Add(number: 3, numbers: numbers),
                ], options: options)
            let error = await thrown { try await command.execute() } as? TransactionFailure
            #expect(error?.cause as? TestError == TestError(number: 2) && error?.rollback == .complete)
            #expect(numbers.withLock { $0 } == [])
            let (done, back) = (
                events.entries.filter { $0.hasPrefix("f") }, events.entries.filter { $0.hasPrefix("c") }
            )
            #expect(back.map { $0.suffix(1) } == done.reversed().map { $0.suffix(1) })
            see("\(done)")
        }
        #expect(all.count > 1, "\(all)")
    }

    @Test
    func `of concurrent undo calls one does it, and the others find it busy`()
        async
    {
        await explore(departures: 2) {
            let numbers = Locked<[Int]>([])
            let command = TransactionCommand(Add(number: 1, numbers: numbers))
            _ = try await command.execute()
            async let first = thrown { try await command.undo() }
            async let second = thrown { try await command.undo() }
            async let again = thrown { _ = try await command.execute() }
            let (undone, executed) = ([await first, await second], await again)
            let isThere = numbers.withLock { $0 }
            // Undone once; or twice, if the command was executed in between.
            let count = undone.count { $0 == nil }
            #expect(isThere == (count == (executed == nil ? 2 : 1) ? [] : [1]))
            #expect(count == 1 || count == 2 && executed == nil)
            for error in undone {
                #expect(error == nil || [.busy, .alreadyUndone].contains(error as? CommandUsageError))
            }
            let usage = executed as? CommandUsageError
            #expect(executed == nil || usage == .busy || usage == .alreadyExecuted)
            see("\(count) \(executed == nil)")
        }
        #expect(all.isSuperset(of: ["1 false", "1 true"]), "\(all)")
    }

    @Test func `a group ends once, when it is sealed and all in it have ended`() async {
        await explore(departures: 2) {
            let (numbers, listener) = (Locked<[Int]>([]), Listener())
            let group = TransactionGroup(delegate: listener)
            let runs = (0..<2).map { TransactionCommand(Add(number: $0, numbers: numbers)) }
            let handle = group.handle
            async let cancelling = handle.cancel()
            async let executing: Void = {
                for run in runs { _ = await thrown { _ = try await run.execute() } }
            }()
            for run in runs { group.add(run) }
            group.seal()
            let outcome = await handle.outcome
            for run in runs { #expect(run.handle.result != nil) }
            let all = runs.allSatisfy { $0.handle.result?.isFinished == true }
            #expect(outcome.isFinished == all)
            _ = await (cancelling, executing)
            #expect(listener.log.entries.count == 1)
            see("\(runs.map { $0.handle.result?.isFinished == true })")
        }
        #expect(all.isSuperset(of: ["[true, true]", "[false, false]"]), "\(all)")
    }

    /// A stack, and the state that it changes.
    @MainActor private final class Editor {
        let stack = UndoStack()
        nonisolated let numbers = Locked<[Int]>([])

        func perform(_ number: Int) async throws {
            _ = try await stack.perform(Add(number: number, numbers: numbers))
        }
        @discardableResult func undo() async throws -> Bool { try await stack.undo() }
        @discardableResult func redo() async throws -> Bool { try await stack.redo() }
        func group(_ numbers: [Int]) async throws {
            try await stack.group("group") {
                for number in numbers { try await perform(number) }
            }
        }
        /// Whether the numbers match the history.
        var isRight: Bool { numbers.withLock { $0.count } == stack.index && !stack.isBusy && !stack.isBroken }
    }

    @Test func `calls of a stack run one at a time, and whole`() async {
        await explore(departures: 2) {
            let editor = await Editor()
            async let first: Void = editor.perform(1)
            async let second: Void = editor.perform(2)
            async let third = editor.undo()
            async let fourth = editor.redo()
            _ = try await (first, second)
            let (isUndone, isRedone) = (try await third, try await fourth)
            let (isRight, numbers) = (await editor.isRight, editor.numbers.withLock { $0 })
            #expect(isRight && numbers.allSatisfy { $0 > 0 })
            #expect(numbers.count == 2 - (isUndone ? 1 : 0) + (isRedone ? 1 : 0))
            see("\(numbers) \(isUndone) \(isRedone)")
        }
        #expect(
            all.isSuperset(of: ["[1, 2] false false", "[1, 2] true true", "[1] true false"]), "\(all)")
    }

    @Test
    func `a call of a stack that is cancelled while it waits does nothing`()
        async
    {
        await explore(departures: 2) {
            let editor = await Editor()
            let tasks = (1...3).map { number in Task { try await editor.perform(number) } }
            async let cancelling: Void = tasks[1].cancel()
            let results = [await tasks[0].result, await tasks[1].result, await tasks[2].result]
            await cancelling
            let done = zip(1..., results).compactMap { number, result in
                if case .success = result { number } else { nil }
            }
            let (isRight, numbers) = (await editor.isRight, editor.numbers.withLock { $0 })
            #expect(isRight && numbers.sorted() == done && Set(done).isSuperset(of: [1, 3]))
            see("\(numbers)")
        }
        #expect(all.isSuperset(of: ["[1, 2, 3]", "[1, 3]"]), "\(all)")
    }

    @Test func `a group of a stack is one step, and no other call enters it`() async {
        await explore(departures: 2) {
            let editor = await Editor()
            async let grouping: Void = editor.group([1, 2])
            async let other: Void = editor.perform(3)
            _ = try await (grouping, other)
            let numbers = editor.numbers.withLock { $0 }
            #expect(numbers == [1, 2, 3] || numbers == [3, 1, 2])
            try await editor.undo()
            let left = editor.numbers.withLock { $0 }
            #expect(left == (numbers == [1, 2, 3] ? [1, 2] : [3]))
            see("\(numbers)")
        }
        #expect(all.count == 2)
    }
}
