// All-or-nothing runs, tested against a pure model and case by case.

import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct AllOrNothingTests {
    /// The behaviour of a member, for the model and for the run.
    struct Plan: Sendable {
        var fails = false
        var failsToUndo = false
        var undoability = Undoability.exact

        static let generator = Generator<Plan>.frequency([
            (6, Generator<Int>.int(in: 0...0).map { _ in Plan() }),
            (1, Generator<Int>.int(in: 0...0).map { _ in Plan(fails: true) }),
            (2, Generator<Int>.int(in: 0...0).map { _ in Plan(failsToUndo: true) }),
            (1, Generator<Int>.int(in: 0...0).map { _ in Plan(undoability: .noEffect) }),
            (1, Generator<Int>.int(in: 0...0).map { _ in Plan(undoability: .irreversible("gone")) }),
        ])
    }

    /// The required course of a sequential run: a pure function.
    struct Model {
        var log: [String] = []
        var failedMember: Int?
        var compensated: [Int] = []
        var failures: [Int] = []
        var notCompensated: [Int] = []
        var irreversible: [Int] = []

        init(_ plans: [Plan], stops: Bool) {
            var done: [Int] = []
            for (index, plan) in plans.enumerated() {
                log.append("do \(index)")
                if plan.fails {
                    failedMember = index
                    break
                }
                done.append(index)
            }
            guard failedMember != nil else { return }
            var isStopped = false
            for index in done.reversed() where plans[index].undoability != .noEffect {
                if isStopped {
                    notCompensated.append(index)
                    continue
                }
                log.append("undo \(index)")
                let isExact = plans[index].undoability.isExact
                if !isExact { irreversible.append(index) }
                if plans[index].failsToUndo {
                    failures.append(index)
                    isStopped = stops
                } else if isExact {
                    compensated.append(index)
                }
            }
        }

        var rollback: TransactionFailure.Rollback {
            if !failures.isEmpty || !notCompensated.isEmpty { return .incomplete }
            return irreversible.isEmpty ? .complete : .completeExceptIrreversible
        }
    }

    private func command(
        _ plans: [Plan], _ receiver: Locked<[Int]>, _ log: Log<String>,
        options: TransactionOptions = TransactionOptions(), delegate: Listener? = nil
    ) -> TransactionCommand<Void> {
        TransactionCommand(
            commands: plans.enumerated().map { index, plan in
                Append(
                    number: index, receiver: receiver, failsToPerform: plan.fails,
                    failsToUndo: plan.failsToUndo, undoability: plan.undoability, log: log)
            }, delegate: delegate, options: options)
    }

    @Test(.promises("S1", "S3", "B4", "C1", "C3", "C4", "C10"), arguments: [false, true])
    func `S1, S3: a run matches the model, whatever fails`(stops: Bool) async {
        await forAll(
            .array(of: Plan.generator, count: 0...9), cases: 300,
            covering: [.cover(20, "fails") { $0.contains(where: \.fails) }]
        ) { plans in
            let model = Model(plans, stops: stops)
            let receiver = Locked<[Int]>([])
            let log = Log<String>()
            let listener = Listener()
            let command = self.command(
                plans, receiver, log,
                options: TransactionOptions(compensation: stops ? .stopOnFailure : .continueOnFailure),
                delegate: listener)
            var failure: TransactionFailure?
            do { try await command.execute() } catch { failure = error as? TransactionFailure }
            #expect(log.entries == model.log)
            #expect(failure?.failedMember == model.failedMember)
            #expect(listener.log.entries.count == 1)
            guard let failure, let failed = model.failedMember else {
                #expect(command.state == .finished)
                return
            }
            #expect(failure.cause as? TestError == TestError(number: failed))
            #expect(failure.compensated == model.compensated)
            #expect(failure.compensationFailures.map(\.member) == model.failures)
            #expect(
                failure.compensationFailures.map { $0.error as? TestError }
                    == model.failures.map { TestError(number: -$0) })
            #expect(failure.notCompensated == model.notCompensated)
            #expect(failure.irreversible == model.irreversible)
            #expect(failure.rollback == model.rollback)
            #expect(listener.log.entries[0].error is TransactionFailure)
            if model.rollback == .complete, !plans.contains(where: { $0.undoability == .noEffect }) {
                #expect(receiver.withLock { $0 } == [])
            }
        }
    }

    @Test(.promises("S2", "C2"))
    func `S2: undo goes backwards, once, and then the command runs again; other calls change nothing`()
        async throws
    {
        let receiver = Locked<[Int]>([])
        let log = Log<String>()
        let listener = Listener()
        let command = self.command([Plan(), Plan(), Plan()], receiver, log, delegate: listener)
        await #expect(throws: CommandUsageError.notExecuted) { try await command.undo() }
        try await command.execute()
        #expect(receiver.withLock { $0 } == [0, 1, 2])
        try await command.undo()
        #expect(receiver.withLock { $0 } == [])
        #expect(command.state == .undone)
        await #expect(throws: CommandUsageError.alreadyUndone) { try await command.undo() }
        try await command.execute()
        #expect(command.state == .finished)
        await #expect(throws: CommandUsageError.alreadyExecuted) { try await command.execute() }
        let once = ["do 0", "do 1", "do 2"]
        #expect(log.entries == once + ["undo 2", "undo 1", "undo 0"] + once)
        #expect(listener.log.entries.count == 1)
    }

    @Test(.promises("B1", "C5"))
    func `B1: there is no undo of what never ran, was undone, failed, runs, or has no undo`()
        async throws
    {
        let plain = TransactionCommand(ClosureCommand {})
        try await plain.execute()
        await #expect(throws: CommandUsageError.notUndoable) { try await plain.undo() }
        let failed = self.command([Plan(fails: true)], Locked([]), Log())
        _ = try? await failed.execute()
        await #expect(throws: CommandUsageError.notExecuted) { try await failed.undo() }
        let held = Held()
        let running = TransactionCommand(commands: [IrreversibleCommand(held, because: "")])
        let run = Task { try await running.execute() }
        await held.begun.next()
        await #expect(throws: CommandUsageError.busy) { try await running.undo() }
        held.release()
        try await run.value
    }

    @Test(.promises("S3", "C7")) func `an undo that fails breaks the command`() async throws {
        let log = Log<String>()
        let command = self.command([Plan(), Plan(failsToUndo: true), Plan()], Locked([]), log)
        try await command.execute()
        do {
            try await command.undo()
            Issue.record("it did not throw")
        } catch let failure as TransactionFailure {
            #expect(failure.compensated == [2, 0])
            #expect(failure.compensationFailures.map(\.member) == [1])
        }
        #expect(command.state == .broken)
        await #expect(throws: CommandUsageError.broken) { try await command.undo() }
        await #expect(throws: CommandUsageError.broken) { try await command.execute() }
    }

    /// Fails in the runs listed in `failsIn`.
    private struct Fickle: UndoableCommand {
        let runs = Count()
        let failsIn: Set<Int>
        var failsToUndo = false
        func perform(_ context: CommandContext) async throws -> Performed<Void, Void> {
            if failsIn.contains(runs.add()) { throw TestError() }
            return Performed()
        }
        func undo(_ undo: Void, _ context: CommandContext) async throws {
            if failsToUndo, runs.value > 1 { throw TestError() }
        }
    }

    @Test(.promises("S4")) func `a rerun that fails is undone if it could be rolled back, else broken`()
        async throws
    {
        let back = TransactionCommand(commands: [Fickle(failsIn: []), Fickle(failsIn: [2])])
        try await back.execute()
        try await back.undo()
        await #expect(throws: TransactionFailure.self) { try await back.execute() }
        #expect(back.state == .undone)
        try await back.execute()
        #expect(back.state == .finished)

        let stuck = TransactionCommand(commands: [
            Fickle(failsIn: [], failsToUndo: true), Fickle(failsIn: [2]),
        ])
        try await stuck.execute()
        try await stuck.undo()
        await #expect(throws: TransactionFailure.self) { try await stuck.execute() }
        #expect(stuck.state == .broken)
    }

    @Test(.promises("S4", "C6"))
    func `S4: a failed run, redone with its own token, undoes only its own work`()
        async throws
    {
        let receiver = Locked<[Int]>([])
        let log = Log<String>()
        let inner = TransactionCommand(commands: [Append(number: 1, receiver: receiver, log: log)])
        let fickle = Fickle(failsIn: [1, 2])
        let first = TransactionCommand(commands: [
            Append(number: 0, receiver: receiver, log: log), inner, fickle,
        ])
        await #expect(throws: TransactionFailure.self) { try await first.execute() }
        let second = try first.again()
        #expect(second.transaction != first.transaction)
        await #expect(throws: TransactionFailure.self) { try await second.execute() }
        #expect(receiver.withLock { $0 } == [])
        let third = try second.again()
        try await third.execute()
        #expect(receiver.withLock { $0 } == [0, 1])
        #expect(
            log.entries
                == ["do 0", "do 1", "undo 1", "undo 0", "do 0", "do 1", "undo 1", "undo 0", "do 0", "do 1"])
        #expect(throws: CommandUsageError.alreadyExecuted) { try third.again() }
    }

    @Test(.promises("S4"))
    func `S4: a failed nested run is a new one when its outer run is redone`() async throws {
        let fickle = Fickle(failsIn: [1])
        let first = TransactionCommand(commands: [
            MacroCommand([TransactionCommand(commands: [fickle])]), TransactionCommand(fickle),
        ])
        await #expect(throws: TransactionFailure.self) { try await first.execute() }
        try await first.again().execute()
        #expect(fickle.runs.value == 3)
    }

    @Test(.promises("C8"))
    func `C8: a failing perform's registrations are undone, last first, before earlier members`()
        async
    {
        let log = Log<String>()
        struct Half: UndoableCommand {
            let log: Log<String>
            func perform(_ context: CommandContext) async throws -> Performed<Void, Void> {
                context.onFailure { context in log.add("part 1 \(context.isCompensating)") }
                context.onFailure { _ in log.add("part 2") }
                throw TestError()
            }
            func undo(_ undo: Void, _ context: CommandContext) async throws { log.add("undo half") }
        }
        let command = TransactionCommand(commands: [
            Append(number: 0, receiver: Locked([]), log: log), Half(log: log),
        ])
        await #expect(throws: TransactionFailure.self) { try await command.execute() }
        #expect(log.entries == ["do 0", "part 2", "part 1 true", "undo 0"])
        let lone = Log<String>()
        await #expect(throws: TestError()) { try await TransactionCommand(Half(log: lone)).execute() }
        #expect(lone.entries == ["part 2", "part 1 true"])
        let alone = Log<String>()
        await #expect(throws: TestError()) { try await MacroCommand([Half(log: alone)]).execute() }
        #expect(alone.entries == [])
    }

    @Test(.promises("C8"))
    func `C8: parts of a failing perform that stay are reported, with the error`() async throws {
        let command = UndoableClosure { (context: CommandContext) in
            context.onFailure { _ in throw TestError(number: 2) }
            throw TestError(number: 1)
        } undo: { _ in
        }
        for commands in [TransactionCommand(command), TransactionCommand(commands: [command])] {
            await #expect { try await commands.execute() } throws: { error in
                let failure = error as? TransactionFailure
                return failure?.cause as? TestError == TestError(number: 1)
                    && failure?.rollback == .incomplete
                    && failure?.compensationFailures.first?.error as? TestError == TestError(number: 2)
            }
        }
        let stack = UndoStack()
        await #expect(throws: TransactionFailure.self) { try await stack.perform(command) }
        #expect(stack.isBroken)
    }

    @Test(.promises("C8")) func `C8: parts of a member that returned are not run for a later one`() async {
        let log = Log<String>()
        let kept = Locked<CommandContext?>(nil)
        let early = UndoableClosure { (context: CommandContext) in
            context.onFailure { _ in log.add("early") }
        } undo: { _ in
        }
        let keeping = UndoableClosure { (context: CommandContext) in
            kept.withLock { $0 = context }
        } undo: { _ in
        }
        let failing = UndoableClosure { (context: CommandContext) in
            kept.withLock { $0 }?.onFailure { _ in log.add("late") }
            context.onFailure { _ in log.add("its own") }
            throw TestError()
        } undo: { _ in
        }
        let command = TransactionCommand(commands: [early, keeping, failing])
        await #expect(throws: TransactionFailure.self) { try await command.execute() }
        #expect(log.entries == ["its own"])
    }

    @Test(.promises("S5")) func `S5: a run cancelled at any point is undone whole`() async {
        let invoker = ConcurrentInvoker(limit: 1)
        await forAll(.zip(.int(in: 1...6), .int(in: 0...5)), cases: 60) { count, at in
            let receiver = Locked<[Int]>([])
            let log = Log<String>()
            let box = Locked<CommandHandle<Void>?>(nil)
            let canceller = UndoableClosure { _ in
                box.withLock { $0 }?.cancel()
            } undo: { context in
                #expect(!context.isCancelled && !Task.isCancelled)
                await Task.yield()
            }
            var members: [any UndoableCommand] = (0..<count).map {
                Append(number: $0, receiver: receiver, log: log)
            }
            members.insert(canceller, at: min(at, count))
            let command = TransactionCommand(commands: members)
            box.withLock { $0 = command.handle }
            let outcome = await invoker.submit(command).outcome
            if min(at, count) == count {
                #expect(outcome.isFinished)  // after the last member there is nothing to cancel
            } else {
                let failure = outcome.error as? TransactionFailure
                #expect(failure?.cause is CancellationError)
                #expect(failure?.failedMember == nil)
                #expect(failure?.rollback == .complete)
                #expect(outcome.isGivenUp)
                #expect(receiver.withLock { $0 } == [])
                #expect(log.entries.filter { $0.hasPrefix("do") }.count == min(at, count))
            }
            box.withLock { $0 = nil }
        }
    }

    @Test(.promises("S6", "C9"))
    func `S6: nested and parallel, each done member is undone once, after its users`() async {
        let generator = Generator<[[Bool]]>.array(
            of: .array(of: Generator<Int>.int(in: 0...5).map { $0 == 5 }, count: 0...4), count: 1...4)
        await forAll(generator, cases: 150) { groups in
            let log = Log<String>()
            var number = 0
            let members = groups.map { group -> any UndoableCommand in
                let leaves = group.map { fails -> any UndoableCommand in
                    number += 1
                    return Append(number: number, receiver: Locked([]), failsToPerform: fails, log: log)
                }
                return TransactionCommand(
                    commands: leaves, options: TransactionOptions(order: .parallel(limit: 2)))
            }
            let command = TransactionCommand(commands: members)
            var failure: TransactionFailure?
            do { try await command.execute() } catch { failure = error as? TransactionFailure }
            let failing = groups.firstIndex { $0.contains(true) }
            #expect(failure?.failedMember == failing)
            #expect((failure?.path.count ?? 0) == (failing == nil ? 0 : 2))
            #expect((failure?.rootCause is TestError) == (failing != nil))
            guard failing != nil else { return }
            // Each number: done before undone, and undone once if and only if its `do` returned.
            var live: Set<Int> = []
            var undone: Set<Int> = []
            for entry in log.entries {
                let words = entry.split(separator: " ")
                let number = Int(words[1])!
                if words[0] == "do" {
                    live.insert(number)
                } else {
                    #expect(live.contains(number) && undone.insert(number).inserted)
                }
            }
            var at = 0
            var done: Set<Int> = []
            for group in groups {
                for fails in group {
                    at += 1
                    if live.contains(at), !fails { done.insert(at) }
                }
            }
            #expect(undone == done)
            #expect(failure?.rollback == .complete)
            // Later groups are undone first.
            let groupOf = groups.indices.flatMap { group in groups[group].map { _ in group } }
            let order = log.entries.filter { $0.hasPrefix("undo") }.map { groupOf[Int($0.dropFirst(5))! - 1] }
            #expect(order == order.sorted(by: >))
        }
    }

    @Test(.promises("S6")) func `S6: parallel members are undone in reverse order of their ends`() async {
        let log = Log<Int>(), ended = Mail<Int>(), goOn = (0..<3).map { _ in Mail<Void>() }
        let members = goOn.indices.map { index in
            UndoableClosure { _ in
                await goOn[index].next()
                if index == 2 { throw TestError() }
            } undo: { _ in
                log.add(index)
            }
        }
        let command = TransactionCommand(
            commands: members,
            options: TransactionOptions(
                order: .parallel(limit: 3),
                observer: { if case .finished(let member) = $0 { ended.send(member) } }))
        let run = Task { try await command.execute() }
        for index in [1, 0] {
            goOn[index].send(())
            #expect(await ended.next() == index)
        }
        goOn[2].send(())
        await #expect(throws: TransactionFailure.self) { try await run.value }
        #expect(log.entries == [0, 1])
    }

    @Test(.promises("S6"))
    func `a parallel run starts nothing after a failure, and undoes members that still succeed`()
        async
    {
        let log = Log<String>()
        let held = Held()
        let begun = held.begun
        let stubborn = UndoableClosure { _ in
            try await held.execute(CommandContext())
        } undo: { _ in
            log.add("undo stubborn")
        }
        let failing = UndoableClosure { _ in
            await begun.next()
            throw TestError()
        } undo: { _ in
        }
        let never = UndoableClosure { _ in
            log.add("it ran")
        } undo: { _ in
        }
        let command = TransactionCommand(
            commands: [stubborn, failing, never],
            options: TransactionOptions(
                order: .parallel(limit: 2),
                observer: { if case .failed = $0 { held.release() } }))
        await #expect(throws: TransactionFailure.self) { try await command.execute() }
        #expect(log.entries == ["undo stubborn"])
    }

    @Test(.promises("T17")) func `T17: a parallel run keeps its limit`() async throws {
        let running = Count()
        let most = Locked(0)
        let members = (0..<20).map { _ in
            UndoableClosure { _ in
                let now = running.add()
                most.withLock { $0 = max($0, now) }
                for _ in 0..<5 { await Task.yield() }
                running.add(-1)
            } undo: { _ in
            }
        }
        try await TransactionCommand(
            commands: members, options: TransactionOptions(order: .parallel(limit: 3))
        ).execute()
        #expect((1...3).contains(most.withLock { $0 }))
    }

    @Test(.promises("B5")) func `B5: irreversible commands are refused before the first one starts`()
        async throws
    {
        let log = Log<String>()
        func run(_ policy: TransactionOptions.IrreversiblePolicy, _ plans: [Plan]) async throws {
            try await command(
                plans, Locked([]), log, options: TransactionOptions(irreversible: policy)
            ).execute()
        }
        let gone = Plan(undoability: .irreversible("gone"))
        await #expect(throws: IrreversibleMember(member: 1)) { try await run(.refuse, [Plan(), gone]) }
        await #expect(throws: IrreversibleMember(member: 1)) {
            try await run(.onlyAsSuffix, [Plan(), gone, Plan()])
        }
        #expect(log.entries == [])
        try await run(.onlyAsSuffix, [Plan(), gone, Plan(undoability: .noEffect), gone])
        #expect(log.entries.count == 4)
    }

    @Test(.promises("S3")) func `a failed compensation is retried`() async {
        let tries = Count()
        let stubborn = UndoableClosure { _ in
        } undo: { _ in
            if tries.add() < 3 { throw TestError() }
        }
        let failing = UndoableClosure { _ in
            throw TestError(number: 1)
        } undo: { _ in
        }
        let command = TransactionCommand(
            commands: [stubborn, failing],
            options: TransactionOptions(
                compensation: .retry(RetryPolicy(maxAttempts: 3), then: .stopOnFailure)))
        await #expect { try await command.execute() } throws: {
            ($0 as? TransactionFailure)?.rollback == .complete
        }
        #expect(tries.value == 3)
    }

    @Test(.promises("S3"), arguments: [false, true], [false, true])
    func `S3: a retried undo of several commands resumes where it ended`(isMacro: Bool, fails: Bool)
        async
    {
        let log = Log<String>(), tries = Count()
        let receiver = Locked<[Int]>([])
        let flaky = UndoableClosure { _ in
            log.add("do 2")
        } undo: { _ in
            log.add("undo 2")
            if tries.add() < 3 { throw TestError() }
        }
        var members: [any UndoableCommand] = [
            Append(number: 1, receiver: receiver, log: log), flaky,
            Append(number: 3, receiver: receiver, log: log),
        ]
        if fails { members.append(Append(number: 4, receiver: receiver, failsToPerform: true, log: log)) }
        let run = TransactionCommand(commands: members)
        let command = TransactionCommand(
            commands: [
                isMacro ? MacroCommand(members) : run,
                Append(number: 4, receiver: receiver, failsToPerform: true, log: log),
            ],
            options: TransactionOptions(
                compensation: .retry(RetryPolicy(maxAttempts: 5), then: .continueOnFailure)))
        // A failing run compensates itself, once, and reports what is left.
        let isLeft = fails && !isMacro
        await #expect { try await command.execute() } throws: {
            ($0 as? TransactionFailure)?.rollback == (isLeft ? .incomplete : .complete)
        }
        #expect(
            log.entries == ["do 1", "do 2", "do 3", "do 4", "undo 3", "undo 2", "undo 1"]
                + (isLeft ? [] : ["undo 2", "undo 2"]))
        if !isMacro { #expect(run.state == (fails ? .failed : .undone)) }
    }

    @Test(.promises("S3")) func `S3: a nested run's leftovers are known despite a mapped error`()
        async throws
    {
        struct Mapped: Error {}
        let receiver = Locked<[Int]>([])
        for (isIrreversible, rollback) in [
            (false, TransactionFailure.Rollback.incomplete), (true, .completeExceptIrreversible),
        ] {
            let stays = Append(
                number: 1, receiver: receiver, failsToUndo: !isIrreversible,
                undoability: isIrreversible ? .irreversible("gone") : .exact)
            let inner = TransactionCommand(
                commands: [stays, Append(number: 2, receiver: receiver, failsToPerform: true)],
                options: TransactionOptions(mapError: { _ in Mapped() }))
            let outer = TransactionCommand(commands: [inner])
            do { try await outer.execute() } catch {
                let failure = try #require(error as? TransactionFailure)
                #expect(failure.rollback == rollback && failure.cause is Mapped)
                let known = failure.compensationFailures.first?.error as? TransactionFailure
                #expect((known?.rollback == .incomplete) == !isIrreversible)
            }
            #expect(outer.state == .failed)
        }
    }

    @Test(.promises("C8"))
    func `C8: a plain command's registrations are undone in its own run, and after each attempt`()
        async
    {
        let log = Log<String>()
        let command = ClosureCommand { context in
            log.add("attempt \(context.attempt)")
            context.onFailure { _ in log.add("taken back") }
            throw TestError()
        }
        for run in [
            TransactionCommand(command), TransactionCommand(command.retry(RetryPolicy(maxAttempts: 2))),
        ] {
            await #expect(throws: TestError.self) { try await run.execute() }
        }
        #expect(
            log.entries == ["attempt 1", "taken back", "attempt 1", "taken back", "attempt 2", "taken back"])
    }

    @Test(.promises("S4")) func `S4: a retried undo skips no leftovers of a failed run`()
        async throws
    {
        let receiver = Locked<[Int]>([]), fails = Locked(false)
        let inner = TransactionCommand(commands: [
            Append(number: 1, receiver: receiver),
            UndoableClosure { (context: CommandContext) in
                guard fails.withLock({ $0 }) else { return }
                context.onFailure { _ in throw TestError(number: 2) }
                throw TestError(number: 1)
            } undo: { _ in
            },
        ])
        let failing = UndoableClosure { (_: CommandContext) in
            // This command misbehaves: it undoes the preceding run and executes that run again, which breaks it.
            try await inner.undo()
            fails.withLock { $0 = true }
            _ = try? await inner.execute()
            throw TestError(number: 3)
        } undo: { _ in
        }
        let command = TransactionCommand(
            commands: [inner, failing],
            options: TransactionOptions(
                compensation: .retry(RetryPolicy(maxAttempts: 3), then: .continueOnFailure)))
        await #expect { try await command.execute() } throws: { error in
            let failure = error as? TransactionFailure
            return failure?.rollback == .incomplete
                && failure?.compensationFailures.map { $0.error as? CommandUsageError } == [.broken]
        }
        #expect(inner.state == .broken)
    }

    @Test(.promises("C8")) func `C8: parts of a failing perform are undone as the policy says`() async {
        func run(_ policy: TransactionOptions.Compensation) async -> (TransactionFailure?, [String]) {
            let log = Log<String>(), tries = Count()
            let failing = UndoableClosure { (context: CommandContext) in
                context.onFailure { _ in log.add("a") }
                context.onFailure { _ in
                    log.add("b")
                    if tries.add() < 3 { throw TestError() }
                }
                context.onFailure { _ in log.add("c") }
                throw TestError(number: 1)
            } undo: { _ in
            }
            let command = TransactionCommand(
                commands: [Append(number: 0, receiver: Locked([]), log: log), failing],
                options: TransactionOptions(compensation: policy))
            do { try await command.execute() } catch {
                return (error as? TransactionFailure, Array(log.entries.dropFirst()))
            }
            return (nil, [])
        }
        var (failure, log) = await run(.continueOnFailure)
        #expect(log == ["c", "b", "a", "undo 0"])
        #expect(failure?.compensationFailures.map(\.member) == [1] && failure?.notCompensated == [])
        (failure, log) = await run(.stopOnFailure)
        #expect(log == ["c", "b"])
        #expect(failure?.compensationFailures.map(\.member) == [1] && failure?.notCompensated == [0])
        (failure, log) = await run(.retry(RetryPolicy(maxAttempts: 2), then: .stopOnFailure))
        #expect(log == ["c", "b", "b"])
        #expect(failure?.notCompensated == [0])
        (failure, log) = await run(.retry(RetryPolicy(maxAttempts: 3), then: .stopOnFailure))
        #expect(log == ["c", "b", "b", "b", "a", "undo 0"])
        #expect(failure?.rollback == .complete)
    }

    @Test(.promises("C8"))
    func `C8: parts of a single command and of a retry's attempt follow the policy, too`()
        async
    {
        let tries = Count(), retries = Count()
        let failing = UndoableClosure { (context: CommandContext) in
            context.onFailure { _ in
                tries.add()
                throw TestError()
            }
            throw TestError(number: 1)
        } undo: { _ in
        }
        let options = TransactionOptions(
            compensation: .retry(
                RetryPolicy(
                    maxAttempts: 3,
                    retryIf: { _ in
                        retries.add()
                        return true
                    }), then: .continueOnFailure))
        await #expect { try await TransactionCommand(failing, options: options).execute() } throws: {
            ($0 as? TransactionFailure)?.compensationFailures.count == 1
        }
        #expect(tries.value == 3)
        let once = IrreversibleCommand(failing.retry(RetryPolicy(maxAttempts: 1)), because: "no undo")
        await #expect { try await TransactionCommand(commands: [once], options: options).execute() } throws: {
            (($0 as? TransactionFailure)?.compensationFailures.first?.error as? TestError) == TestError()
        }
        #expect(tries.value == 6 && retries.value == 4, "what has been tried is not tried again around it")
    }

    @Test(.promises("P10"))
    func `P10: a macro runs a prefix, throws the first error unchanged, and an empty one succeeds`()
        async
    {
        let generator = Generator<[Bool]>.array(
            of: Generator<Int>.int(in: 0...4).map { $0 == 4 }, count: 0...8)
        await forAll(generator, cases: 150) { fails in
            let log = Log<String>()
            let receiver = Locked<[Int]>([])
            let macro = MacroCommand(
                fails.enumerated().map {
                    Append(number: $0, receiver: receiver, failsToPerform: $1, log: log)
                })
            let first = fails.firstIndex(of: true)
            var thrown: (any Error)?
            var proof: MacroCommand.Undo?
            do { proof = try await macro.perform(CommandContext()).undo } catch { thrown = error }
            #expect(thrown as? TestError == first.map { TestError(number: $0) })
            #expect(log.entries == (0..<(first.map { $0 + 1 } ?? fails.count)).map { "do \($0)" })
            #expect(receiver.withLock { $0.count } == first ?? fails.count)
            if let proof {
                try await macro.undo(proof, CommandContext())
                #expect(receiver.withLock { $0 } == [])
            }
        }
    }

    @Test(.promises("B3")) func `B3: a macro inside a failing run undoes its prefix`() async {
        let log = Log<String>()
        let receiver = Locked<[Int]>([])
        let macro = MacroCommand([
            Append(number: 1, receiver: receiver, log: log),
            Append(number: 2, receiver: receiver, failsToPerform: true, log: log),
        ])
        let command = TransactionCommand(commands: [
            Append(number: 0, receiver: receiver, log: log), macro,
        ])
        await #expect { try await command.execute() } throws: {
            ($0 as? TransactionFailure)?.cause as? TestError == TestError(number: 2)
        }
        #expect(log.entries == ["do 0", "do 1", "do 2", "undo 1", "undo 0"])
    }

    @Test(.promises("C10"))
    func `C10: an irreversible part of a failing command is reported, not as a failure to undo`()
        async throws
    {
        let log = IrreversibleCommand(ClosureCommand {}, because: "logged")
        let failing = IrreversibleCommand(ClosureCommand { throw TestError() }, because: "fails")
        let macro = MacroCommand([log, failing])
        for command in [
            TransactionCommand(commands: [macro]), TransactionCommand(macro),
            TransactionCommand(commands: [TransactionCommand(commands: [log, failing])]),
        ] {
            let failure = await #expect(throws: TransactionFailure.self) { try await command.execute() }
            #expect(failure?.rollback == .completeExceptIrreversible)
            #expect(failure?.compensationFailures.isEmpty == true)
        }
        // Two members in parallel: the irreversible part is in the one that fails second.
        let begun = Mail<Void>()
        let first = UndoableClosure { (_: CommandContext) in
            await begun.next()
            throw TestError(number: 1)
        } undo: { _ in
        }
        let second = TransactionCommand(commands: [
            log,
            UndoableClosure { (_: CommandContext) in
                begun.send(())
                try await Task.sleep(for: .seconds(3600))
            } undo: { _ in
            },
        ])
        let both = TransactionCommand(
            commands: [first, second], options: TransactionOptions(order: .parallel(limit: 2)))
        let failure = await #expect(throws: TransactionFailure.self) { try await both.execute() }
        #expect(failure?.cause as? TestError == TestError(number: 1))
        #expect(failure?.rollback == .completeExceptIrreversible)
        // The same failure does not break an undo stack.
        let stack = UndoStack()
        await #expect(throws: TransactionFailure.self) { try await stack.perform(macro) }
        #expect(!stack.isBroken)
    }

    @Test(.promises("B3", "C7")) func `B3: undoing a macro goes on past a failing undo and says so`()
        async throws
    {
        let log = Log<String>()
        let macro = MacroCommand(
            (0..<3).map { Append(number: $0, receiver: Locked([]), failsToUndo: $0 == 1, log: log) })
        let proof = try await macro.perform(CommandContext()).undo
        await #expect { try await macro.undo(proof, CommandContext()) } throws: {
            ($0 as? TransactionFailure)?.compensationFailures.map(\.member) == [1]
        }
        #expect(log.entries.suffix(3) == ["undo 2", "undo 1", "undo 0"])
    }

    @Test(.promises("B4")) func `B4: the observer sees everything, in order`() async {
        let log = Log<String>()
        let options = TransactionOptions(observer: { event in
            switch event {
            case .started: log.add("started")
            case .finished(let member): log.add("finished \(member)")
            case .failed(let member, let error):
                log.add("failed \(member) \((error as? TestError)?.number ?? 0)")
            case .compensated(let member): log.add("compensated \(member)")
            case .compensationFailed(let member, _): log.add("compensation failed \(member)")
            case .ended: log.add("ended")
            }
        })
        let plans = [Plan(), Plan(failsToUndo: true), Plan(fails: true)]
        _ = try? await command(plans, Locked([]), Log(), options: options).execute()
        #expect(
            log.entries == [
                "started", "finished 0", "finished 1", "failed 2 2", "compensation failed 1", "compensated 0",
                "ended",
            ])
    }

    @Test func `a long run needs no stack, and linear time`() async throws {
        let count = 100_000
        let receiver = Locked(0)
        let leaf = UndoableClosure { _ in
            receiver.withLock { $0 += 1 }
        } undo: { _ in
            receiver.withLock { $0 -= 1 }
        }
        let failing = UndoableClosure { _ in
            throw TestError()
        } undo: { _ in
        }
        let command = TransactionCommand(
            commands: [any UndoableCommand](repeating: leaf, count: count) + [failing])
        await #expect { try await command.execute() } throws: {
            ($0 as? TransactionFailure)?.compensated.count == count
        }
        #expect(receiver.withLock { $0 } == 0)
    }
}
