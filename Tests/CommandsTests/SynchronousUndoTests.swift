// SynchronousUndoTests - commands that are undone without a task: in a stack, in a run, in an invoker.

import Commands
import CompositeOperationsTestSupport
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Adds to a sum, and records the thread.
private struct Add: SynchronousUndoableCommand {
    let number: Int
    let sum: Locked<Int>
    let log: Log<UInt>
    var fails = false
    /// Whether a command that runs alongside fails, so that this one is asked to cancel.
    var isBesideFailing = false

    func perform(_ context: CommandContext) throws -> Performed<Int, Int> {
        log.add(UInt(pthread_self()))
        #expect(!context.isCancelled || isBesideFailing)
        context.onFailure { [sum] _ in sum.withLock { $0 -= 1000 } }
        if fails { throw TestError(number: number) }
        return sum.withLock { sum in
            defer { sum += number }
            return Performed(sum + number, undo: sum)
        }
    }

    func undo(_ undo: Int, _ context: CommandContext) throws {
        log.add(UInt(pthread_self()))
        #expect(context.isCompensating)
        sum.withLock { $0 = undo }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct SynchronousUndoTests {
    private let sum = Locked(0)
    private let log = Log<UInt>()

    private func add(_ number: Int, fails: Bool = false) -> Add {
        Add(number: number, sum: sum, log: log, fails: fails)
    }

    /// Whether the failure reports that the command's registered parts were not undone.
    private func isLeft(_ body: () throws -> Void) -> Bool {
        do { try body() } catch let failure as TransactionFailure {
            return failure.rollback == .incomplete && failure.cause as? TestError == TestError(number: 9)
        } catch {}
        return false
    }

    @Test(.promises("B9"))
    func `a stack performs, undoes and redoes before the call returns, on the calling thread`()
        throws
    {
        let stack = UndoStack()
        #expect(try stack.performNow(add(1), name: "one") == 1)
        #expect(try stack.performNow(add(2)) == 3)
        #expect(try stack.performNow(add(4), recording: .none) == 7)
        #expect(stack.count == 2 && !stack.isBusy)
        #expect(try stack.undoNow())
        #expect(sum.withLock { $0 } == 1)
        #expect(try stack.redoNow())
        #expect(sum.withLock { $0 } == 3)
        for _ in 0..<2 { #expect(try stack.undoNow()) }
        #expect(sum.withLock { $0 } == 0 && stack.isClean)
        #expect(try !stack.undoNow())
        #expect(stack.redoName == "one")
        #expect(Set(log.entries) == [UInt(pthread_self())])
        // A failure changes nothing, and what can be redone stays.
        #expect(throws: TestError()) {
            try stack.performNow(
                SynchronousUndoableClosure {
                    throw TestError()
                } undo: {
                })
        }
        #expect(sum.withLock { $0 } == 0 && stack.count == 2 && !stack.isBroken)
        // The parts that it registered are not undone.
        #expect(isLeft { _ = try stack.performNow(add(9, fails: true)) })
        #expect(sum.withLock { $0 } == 0 && stack.count == 2 && stack.isBroken)
    }

    @Test(.promises("B9"))
    func `awaiting calls run in place despite cancellation, and undo registered changes`()
        async throws
    {
        let (sum, log) = (sum, log)
        // A step that has begun runs to its end, and is not asked to stop earlier.
        try await Task {
            let stack = UndoStack()
            let cancels = Cancelling(add: Add(number: 1, sum: sum, log: log))
            let number = try await stack.perform(cancels)
            #expect(number == 1 && Task.isCancelled && stack.count == 1)
            let error = await thrown { try await stack.undo() }
            #expect(error is CancellationError)
            let isUndone = try stack.undoNow()
            let isRedone = try stack.redoNow()
            #expect(isUndone && isRedone)
        }.value
        let stack = UndoStack()
        sum.withLock { $0 = 1 }
        #expect(
            await thrown { _ = try await stack.perform(add(9, fails: true)) } as? TestError
                == TestError(number: 9))
        #expect(sum.withLock { $0 } == -999)  // compensated once
        sum.withLock { $0 = 0 }
        let first = try await stack.perform(add(1))
        let isUndone = try await stack.undo()
        #expect(first == 1 && isUndone && sum.withLock { $0 } == 0)
        #expect(try await stack.redo())
        #expect(sum.withLock { $0 } == 1)
    }

    @Test func `in a group, inside a step, while busy, and of async commands`() async throws {
        let stack = UndoStack()
        try await stack.group("group") {
            let (first, second) = (try stack.performNow(add(1)), try await stack.perform(add(2)))
            #expect(first == 1 && second == 3)
            #expect(throws: CommandUsageError.busy) { try stack.undoNow() }
        }
        #expect(stack.count == 1)
        #expect(try stack.undoNow())
        #expect(sum.withLock { $0 } == 0)
        let awaits = UndoableClosure { (_: CommandContext) in
        } undo: { _ in
        }
        #expect(throws: CommandUsageError.notUndoable) { try stack.performNow(awaits) }
        try await stack.perform(awaits)
        #expect(throws: CommandUsageError.notUndoable) { try stack.undoNow() }
    }

    @Test @MainActor func `a call from inside it is refused`() throws {
        let stack = UndoStack()
        let errors = Log<CommandUsageError?>()
        nonisolated(unsafe) let inside = stack
        try stack.performNow(
            SynchronousUndoableClosure { [sum, log] in
                do { _ = try inside.performNow(Add(number: 1, sum: sum, log: log)) } catch {
                    errors.add(error as? CommandUsageError)
                }
                do { try inside.undoNow() } catch { errors.add(error as? CommandUsageError) }
            } undo: { _ in
            })
        #expect(errors.entries == [.reentrant, .reentrant])
        stack.removeAll()  // its step retains it
    }

    /// A part that waited for its own step would never end.
    @Test @MainActor func `its registrations are undone as part of its step, not of the group`()
        async throws
    {
        struct Parts: SynchronousUndoableCommand {
            let part: @Sendable () async -> Void
            func perform(_ context: CommandContext) throws -> Performed<Void, Void> {
                context.onFailure { [part] _ in await part() }
                throw TestError()
            }
            func undo(_ undo: Void, _ context: CommandContext) throws {}
        }
        let stack = UndoStack()
        let calls = StackCalls(stack)
        let errors = Log<CommandUsageError?>()
        let command = Parts {
            do { try await calls.undo() } catch { errors.add(error as? CommandUsageError) }
            do { try await calls.perform() } catch { errors.add(error as? CommandUsageError) }
        }
        #expect(await thrown { try await stack.perform(command) } is TestError)
        _ = await thrown { try await stack.group { try await stack.perform(command) } }
        #expect(errors.entries == [.reentrant, .reentrant, .reentrant, .reentrant] && stack.count == 0)
    }

    @Test
    func `its transaction command runs and is undone on the calling thread, and notifies`()
        throws
    {
        let listener = Listener()
        let run = TransactionCommand(add(5), delegate: listener)
        #expect(run.isSynchronous && run.neverAwaits)
        #expect(try run.executeNow(CommandContext()) == 5)
        #expect(listener.log.entries.map(\.transaction) == [run.transaction])
        #expect(throws: CommandUsageError.alreadyExecuted) { try run.executeNow(CommandContext()) }
        try run.undoNow()
        #expect(sum.withLock { $0 } == 0 && run.state == .undone)
        #expect(throws: CommandUsageError.alreadyUndone) { try run.undoNow() }
        #expect(try run.executeNow(CommandContext()) == 5)
        #expect(listener.log.entries.count == 1 && Set(log.entries) == [UInt(pthread_self())])
        let plain = TransactionCommand(Immediate { _ in 1 })
        #expect(try plain.executeNow(CommandContext()) == 1)
        #expect(throws: CommandUsageError.notUndoable) { try plain.undoNow() }
        let failing = TransactionCommand(add(9, fails: true))
        #expect(isLeft { _ = try failing.executeNow(CommandContext()) })
        #expect(throws: CommandUsageError.notExecuted) { try failing.undoNow() }
    }

    @Test func `among others it is undone in turn, and an invoker needs no task for it`() async throws {
        let numbers = Locked<[Int]>([])
        let failing = Append(number: 3, receiver: numbers, failsToPerform: true)
        let run = TransactionCommand(commands: [
            add(1), Append(number: 2, receiver: numbers), add(4), failing,
        ])
        #expect(await thrown { try await run.execute() } is TransactionFailure)
        #expect(sum.withLock { $0 } == 0 && numbers.withLock { $0 } == [])
        let invoker = SerialInvoker()
        let outcomes = (1...100).map { invoker.submit(TransactionCommand(add($0))) }
        for outcome in outcomes { #expect(await outcome.outcome.isFinished) }
        #expect(sum.withLock { $0 } == 5050)
    }

    @Test func `several return their results, of one or more types, and again after an undo`()
        async throws
    {
        let numbers = Locked<[Int]>([])
        for order in [TransactionOptions.Order.sequential, .parallel(limit: 4)] {
            sum.withLock { $0 = 0 }
            let options = TransactionOptions(order: order)
            let alike = TransactionCommand(
                all: (0..<8).map { number in UndoableText(number: number) }, options: options)
            #expect(try await alike.execute() == (0..<8).map { "\($0)" })
            try await alike.undo()
            #expect(try await alike.execute().count == 8)
            let (isLate, late) = (Mail<Void>(), ClosureCommand { () async -> Int in 1 })
            let backwards = TransactionCommand(
                all: IrreversibleCommand(
                    ClosureCommand { () async -> Int in
                        if order == .sequential { return 0 }
                        await isLate.next()
                        return 0
                    }, because: "test"),
                IrreversibleCommand(late.intercept(success: { _ in isLate.send(()) }), because: "test"),
                options: options)
            #expect(try await backwards.execute() == (0, 1))
            let pair = TransactionCommand(all: add(7), UndoableText(number: 8), options: options)
            let (first, second) = try await pair.execute()
            #expect(first == 7 && second == "8")
            let none = TransactionCommand(all: [UndoableText](), options: options)
            #expect(try await none.execute() == [])
            let failing = TransactionCommand(
                all: Add(number: 1, sum: sum, log: log, isBesideFailing: order != .sequential),
                Append(number: 3, receiver: numbers, failsToPerform: true), options: options)
            #expect(await thrown { _ = try await failing.execute() } is TransactionFailure)
            #expect(sum.withLock { $0 } == 7)
            let voids = TransactionCommand(
                all: SynchronousUndoableClosure {
                } undo: {
                }, add(1), options: options)
            #expect(try await voids.execute().1 == 8)
        }
    }
}

/// First cancels the task that it runs in.
private struct Cancelling: SynchronousUndoableCommand {
    let add: Add
    func perform(_ context: CommandContext) throws -> Performed<Int, Int> {
        withUnsafeCurrentTask { $0?.cancel() }
        return try add.perform(context)
    }
    func undo(_ undo: Int, _ context: CommandContext) throws { try add.undo(undo, context) }
}

/// Returns its number as text.
private struct UndoableText: UndoableCommand {
    let number: Int
    func perform(_ context: CommandContext) async throws -> Performed<String, Void> {
        await Task.yield()
        return Performed("\(number)")
    }
    func undo(_ undo: Void, _ context: CommandContext) async throws {}
}
