// Invokers: one at a time, some at a time, in batches; and where notices are delivered.

import Commands
import CompositeOperations
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct InvokerTests {
    @Test(.promises("P8"))
    func `P8: a serial invoker starts in the order of submission, and never two at once`() async throws {
        let invoker = SerialInvoker()
        let log = Log<Int>()
        let inside = Count()
        for index in 0..<400 {
            if index.isMultiple(of: 2) {
                invoker.submit(
                    Immediate { _ in
                        #expect(inside.add() == 1)
                        log.add(index)
                        inside.add(-1)
                    })
            } else {
                invoker.submit(
                    ClosureCommand {
                        #expect(inside.add() == 1)
                        log.add(index)
                        await Task.yield()
                        inside.add(-1)
                    })
            }
        }
        try await invoker.flush()
        #expect(log.entries == Array(0..<400))
        #expect(invoker.count == 0)
    }

    @Test(.promises("P8", "Y8"))
    func `P8: a blocked delegate delays no command, and a delegate may submit and wait`() async throws {
        // Two workers, on any machine: the delegate blocks one of them.
        let invoker = SerialInvoker(on: try Scheduler(.init(workers: 2)))
        let gate = Gate()
        let blocked = Listener { _ in gate.wait() }
        let first = TransactionCommand(ClosureCommand {}, delegate: blocked)
        invoker.submit(first)
        #expect(await invoker.submit(ClosureCommand { 1 }).outcome.isFinished)
        let answer = Mail<Bool>()
        gate.open()
        let asking = Listener { [weak invoker] _ in
            answer.send(invoker?.submit(ClosureCommand { 2 }).wait()?.isFinished ?? false)
        }
        invoker.submit(TransactionCommand(ClosureCommand {}, delegate: asking))
        #expect(await answer.next())
    }

    @Test(.promises("P8"), arguments: 0..<3)
    func `P8: an observer of one end may wait for the others`(way: Int) async throws {
        var invoker: SerialInvoker? = SerialInvoker()
        let held = Held()
        let running = invoker!.submit(held)
        await held.begun.next()
        let handles = Locked<[CommandHandle<Void>]>([])
        let listener = Listener { _ in for handle in handles.withLock({ $0 }) { _ = handle.wait() } }
        for _ in 0..<3 {
            let command = TransactionCommand(Immediate { _ in }, delegate: listener)
            handles.withLock { $0.append(command.handle) }
            invoker!.submit(command)
        }
        switch way {
        case 0: invoker!.cancelAll()
        case 1:
            let same = invoker!
            async let shutdown: Void = same.shutdown(.reject)
            for _ in 0..<3 { _ = await listener.mail.next() }
            held.release()
            await shutdown
        default: invoker = nil
        }
        for handle in handles.withLock({ $0 }) { #expect(await !handle.outcome.isFinished) }
        held.release()
        _ = await running.outcome
    }

    @Test(.promises("P9", "T15"), arguments: [0, 1, 2])
    func `P9: notices are delivered on their target, in order of the ends`(place: Int) async throws {
        let invoker = SerialInvoker()
        let lane = try SerialLane()
        let home = Home()
        let delivery: Delivery = [.target(lane), .isolated(home), .inline][place]
        let log = Log<Int>()
        let done = Mail<Void>()
        let count = 200
        for index in 0..<count {
            let listener = Listener { _ in
                if place == 0 { #expect(lane.isCurrent) }
                if place == 1 { home.assertIsolated() }
                log.add(index)
                if index == count - 1 { done.send(()) }
            }
            invoker.submit(
                TransactionCommand(
                    Immediate { _ in }, delegate: listener, options: TransactionOptions(delivery: delivery)))
        }
        await done.next()
        #expect(log.entries == Array(0..<count))
    }

    private actor Home {}

    @MainActor
    private final class MainListener: MainActorTransactionCommandDelegate {
        var notices: [Bool] = []
        let told = Mail<Void>()
        func commandTransactionDidSucceed(_ transaction: CommandTransaction) { note(true) }
        func commandTransaction(_ transaction: CommandTransaction, didFailWithError error: any Error) {
            note(false)
        }
        private func note(_ isSuccess: Bool) {
            MainActor.assertIsolated()
            notices.append(isSuccess)
            told.send(())
        }
    }

    @Test(.promises("T12")) @MainActor
    func `T12: a delegate detached with its notice in flight is not notified`()
        async
    {
        let invoker = SerialInvoker(), listener = MainListener()
        let handle = invoker.submit(TransactionCommand(ClosureCommand {}, delegate: listener))
        // Blocks the thread that would deliver the notice.
        func waitHere() { _ = handle.wait() }
        waitHere()
        handle.detach()
        await Task { @MainActor in }.value  // queued behind the notice
        #expect(listener.notices == [])
        #expect(await handle.outcome.isFinished)
    }

    @Test(.promises("P9", "K2", "K3")) @MainActor
    func `K2: a main-actor delegate is always told there`() async throws {
        let listener = MainListener()
        let invoker = SerialInvoker()
        invoker.submit(TransactionCommand(Immediate { _ in }, delegate: listener))
        invoker.submit(TransactionCommand(ClosureCommand { throw TestError() }, delegate: listener))
        TransactionCommand(commands: [], delegate: listener).abandon()
        for _ in 0..<3 { await listener.told.next() }
        #expect(listener.notices.count == 3)
        #expect(listener.notices.filter(\.self).count == 1)
    }

    @Test(.promises("T15", "Y6"))
    func `the slot is free when a delegate is notified, and it delays no waiters`() async {
        let invoker = SerialInvoker()
        let counts = Mail<Int>()
        let gate = Gate()
        let listener = Listener { [weak invoker] _ in
            counts.send(invoker?.count ?? -1)
            gate.wait()
        }
        let command = TransactionCommand(Immediate { _ in 4 }, delegate: listener)
        // The group waits from the start; it does not find the outcome already set.
        let group = TransactionGroup()
        group.add(command)
        group.seal()
        let handle = invoker.submit(command)
        #expect(await counts.next() == 0)
        #expect(await handle.outcome.isFinished)
        #expect(await group.handle.outcome.isFinished)
        gate.open()
    }

    @Test(.promises("T16", "C15"))
    func `T16: a concurrent invoker runs as many as its limit, and no more`() async throws {
        let invoker = ConcurrentInvoker(limit: 3)
        let held = (0..<5).map { _ in Held() }
        for each in held { invoker.submit(each) }
        for each in held[..<3] { await each.begun.next() }
        #expect(invoker.limit == 3)
        #expect(invoker.count == 5)
        held[1].release()
        await held[3].begun.next()
        for each in held { each.release() }
        try await invoker.flush()
        #expect(invoker.count == 0)
        #expect(invoker.statistics.finished == 5)
    }

    @Test(.promises("T16")) func `T16: priorities go first, and submissions in order within one`()
        async throws
    {
        let invoker = SerialInvoker()
        let held = Held()
        invoker.submit(held)
        await held.begun.next()
        let log = Log<Int>()
        for (number, priority) in [
            (1, CommandPriority.low), (2, .normal), (3, .high), (4, .normal), (5, .high),
        ] {
            invoker.submit(Immediate { _ in log.add(number) }, priority: priority)
        }
        held.release()
        try await invoker.flush()
        #expect(log.entries == [3, 5, 2, 4, 1])
    }

    @Test(.promises("T16", "C15")) func `T16: cancelAll ends waiters and asks runners`() async throws {
        let invoker = SerialInvoker()
        let begun = Mail<Void>()
        let running = invoker.submit(
            ClosureCommand {
                begun.send(())
                try await Task.sleep(for: .seconds(1000))
            })
        await begun.next()
        let waiting = invoker.submit(ClosureCommand { Issue.record("it ran") })
        invoker.cancelAll()
        #expect(await waiting.outcome.isCancelled)
        #expect(await running.outcome.isCancelled)
        try await invoker.flush()
        #expect(invoker.statistics.cancelled == 2)
    }

    /// Regression test: the running command ended, and the next one began before it was cancelled.
    @Test(.promises("T16")) func `T16: after cancelAll no waiter begins`() async throws {
        for _ in 0..<20 {
            let invoker = SerialInvoker()
            let (begun, ran) = (Mail<Void>(), Count())
            let running = invoker.submit(
                ClosureCommand {
                    begun.send(())
                    try await Task.sleep(for: .seconds(1000))
                })
            await begun.next()
            let waiting = (0..<50).map { _ in invoker.submit(ClosureCommand { _ = ran.add() }) }
            invoker.cancelAll()
            for handle in waiting { #expect(await handle.outcome.reason?.kind == .requested) }
            #expect(await running.outcome.isCancelled)
            try await invoker.flush()
            #expect(ran.value == 0 && invoker.statistics.cancelled == 51)
        }
    }

    @Test(.promises("T16")) func `T16: a shutdown runs or refuses waiters, and nothing comes after`()
        async
    {
        for pending in [PendingAtShutdown.run, .reject] {
            let invoker = SerialInvoker()
            let held = Held()
            let first = invoker.submit(held)
            await held.begun.next()
            let waiting = invoker.submit(ClosureCommand { 1 })
            let end = Task { await invoker.shutdown(pending) }
            if pending == .reject { #expect(await waiting.outcome.why == .shutDown) }
            held.release()
            await end.value
            #expect(await first.outcome.isFinished)
            #expect(await waiting.outcome.isFinished == (pending == .run))
            #expect(await invoker.submit(ClosureCommand { 2 }).outcome.why == .shutDown)
        }
    }

    @Test(.promises("T16"))
    func `T16: submissions over capacity are refused, and an end makes room again`()
        async throws
    {
        let invoker = SerialInvoker(capacity: 2)
        let held = Held()
        invoker.submit(held)
        await held.begun.next()
        let waiting = invoker.submit(ClosureCommand { 1 })
        #expect(await invoker.submit(ClosureCommand { 2 }).outcome.why == .queueFull)
        waiting.cancel()
        let next = invoker.submit(ClosureCommand { 3 })
        held.release()
        #expect(await next.outcome.isFinished)
        #expect(invoker.statistics.rejected == 1)
    }

    /// Keeps one worker busy until the gate is opened.
    private func occupied(_ scheduler: Scheduler) async throws -> Gate {
        let begun = Mail<Void>()
        let gate = Gate()
        try scheduler.submit {
            begun.send(())
            gate.wait()
        }
        await begun.next()
        return gate
    }

    @Test func `a scheduler that is shut down refuses for its invoker`() async throws {
        let scheduler = try Scheduler(.init(workers: 1))
        try await scheduler.shutdown(.drain)
        let invoker = SerialInvoker(on: scheduler)
        #expect(await invoker.submit(ClosureCommand { 1 }).outcome.why == .shutDown)
    }

    @Test(.promises("P1")) func `a scheduler that cancels waiters refuses for its invoker`()
        async throws
    {
        let scheduler = try Scheduler(.init(workers: 1, spareWorkers: 0))
        let gate = try await occupied(scheduler)
        let invoker = SerialInvoker(on: scheduler)
        let listener = Listener()
        let handles = (0..<3).map { _ in
            invoker.submit(TransactionCommand(Immediate { _ in }, delegate: listener))
        }
        async let shutdown: Void = scheduler.shutdown(.cancelPending)
        #expect(await eventually { (try? scheduler.submit {}) == nil })
        gate.open()
        try await shutdown
        for handle in handles { #expect(await handle.outcome.why == .shutDown) }
        for _ in handles { #expect(await listener.mail.next().error != nil) }
        try await invoker.flush()
        #expect(invoker.count == 0)
    }

    @Test(.promises("P1")) func `a temporarily full scheduler loses none of its invoker`()
        async throws
    {
        let scheduler = try Scheduler(.init(workers: 1, capacity: 1, whenFull: .reject, spareWorkers: 0))
        let gate = try await occupied(scheduler)
        while (try? scheduler.submit {}) != nil {}
        let invoker = SerialInvoker(on: scheduler)
        let handle = invoker.submit(Immediate { _ in })
        gate.open()
        #expect(await handle.outcome.isFinished)
        #expect(await invoker.submit(Immediate { _ in }).outcome.isFinished)
    }

    @Test func `a flush that is cancelled returns, and the commands go on`() async throws {
        let invoker = SerialInvoker()
        let (begun, goOn) = (Mail<Void>(), Mail<Void>())
        let slow = invoker.submit(
            ClosureCommand {
                begun.send(())
                await goOn.next()
            })
        let after = invoker.submit(ClosureCommand { 3 })
        await begun.next()
        // The flush is waiting when this returns.
        let flush = Task.immediate { try await invoker.flush() }
        flush.cancel()
        await #expect(throws: CancellationError.self) { try await flush.value }
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await invoker.flush()
        }
        await #expect(throws: CancellationError.self) { try await late.value }
        let waiting = Task { try await invoker.flush() }
        goOn.send(())
        try await waiting.value
        try await invoker.flush()
        #expect(await slow.outcome.isFinished)
        #expect(try await after.value == 3)
    }

    @Test(.promises("T16")) func `a flush from inside is refused`() async throws {
        let invoker = SerialInvoker()
        let answer = await invoker.submit(ClosureCommand { try await invoker.flush() }).outcome
        #expect(answer.error as? CommandUsageError == .reentrant)
        let nested = await invoker.submit(
            TransactionCommand(commands: [
                UndoableClosure { _ in
                    await #expect(throws: CommandUsageError.reentrant) { try await invoker.flush() }
                } undo: { _ in
                }
            ])
        ).outcome
        #expect(nested.isFinished)
        try await invoker.flush()
    }

    @Test(.promises("T16")) func `waiting in a serial invoker for a later command stops the process`()
        async
    {
        await #expect(processExitsWith: .failure) {
            let invoker = SerialInvoker()
            _ = await invoker.submit(
                ClosureCommand { _ = await invoker.submit(ClosureCommand { 1 }).outcome }
            ).outcome
        }
        await #expect(processExitsWith: .failure) {
            let invoker = SerialInvoker()
            _ = await invoker.submit(
                Immediate { _ in _ = invoker.submit(ClosureCommand { 1 }).wait() }
            ).outcome
        }
    }

    @Test func `in a parallel batch one command may wait for another`() async throws {
        for isFirst in [false, true] {
            let invoker = BatchInvoker(size: 2, order: .parallel(limit: 2))
            let awaited = TransactionCommand(ClosureCommand { 1 })
            let waiting = ClosureCommand { try await awaited.handle.value }
            if isFirst { invoker.submit(awaited) }
            let handle = invoker.submit(waiting)
            if !isFirst { invoker.submit(awaited) }
            #expect(try await handle.value == 1)
        }
        await #expect(processExitsWith: .failure) {
            let invoker = BatchInvoker(size: 1, order: .parallel(limit: 2))
            // The next batch begins only when this one has ended.
            let command = ClosureCommand { try await invoker.submit(ClosureCommand { 1 }).value }
            _ = await invoker.submit(command).outcome
        }
    }

    @Test(.promises("T16"))
    func `a command of a serial invoker that waits for its own end stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let own = Mail<CommandHandle<Void>>()
            let invoker = SerialInvoker()
            let handle = invoker.submit(ClosureCommand { _ = await own.next().outcome })
            own.send(handle)
            _ = await handle.outcome
            withExtendedLifetime(invoker) {}
        }
    }

    @Test func `a task left behind by a command may await queued ones`() async throws {
        let invoker = SerialInvoker()
        let looked = Mail<Bool>(), answer = Mail<Int>()
        invoker.submit(
            ClosureCommand {
                Task {
                    let handle = invoker.submit(ClosureCommand { 6 })
                    // Checked while the command still has its turn; later, the check could not
                    // fail.
                    looked.send(isWaitedFor(handle))
                    answer.send((try? await handle.value) ?? 0)
                }
                #expect(await looked.next())
            })
        #expect(await answer.next() == 6)
    }

    @Test func `a task begun on a command's stack may await queued ones`() async throws {
        let invoker = SerialInvoker()
        let first = invoker.submit(
            Immediate { _ in
                let handle = invoker.submit(ClosureCommand { 6 })
                // The task runs on the command's stack until it awaits; then the command continues.
                return Task.immediate { try await handle.value }
            })
        #expect(try await first.value.value == 6)
    }

    @Test(.promises("C18")) func `C18: an invoker undoes nothing`() async throws {
        let receiver = Locked<[Int]>([])
        let invoker = SerialInvoker()
        let first = invoker.submit(Append(number: 1, receiver: receiver))
        let second = invoker.submit(Append(number: 2, receiver: receiver, failsToPerform: true))
        #expect(try await first.value == 1)
        #expect(await second.outcome.error as? TestError == TestError(number: 2))
        #expect(receiver.withLock { $0 } == [1])
    }

    @Test(.promises("B2", "C17")) func `C17: an instance that is added five times runs five times`()
        async throws
    {
        let invoker = SerialInvoker()
        let count = Count()
        let command = ClosureCommand { count.add() }
        for _ in 0..<5 { invoker.addCommand(command: command) }
        try await invoker.flush()
        #expect(count.value == 5)
        let once = TransactionCommand(command)
        for _ in 0..<5 { invoker.addCommand(command: once) }
        try await invoker.flush()
        #expect(count.value == 6)
    }

    @Test(.promises("T13")) func `T13: a run that fails with another's refusal was not refused`()
        async throws
    {
        let invoker = SerialInvoker()
        for refusal in [CancelReason(.queueFull), CancelReason(.abandoned)] {
            let listener = Listener()
            let command = TransactionCommand(ClosureCommand { throw refusal }, delegate: listener)
            let outcome = await invoker.submit(command).outcome
            #expect(outcome.error is CancelReason)
            #expect(await listener.mail.next().error is CancelReason)
        }
        #expect(invoker.statistics.failed == 2)
        #expect(invoker.history.allSatisfy { $0.kind == .failed })
    }

    @Test(.promises("B8", "C13")) func `B8: an invoker remembers counts, and the last 64 ends`() async throws
    {
        let invoker = SerialInvoker()
        var transactions: [CommandTransaction] = []
        for index in 0..<100 {
            transactions.append(
                invoker.submit(Immediate { _ in if index.isMultiple(of: 4) { throw TestError() } })
                    .transaction)
        }
        try await invoker.flush()
        let history = invoker.history
        #expect(history.map(\.transaction) == transactions.suffix(64))
        #expect(history.first?.kind == .failed)
        #expect(history.last?.kind == .finished)
        #expect(invoker.statistics.finished == 75)
        #expect(invoker.statistics.failed == 25)
        #expect(invoker.statistics.accepted == 100)
    }

    @Test func `a chain of resubmissions by commands needs no stack`() async throws {
        let invoker = SerialInvoker()
        let done = Mail<Void>()
        @Sendable func submit(_ rest: Int) {
            invoker.submit(Immediate { _ in rest == 0 ? done.send(()) : submit(rest - 1) })
        }
        submit(20_000)
        await done.next()
    }

    @Test(.promises("P7")) func `a cancelled waiter leaves no command behind`() async throws {
        let invoker = SerialInvoker()
        let held = Held()
        invoker.submit(held)
        await held.begun.next()
        weak var gone: Count?
        for _ in 0..<1_000 {
            let count = Count()
            gone = count
            invoker.submit(ClosureCommand { count.add() }).cancel()
        }
        #expect(gone == nil)
        #expect(invoker.count == 1)
        held.release()
        try await invoker.flush()
        #expect(invoker.statistics.cancelled == 1_000)
    }

    /// Calls a closure when deallocated.
    private final class Probe: Sendable {
        private let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        deinit { body() }
    }

    @Test(.promises("P7")) func `a run's value is released under no lock, though it reads the invoker`()
        async throws
    {
        for batches in [false, true] {
            let invoker: LaneInvoker = batches ? BatchInvoker(size: 2) : SerialInvoker()
            let held = Held()
            invoker.submit(held)
            if !batches { await held.begun.next() }
            let counts = Log<Int>()
            for _ in 0..<50 {
                let command = TransactionCommand(ClosureCommand { Probe { counts.add(invoker.count) } })
                invoker.submit(command)
                _ = try? await command.execute()
            }
            held.release()
            await invoker.shutdown(.run)
            #expect(await eventually { counts.entries.count == 50 })
        }
    }

    @Test(.promises("S7"), arguments: [1, 3])
    func `S7: submissions by many threads and commands run once, and a flush awaits all`(limit: Int)
        async throws
    {
        let invoker = ConcurrentInvoker(limit: limit)
        let counts = (0..<4).map { _ in Count() }
        _ = await race(4) { thread in
            for index in 0..<200 {
                invoker.submit(
                    Immediate { _ in
                        counts[thread].add()
                        if index.isMultiple(of: 10) {
                            invoker.addCommand(command: ClosureCommand { counts[thread].add() })
                        }
                    })
            }
        }
        try await invoker.flush()
        await invoker.shutdown(.run)
        #expect(counts.map(\.value) == [220, 220, 220, 220])
        #expect(invoker.count == 0)
    }

    @Test(.promises("P1")) func `P1: commands threads submit, cancel and drop are each told once`()
        async throws
    {
        let told = Count()
        let listener = Listener { _ in told.add() }
        let invoker = ConcurrentInvoker(limit: 2)
        _ = await race(4) { thread in
            for index in 0..<200 {
                let command = TransactionCommand(Immediate { _ in }, delegate: listener)
                if index % 5 != thread { invoker.submit(command) }
                if index.isMultiple(of: 3) { command.handle.cancel() }
            }
        }
        await invoker.shutdown(.run)
        for _ in 0..<800 { _ = await listener.mail.next() }
        #expect(told.value == 800)
        #expect(Set(listener.log.entries.map(\.transaction)).count == 800)
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct BatchTests {
    @Test(.promises("S7", "C11"))
    func `C11: batches hold at most their size, in order, do not overlap, and the last one runs`()
        async throws
    {
        await forAll(.zip(.int(in: 1...5), .int(in: 0...17)), cases: 60) { size, count in
            let invoker = BatchInvoker(size: size)
            let log = Log<Int>()
            for index in 0..<count { invoker.submit(Immediate { _ in log.add(index) }) }
            try await invoker.flush()
            #expect(log.entries == Array(0..<count))
            #expect(invoker.count == 0)
        }
    }

    @Test(.promises("B7")) func `B7: nothing starts before the batch is full`() async throws {
        let invoker = BatchInvoker(size: 3)
        let log = Log<Int>()
        let mail = Mail<Int>()
        for index in 0..<2 {
            invoker.submit(
                Immediate { _ in
                    log.add(index)
                    mail.send(index)
                })
        }
        #expect(log.entries == [])
        #expect(invoker.count == 2)
        invoker.submit(Immediate { _ in mail.send(2) })
        for index in 0..<3 { #expect(await mail.next() == index) }
    }

    @Test(.promises("B7")) func `B7: a batch starts at its cost limit, at most`() async throws {
        let invoker = BatchInvoker(size: 10, maxCost: 5, cost: { ($0 as? Priced)?.price ?? 0 })
        let log = Log<Int>()
        invoker.submit(Priced(price: 3, log: log))
        #expect(log.entries == [])
        invoker.submit(Priced(price: 4, log: log))
        while invoker.count > 1 { await Task.yield() }
        #expect(log.entries == [3])
        try await invoker.flush()
        #expect(log.entries == [3, 4])
    }

    private struct Priced: SynchronousCommand {
        let price: Int
        let log: Log<Int>
        func execute(_ context: CommandContext) { log.add(price) }
    }

    @Test(.promises("B7")) func `B7: a small batch starts when its first has waited long enough`()
        async throws
    {
        let clock = StepClock()
        let invoker = BatchInvoker(size: 10, maxDelay: .seconds(5), clock: clock)
        let handle = invoker.submit(ClosureCommand { 1 })
        #expect(await clock.slept.next() == .seconds(5))
        #expect(handle.result == nil)
        clock.wakeAll()
        #expect(await handle.outcome.isFinished)
    }

    @Test(.promises("C12")) func `C12: additions by a running batch run in a later one, once`()
        async throws
    {
        let invoker = BatchInvoker(size: 4)
        let log = Log<Int>()
        for index in 0..<4 {
            invoker.submit(
                Immediate { _ in
                    log.add(index)
                    invoker.submit(Immediate { _ in log.add(10 + index) })
                })
        }
        while invoker.statistics.finished < 8 { await Task.yield() }
        #expect(log.entries == [0, 1, 2, 3, 10, 11, 12, 13])
        #expect(invoker.count == 0)
    }

    @Test(.promises("B7"))
    func `a failure stops the rest of its batch, if so configured, and nothing else`()
        async throws
    {
        for stops in [true, false] {
            let invoker = BatchInvoker(size: 3, stopsOnFailure: stops)
            let handles = (0..<6).map { index in
                invoker.submit(Immediate { _ in if index == 1 { throw TestError() } })
            }
            try await invoker.flush()
            #expect(handles[2].result?.why == (stops ? .batchStopped : nil))
            for index in [0, 3, 4, 5] { #expect(handles[index].result?.isFinished == true) }
        }
    }

    @Test(.promises("P8")) func `P8: a blocked delegate of a refused command delays none`()
        async throws
    {
        let invoker = BatchInvoker(size: 3, stopsOnFailure: true, on: try Scheduler(.init(workers: 2)))
        let gate = Gate()
        let blocked = Listener { _ in gate.wait() }
        let first = invoker.submit(Immediate<Void> { _ in throw TestError() })
        invoker.submit(TransactionCommand(Immediate { _ in }, delegate: blocked))
        let last = invoker.submit(Immediate { _ in })
        let next = (0..<3).map { _ in invoker.submit(Immediate { _ in }) }
        #expect(await first.outcome.error as? TestError == TestError())
        #expect(await last.outcome.why == .batchStopped)
        for handle in next { #expect(await handle.outcome.isFinished) }
        #expect(invoker.count == 0)
        gate.open()
    }

    @Test(.promises("B7")) func `batches may run several at a time, and do not overlap`() async throws {
        let invoker = BatchInvoker(size: 2, order: .parallel(limit: 2))
        let held = (0..<4).map { _ in Held() }
        for each in held { invoker.submit(each) }
        await held[0].begun.next()
        await held[1].begun.next()
        held[0].release()
        while invoker.count == 4 { await Task.yield() }
        let late = invoker.statistics.finished
        #expect(late == 1)
        held[1].release()
        await held[2].begun.next()
        await held[3].begun.next()
        held[2].release()
        held[3].release()
        try await invoker.flush()
        #expect(invoker.statistics.finished == 4)
    }

    @Test(.promises("S7", "C11"))
    func `C11, S7: a batch's limit holds, and the next one begins when all have ended`()
        async throws
    {
        let invoker = BatchInvoker(size: 3, order: .parallel(limit: 8))
        let log = Log<(number: Int, isEnd: Bool)>()
        for number in 0..<300 {
            invoker.submit(
                ClosureCommand {
                    log.add((number, false))
                    await Task.yield()
                    log.add((number, true))
                })
        }
        try await invoker.flush()
        var ended = 0
        for entry in log.entries {
            if entry.isEnd { ended += 1 } else { #expect(ended >= entry.number / 3 * 3) }
        }
        #expect(ended == 300)
    }

    @Test(.promises("B7")) func `cancelled ones count for no batch`() async throws {
        let invoker = BatchInvoker(size: 2)
        let log = Log<Int>()
        invoker.submit(Immediate { _ in log.add(0) }).cancel()
        invoker.submit(Immediate { _ in log.add(1) })
        #expect(log.entries == [])
        #expect(invoker.count == 1)
        await invoker.shutdown(.run)
        #expect(log.entries == [1])
    }
}

/// A clock whose sleepers are woken by a test.
final class StepClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration = .zero
        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    let slept = Mail<Duration>()
    private let time = Locked(Instant())
    private let sleepers = Locked<[CheckedContinuation<Void, Never>]>([])

    var now: Instant { time.withLock { $0 } }
    var minimumResolution: Duration { .nanoseconds(1) }

    func advance(by duration: Duration) { time.withLock { $0.offset += duration } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let length = now.duration(to: deadline)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isCancelled = sleepers.withLock { sleepers in
                    if Task.isCancelled { return true }
                    sleepers.append(continuation)
                    return false
                }
                if isCancelled { continuation.resume() } else { slept.send(length) }
            }
        } onCancel: {
            wakeAll()
        }
        try Task.checkCancellation()
    }

    func wakeAll() {
        let woken = sleepers.withLock { sleepers in
            defer { sleepers = [] }
            return sleepers
        }
        for each in woken { each.resume() }
    }
}

/// Polls, without waiting.
///
/// - Returns: whether the run has not ended yet.
private func isWaitedFor(_ handle: CommandHandle<Int>) -> Bool { handle.wait(timeout: .zero) == nil }
