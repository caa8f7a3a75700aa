// FailedUndoTests - an undo that throws may be retried (FailedUndo.keeps); commands that cannot tell whether they were done.

import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

/// Appends a number; its undo and its redo fail a given number of times.
private struct Stubborn: UndoableCommand {
    let number: Int
    let receiver: Locked<[Int]>
    let failures: Locked<Int>
    var redoFailures = Locked(0)
    var isSynchronous = false

    func performNow(_ context: CommandContext) throws -> Performed<Void, Void> {
        receiver.withLock { $0.append(number) }
        return Performed()
    }
    func undoNow(_ undo: Void, _ context: CommandContext) throws {
        #expect(context.isCompensating && !context.isCancelled)
        if failures.takeOne() { throw TestError(number: number) }
        receiver.withLock { #expect($0.popLast() == number) }
    }
    func redoNow(_ undone: Void, _ context: CommandContext) throws -> Performed<Void, Void> {
        if redoFailures.takeOne() { throw TestError(number: -number) }
        return try performNow(context)
    }

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> { try performNow(context) }
    func undo(_ undo: Void, _ context: CommandContext) async throws { try undoNow(undo, context) }
    func redo(_ undone: Void, _ context: CommandContext) async throws -> Performed<Void, Void> {
        try redoNow(undone, context)
    }
}

extension Locked<Int> {
    fileprivate func takeOne() -> Bool {
        withLock { count in
            defer { count = max(0, count - 1) }
            return count > 0
        }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct FailedUndoTests {
    private struct Program: Sendable, CustomStringConvertible {
        /// For each step, how often the undo of each of its changes fails.
        var steps: [[Int]]
        var undone: Int
        var isSynchronous: Bool
        var description: String { "\(steps), undo \(undone)\(isSynchronous ? ", synchronous" : "")" }

        static let generator = Generator<Program> { source in
            Program(
                steps: (0..<(1 + source.draw(below: 4))).map { _ in
                    (0..<(1 + source.draw(below: 3))).map { _ in Int(source.draw(below: 3)) }
                }, undone: Int(source.draw(below: 5)), isSynchronous: source.draw(below: 2) == 0)
        }
    }

    /// However often undos fail, the final state is what it would be had none failed.
    @Test(.promises("B9")) func `a failed undo is retried, and resumes where it ended`() async {
        await forAll(Program.generator, cases: 200) { program in
            let receiver = Locked<[Int]>([])
            let stack = UndoStack(onFailedUndo: .keeps)
            var next = 0
            var before: [[Int]] = [[]]
            for step in program.steps {
                let commands = step.map { failures in
                    next += 1
                    return Stubborn(
                        number: next, receiver: receiver, failures: Locked(failures),
                        isSynchronous: program.isSynchronous)
                }
                try await stack.group("step") {
                    for command in commands { try await stack.perform(command) }
                }
                before.append(receiver.withLock { $0 })
            }
            for round in 0..<min(program.undone, program.steps.count) {
                let step = program.steps[program.steps.count - 1 - round]
                var failures = 0
                while true {
                    do {
                        let isUndone = program.isSynchronous ? try stack.undoNow() : try await stack.undo()
                        try #require(isUndone)
                        break
                    } catch is TestError {
                        failures += 1
                        try #require(
                            stack.isBroken && stack.canUndo && stack.undoName == "step" && !stack.isClean)
                        try #require(stack.index == program.steps.count - round)
                        let refused = await thrown { try await stack.redo() }
                        try #require(refused as? CommandUsageError == .broken && !stack.canRedo)
                    }
                }
                try #require(failures == step.reduce(0, +) && !stack.isBroken)
                try #require(receiver.withLock { $0 } == before[program.steps.count - 1 - round])
            }
            while try await stack.redo() {}
            try #require(receiver.withLock { $0 } == before.last)
        }
    }

    @Test(.promises("B9"))
    func `leftovers of a failed group and a failed redo are undone by the next undo, and no step is`()
        async throws
    {
        let receiver = Locked<[Int]>([])
        let stack = UndoStack(onFailedUndo: .keeps)
        let fails = Locked(0), redoFails = Locked(0)
        try await stack.perform(Stubborn(number: 0, receiver: receiver, failures: Locked(0)), name: "zero")
        // Both groups fail; a single undo undoes everything that is left.
        await #expect(throws: TestError.self) {
            try await stack.group("outer") {
                try await stack.perform(Stubborn(number: 1, receiver: receiver, failures: Locked(0)))
                try await stack.group {
                    try await stack.perform(Stubborn(number: 2, receiver: receiver, failures: Locked(1)))
                    throw ErrorObject()
                }
            }
        }
        #expect(receiver.withLock { $0 } == [0, 1, 2] && stack.isBroken && stack.canUndo && stack.count == 1)
        #expect(stack.undoName == nil)
        #expect(throws: CommandUsageError.broken) { try stack.register(undo: {}, redo: {}) }
        #expect(try await stack.undo())
        #expect(receiver.withLock { $0 } == [0] && !stack.isBroken && stack.index == 1)
        #expect(stack.undoName == "zero")
        // A redo whose second change throws, and whose first change is undone only at the second attempt.
        try await stack.group("two") {
            try await stack.perform(Stubborn(number: 3, receiver: receiver, failures: fails))
            try await stack.perform(
                Stubborn(number: 4, receiver: receiver, failures: Locked(0), redoFailures: redoFails))
        }
        #expect(try await stack.undo())
        fails.withLock { $0 = 1 }
        redoFails.withLock { $0 = 1 }
        #expect(await thrown { try await stack.redo() } as? TestError == TestError(number: 3))
        #expect(receiver.withLock { $0 } == [0, 3] && stack.canUndo && stack.index == 1)
        #expect(try await stack.undo())
        #expect(receiver.withLock { $0 } == [0] && stack.index == 1 && stack.canRedo)
        #expect(try await stack.redo())
        #expect(receiver.withLock { $0 } == [0, 3, 4])
    }

