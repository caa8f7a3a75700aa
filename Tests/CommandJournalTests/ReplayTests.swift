// Replays: redoing what was done.

import CommandJournal
import Commands
import CompositeOperationsTestSupport
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct ReplayTests {
    private func filled(_ receiver: Receiver, count: Int) async throws -> MemoryStore {
        let store = MemoryStore()
        let journal = try await journal(store)
        for run in 0..<count {
            var works = (0..<2).map {
                Work(receiver: receiver.id, run: run, number: $0, plan: Plan(hasKey: false))
            }
            if run % 3 == 1 { works[1].plan.fails = true }
            do { try await journal.execute(allOrNothing: works) } catch is TransactionFailure {}
        }
        return store
    }

    @Test(.promises("B10", "C19", "J9"))
    func `J9: a replay runs work done and not undone, in order, and writes nothing`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        // More records than a replay reads at a time.
        let store = try await filled(receiver, count: 400)
        let live = receiver.live
        #expect(live.count > 500)
        receiver.state.withLock { $0 = Receiver.State() }
        let size = store.records.count
        let journal = try await journal(store)
        let report = try await journal.replay()
        #expect(report.count == live.count && report.skipped.isEmpty)
        #expect(receiver.live == live && receiver.complaints == [])
        #expect(store.records.count == size)
    }

    @Test(.promises("J9")) func `J9: a file gives a replay the same as memory`() async throws {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let memory = try await filled(receiver, count: 9)
        let file = try SQLiteStore(path: folder.file())
        try file.commit(memory.records)
        for (after, limit) in [(Int64(0), 100), (0, 3), (20, 4)] {
            let (one, other) = try (
                file.replayable(after: after, limit: limit), memory.replayable(after: after, limit: limit)
            )
            #expect(
                one.map(\.sequence) == other.map(\.sequence) && one.map(\.command) == other.map(\.command))
            #expect(one.map(\.isUndone) == other.map(\.isUndone))
        }
    }

    @Test(.promises("J9"))
    func `J9: an irreversible command of an undone run stays, and is replayed`() async throws {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = MemoryStore()
        let plans = [Plan(kind: .irreversible), Plan(), Plan(fails: true)]
        let works = plans.enumerated().map { Work(receiver: receiver.id, run: 1, number: $0, plan: $1) }
        _ = await thrown { try await journal(store).execute(allOrNothing: works) }
        #expect(receiver.live.map(\.number) == [0])
        receiver.state.withLock { $0 = Receiver.State() }
        let report = try await journal(store).replay()
        #expect(report.count == 1 && receiver.live.map(\.number) == [0])
        // A command that was undone needs no type.
        let other = try await journal(MemoryStore(store.records), [Call.self])
        for skips in [false, true] {
            let report = try await other.replay(skipsUnknownTypes: skips)
            #expect(report.count == 0 && report.skipped == [])
        }
    }

    @Test(.promises("J8")) func `J8: an unknown type stops a replay, and is named, unless it is skipped`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = MemoryStore()
        let first = try await journal(store)
        _ = try await first.execute(Work(receiver: receiver.id, run: 0, number: 0))
        _ = try await first.execute(Call())
        _ = try await first.execute(Work(receiver: receiver.id, run: 0, number: 1))
        receiver.state.withLock { $0 = Receiver.State() }
        let journal = try await journal(MemoryStore(store.records), [Work.self])
        let error = await thrown { _ = try await journal.replay() }
        guard case JournalError.unknownType("call", 9)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect("\(error!)".contains("'call'"))
        #expect(receiver.log == ["do 0.0"])
        let report = try await journal.replay(skipsUnknownTypes: true)
        #expect(report.count == 2 && report.skipped == [9])
        guard
            case JournalError.unknownType("call", nil)? = await thrown({
                _ = try await journal.execute(Call())
            })
        else {
            Issue.record("it was executed")
            return
        }
    }

    @Test(.promises("J8"))
    func `J8: an unknown type, or one that cannot be read, stops a recovery before it does anything`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = MemoryStore()
        let first = try await journal(store)
        try await first.execute(allOrNothing: [Work(receiver: receiver.id, run: 0, number: 0), Call()])
        let (log, open) = (receiver.log, Array(store.records.prefix(5)))
        let journal = try await journal(MemoryStore(open), [Work.self])
        guard case JournalError.unknownType("call", 2)? = await thrown({ _ = try await journal.recover() })
        else {
            Issue.record("it was recovered")
            return
        }
        #expect(receiver.log == log)
    }

    /// The first version of a type.
    struct Order: JournaledCommand {
        static let journalName = "order"
        var kind = "secret"
        var counts = ["secret": 1]
        var output = ""
        var idempotencyKey: String? { "order" }
        func perform(_ context: CommandContext) async throws -> Performed<Result, Nothing> {
            Performed(Result(text: output), undo: Nothing())
        }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {}

        /// Cannot be encoded if it has a text.
        struct Result: Codable, Sendable {
            var text = ""
            func encode(to encoder: any Encoder) throws {
                if text.isEmpty { return try [text].encode(to: encoder) }
                let context = EncodingError.Context(codingPath: encoder.codingPath, debugDescription: text)
                throw EncodingError.invalidValue(text, context)
            }
        }
    }

    /// Later versions, which cannot decode the first.
    struct OrderOfKind: JournaledCommand {
        static let journalName = "order"
        enum Kind: String, Codable { case none }
        var kind = Kind.none
        var idempotencyKey: String? { "order" }
        func perform(_ context: CommandContext) async throws -> Performed<Nothing, Nothing> { Performed() }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
    }

    struct OrderOfCounts: JournaledCommand {
        static let journalName = "order"
        var counts: [String: Bool] = [:]
        var idempotencyKey: String? { "order" }
        func perform(_ context: CommandContext) async throws -> Performed<Nothing, Nothing> { Performed() }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
    }

    @Test(.promises("J8")) func `J8: an error of coding names the field, and no value`() async throws {
        let store = MemoryStore()
        _ = try await journal(store, [Order.self]).execute(Order())
        let open = MemoryStore(Array(store.records.prefix(3)))
        for (type, field) in [
            (OrderOfKind.self, "kind"), (OrderOfCounts.self, "counts.…"),
        ] as [(any JournaledCommand.Type, String)] {
            let error = await thrown { _ = try await journal(open, [type]).recover() }
            let text = String(describing: try #require(error))
            #expect(text.contains("Record 3, of the type 'order'") && text.contains("'\(field)'"), "\(text)")
            #expect(!text.contains("secret"), "\(text)")
        }
        for isAlone in [true, false] {
            let other = MemoryStore()
            let journal = try await journal(other, [Order.self])
            let order = Order(output: "secret")
            let error = await thrown {
                if isAlone {
                    _ = try await journal.execute(order)
                } else {
                    try await journal.execute(allOrNothing: [order], key: "run")
                }
            }
            #expect(error != nil)
            for again in [
                await thrown { _ = try await journal.execute(order) },
                await thrown { try await journal.execute(allOrNothing: [order], key: "run") },
            ] {
                #expect(again.map { "\($0)".contains("secret") } == false, "\(String(describing: again))")
            }
        }
    }

    @Test(.promises("J8"))
    func `J8: an unreadable run may be parked or abandoned, and the others go on`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let (call, work) = (Call(key: "call"), Work(receiver: receiver.id, run: 1, number: 0))
        defer { call.forget() }
        let (calls, works) = (MemoryStore(), MemoryStore())
        _ = try await journal(calls).execute(call)
        _ = try await journal(works).execute(work)
        for (count, outcome) in [(2, JournalOutcome.failed), (3, .incomplete)] {
            let open = joined([Array(calls.records.prefix(count)), Array(works.records.prefix(3))])
            receiver.state.withLock { $0 = Receiver.State() }
            let (parked, abandoned) = (MemoryStore(open), MemoryStore(open))
            let journal = try await journal(parked, [Work.self])
            let report = try await journal.recover(undecodable: .park)
            #expect(report.runs.map(\.number) == [Int64(count + 1)] && report.parked.map(\.number) == [1])
            guard case JournalError.unknownType("call", _)? = report.parked.first?.error else {
                Issue.record("the type is not named")
                return
            }
            _ = try await journal.execute(Work(receiver: receiver.id, run: 2, number: 0))
            #expect(receiver.log == ["do 1.0", "do 2.0"])
            #expect(try await journal.recover(undecodable: .park).parked.map(\.number) == [1])
            // The parked run is there for a journal that can decode it.
            let next = try await CommandJournalTests.journal(MemoryStore(parked.records))
            #expect(try await next.recover().runs.map(\.outcome) == [.finished])

            let other = try await CommandJournalTests.journal(abandoned, [Work.self])
            let ended = try await other.recover(undecodable: .abandon)
            #expect(ended.runs.map(\.outcome) == [outcome, .finished] && ended.parked.isEmpty)
            #expect(ended.runs[0].error is JournalError && ended.runs[1].error == nil)
            let last = try await CommandJournalTests.journal(MemoryStore(abandoned.records))
            #expect(try await last.recover().runs.isEmpty)
            guard
                case JournalError.recorded("call", outcome, _)? = await thrown({
                    _ = try await last.execute(call)
                })
            else {
                Issue.record("its key is free")
                return
            }
        }
    }

    @Test(.promises("J8")) func `J8: a run whose output cannot be read may be parked or abandoned, too`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = MemoryStore()
        let works = (0..<2).map { Work(receiver: receiver.id, run: 1, number: $0) }
        try await journal(store).execute(allOrNothing: works)
        let single = MemoryStore()
        _ = try await journal(single).execute(Work(receiver: receiver.id, run: 2, number: 0))
        var first = Array(store.records.prefix(6))
        #expect(first.map(\.tag).suffix(2) == ["done 0", "begun 1"])
        first[4].payload = Data("\"a secret\"".utf8)
        let open = joined([first, Array(single.records.prefix(3))])
        for policy in [CommandJournal.Undecodable.park, .abandon] {
            let journal = try await journal(MemoryStore(open))
            receiver.state.withLock { $0 = Receiver.State() }
            let report = try await journal.recover(undecodable: policy)
            #expect(!receiver.log.contains { $0.hasPrefix("do 1.") || $0.hasPrefix("undo 1.") })
            #expect(report.parked.map(\.number) == (policy == .park ? [1] : []))
            #expect(report.runs.map(\.outcome) == (policy == .park ? [.finished] : [.incomplete, .finished]))
            _ = try await journal.execute(Work(receiver: receiver.id, run: 3, number: 0))
        }
        guard
            case JournalError.recoveryStopped(let report, JournalError.undecodable("work", 5, _))? =
                await thrown({
                    _ = try await journal(MemoryStore(open)).recover()
                }), report.runs.isEmpty
        else {
            Issue.record("it was recovered")
            return
        }
    }

    @Test(.promises("J9")) func `J9: doubtful work or undo is not replayed`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = MemoryStore()
        let plans = [Plan(), Plan(hasKey: false), Plan(fails: true)]
        let works = plans.enumerated().map {
            Work(receiver: receiver.id, run: 1, number: $0.offset, plan: $0.element)
        }
        _ = await thrown { try await journal(store).execute(allOrNothing: works) }
        let folder = try Folder()
        for (tag, expected) in [("begun 1", ["do 1.0"]), ("undoing 1", ["do 1.0"])] {
            let end = try #require(store.records.firstIndex { $0.tag == tag })
            let cut = Array(store.records.prefix(end + 1))
            let file = try SQLiteStore(path: folder.file(tag))
            try file.commit(cut)
            for store in [MemoryStore(cut), file] as [any JournalStore] {
                let journal = try await CommandJournal(types) { store }
                #expect(try await journal.recover().inDoubt.map(\.member) == [1])
                receiver.state.withLock { $0 = Receiver.State() }
                #expect(try await journal.replay().count == 1)
                #expect(receiver.log == expected, "\(tag)")
                await journal.close()
            }
        }
    }

    /// A command whose key is not part of its encoding.
    struct Forgetful: JournaledCommand {
        static let journalName = "forgetful"
        private static let last = Locked(0)
        var idempotencyKey: String?
        init() {
            let number = Self.last.withLock { last in
                last += 1
                return last
            }
            idempotencyKey = "key \(number)"
        }
        init(from decoder: any Decoder) throws { self.init() }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode("forgetful")
        }
        func perform(_ context: CommandContext) async throws -> Performed<Nothing, Nothing> { Performed() }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
    }

    @Test(.promises("J6"))
    func `J6: a command decoded with another key is not rerun, and is named`() async throws {
        let store = MemoryStore()
        let all = types + [Forgetful.self]
        let first = try await CommandJournal(all) { store }
        let command = Forgetful()
        _ = try await first.execute(command)
        let key = try #require(command.idempotencyKey)
        for body in [
            { _ = try await CommandJournal(all) { MemoryStore(store.records) }.replay() },
            { _ = try await CommandJournal(all) { MemoryStore(Array(store.records.prefix(3))) }.recover() },
        ] as [() async throws -> Void] {
            let error = await thrown(body)
            guard case JournalError.undecodable("forgetful", _, _)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect("\(error!)".contains("'\(key)'"))
        }
    }

    @Test(.promises("J9")) func `J9: a replay and executions exclude each other`() async throws {
        let journal = try await journal(MemoryStore())
        let (begun, goes) = (Mail<Void>(), Mail<Void>())
        let call = Call { _ in
            begun.send(())
            await goes.next()
        }
        func isBusy(_ body: () async throws -> Void) async -> Bool {
            if case JournalError.busy? = await thrown(body) { true } else { false }
        }
        let running = Task { try await journal.execute(call) }
        await begun.next()
        #expect(await isBusy { _ = try await journal.replay() })
        goes.send(())
        _ = try await running.value
        let replay = Task { try await journal.replay() }
        await begun.next()
        #expect(await isBusy { _ = try await journal.execute(Call()) })
        #expect(await isBusy { _ = try await journal.recover() })
        #expect(await isBusy { _ = try await journal.replay() })
        goes.send(())
        #expect(try await replay.value.count == 1)
        _ = try await journal.execute(Call())
    }

    @Test(.promises("J9")) func `J9: a command that throws ends a replay, with its number`() async throws {
        let store = MemoryStore()
        let journal = try await journal(store)
        let fails = Locked(false)
        _ = try await journal.execute(Call { _ in if fails.withLock({ $0 }) { throw TestError() } })
        fails.withLock { $0 = true }
        let error = await thrown { _ = try await journal.replay() }
        guard case JournalError.replay("call", 4, let reason)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason is TestError)
    }
}
