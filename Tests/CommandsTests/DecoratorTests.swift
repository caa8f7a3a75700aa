// Commands built from commands.

import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct DecoratorTests {
    @Test(.promises("T1", "T17"))
    func `T17: retry uses all its attempts, counts, and never repeats a cancellation`() async throws {
        let attempts = Log<Int>()
        let third = ClosureCommand { (context: CommandContext) in
            attempts.add(context.attempt)
            if context.attempt < 3 { throw TestError(number: context.attempt) }
            return context.attempt
        }
        #expect(try await third.retry(RetryPolicy(maxAttempts: 5)).execute() == 3)
        #expect(attempts.entries == [1, 2, 3])
        await #expect(throws: TestError(number: 2)) {
            try await third.retry(RetryPolicy(maxAttempts: 2)).execute()
        }
        let tries = Count()
        let cancelled = ClosureCommand {
            tries.add()
            throw CancellationError()
        }
        await #expect(throws: CancellationError.self) {
            try await cancelled.retry(RetryPolicy(maxAttempts: 5)).execute()
        }
        #expect(tries.value == 1)
        await #expect(throws: TestError(number: 1)) {
            try await third.retry(RetryPolicy(maxAttempts: 5, retryIf: { _ in false })).execute()
        }
    }

    @Test(.promises("C8")) func `C8: each attempt of a retry starts where the first did`()
        async throws
    {
        let log = Log<String>()
        let command = ClosureCommand { (context: CommandContext) in
            log.add("attempt \(context.attempt)")
            context.onFailure { _ in log.add("back") }
            if context.attempt < 2 { throw TestError() }
        }
        let run = TransactionCommand(commands: [
            IrreversibleCommand(command.retry(RetryPolicy(maxAttempts: 2)), because: "")
        ])
        try await run.execute()
        #expect(log.entries == ["attempt 1", "back", "attempt 2"])
    }

    @Test(.promises("C8"))
    func `C8: a successful attempt is undone when a later member fails`() async {
        let policy = RetryPolicy(maxAttempts: 3)
        for isRetried in [false, true] {
            let log = Log<String>()
            let first = ClosureCommand { (context: CommandContext) in
                if isRetried && context.attempt < 2 { throw TestError() }
                for part in ["a", "b"] {
                    log.add(part)
                    context.onFailure { _ in log.add("\(part) back") }
                }
            }
            let second = ClosureCommand { (_: CommandContext) in throw TestError() }
            let stages = isRetried ? first.retry(policy).then { second } : first.then { second }
            await #expect(throws: TestError.self) { try await TransactionCommand(stages).execute() }
            #expect(log.entries == ["a", "b", "b back", "a back"])
            let twice = isRetried ? first.retry(policy).repeated(2) : first.repeated(2)
            let repeated = twice.then { _ in second }
            await #expect(throws: TestError.self) { try await TransactionCommand(repeated).execute() }
            #expect(log.entries.suffix(8) == ["a", "b", "a", "b", "b back", "a back", "b back", "a back"])
        }
    }

    @Test(.promises("T17")) func `T17: a retry ends when it is cancelled, whatever the command throws`()
        async throws
    {
        let count = Count()
        let command = ClosureCommand<Void> {
            count.add()
            withUnsafeCurrentTask { $0?.cancel() }
            throw TestError()
        }
        let task = Task { try await command.retry(RetryPolicy(maxAttempts: 5)).execute() }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(count.value == 1)
    }

    @Test(.promises("T17")) func `T17: a retried run is a new one, with its own error`()
        async throws
    {
        let count = Count()
        let failing = TransactionCommand(ClosureCommand<Void> { throw TestError(number: count.add()) })
        await #expect(throws: TestError(number: 3)) {
            try await failing.retry(RetryPolicy(maxAttempts: 3)).execute()
        }
        let late = TransactionCommand(ClosureCommand { if count.add() < 6 { throw TestError() } })
        try await late.retry(RetryPolicy(maxAttempts: 3)).execute()
        #expect(count.value == 6)
    }

    @Test(.promises("T1", "T17"))
    func `T17: a timeout waits for the end: a throw becomes timedOut, a value stays a success`()
        async throws
    {
        let clock = StepClock()
        let slow = ClosureCommand { (context: CommandContext) in
            while !context.isCancelled { await Task.yield() }
            throw TestError()
        }
        let command = TransactionCommand(slow.timeout(.seconds(3), clock: clock))
        let run = Task { try await command.execute() }
        #expect(await clock.slept.next() == .seconds(3))
        clock.wakeAll()
        _ = await run.result
        #expect(command.handle.result?.why == .timedOut)
        let stubborn = ClosureCommand { (context: CommandContext) in
            while !context.isCancelled { await Task.yield() }
            return 7
        }
        let second = Task { try await stubborn.timeout(.seconds(3), clock: clock).execute() }
        _ = await clock.slept.next()
        clock.wakeAll()
        #expect(try await second.value == 7)
        #expect(try await ClosureCommand { 1 }.timeout(.seconds(1000)).execute() == 1)
        await #expect(throws: TestError()) {
            try await ClosureCommand { throw TestError() }.timeout(.seconds(1000)).execute()
        }
        let deadline = ClosureCommand { (context: CommandContext) in context.deadline }
        #expect(try await deadline.timeout(.seconds(1000)).execute() != nil)
    }

    @Test(.promises("P11", "T17"), arguments: [0, 1, 2, 3])
    func `P11: after runs once if before returned`(way: Int) async {
        let log = Log<String>()
        let command = ClosureCommand {
            log.add("work")
            if way == 1 { throw TestError() }
            if way == 2 { throw CancellationError() }
        }.around(
            before: { _ in
                if way == 3 { throw TestError() }
                log.add("before")
            }, after: { _ in log.add("after") })
        _ = try? await command.execute()
        #expect(log.entries == (way == 3 ? [] : ["before", "work", "after"]))
    }

    @Test(.promises("T17"))
    func `T17: a chain feeds each result to the next, and a failure halts it and occurs once`()
        async throws
    {
        let log = Log<String>()
        func chain(_ fails: Bool) -> ClosureCommand<String> {
            ClosureCommand { 2 }
                .then { number in
                    ClosureCommand {
                        if fails { throw TestError(number: number) }
                        return number * 3
                    }
                }
                .then { number in ClosureCommand { "\(number)" } }
                .intercept(success: { log.add("value \($0)") }, failure: { _ in log.add("failure") })
        }
        #expect(try await chain(false).execute() == "6")
        await #expect(throws: TestError(number: 2)) { try await chain(true).execute() }
        #expect(log.entries == ["value 6", "failure"])
    }

    @Test(.promises("T17")) func `T17: repeated executes n times, and stops at a failure`() async throws {
        let count = Count()
        #expect(try await ClosureCommand { count.add() }.repeated(4).execute() == [1, 2, 3, 4])
        await #expect(throws: TestError()) {
            try await ClosureCommand { if count.add() == 6 { throw TestError() } }.repeated(9).execute()
        }
        #expect(count.value == 6)
    }

    @Test(.promises("T1")) func `T1: a command knows its run, and whether it is cancelled`() async throws {
        let contexts = Log<CommandContext>()
        let begun = Mail<Void>()
        let gate = Gate()
        let invoker = SerialInvoker()
        let command = TransactionCommand(
            Immediate { context in
                #expect(!context.isCancelled)
                contexts.add(context)
                begun.send(())
                gate.wait()
                try context.checkCancellation()
            })
        invoker.submit(command)
        await begun.next()
        command.handle.cancel()
        gate.open()
        #expect(await command.handle.outcome.isCancelled)
        #expect(contexts.entries.first?.transaction == command.transaction)
        #expect(CommandContext().transaction == nil)
    }
}
