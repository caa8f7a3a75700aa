// When records are durable, how many commits that takes, and which threads are not blocked.

import CommandJournal
import Commands
import CompositeOperationsTestSupport
import Dispatch
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct WriterTests {
    @Test(.promises("C19", "J1"))
    func `J1: a command begins once that is durable, and its caller returns once its end is`()
        async throws
    {
        let store = MemoryStore()
        let seen = Locked<[[String]]>([])
        let journal = try await journal(store)
        let call = Call { _ in seen.withLock { $0.append(store.records.map(\.tag)) } }
        _ = try await journal.execute(call)
        #expect(seen.withLock { $0 } == [["accepted 0", "accepted", "begun 0"]])
        #expect(store.records.map(\.tag).suffix(2) == ["done 0", "ended"])
        try await journal.execute(allOrNothing: [call, call])
        #expect(seen.withLock { $0.last?.suffix(2) } == ["done 0", "begun 1"])
        #expect(store.records.last?.tag == "ended")
        // A run of n takes n + 1 commits.
        #expect(store.commits.count == 2 + 3)
        #expect(store.records.map(\.sequence) == Array(1...Int64(store.records.count)))
    }

    /// A command whose undo calls a closure of the test.
    struct Undone: JournaledCommand {
        static let journalName = "undone"
        static let body = Locked<@Sendable () -> Void>({})
        var idempotencyKey: String? { nil }
        func perform(_ context: CommandContext) async throws -> Performed<Nothing, Nothing> { Performed() }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws { Self.body.withLock { $0 }() }
    }

    @Test(.promises("J1")) func `J1: an undo begins when that is durable`() async throws {
        let store = MemoryStore()
        let seen = Locked<[String]>([])
        Undone.body.withLock { body in
            body = { seen.withLock { $0 = Array(store.records.map(\.tag).suffix(3)) } }
        }
        let journal = try await CommandJournal(types + [Undone.self]) { store }
        // Drops the last reference to `Data`: pointers to it carry tag bits, which a leak checker does not follow.
        defer { Undone.body.withLock { $0 = {} } }
        let failing = Call { _ in throw TestError() }
        _ = await thrown { try await journal.execute(allOrNothing: [Undone(), failing]) }
        #expect(seen.withLock { $0 } == ["begun 1", "failed 1", "undoing 0"])
    }

    @Test(.promises("J12")) func `J12: records added during a commit form the next`() async throws {
        let (inCommit, goes) = (Mail<Void>(), Gate())
        let isFirst = Locked(true)
        let store = MemoryStore { _ in
            let first = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            guard first else { return }
            inCommit.send(())
            goes.wait()
        }
        let writer = JournalWriter(store, JournalLog(), DispatchQueue(label: "journal"))
        try writer.add([JournalRecord(.begun)])
        let first = Task { try await writer.commit() }
        await inCommit.next()
        for _ in 0..<20 { try writer.add([JournalRecord(.begun)]) }
        let others = (0..<20).map { _ in Task { try await writer.commit() } }
        goes.open()
        try await first.value
        for other in others { try await other.value }
        #expect(store.commits == [1, 20])
        #expect(store.records.map(\.sequence) == Array(1...21))
    }

    @Test(.promises("J12"))
    func `J12: many at once: the durable records are a prefix of those added, each once`()
        async throws
    {
        let store = MemoryStore()
        let receiver = Receiver(watchesOrder: false)
        defer { receiver.forget() }
        let journal = try await journal(store)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for run in 0..<40 {
                group.addTask {
                    let works = (0..<3).map { Work(receiver: receiver.id, run: run, number: $0) }
                    if run % 2 == 0 {
                        try await journal.execute(allOrNothing: works)
                    } else {
                        for work in works { _ = try await journal.execute(work) }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(receiver.live.count == 120 && receiver.complaints == [])
        var log = JournalLog()
        for record in store.records { try log.apply(record) }
        #expect(log.unfinished.isEmpty)
        #expect(store.commits.reduce(0, +) == store.records.count)
    }

    @Test(.promises("J12"))
    func `J12: after a failed commit nothing is written or begun; the next process finds the rest`()
        async throws
    {
        for failing in 1...5 {
            let count = Locked(0)
            let store = MemoryStore { _ in
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if number == failing { throw TestError(number: 28) }
            }
            let receiver = Receiver()
            defer { receiver.forget() }
            let journal = try await journal(store)
            let works = (0..<3).map { Work(receiver: receiver.id, run: 1, number: $0) }
            let error = await thrown { try await journal.execute(allOrNothing: works) }
            if failing == 5 {
                #expect(error == nil)
                continue
            }
            guard case JournalError.storage(let reason)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(reason as? TestError == TestError(number: 28))
            // A step that could not be recorded has no effect: a command is not begun, and nothing is undone.
            #expect(receiver.log == (0..<(failing - 1)).map { "do 1.\($0)" })
            guard case JournalError.storage? = await thrown({ _ = try await journal.execute(Call()) }) else {
                Issue.record("it was executed")
                return
            }
            let tags = store.records.map(\.tag)
            #expect(count.withLock { $0 } == failing && tags == store.records.map(\.tag))
            let next = try await CommandJournalTests.journal(MemoryStore(store.records))
            _ = try await next.recover()
            #expect(receiver.live.isEmpty || failing == 5)
            #expect(receiver.complaints == [])
        }
    }

    /// A command whose encoding blocks until a test releases it.
    struct Slow: JournaledCommand {
        static let journalName = "slow"
        static let gates = Locked<(begun: Gate, goes: Gate)?>(nil)
        var idempotencyKey: String? { nil }
        init() {}
        init(from decoder: any Decoder) throws {}
        func encode(to encoder: any Encoder) throws {
            let gates = Self.gates.withLock { $0 }
            gates?.begun.open()
            gates?.goes.wait()
            var container = encoder.singleValueContainer()
            try container.encode("slow")
        }
        func perform(_ context: CommandContext) async throws -> Performed<Nothing, Nothing> { Performed() }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
    }

    @Test(.promises("J13"))
    func `J13: a command or an encoding that blocks its thread delays no other`() async throws {
        let journal = try await CommandJournal(types + [Slow.self]) { MemoryStore() }
        let (begun, goes) = (Gate(), Gate())
        let blocking = Task.detached {
            try await journal.execute(
                Call { _ in
                    begun.open()
                    goes.wait()
                })
        }
        begun.wait()
        _ = try await journal.execute(Call())
        goes.open()
        _ = try await blocking.value

        let gates = (begun: Gate(), goes: Gate())
        Slow.gates.withLock { $0 = gates }
        let encoding = Task.detached { try await journal.execute(Slow()) }
        gates.begun.wait()
        _ = try await journal.execute(Call())
        gates.goes.open()
        _ = try await encoding.value
    }

    @Test(.promises("J13"))
    func `J13: no waiting thread is blocked during a commit`() async throws {
        let (inCommit, goes) = (Mail<Void>(), Gate())
        let store = MemoryStore { _ in
            inCommit.send(())
            goes.wait()
        }
        let journal = try await journal(store)
        let executors = (0..<100).map { _ in Task { try await journal.execute(Call()) } }
        await inCommit.next()
        // The thread pool in which the hundred wait still has room for other tasks.
        for _ in 0..<100 { await Task { await Task.yield() }.value }
        goes.open()
        for each in executors { _ = try await each.value }
    }

    @Test(.promises("J1")) func `J1: closing the journal fails those awaiting a commit`()
        async throws
    {
        let (isAwaited, inCommit, goes) = (Gate(), Mail<Void>(), Gate())
        let store = MemoryStore { records in
            if records[0].sequence == 2 {
                inCommit.send(())
                goes.wait()
            } else {
                isAwaited.wait()
            }
        }
        let writer = JournalWriter(store, JournalLog(), DispatchQueue(label: "journal"))
        try writer.add([JournalRecord(.begun)])
        let held = HeldExecutor()
        let closing = Task(executorPreference: held) { await writer.close() }
        await held.arrivals.next()
        held.runNext()  // waits for the added record
        isAwaited.open()
        await held.arrivals.next()  // the record is durable
        try writer.add([JournalRecord(.begun)])
        let second = Task.immediate { try await writer.commit() }
        await inCommit.next()
        try writer.add([JournalRecord(.begun)])
        let third = Task.immediate { try await writer.commit() }
        held.runNext()  // the writer is closed in the middle of that commit
        goes.open()
        try await second.value
        guard case JournalError.closed? = await thrown({ try await third.value }) else {
            Issue.record("it was told that it is durable")
            return
        }
        await held.arrivals.next()
        held.runNext()
        await closing.value
        #expect(store.records.map(\.sequence) == [1, 2])
    }

    @Test(.promises("J12"))
    func `J12: after a failed commit, or the end, nothing is looked up, replayed or recovered`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let isFull = Locked(false)
        let store = MemoryStore { _ in if isFull.withLock({ $0 }) { throw TestError(number: 28) } }
        let full = try await journal(store)
        let work = Work(receiver: receiver.id, run: 1, number: 0)
        _ = try await full.execute(work)
        isFull.withLock { $0 = true }
        _ = await thrown { _ = try await full.execute(Call()) }
        let closed = try await journal(MemoryStore(store.records))
        await closed.close()
        for (journal, word) in [(full, "storage"), (closed, "closed")] {
            for call in [
                { _ = try await journal.execute(work) },
                { try await journal.execute(allOrNothing: [], key: "k") },
                { _ = try await journal.replay() },
                { _ = try await journal.recover() },
            ] as [() async throws -> Void] {
                let error = await thrown(call)
                #expect(error is JournalError && "\(error!)".contains(word == "closed" ? word : "28"))
            }
        }
        #expect(receiver.log == ["do 1.0"])
    }

    @Test func `a closed journal refuses everything, and frees its store`() async throws {
        weak var left: MemoryStore?
        do {
            let store = MemoryStore()
            left = store
            let journal = try await journal(store)
            _ = try await journal.execute(Call())
            await journal.close()
            guard case JournalError.closed? = await thrown({ _ = try await journal.execute(Call()) }) else {
                Issue.record("it was executed")
                return
            }
            await journal.close()
        }
        while left != nil { await Task.yield() }
    }
}
