// One command, one token, one notification, however the command is run, cancelled or released.

import Commands
import CompositeOperationsBasics
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct OneNotificationTests {
    /// The ways in which a run can end.
    enum Way: CaseIterable, Sendable {
        case returns, throwsError, cancelledBefore, cancelledWhileItRuns, dropped, refused, shutDown,
            abandoned
    }

    private func runToEnd(_ way: Way, _ listener: Listener) async throws -> CommandTransaction {
        let invoker = SerialInvoker()
        func made(_ body: @escaping @Sendable () async throws -> Void) -> TransactionCommand<Void> {
            TransactionCommand(ClosureCommand(body), delegate: listener)
        }
        switch way {
        case .returns:
            let command = made {}
            _ = await invoker.submit(command).outcome
            return command.transaction
        case .throwsError:
            let command = made { throw TestError() }
            _ = await invoker.submit(command).outcome
            return command.transaction
        case .cancelledBefore:
            let command = made { Issue.record("it ran") }
            command.handle.cancel()
            invoker.submit(command)
            return command.transaction
        case .cancelledWhileItRuns:
            let begun = Mail<Void>()
            let command = made {
                begun.send(())
                try await Task.sleep(for: .seconds(1000))
            }
            invoker.submit(command)
            await begun.next()
            command.handle.cancel()
            _ = await command.handle.outcome
            return command.transaction
        case .dropped:
            let held = Held()
            var dropped: SerialInvoker? = SerialInvoker()
            let first = dropped!.submit(held)
            await held.begun.next()
            let transaction = {
                let command = made { Issue.record("it ran") }
                dropped!.submit(command)
                return command.transaction
            }()
            dropped = nil
            held.release()
            _ = await first.outcome
            return transaction
        case .refused:
            let full = SerialInvoker(capacity: 1)
            let held = Held()
            full.submit(held)
            await held.begun.next()
            let command = made { Issue.record("it ran") }
            #expect(await full.submit(command).outcome.why == .queueFull)
            held.release()
            try await full.flush()
            return command.transaction
        case .shutDown:
            await invoker.shutdown(.run)
            let command = made { Issue.record("it ran") }
            #expect(await invoker.submit(command).outcome.why == .shutDown)
            return command.transaction
        case .abandoned:
            return made { Issue.record("it ran") }.transaction
        }
    }

    @Test(.promises("P1", "T3", "T7", "Y1"))
    func `P1: N commands, however they end, send N notifications, one each`() async {
        await forAll(.array(of: .element(of: Way.allCases), count: 1...12), cases: 60) { ways in
            let listener = Listener()
            var transactions: [CommandTransaction] = []
            for way in ways { transactions.append(try await runToEnd(way, listener)) }
            for _ in ways { _ = await listener.mail.next() }
            let told = listener.log.entries.map(\.transaction)
            #expect(told.count == ways.count)
            #expect(Set(told) == Set(transactions))
            for (way, transaction) in zip(ways, transactions) {
                let notice = listener.log.entries.first { $0.transaction == transaction }
                #expect((notice?.error == nil) == (way == .returns))
            }
        }
    }

    @Test(.promises("P7", "T11", "Y1"))
    func `Y1: a command dropped unrun ends as abandoned, and releases its delegate`() async {
        weak var gone: Listener?
        let transaction = Log<(CommandTransaction, (any Error)?)>()
        let handle = {
            let listener = Listener { transaction.add(($0.transaction, $0.error)) }
            gone = listener
            return TransactionCommand(ClosureCommand {}, delegate: listener).handle
        }()
        #expect(gone == nil)
        #expect(transaction.entries.map(\.0) == [handle.transaction])
        #expect(handle.result?.why == .abandoned)
    }

    @Test(.promises("P2", "Y6")) func `P2: success is sent if and only if execute returned`() async {
        await forAll(.bool, cases: 40) { fails in
            let listener = Listener()
            let command = TransactionCommand(
                ClosureCommand { if fails { throw TestError() } }, delegate: listener)
            var returned = false
            do {
                try await command.execute()
                returned = true
            } catch {}
            let notices = listener.log.entries
            #expect(notices.count == 1)
            #expect((notices.first?.error == nil) == returned)
            #expect(returned != fails)
        }
    }

    @Test(.promises("P3", "T4")) func `P3: the token delivered is the one that was read at creation`()
        async throws
    {
        let listener = Listener()
        let command = TransactionCommand(ClosureCommand {}, delegate: listener)
        let token = command.transaction
        #expect(command.handle.transaction == token)
        try await command.execute()
        #expect(listener.log.entries.map(\.transaction) == [token])
        #expect(command.transaction == token)
    }

    @Test(.promises("P3")) func `P3: no token is used twice, however many are made and released`() async {
        let count = Int(250_000 * min(1, stressScale))
        let made = await race(4) { _ in
            var tokens: Set<CommandTransaction> = []
            for _ in 0..<count {
                tokens.insert(TransactionCommand(Immediate { _ in }).transaction)
            }
            return tokens
        }
        #expect(made.reduce(Set()) { $0.union($1) }.count == 4 * count)
    }

    @Test(.promises("P4", "T14", "Y3", "C16"))
    func `P4: the delegate is notified after the work ends, with the exact error the caller gets`()
        async
    {
        let error = ErrorObject()
        let hasEnded = Count()
        let listener = Listener { _ in #expect(hasEnded.value == 1) }
        let command = TransactionCommand(
            ClosureCommand {
                defer { hasEnded.add() }
                throw error
            }, delegate: listener)
        await #expect { try await command.execute() } throws: { $0 as? ErrorObject === error }
        #expect(listener.log.entries.map { $0.error as? ErrorObject === error } == [true])
    }

    @Test(.promises("T13", "Y2"))
    func `T13: an error is mapped once, for the caller and the delegate, and stays a failure`() async {
        let calls = Count()
        let mapped = ErrorObject()
        let listener = Listener()
        let options = TransactionOptions(mapError: { _ in
            calls.add()
            return mapped
        })
        let command = TransactionCommand(
            ClosureCommand { throw TestError() }, delegate: listener, options: options)
        await #expect { try await command.execute() } throws: { $0 as? ErrorObject === mapped }
        #expect(listener.log.entries.map { $0.error as? ErrorObject === mapped } == [true])
        #expect(calls.value == 1)
        #expect(command.state == .failed)
    }

    @Test(.promises("P5", "Y5"), arguments: [2, 4])
    func `P5: of many concurrent execute calls one runs it, the others throw`(threads: Int) async {
        for _ in 0..<40 {
            let runs = Count()
            let listener = Listener()
            let command = TransactionCommand(ClosureCommand { runs.add() }, delegate: listener)
            let answers = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<threads {
                    group.addTask {
                        do {
                            _ = try await command.execute()
                            return true
                        } catch {
                            #expect(error as? CommandUsageError == .alreadyExecuted)
                            return false
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.filter(\.self).count == 1)
            #expect(runs.value == 1)
            #expect(listener.log.entries.count == 1)
        }
    }

    @Test(.promises("T18", "Y4")) func `T18: a second execute throws, and changes nothing`() async throws {
        let runs = Count()
        let listener = Listener()
        let command = TransactionCommand(ClosureCommand { runs.add() }, delegate: listener)
        _ = try await command.execute()
        await #expect(throws: CommandUsageError.alreadyExecuted) { try await command.execute() }
        #expect(runs.value == 1)
        #expect(listener.log.entries.count == 1)
        #expect(command.state == .finished)
    }

    @Test(.promises("P5")) func `a command executed while an invoker owns it runs once`()
        async throws
    {
        let held = Held()
        let invoker = SerialInvoker()
        invoker.submit(held)
        await held.begun.next()
        let runs = Count()
        let listener = Listener()
        let command = TransactionCommand(ClosureCommand { runs.add() }, delegate: listener)
        invoker.submit(command)
        #expect(command.state == .accepted)
        _ = try await command.execute()
        #expect(invoker.count == 1)
        held.release()
        try await invoker.flush()
        #expect(runs.value == 1)
        #expect(listener.log.entries.count == 1)
    }

    @Test(.promises("P6"))
    func `P6: an observer is notified if added before the run, during it or after`() async {
        let held = Held()
        let command = TransactionCommand(held)
        let log = Log<String>(), told = Mail<Void>()
        @Sendable func note(_ entry: String) {
            log.add(entry)
            told.send(())
        }
        let before = command.handle.onOutcome { _ in note("before") }
        let invoker = SerialInvoker()
        invoker.submit(command)
        await held.begun.next()
        let during = command.handle.onOutcome { _ in note("during") }
        let ended = command.handle.onOutcome { _ in note("cancelled") }
        ended.cancel()
        _ = command.handle.onOutcome { _ in note("released") }
        held.release()
        #expect(await command.handle.outcome.isFinished)
        // The thread that ended the run notifies the earlier observers, and may have to notify this
        // one, too.
        for _ in 0..<2 { await told.next() }
        let after = command.handle.onOutcome { note("after \($0.isFinished)") }
        await told.next()
        let last = command.handle.onOutcome(.target(Scheduler.shared)) { _ in told.send(()) }
        await told.next()
        #expect(log.entries == ["before", "during", "after true"])
        withExtendedLifetime((before, during, after, last)) {}
    }

    @Test(.promises("P6")) func `P6: an observer added as the run ends is notified once`() async {
        for _ in 0..<300 {
            let told = Count()
            let command = TransactionCommand(Immediate { _ in })
            let subscriptions = Locked<[Subscription]>([])
            _ = await race(2) { index in
                if index == 0 {
                    try? command.executeNow(CommandContext())
                } else {
                    let subscription = command.handle.onOutcome { _ in told.add() }
                    subscriptions.withLock { $0.append(subscription) }
                }
            }
            #expect(told.value == 1)
        }
    }

    @Test(.promises("P6")) func `P6: a subscription ended before its notice is not notified`()
        async throws
    {
        let lane = try SerialLane()
        let gate = Gate()
        try lane.submit { gate.wait() }
        let log = Log<Bool>()
        let command = TransactionCommand(Immediate { _ in })
        let subscription = command.handle.onOutcome(.target(lane)) { log.add($0.isFinished) }
        try await command.execute()
        subscription.cancel()
        gate.open()
        let drained = Mail<Void>()
        try lane.submit { drained.send(()) }
        await drained.next()
        #expect(log.entries.isEmpty)
    }

    @Test(.promises("P7", "T10", "T11", "Y7"))
    func `P7: after the end, delegate and command are freed, token and handle not`() async throws {
        weak var goneDelegate: Listener?
        weak var goneCommand: TransactionCommand<Int>?
        weak var goneCapture: Count?
        let handle = try await {
            let listener = Listener()
            let count = Count()
            let command = TransactionCommand(
                ClosureCommand { count.add() }, delegate: listener)
            goneDelegate = listener
            goneCommand = command
            goneCapture = count
            _ = try await command.execute()
            return command.handle
        }()
        #expect(goneDelegate == nil && goneCommand == nil && goneCapture == nil)
        #expect(handle.result?.isFinished == true)
    }

    @Test(.promises("T12"))
    func `T10, T12: a detached delegate is freed, not notified; a weak one is not held`() async throws {
        let listener = Listener()
        let command = TransactionCommand(ClosureCommand {}, delegate: listener)
        command.handle.detach()
        try await command.execute()
        #expect(listener.log.entries.isEmpty)

        weak var gone: Listener?
        let other = {
            let listener = Listener()
            gone = listener
            return TransactionCommand(
                ClosureCommand {}, delegate: listener,
                options: TransactionOptions(delegateOwnership: .weak))
        }()
        #expect(gone == nil)
        try await other.execute()
        #expect(other.state == .finished)
    }

    @Test(.promises("T2")) func `T2: wrapping a wrapper gives two tokens and two notifications`() async throws
    {
        let inner = Listener()
        let outer = Listener()
        let wrapped = TransactionCommand(ClosureCommand { 7 }, delegate: inner)
        let command = TransactionCommand(wrapped, delegate: outer)
        #expect(wrapped.transaction != command.transaction)
        #expect(try await command.execute() == 7)
        #expect(inner.log.entries.map(\.transaction) == [wrapped.transaction])
        #expect(outer.log.entries.map(\.transaction) == [command.transaction])
    }

    @Test(.promises("Y9"))
    func `cancelling: before the start nothing runs; a value that still arrives is success`() async {
        let command = TransactionCommand(ClosureCommand { Issue.record("it ran") })
        command.handle.cancel()
        #expect(await command.handle.outcome.isCancelled)
        await #expect(throws: CommandUsageError.alreadyExecuted) { try await command.execute() }

        let begun = Mail<Void>()
        let stubborn = TransactionCommand(
            ClosureCommand { (context: CommandContext) in
                begun.send(())
                while !context.isCancelled { await Task.yield() }
                return 1
            })
        let run = Task { try await stubborn.execute() }
        await begun.next()
        stubborn.handle.cancel()
        #expect(await stubborn.handle.outcome.isFinished)
        #expect(await run.result.isSuccess)
    }

    @Test(.promises("T7")) func `cancelling a waiter ends only the wait`() async {
        let held = Held()
        let invoker = SerialInvoker()
        let handle = invoker.submit(held)
        await held.begun.next()
        let waiting = Task { try await handle.value }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(handle.result == nil)
        held.release()
        #expect(await handle.outcome.isFinished)
        #expect(await wait(for: handle)?.isFinished == true)
    }

    @Test(.promises("B6")) func `a wait ends on its own, and helps a lone worker`() async throws {
        let scheduler = try Scheduler(.init(workers: 1))
        let invoker = ConcurrentInvoker(limit: 2, on: scheduler)
        let outer = invoker.submit(
            Immediate { _ in
                let inner = invoker.submit(Immediate { _ in 5 })
                return inner.wait().flatMap { try? $0.get() }
            })
        #expect(try await outer.value == 5)
        let held = Held()
        let late = invoker.submit(held)
        #expect(await wait(for: late, timeout: .milliseconds(1)) == nil)
        held.release()
        try await invoker.flush()
    }

    @Test(.promises("T6")) func `T6: a group completes once, when it is sealed and all in it have ended`()
        async
    {
        let listener = Listener()
        let group = TransactionGroup(delegate: listener)
        let commands = (0..<3).map { number in
            TransactionCommand(ClosureCommand { if number > 0 { throw TestError(number: number) } })
        }
        for command in commands { group.add(command) }
        _ = try? await commands[2].execute()
        _ = try? await commands[1].execute()
        group.seal()
        #expect(group.handle.result == nil)
        _ = try? await commands[0].execute()
        let notices = listener.log.entries
        #expect(notices.map(\.transaction) == [group.transaction])
        #expect(notices.first?.error as? TestError == TestError(number: 2))
    }

    @Test(.promises("T6"))
    func `T6: cancelling a group cancels present and later members, and ends it after they end`()
        async
    {
        let listener = Listener(), begun = Mail<Void>(), goOn = Mail<Void>()
        let group = TransactionGroup(delegate: listener)
        let first = TransactionCommand(
            ClosureCommand { context in
                begun.send(())
                await goOn.next()
                try context.checkCancellation()
            })
        let second = TransactionCommand(ClosureCommand {}), third = TransactionCommand(ClosureCommand {})
        group.add(first)
        group.add(second)
        let run = Task { try await first.execute() }
        await begun.next()
        group.handle.cancel()
        group.add(third)
        group.seal()
        #expect(second.state == .failed && third.state == .failed)
        #expect(group.handle.result == nil && listener.log.entries.isEmpty)
        goOn.send(())
        _ = try? await run.value
        #expect(await group.handle.outcome.isGivenUp)
        #expect(listener.log.entries.count == 1)
    }

    @Test(.promises("T9")) func `T9: a factory's wrapper of an undoable command is undoable`()
        async throws
    {
        let receiver = Locked<[Int]>([])
        func make<C: Command>(_ command: C) -> TransactionCommand<C.Output> {
            TransactionCommands().make(command, delegate: nil)
        }
        let command = make(Append(number: 1, receiver: receiver))
        _ = try await command.execute()
        #expect(receiver.withLock { $0 } == [1])
        try await command.undo()
        #expect(receiver.withLock { $0 } == [])
    }

    @Test(.promises("T6")) func `T6: a group's delegate is notified after its members'`()
        async throws
    {
        let log = Log<String>()
        let group = TransactionGroup(delegate: Listener { _ in log.add("group") })
        let command = TransactionCommand(ClosureCommand {}, delegate: Listener { _ in log.add("command") })
        group.add(command)
        group.seal()
        try await command.execute()
        #expect(log.entries == ["command", "group"])
    }

    @Test(.promises("T6"))
    func `T6: a group of successes succeeds; an empty one, too; an unsealed one is abandoned`()
        async
    {
        let group = TransactionGroup()
        let command = TransactionCommand(ClosureCommand {})
        group.add(command)
        group.seal()
        _ = try? await command.execute()
        #expect(await group.handle.outcome.isFinished)
        let empty = TransactionGroup()
        empty.seal()
        #expect(await empty.handle.outcome.isFinished)
        let listener = Listener()
        _ = TransactionGroup(delegate: listener)
        #expect(listener.log.entries.count == 1)
        #expect(listener.log.entries.first?.error != nil)
    }

    @Test(.promises("T6", "K4", "K6"))
    func `K6: only the last refresh may close the spinner, once`() {
        var latest = LatestTransaction()
        let first = TransactionCommand(ClosureCommand {})
        let second = TransactionCommand(ClosureCommand {})
        latest.begin(first.transaction)
        latest.begin(second.transaction)
        let answers = [first, second, second].map { latest.finish($0.transaction) }
        #expect(answers == [false, true, false])
    }

    @Test(.promises("K5")) func `K5: nothing to do is a command that fails when it is run`() async {
        let listener = Listener()
        let command = TransactionCommand<Int>.failed(TestError(number: 5), delegate: listener)
        #expect(listener.log.entries.isEmpty)
        await #expect(throws: TestError(number: 5)) { try await command.execute() }
        #expect(listener.log.entries.map(\.transaction) == [command.transaction])
    }

    @Test(.promises("T9")) func `T9: a factory is one generic method, easy to fake`() async throws {
        struct Fake: TransactionCommandFactory {
            let made = Count()
            func make<C: Command>(_ command: C, delegate: (any TransactionCommandDelegate)?)
                -> TransactionCommand<C.Output>
            {
                made.add()
                return .failed(TestError(number: 9), delegate: delegate)
            }
        }
        func refresh(_ factory: any TransactionCommandFactory, _ listener: Listener) -> TransactionCommand<
            Int
        > {
            factory.make(ClosureCommand { 3 }, delegate: listener)
        }
        let listener = Listener()
        #expect(try await refresh(TransactionCommands(), listener).execute() == 3)
        let fake = Fake()
        await #expect(throws: TestError(number: 9)) { try await refresh(fake, listener).execute() }
        #expect(fake.made.value == 1)
        #expect(listener.log.entries.count == 2)
    }

    @Test(.promises("T5")) func `T5: a token prints as a tag, and is compared and hashed`() {
        let one = TransactionCommand(ClosureCommand {}).transaction
        let two = TransactionCommand(ClosureCommand {}).transaction
        #expect(one != two)
        #expect(Set([one, one, two]).count == 2)
        #expect("\(one.debugDescription)".hasPrefix("transaction "))
    }
}

extension Result {
    var isSuccess: Bool { if case .success = self { true } else { false } }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct RetentionTests {
    /// Retains the command whose delegate it is: the cycle that a program must not create.
    private final class Holder: TransactionCommandDelegate {
        let command = Locked<TransactionCommand<Void>?>(nil)
        func commandTransactionDidSucceed(_ transaction: CommandTransaction) {}
        func commandTransaction(_ transaction: CommandTransaction, didFailWithError error: any Error) {}
    }

    @Test(.promises("T11"))
    func `a delegate that retains its unsubmitted command lives until abandonment`() {
        weak var gone: Holder?
        weak var command: TransactionCommand<Void>?
        do {
            let holder = Holder()
            gone = holder
            holder.command.withLock { $0 = TransactionCommand(ClosureCommand {}, delegate: holder) }
            command = holder.command.withLock { $0 }
        }
        #expect(gone != nil)
        command?.abandon()
        #expect(gone == nil && command == nil)
    }

    #if DEBUG
        @Test(.promises("T11")) func `debug builds count the commands that exist`() async {
            // In its own process, where no other test makes commands.
            await #expect(processExitsWith: .success) {
                var commands = (0..<5).map { _ in TransactionCommand(ClosureCommand {}) }
                precondition(InstanceCount.live["transaction commands"] == 5)
                commands.removeLast(2)
                precondition(InstanceCount.live["transaction commands"] == 3)
            }
        }
    #endif

    @Test(.promises("Y9")) func `Y9: a cancelled run does not look failed to any observer`()
        async
    {
        let listener = Listener()
        let command = TransactionCommand(ClosureCommand { throw CancellationError() }, delegate: listener)
        await #expect(throws: CancellationError.self) { try await command.execute() }
        #expect(listener.log.entries.first?.error is CancellationError)
        #expect(command.handle.result?.isGivenUp == true)
        let failed = TransactionCommand(ClosureCommand { throw TestError() })
        _ = try? await failed.execute()
        #expect(failed.handle.result?.isGivenUp == false)
    }

    @Test(.promises("P9"))
    func `P9: a late observer is notified after earlier ones, though one of them is slow`() async {
        let command = TransactionCommand(Immediate { _ in 3 })
        let begun = Gate(), goOn = Gate(), log = Log<String>()
        let first = command.handle.onOutcome { _ in
            begun.open()
            goOn.wait()
            log.add("first")
        }
        let told = Mail<Void>()
        elsewhere.async {
            _ = try? command.executeNow(CommandContext())
            told.send(())
        }
        await withCheckedContinuation { continuation in
            elsewhere.async {
                begun.wait()
                continuation.resume()
            }
        }
        let late = command.handle.onOutcome { _ in log.add("late") }
        #expect(log.entries == [])
        goOn.open()
        await told.next()
        #expect(log.entries == ["first", "late"])
        withExtendedLifetime((first, late)) {}
    }

    @Test(.promises("P9")) func `P9: observers added as a run ends are notified in order`() async {
        for _ in 0..<200 {
            let command = TransactionCommand(Immediate { _ in 3 })
            let log = Log<Int>(), subscriptions = Locked<[Subscription]>([])
            _ = await race(2) { thread in
                if thread == 0 {
                    _ = try? command.executeNow(CommandContext())
                } else {
                    for number in 0..<20 {
                        let subscription = command.handle.onOutcome { _ in log.add(number) }
                        subscriptions.withLock { $0.append(subscription) }
                    }
                }
            }
            #expect(log.entries == Array(0..<20))
        }
    }

    @Test
    func `T10: a lone delegate is notified in place or elsewhere, and observers added meanwhile after it`() {
        let log = Log<String>(), place = Kept()
        for isElsewhere in [false, true] {
            for hasObserver in [false, true] {
                let subscriptions = Locked<[Subscription]>([]), run = Locked<CommandHandle<Int>?>(nil)
                let listener = Listener { _ in
                    let late = run.withLock { $0 }?.onOutcome { _ in log.add("late") }
                    log.add("delegate")
                    subscriptions.withLock { $0.append(late!) }
                }
                let options = TransactionOptions(delivery: isElsewhere ? .target(place) : .inline)
                let command = TransactionCommand(Immediate { _ in 3 }, delegate: listener, options: options)
                run.withLock { $0 = command.handle }
                if hasObserver {
                    let observer = command.handle.onOutcome { _ in log.add("observer") }
                    subscriptions.withLock { $0.append(observer) }
                }
                _ = try? command.executeNow(CommandContext())
                if isElsewhere {
                    #expect(log.take() == (hasObserver ? ["observer"] : []))
                    place.runAll()
                    #expect(log.take() == ["late", "delegate"])
                } else {
                    #expect(log.take() == ["delegate"] + (hasObserver ? ["observer"] : []) + ["late"])
                }
                run.withLock { $0 = nil }
            }
        }
    }

    @Test func `T10: a lone delegate delays no observer delivered elsewhere`() async {
        let place = Kept(), told = Gate(), run = Locked<CommandHandle<Int>?>(nil), log = Log<String>()
        let subscriptions = Locked<[Subscription]>([])
        let listener = Listener { _ in
            let late = run.withLock { $0 }?.onOutcome(.target(place)) { _ in
                log.add("elsewhere")
                told.open()
            }
            subscriptions.withLock { $0.append(late!) }
            place.runAll()
            told.wait()
            log.add("delegate")
        }
        let command = TransactionCommand(Immediate { _ in 3 }, delegate: listener)
        run.withLock { $0 = command.handle }
        _ = try? command.executeNow(CommandContext())
        #expect(log.entries == ["elsewhere", "delegate"])
        run.withLock { $0 = nil }
    }

    @Test(.promises("P9")) @MainActor func `P9: the main actor is one place, however it is named`() async {
        let command = TransactionCommand(Immediate { _ in 3 })
        let log = Log<Int>(), told = Mail<Void>()
        let subscriptions = (0..<10).map { number in
            command.handle.onOutcome(number % 2 == 0 ? .main : .isolated(MainActor.shared)) { _ in
                log.add(number)
                if number == 9 { told.send(()) }
            }
        }
        _ = try? command.executeNow(CommandContext())
        await told.next()
        #expect(log.entries == Array(0..<10))
        withExtendedLifetime(subscriptions) {}
    }

    @Test func `any number of observers may come and go, at the same cost each`() {
        let command = TransactionCommand(Immediate { _ in 3 })
        let log = Log<Int>()
        var subscriptions = (0..<100_000).map { number in
            Optional(command.handle.onOutcome { _ in log.add(number) })
        }
        for index in subscriptions.indices.reversed() where index % 1_000 != 7 { subscriptions[index] = nil }
        _ = try? command.executeNow(CommandContext())
        #expect(log.entries == (0..<100).map { $0 * 1_000 + 7 })
        withExtendedLifetime(subscriptions) {}
    }

    @Test(.promises("T4", "T8", "K1"))
    func `K1: a command that ended unobserved can be queried later`() async throws {
        let listener = Listener()
        let command = TransactionCommand(Immediate { _ in 3 }, delegate: listener)
        let stored = command.transaction
        _ = try await command.execute()
        #expect(listener.log.entries.map(\.transaction) == [stored])
        #expect(try await command.handle.value == 3)
        let late = Log<Bool>()
        let subscription = command.handle.onOutcome { late.add($0.isFinished) }
        #expect(late.entries == [true])
        withExtendedLifetime(subscription) {}
    }
}

/// Stores submitted work until a test runs it.
private final class Kept: ExecutionTarget {
    private let work = Locked<[ExecutionWork]>([])

    var isCurrent: Bool { false }
    func submit(_ piece: ExecutionWork) { work.withLock { $0.append(piece) } }

    func runAll() {
        while let piece = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { piece.run() }
    }
}
