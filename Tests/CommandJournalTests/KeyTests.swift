// Keys: one key is one piece of work, whatever happens.

import CommandJournal
import Commands
import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct KeyTests {
    @Test(.promises("J6"))
    func `J6: with an equal payload a key gives the recorded output, and nothing runs`() async throws {
        let store = MemoryStore()
        let receiver = Receiver()
        defer { receiver.forget() }
        let work = Work(receiver: receiver.id, run: 1, number: 7)
        let journal = try await journal(store)
        #expect(try await journal.execute(work) == 7)
        let size = store.records.count
        #expect(try await journal.execute(work) == 7)
        #expect(receiver.log == ["do 1.7"] && store.records.count == size)
        // As another process would see it.
        let later = try await CommandJournalTests.journal(MemoryStore(store.records))
        #expect(try await later.execute(work) == 7)
        #expect(receiver.log == ["do 1.7"])
    }

    @Test(.promises("J6")) func `J6: a key with another payload is an error that names it`() async throws {
        let receiver = Receiver()
        defer { receiver.forget() }
        let journal = try await journal(MemoryStore())
        _ = try await journal.execute(Call(key: "the key"))
        let error = await thrown { _ = try await journal.execute(Call(key: "the key")) }
        guard case JournalError.keyConflict("the key")? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect("\(error!)".contains("'the key'"))
        let second = await thrown { try await journal.execute(allOrNothing: [], key: "the key") }
        guard case JournalError.keyConflict("the key")? = second else {
            Issue.record("\(String(describing: second))")
            return
        }
    }

    /// The first version of a type.
    struct Payment: JournaledCommand {
        static let journalName = "payment"
        var amount = 10
        var idempotencyKey: String? { "payment" }
        func perform(_ context: CommandContext) async throws -> Performed<Int, Nothing> {
            Performed(amount, undo: Nothing())
        }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
    }

    /// A later version: all payments of the first one were in the same currency.
    struct LaterPayment: JournaledCommand {
        static let journalName = "payment"
        var amount = 10
        var currency = "EUR"
        var idempotencyKey: String? { "payment" }
        init(amount: Int = 10, currency: String = "EUR") { (self.amount, self.currency) = (amount, currency) }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            amount = try container.decode(Int.self, forKey: .amount)
            currency = try container.decodeIfPresent(String.self, forKey: .currency) ?? "EUR"
        }
        func perform(_ context: CommandContext) async throws -> Performed<Int, Nothing> {
            Issue.record("it was done again")
            return Performed(0, undo: Nothing())
        }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
    }

    /// A version that cannot decode the first one.
    struct OtherPayment: JournaledCommand {
        static let journalName = "payment"
        var currency = "EUR"
        var idempotencyKey: String? { "payment" }
        func perform(_ context: CommandContext) async throws -> Performed<Int, Nothing> {
            Performed(0, undo: Nothing())
        }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
    }

    @Test(.promises("J6"))
    func `J6: a field added later keeps a key's payload equal, unless its value differs`()
        async throws
    {
        let (single, several) = (MemoryStore(), MemoryStore())
        _ = try await journal(single, [Payment.self]).execute(Payment())
        _ = try await journal(several, [Payment.self]).execute(allOrNothing: [Payment()], key: "run")
        let later = try await journal(MemoryStore(single.records), [LaterPayment.self])
        #expect(try await later.execute(LaterPayment()) == 10)
        let run = try await journal(MemoryStore(several.records), [LaterPayment.self])
        #expect(try await run.execute(allOrNothing: [LaterPayment()], key: "run") == [10])
        for other in [LaterPayment(amount: 11), LaterPayment(currency: "USD")] {
            for error in [
                await thrown { _ = try await later.execute(other) },
                await thrown { _ = try await run.execute(allOrNothing: [other], key: "run") },
            ] {
                guard case JournalError.keyConflict? = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
        }
        let unable = try await journal(MemoryStore(single.records), [OtherPayment.self])
        guard
            case JournalError.undecodable("payment", _, _)? = await thrown({
                _ = try await unable.execute(OtherPayment())
            })
        else {
            Issue.record("nobody can tell whether it is the same work")
            return
        }
    }

    @Test(.promises("J6")) func `J6: a failure is recorded, too: it is thrown, and the work not retried`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let runs = Locked(0)
        let journal = try await journal(MemoryStore())
        let call = Call(key: "fails") { _ in
            runs.withLock { $0 += 1 }
            throw TestError(number: 5)
        }
        #expect(await thrown { _ = try await journal.execute(call) } as? TestError == TestError(number: 5))
        let error = await thrown { _ = try await journal.execute(call) }
        guard case JournalError.recorded("fails", .failed, let text)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(text.contains("5") && runs.withLock { $0 } == 1)
    }

    @Test(.promises("J6"))
    func `J6: keys that are equal as strings are one key, at once, later, and in an old file`()
        async throws
    {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        #expect(composed == decomposed && Array(composed.utf8) != Array(decomposed.utf8))
        let folder = try Folder()
        let runs = Count()
        var call = Call(key: decomposed) { _ in runs.add() }
        defer { call.forget() }
        let path = folder.file()
        let first = try await CommandJournal(path: path, types: types)
        _ = try await first.execute(call)
        call.key = composed
        _ = try await first.execute(call)
        try await first.execute(allOrNothing: [], key: decomposed + "s")
        await first.close()
        let second = try await CommandJournal(path: path, types: types)
        for key in [composed, decomposed] {
            call.key = key
            _ = try await second.execute(call)
            try await second.execute(allOrNothing: [], key: key + "s")
            guard
                case JournalError.keyTwice? = await thrown({
                    try await second.execute(allOrNothing: [Call(key: composed), Call(key: decomposed)])
                })
            else {
                Issue.record("they are two keys")
                return
            }
        }
        await second.close()
        #expect(runs.value == 1)

        // The file as an earlier version wrote it.
        let store = try SQLiteStore(path: path)
        var records = try store.records(after: 0, limit: 100)
        store.close()
        #expect(records.compactMap(\.key).allSatisfy { !$0.unicodeScalars.contains("\u{301}") })
        for index in records.indices where records[index].key == composed { records[index].key = decomposed }
        let old = MemoryStore(joined([Array(records.prefix(5))]))
        for key in [composed, decomposed] {
            call.key = key
            _ = try await journal(old).execute(call)
        }
        #expect(runs.value == 1 && old.records.count == 5)
    }

    @Test(.promises("J6")) func `J6: a run with a key runs once; a member's key is its own`() async throws {
        let receiver = Receiver()
        defer { receiver.forget() }
        let journal = try await journal(MemoryStore())
        let works = (0..<3).map { Work(receiver: receiver.id, run: 1, number: $0) }
        try await journal.execute(allOrNothing: works, key: "run")
        try await journal.execute(allOrNothing: works, key: "run")
        #expect(receiver.log == ["do 1.0", "do 1.1", "do 1.2"])
        let other = await thrown {
            try await journal.execute(allOrNothing: Array(works.prefix(2)), key: "run")
        }
        guard case JournalError.keyConflict("run")? = other else {
            Issue.record("\(String(describing: other))")
            return
        }
        let taken = await thrown { try await journal.execute(allOrNothing: [works[1]]) }
        guard case JournalError.keyTaken("work 1.1")? = taken else {
            Issue.record("\(String(describing: taken))")
            return
        }
        // Executed on its own, this command counts as done.
        #expect(try await journal.execute(works[1]) == 1)
        #expect(receiver.log.count == 3)

        var failing = Work(receiver: receiver.id, run: 2, number: 1)
        failing.plan.fails = true
        let members = [Work(receiver: receiver.id, run: 2, number: 0), failing]
        #expect(
            await thrown { try await journal.execute(allOrNothing: members, key: "second") }
                is TransactionFailure)
        let again = await thrown { try await journal.execute(allOrNothing: members, key: "second") }
        guard case JournalError.recorded("second", .rolledBack, _)? = again else {
            Issue.record("\(String(describing: again))")
            return
        }
        // A command that was undone does not count as done.
        guard case JournalError.recorded? = await thrown({ _ = try await journal.execute(members[0]) }) else {
            Issue.record("it was undone")
            return
        }
    }

    @Test(.promises("J6")) func `J6: of many concurrent calls of a key, one runs, and all get its output`()
        async throws
    {
        let journal = try await journal(MemoryStore())
        let runs = Locked(0)
        let (begun, goes) = (Mail<Void>(), Mail<Void>())
        let call = Call(key: "once") { _ in
            runs.withLock { $0 += 1 }
            begun.send(())
            await goes.next()
        }
        try await withThrowingTaskGroup(of: Nothing.self) { group in
            for _ in 0..<8 { group.addTask { try await journal.execute(call) } }
            await begun.next()
            group.addTask { try await journal.execute(call) }
            goes.send(())
            for try await _ in group {}
        }
        #expect(runs.withLock { $0 } == 1)
    }

    @Test(.promises("J6")) func `J6: many that wait for one key cost a few jobs each`() async throws {
        let crowd = Crowd()
        let journal = try await journal(MemoryStore(beforeLook: { _ in crowd.look() }))
        let (begun, goes) = (Mail<Void>(), Mail<Void>())
        let call = Call(key: "once") { _ in
            begun.send(())
            await goes.next()
        }
        defer { call.forget() }
        let first = Task { try await journal.execute(call) }
        await begun.next()
        let (count, told) = (400, Count())
        let jobs = await crowd.run(count) {
            if await thrown({ _ = try await journal.execute(call) }) == nil { told.add() }
        } allWait: {
            goes.send(())
        }
        _ = try await first.value
        #expect(told.value == count && jobs <= 4 * count)
    }

    @Test(.promises("J6"))
    func `J6: a waiter for a key does not mistake one begun meanwhile for one in doubt`()
        async throws
    {
        let (looking, goesOn) = (Mail<String>(), Gate())
        let (looksOfKnown, looksOfRun) = (Count(), Count())
        let store = MemoryStore(beforeLook: { key in
            if key == "known", looksOfKnown.add() == 2 {
                looking.send(key)
                goesOn.wait()
            }
            if key == "run", looksOfRun.add() == 3 { looking.send(key) }
        })
        let journal = try await journal(store)
        let known = Call(key: "known")
        defer { known.forget() }
        _ = try await journal.execute(known)
        let (begun, goes) = (Mail<Void>(), Mail<Void>())
        let runs = Locked(0)
        let member = Call(key: "member") { _ in
            runs.withLock { $0 += 1 }
            begun.send(())
            await goes.next()
        }
        defer { member.forget() }
        // The first run holds the member's key while it looks up the other key, and is then refused.
        let first = Task { try await journal.execute(allOrNothing: [member, known]) }
        #expect(await looking.next() == "known")
        let slow = HeldExecutor()
        let isOver = Locked(false)
        let second = Task(executorPreference: slow) {
            defer { isOver.withLock { $0 = true } }
            try await journal.execute(allOrNothing: [member], key: "run")
        }
        await slow.arrivals.next()
        slow.runNext()  // the second waits for the first
        let third = Task.immediate { try await journal.execute(allOrNothing: [member], key: "run") }
        goesOn.open()
        guard case JournalError.keyTaken("known")? = await thrown({ try await first.value }) else {
            Issue.record("the first run was not refused")
            return
        }
        await begun.next()
        await slow.arrivals.next()
        slow.runNext()
        #expect(await looking.next() == "run")  // the second finds a run in progress
        goes.send(())
        while !isOver.withLock({ $0 }) {
            await slow.arrivals.next()
            slow.runNext()
        }
        try await second.value
        try await third.value
        #expect(runs.withLock { $0 } == 1)
    }

    @Test(.promises("J6")) func `J6: a waiter for a key can be cancelled, and began nothing`()
        async throws
    {
        let store = MemoryStore()
        let journal = try await journal(store)
        let (begun, goes) = (Mail<Void>(), Mail<Void>())
        let call = Call(key: "once") { _ in
            begun.send(())
            await goes.next()
        }
        defer { call.forget() }
        let first = Task { try await journal.execute(call) }
        await begun.next()
        let size = store.records.count
        let (second, third) = (
            Task.immediate { try await journal.execute(call) },
            Task.immediate { try await journal.execute(call) }
        )
        second.cancel()
        #expect(await thrown { _ = try await second.value } is CancellationError)
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await journal.execute(call)
        }
        #expect(await thrown { try await cancelled.value } is CancellationError)
        #expect(store.records.count == size)
        goes.send(())
        _ = try await (first.value, third.value)
    }

    @Test(.promises("J6")) func `J6: a call cancelled before it begins keeps the key unused`()
        async throws
    {
        let (looking, goesOn) = (Mail<Void>(), Gate())
        let looks = Count()
        let store = MemoryStore(beforeLook: { _ in
            guard looks.add() == 1 else { return }
            looking.send(())
            goesOn.wait()
        })
        let journal = try await journal(store)
        let call = Call(key: "once")
        defer { call.forget() }
        let first = Task { try await journal.execute(call) }
        await looking.next()
        first.cancel()
        goesOn.open()
        #expect(await thrown { _ = try await first.value } is CancellationError)
        #expect(store.records.isEmpty)
        _ = try await journal.execute(call)
    }

    @Test(.promises("J6")) func `J6: a run cancelled before it begins keeps its keys unused`()
        async throws
    {
        let (looking, goesOn) = (Mail<Void>(), Gate())
        let looks = Count()
        let store = MemoryStore(beforeLook: { _ in
            guard looks.add() == 3 else { return }  // look-ups of the run, its first member, its second
            looking.send(())
            goesOn.wait()
        })
        let journal = try await journal(store)
        let members = [Call(key: "one"), Call(key: "two")]
        defer { for member in members { member.forget() } }
        let first = Task { try await journal.execute(allOrNothing: members, key: "both") }
        await looking.next()
        first.cancel()
        goesOn.open()
        #expect(await thrown { _ = try await first.value } is CancellationError)
        #expect(store.records.isEmpty)
        try await journal.execute(allOrNothing: members, key: "both")
    }

    @Test(.promises("J6")) func `J6: a key that the file could not keep is refused, and named`() async throws
    {
        let store = MemoryStore()
        let journal = try await journal(store)
        let call = Call(key: "a\0b")
        defer { call.forget() }
        for error in [
            await thrown { _ = try await journal.execute(call) },
            await thrown { try await journal.execute(allOrNothing: [call]) },
            await thrown { try await journal.execute(allOrNothing: [], key: "a\0b") },
        ] {
            #expect(error.map { "\($0)" } == #"The key "a\0b" contains the character U+0000."#)
        }
        #expect(store.records.isEmpty)
    }

    @Test(.promises("J6"))
    func `J6: a command cannot execute another inside itself; a task it starts can`() async throws {
        let receiver = Receiver()
        defer { receiver.forget() }
        let journal = try await journal(MemoryStore())
        let errors = Locked<[any Error]>([])
        let inner = Call(key: "key")
        let hasBegun = Mail<Bool>()
        // Under the outer call's key, the inner call would wait for itself.
        let outer = Call(key: "key") { _ in
            for key in ["key", "another"] {
                let error = await thrown { _ = try await journal.execute(Call(key: key)) }
                if let error { errors.withLock { $0.append(error) } }
            }
            Task {
                do { _ = try await journal.execute(Call { _ in hasBegun.send(true) }) } catch {
                    hasBegun.send(false)
                }
            }
            #expect(await hasBegun.next())
        }
        defer { outer.forget() }
        _ = try await journal.execute(outer)
        #expect(errors.withLock { $0 }.count == 2)
        for error in errors.withLock({ $0 }) {
            guard case JournalError.reentrant = error else {
                Issue.record("\(error)")
                return
            }
        }
        // The refused calls left no record.
        guard case JournalError.keyConflict? = await thrown({ _ = try await journal.execute(inner) }) else {
            Issue.record("the key was not that of the outer one")
            return
        }
        _ = try await journal.execute(Call(key: "another"))
    }

    @Test(.promises("J6")) func `J6: a failing command's undo cannot execute another one either`()
        async throws
    {
        let journal = try await journal(MemoryStore())
        let errors = Locked<[any Error]>([])
        let outer = Call(key: "key") { context in
            context.onFailure { _ in
                for key in ["key", "another"] {
                    let error = await thrown { _ = try await journal.execute(Call(key: key)) }
                    if let error { errors.withLock { $0.append(error) } }
                }
            }
            throw TestError()
        }
        defer { outer.forget() }
        #expect(await thrown { _ = try await journal.execute(outer) } is TestError)
        let reentrant = errors.withLock { $0 }.filter {
            if case JournalError.reentrant = $0 { true } else { false }
        }
        #expect(reentrant.count == 2)
        _ = try await journal.execute(Call(key: "another"))
    }

    @Test(.promises("J6")) func `a run that holds a key twice is refused, and its keys are free`()
        async throws
    {
        let store = MemoryStore()
        let journal = try await journal(store)
        func isRefused(_ keys: [String], run: String?) async -> Bool {
            let error = await thrown {
                try await journal.execute(allOrNothing: keys.map { Call(key: $0) }, key: run)
            }
            guard case JournalError.keyTwice("k")? = error else { return false }
            return "\(error!)".contains("'k'")
        }
        #expect(await isRefused(["k", "k"], run: nil))
        #expect(await isRefused(["a", "k"], run: "k"))
        #expect(store.records.isEmpty)
        try await journal.execute(allOrNothing: [Call(key: "a"), Call(key: "k")], key: "run")
    }

    @Test(.promises("J6")) func `a run returns its commands' outputs, the first time and later`()
        async throws
    {
        let store = MemoryStore()
        let receiver = Receiver()
        defer { receiver.forget() }
        let first = try await journal(store)
        let works = (0..<3).map { Work(receiver: receiver.id, run: 1, number: $0) }
        let other = Work(receiver: receiver.id, run: 2, number: 5)
        #expect(try await first.execute(allOrNothing: works, key: "of one type") == [0, 1, 2])
        let call = Call(key: "call")
        let pair = try await first.execute(allOrNothing: other, call, key: "of two")
        #expect(pair.0 == 5 && pair.1 == Nothing())
        let log = receiver.log
        let second = try await journal(MemoryStore(store.records))
        #expect(try await second.execute(allOrNothing: works, key: "of one type") == [0, 1, 2])
        let again = try await second.execute(allOrNothing: other, call, key: "of two")
        #expect(again.0 == 5 && again.1 == Nothing())
        #expect(receiver.log == log)
    }
}