    @Test(.promises("B9")) func `forgetting what could not be undone repairs a stack`() async throws {
        final class Target: Sendable {}
        for forgets in ["all", "last", "other", "before"] {
            let receiver = Locked<[Int]>([])
            let stack = UndoStack(onFailedUndo: .keeps)
            let (before, first, last) = (Target(), Target(), Target())
            func change(_ number: Int, failures: Int = 0) -> Stubborn {
                Stubborn(number: number, receiver: receiver, failures: Locked(failures))
            }
            try await stack.perform(change(0), target: before)
            try await stack.group("step") {
                try await stack.perform(change(1), target: first)
                try await stack.perform(change(2, failures: 1), target: last)
            }
            await #expect(throws: TestError.self) { try await stack.undo() }
            switch forgets {
            case "all":
                stack.removeAll()
                #expect(!stack.isBroken && stack.count == 0 && !stack.canUndo)
                #expect(try await !stack.undo())
                #expect(receiver.withLock { $0 } == [0, 1, 2])
            case "last":
                stack.removeAll(target: last)
                #expect(stack.isBroken && stack.canUndo)  // the first change is still to be undone
                receiver.withLock { $0 = [0, 1] }  // as if changed from outside
                #expect(try await stack.undo())
                #expect(
                    receiver.withLock { $0 } == [0] && !stack.isBroken && stack.index == 1 && stack.canRedo)
            case "other":
                stack.removeAll(target: first)
                #expect(stack.isBroken && stack.count == 2)
                stack.removeAll(target: last)
                #expect(!stack.isBroken && stack.count == 1 && stack.index == 1)
                #expect(receiver.withLock { $0 } == [0, 1, 2])
            default:
                stack.removeAll(target: before)
                #expect(stack.isBroken && stack.count == 1 && stack.undoName == "step")
                #expect(try await stack.undo())
                #expect(
                    receiver.withLock { $0 } == [0] && !stack.isBroken && stack.index == 0 && stack.canRedo)
            }
        }
    }

    @Test func `a run of several with a failed undo resumes with the rest`() async throws {
        let receiver = Locked<[Int]>([])
        let stack = UndoStack(onFailedUndo: .keeps)
        let failures = Locked(1)
        let run = TransactionCommand(
            commands: [
                Stubborn(number: 1, receiver: receiver, failures: failures),
                Stubborn(number: 2, receiver: receiver, failures: Locked(0)),
            ])
        try await stack.perform(run)
        let failure = await thrown { try await stack.undo() } as? TransactionFailure
        #expect(failure?.compensated == [1] && run.state == .broken)
        #expect(receiver.withLock { $0 } == [1])
        #expect(try await stack.undo())
        #expect(receiver.withLock { $0 } == [] && run.state == .undone)
    }

    // MARK: Commands that do not know whether they were done

    @Test(.promises("S3"))
    func
        `a command that cannot tell breaks a stack, and makes a run incomplete; any other error does neither`()
        async throws
    {
        for isKnown in [true, false] {
            for isParallel in [true, false] {
                let receiver = Locked<[Int]>([])
                let command = ClosureCommand { () async throws -> Void in
                    throw isKnown ? TestError(number: 3) : OutcomeUnknown(because: TestError(number: 3))
                }
                let step = IrreversibleCommand(command, because: "there is nothing to call")
                let members: [any UndoableCommand] = [Append(number: 1, receiver: receiver), step]
                var options = TransactionOptions()
                options.irreversible = .allow
                if isParallel { options.order = .parallel(limit: 2) }
                let run = TransactionCommand(commands: members, options: options)
                let failure = await thrown { try await run.execute() } as? TransactionFailure
                #expect(failure?.rollback == (isKnown ? .complete : .incomplete))
                #expect(failure?.failedMember == 1 && receiver.withLock { $0 } == [])
                let stack = UndoStack()
                let error = await thrown { try await stack.perform(step) }
                #expect((error is OutcomeUnknown) == !isKnown && stack.isBroken == !isKnown)
            }
        }
    }

    @Test(.promises("S3"))
    func `an unknown outcome is known despite a retry, a timeout, or a synchronous mapping`()
        async
    {
        func rollback(of command: some Command<Void>) async -> TransactionFailure.Rollback? {
            let run = TransactionCommand(commands: [IrreversibleCommand(command, because: "test")])
            return (await thrown { try await run.execute() } as? TransactionFailure)?.rollback
        }
        let attempts = Locked(0)
        let twice = ClosureCommand { () async throws -> Void in
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            throw attempt == 1 ? OutcomeUnknown(because: TestError()) : TestError()
        }
        #expect(await rollback(of: twice.retry(RetryPolicy(maxAttempts: 2))) == .incomplete)
        #expect(attempts.withLock { $0 } == 2)
        let slow = ClosureCommand { () async throws -> Void in
            do { try await Task.sleep(for: .seconds(60)) } catch { throw OutcomeUnknown(because: error) }
        }
        #expect(await rollback(of: slow.timeout(.milliseconds(1))) == .incomplete)
        struct Unknown: SynchronousUndoableCommand {
            func perform(_ context: CommandContext) throws -> Performed<Void, Void> {
                throw OutcomeUnknown(because: TestError())
            }
            func undo(_ undo: Void, _ context: CommandContext) throws {}
        }
        let mapped = TransactionCommand(
            Unknown(), options: TransactionOptions(mapError: { _ in ErrorObject() }))
        #expect(await rollback(of: mapped) == .incomplete)
        for isAwaited in [true, false] {
            let stack = UndoStack()
            let run = TransactionCommand(
                Unknown(), options: TransactionOptions(mapError: { _ in ErrorObject() }))
            _ = await thrown {
                if isAwaited { try await stack.perform(run) } else { try stack.performNow(run) }
            }
            #expect(stack.isBroken)
        }
    }

    @Test(.promises("B9"))
    func `a stack with an unknown outcome stays broken, whatever else is undone`() async throws {
        let receiver = Locked<[Int]>([])
        let stack = UndoStack(onFailedUndo: .keeps)
        let unknown = IrreversibleCommand(
            ClosureCommand { () async throws -> Void in throw OutcomeUnknown(because: TestError()) },
            because: "test")
        _ = await thrown {
            try await stack.group {
                try await stack.perform(Stubborn(number: 1, receiver: receiver, failures: Locked(1)))
                try await stack.perform(unknown)
            }
        }
        #expect(stack.isBroken && !stack.canUndo)
        #expect(await thrown { try await stack.undo() } as? CommandUsageError == .broken)
        stack.removeAll()
        #expect(!stack.isBroken)
    }

    @Test func `an unknown outcome is in the outer run's failure, whatever the error is mapped to`()
        async
    {
        let unknown = ClosureCommand { () async throws -> Void in throw OutcomeUnknown(because: TestError()) }
        for mapsError in [true, false] {
            let options = TransactionOptions(mapError: { mapsError ? ErrorObject() : $0 })
            let inner = TransactionCommand(
                UndoableClosure { (_: CommandContext) in
                    try await unknown.execute()
                } undo: { _ in
                },
                options: options)
            let failure =
                await thrown { try await TransactionCommand(commands: [inner]).execute() }
                as? TransactionFailure
            #expect(failure?.rollback == .incomplete)
        }
    }
}
