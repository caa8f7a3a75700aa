// Commands in doubt, without a key; compensation; and data that cannot be encoded.

import CommandJournal
import Commands
import CompositeOperationsTestSupport
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct DoubtTests {
    private func works(_ receiver: Receiver, keys: [Bool]) -> [Work] {
        keys.enumerated().map { index, hasKey in
            Work(receiver: receiver.id, run: 1, number: index, plan: Plan(hasKey: hasKey))
        }
    }

    /// Returns the store left by a run that was cut after the last record with this tag.
    private func cut(_ members: [Work], after tag: String, fails: Bool = false) async throws -> MemoryStore {
        let store = MemoryStore()
        var members = members
        if fails { members[members.count - 1].plan.fails = true }
        let journal = try await journal(store)
        do { try await journal.execute(allOrNothing: members) } catch is TransactionFailure {}
        let last = try #require(store.records.lastIndex { $0.tag == tag })
        return MemoryStore(Array(store.records.prefix(last + 1)))
    }

    @Test(.promises("J4")) func `J4: begun work without a key is reported, and its run stays as is`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = try await cut(works(receiver, keys: [true, false, true]), after: "begun 1")
        let (log, size) = (receiver.log, store.records.count)
        let journal = try await journal(store)
        for policy in [CommandJournal.Unfinished.compensate, .resume] {
            let report = try await journal.recover(policy)
            #expect(report.runs.isEmpty)
            let doubt = try #require(report.inDoubt.first)
            #expect(report.inDoubt.count == 1 && doubt.sequence == Int64(size) && doubt.run == 1)
            #expect(doubt.member == 1 && doubt.type == "work" && !doubt.isUndo)
        }
        #expect(receiver.log == log && store.records.count == size)
        // Everything else still works.
        #expect(try await journal.execute(Work(receiver: receiver.id, run: 2, number: 3)) == 3)
        // The run is in doubt, and so are its keys.
        let first = works(receiver, keys: [true])[0]
        guard
            case JournalError.keyInDoubt("work 1.0")? = await thrown({ _ = try await journal.execute(first) })
        else {
            Issue.record("a run that has not ended gave an output")
            return
        }
    }

    @Test(.promises("J4"))
    func `J4: an inconclusive command stays in doubt, alone or among others, until resolved`()
        async throws
    {
        for isAlone in [true, false] {
            let receiver = Receiver()
            defer { receiver.forget() }
            let store = MemoryStore()
            let first = try await journal(store)
            let isDown = Locked(true)
            let call = Call(key: "call") { _ in
                receiver.state.withLock { $0.log.append("call") }
                if isDown.withLock({ $0 }) { throw OutcomeUnknown(because: TestError(number: 1)) }
            }
            let error = await thrown {
                if isAlone {
                    _ = try await first.execute(call)
                } else {
                    let members: [any JournaledCommand] = [works(receiver, keys: [true])[0], call]
                    try await first.execute(allOrNothing: members, key: "run")
                }
            }
            let failure = error as? TransactionFailure
            #expect(((isAlone ? error : failure?.cause) as? OutcomeUnknown)?.cause is TestError)
            #expect(isAlone || failure?.rollback == .incomplete && receiver.live.isEmpty)
            #expect(store.records.last?.phase != .ended)
            guard case JournalError.keyInDoubt? = await thrown({ _ = try await first.execute(call) }) else {
                Issue.record("nobody knows what became of it")
                return
            }
            // Another process that cannot determine the outcome either, and one that can.
            let second = try await journal(MemoryStore(store.records))
            let doubtful = try await second.recover()
            #expect(doubtful.runs.isEmpty && doubtful.inDoubt.map(\.type) == ["call"])
            isDown.withLock { $0 = false }
            let third = try await journal(MemoryStore(store.records))
            let report = try await third.recover()
            #expect(report.inDoubt.isEmpty)
            #expect(report.runs.map(\.outcome) == [isAlone ? .finished : .rolledBack])
            #expect(receiver.log.count { $0 == "call" } == 3)
        }
    }

    @Test(.promises("J4"))
    func `J4: a command that throws when rerun stays in doubt, unless it reports it was not done`()
        async throws
    {
        for isAlone in [true, false] {
            let receiver = Receiver()
            defer { receiver.forget() }
            let failure = Locked<(any Error)?>(nil)
            let call = Call(key: "call") { _ in if let error = failure.withLock({ $0 }) { throw error } }
            defer { call.forget() }
            let store = MemoryStore()
            let first = try await journal(store)
            if isAlone {
                _ = try await first.execute(call)
            } else {
                try await first.execute(allOrNothing: works(receiver, keys: [true]) + [call])
            }
            // The effect is in place; then the process dies, and the receiver cannot be reached.
            let begun = try #require(store.records.lastIndex { $0.phase == .begun })
            let open = MemoryStore(Array(store.records.prefix(begun + 1)))
            failure.withLock { $0 = TestError(number: 1) }
            let (second, log) = (try await journal(open), receiver.log)
            for _ in 0..<2 {
                let report = try await second.recover()
                #expect(report.runs.isEmpty && report.inDoubt.map(\.sequence) == [Int64(begun + 1)])
                #expect(report.inDoubt.first?.error as? TestError == TestError(number: 1))
            }
            #expect(receiver.log == log && open.records.count == begun + 1)
            guard case JournalError.keyInDoubt? = await thrown({ _ = try await second.execute(call) }) else {
                Issue.record("nobody knows what became of it")
                return
            }
            let answered = MemoryStore(open.records)
            failure.withLock { $0 = NotDone(because: TestError(number: 2)) }
            let refused = try await journal(answered).recover()
            #expect(refused.inDoubt.isEmpty)
            #expect(refused.runs.map(\.outcome) == [isAlone ? .failed : .rolledBack])
            receiver.state.withLock { $0 = Receiver.State() }
            failure.withLock { $0 = nil }
            let report = try await second.recover(.resume)
            #expect(report.inDoubt.isEmpty && report.runs.map(\.outcome) == [.finished])
        }
    }

    @Test(.promises("J4"))
    func `J4: a resolver asked about a command that threw when rerun may end it`()
        async throws
    {
        for key in ["key", nil] {
            let calls = Count()
            let call = Call(key: key) { _ in if calls.add() > 1 { throw TestError(number: 1) } }
            defer { call.forget() }
            let store = MemoryStore()
            _ = try await journal(store).execute(call)
            let open = MemoryStore(Array(store.records.prefix(3)))
            let journal = try await journal(open)
            let asked = Locked<[Bool]>([])
            let doubtful = try await journal.recover { doubt in
                asked.withLock { $0.append(doubt.error is TestError) }
                return .again
            }
            // A command that threw once is not begun again by the same recovery.
            #expect(asked.withLock { $0 } == (key == nil ? [false, true] : [true]) && calls.value == 2)
            #expect(doubtful.runs.isEmpty && doubtful.inDoubt.count == 1)
            let report = try await journal.recover { $0.error == nil ? .again : .over }
            #expect(report.runs.map(\.outcome) == [.failed] && report.runs[0].error is TestError)
            #expect(report.inDoubt.isEmpty && calls.value == 3)
            #expect(open.records.suffix(2).map(\.tag) == ["failed 0", "ended"])
        }
    }

    @Test(.promises("J4"))
    func `J4: a begun undo without a key is reported, and not rerun`() async throws {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = try await cut(
            works(receiver, keys: [true, false, true]), after: "undoing 1", fails: true)
        let log = receiver.log
        let journal = try await journal(store)
        let report = try await journal.recover()
        #expect(report.inDoubt.map(\.isUndo) == [true] && report.runs.isEmpty)
        #expect(receiver.log == log)
        // The caller declares the undo over; the remaining members are compensated.
        let settled = try await journal.recover { _ in .over }
        #expect(settled.runs.map(\.outcome) == [.rolledBack] && settled.inDoubt.isEmpty)
        #expect(store.records.suffix(4).map(\.tag) == ["undone 1", "undoing 0", "undone 0", "ended"])
    }

    @Test(.promises("J4")) func `J4: a resolver may decide to rerun the work, or that it is over`()
        async throws
    {
        for answer in [CommandJournal.DoubtAnswer.again, .over] {
            let receiver = Receiver()
            defer { receiver.forget() }
            let store = try await cut(works(receiver, keys: [true, false, true]), after: "begun 1")
            // As if the effect had not happened.
            receiver.state.withLock { state in
                state.live.removeAll { $0.number > 0 }
                state.effects = [WorkID(run: 1, number: 0): 1]
                state.doneKeys["work 1.2"] = nil
                state.log = []
            }
            let journal = try await journal(store)
            let asked = Locked<[Int]>([])
            let report = try await journal.recover(.resume) { doubt in
                asked.withLock { $0.append(doubt.member) }
                return answer
            }
            #expect(asked.withLock { $0 } == [1])
            #expect(receiver.complaints == [])
            if answer == .again {
                #expect(report.runs.map(\.outcome) == [.finished])
                #expect(receiver.live.map(\.number) == [0, 1, 2])
            } else {
                #expect(report.runs.map(\.outcome) == [.rolledBack])
                #expect(receiver.live.isEmpty)
            }
        }
    }

    @Test(.promises("J5"))
    func `J5: compensation runs in reverse, and journals each step before it begins`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = MemoryStore()
        var members = works(receiver, keys: [true, true, true])
        members[2].plan.fails = true
        let journal = try await journal(store)
        let error = await thrown { try await journal.execute(allOrNothing: members) }
        #expect((error as? TransactionFailure)?.rollback == .complete)
        #expect(receiver.log == ["do 1.0", "do 1.1", "undo 1.1", "undo 1.0"])
        #expect(
            store.records.map(\.tag) == [
                "accepted 0", "accepted 1", "accepted 2", "accepted", "begun 0", "done 0", "begun 1",
                "done 1",
                "begun 2", "failed 2", "undoing 1", "undone 1", "undoing 0", "undone 0", "ended",
            ])
    }

    @Test(.promises("J5")) func `J5: the outcome shows what cannot be undone`() async throws {
        func outcome(_ plan: Plan) async throws -> String? {
            let receiver = Receiver()
            defer { receiver.forget() }
            let store = MemoryStore()
            let journal = try await journal(store)
            let members = [
                Work(receiver: receiver.id, run: 1, number: 0, plan: plan),
                Work(receiver: receiver.id, run: 1, number: 1, plan: Plan(fails: true)),
            ]
            _ = await thrown { try await journal.execute(allOrNothing: members) }
            return store.records.last?.type
        }
        #expect(try await outcome(Plan()) == "rolledBack")
        #expect(try await outcome(Plan(failsToUndo: true)) == "incomplete")
        #expect(try await outcome(Plan(kind: .irreversible)) == "rolledBackExceptIrreversible")
        #expect(try await outcome(Plan(kind: .noEffect)) == "rolledBack")
    }

    @Test(.promises("J5"))
    func `J5: a failing command's registrations are undone before it counts as failed`() async throws {
        let store = MemoryStore()
        let log = Locked<[String]>([])
        let journal = try await journal(store)
        let call = Call { context in
            context.onFailure { _ in
                log.withLock { $0 += ["part"] + store.records.map(\.tag).suffix(1) }
            }
            throw TestError()
        }
        // Drops the last reference to `Data`: pointers to it carry tag bits, which a leak checker does not follow.
        defer { call.forget() }
        #expect(await thrown { _ = try await journal.execute(call) } is TestError)
        #expect(log.withLock { $0 } == ["part", "begun 0"])
        #expect(store.records.map(\.tag).suffix(2) == ["failed 0", "ended"])
    }

    /// The fate of the parts that a failing command registered.
    enum Parts: CaseIterable, Sendable {
        case areTakenBack, fail, failOnce, areIrreversible

        func outcome(alone: Bool) -> JournalOutcome {
            switch self {
            case .areTakenBack, .failOnce: alone ? .failed : .rolledBack
            case .fail: .incomplete
            case .areIrreversible: .rolledBackExceptIrreversible
            }
        }

        func call() -> Call {
            let tries = Count()
            return Call(key: "call") { context in
                context.onFailure { _ in }
                switch self {
                case .areTakenBack: break
                case .fail: context.onFailure { _ in throw TestError() }
                case .failOnce: context.onFailure { _ in if tries.add() == 1 { throw TestError() } }
                case .areIrreversible:
                    let gone = IrreversibleCommand(ClosureCommand {}, because: "sent")
                    let failing = IrreversibleCommand(
                        ClosureCommand { throw TestError() }, because: "it throws")
                    _ = await thrown { _ = try await MacroCommand([gone, failing]).perform(context) }
                }
                context.onFailure { _ in }
                throw NotDone(because: TestError(number: 7))
            }
        }
    }

    @Test(.promises("J5"), arguments: Parts.allCases, [true, false])
    func
        `J5: what a failing command registered and could not take back is in the outcome, also after a crash`(
            parts: Parts, isAlone: Bool
        ) async throws
    {
        if parts == .failOnce && isAlone { return }  // there is no second try
        let receiver = Receiver()
        defer { receiver.forget() }
        let (store, call) = (MemoryStore(), parts.call())
        defer { call.forget() }
        let first = try await journal(store)
        let error = await thrown {
            if isAlone {
                _ = try await first.execute(call)
            } else {
                let once = RetryPolicy(maxAttempts: 2)
                try await first.execute(
                    allOrNothing: works(receiver, keys: [true]) + [call],
                    options: TransactionOptions(compensation: .retry(once, then: .continueOnFailure)))
            }
        }
        #expect(error != nil)
        let expected = parts.outcome(alone: isAlone)
        #expect(store.records.last?.type == expected.rawValue)
        for tag in ["begun", "failed"] {
            let member = isAlone ? 0 : 1
            let last = try #require(store.records.lastIndex { $0.tag == "\(tag) \(member)" })
            let cut = MemoryStore(Array(store.records.prefix(last + 1)))
            let report = try await journal(cut).recover()
            #expect(report.runs.map(\.outcome) == [expected], "after \(tag)")
            #expect(cut.records.last?.type == expected.rawValue)
        }
        #expect(receiver.live == [])
    }

    @Test(.promises("J5")) func `J5: the worst leftover of the parts is the outcome`() async throws {
        for isWorstFirst in [true, false] {
            let store = MemoryStore()
            let journal = try await journal(store)
            let call = Call { context in
                let gone = IrreversibleCommand(ClosureCommand {}, because: "sent")
                let failing = IrreversibleCommand(ClosureCommand { throw TestError() }, because: "it throws")
                if isWorstFirst { context.onFailure { _ in throw TestError() } }
                _ = await thrown { _ = try await MacroCommand([gone, failing]).perform(context) }
                if !isWorstFirst { context.onFailure { _ in throw TestError() } }
                throw TestError()
            }
            defer { call.forget() }
            #expect(await thrown { _ = try await journal.execute(call) } is TransactionFailure)
            #expect(store.records.map(\.type).suffix(2) == ["incomplete", "incomplete"])
        }
    }

    /// A command whose output cannot be encoded.
    struct Unwritable: JournaledCommand {
        static let journalName = "unwritable"
        let receiver: Int
        /// Whether it first waits until a `Stubborn` command has begun.
        var waits = false
        var idempotencyKey: String? { "unwritable" }
        func perform(_ context: CommandContext) async throws -> Performed<Double, Int> {
            if waits { await Stubborn.begun.next() }
            return Performed(
                .infinity, undo: Receiver[receiver].perform(WorkID(run: 9, number: 0), idempotencyKey))
        }
        func undo(_ undo: Int, _ context: CommandContext) async throws {
            try Receiver[receiver].undo(
                WorkID(run: 9, number: 0), idempotencyKey, undo, fails: false, stays: false)
        }
    }

    @Test(.promises("J5"))
    func `J5: a command with an unencodable output is undone, also after a crash`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let all: [any JournaledCommand.Type] = types + [Unwritable.self]
        let store = MemoryStore()
        let journal = try await CommandJournal(all) { store }
        let command = Unwritable(receiver: receiver.id)
        #expect(await thrown { _ = try await journal.execute(command) } is EncodingError)
        #expect(receiver.live.isEmpty && receiver.complaints == [])
        let tags = ["accepted 0", "accepted", "begun 0", "undoing 0", "undone 0", "ended"]
        #expect(store.records.map(\.tag) == tags)
        #expect(store.records.last?.type == "rolledBack")

        let other = Receiver()
        defer { other.forget() }
        let first = Work(receiver: other.id, run: 9, number: 1)
        let runs = MemoryStore()
        let second = try await CommandJournal(all) { runs }
        let error = await thrown {
            try await second.execute(allOrNothing: [first, Unwritable(receiver: other.id), Call()])
        }
        #expect((error as? TransactionFailure)?.cause is EncodingError)
        #expect(other.live.isEmpty && other.complaints == [])
        // Cut after every record: whatever happened, no effect remains. (Where the command was not begun, nothing was done.)
        for count in 6..<runs.records.count {
            let receiver = Receiver()
            defer { receiver.forget() }
            let journal = try await CommandJournal(all) { MemoryStore(Array(runs.records.prefix(count))) }
            let report = try await journal.recover(.resume)
            #expect(report.inDoubt.isEmpty && report.runs.map(\.outcome) == [.rolledBack], "\(count)")
        }
        #expect(other.live.isEmpty && other.complaints == [])
    }

    /// A command that proceeds when a test lets it, and whose undo throws.
    struct Stubborn: JournaledCommand {
        static let journalName = "stubborn"
        static let begun = Mail<Void>()
        static let goes = Mail<Void>()
        var idempotencyKey: String? { nil }
        func perform(_ context: CommandContext) async throws -> Performed<Nothing, Nothing> {
            Self.begun.send(())
            await Self.goes.next()
            return Performed()
        }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws { throw TestError(number: 3) }
    }

    @Test(.promises("J5"))
    func
        `J5: a run that leaves something in doubt does not end, until it is recovered, by the same process, too`()
        async throws
    {
        struct Mapped: Error {}
        let receiver = Receiver(watchesOrder: false)
        defer { receiver.forget() }
        let crowd = Crowd()
        let store = MemoryStore(beforeLook: { _ in crowd.look() })
        let journal = try await CommandJournal(types + [Unwritable.self, Stubborn.self]) { store }
        let isDone = Mail<Void>()
        // The first command's output cannot be encoded. The second is done after it; its undo fails, and that stops the
        // compensation.
        let options = TransactionOptions(
            order: .parallel(limit: 2), compensation: .stopOnFailure, mapError: { _ in Mapped() },
            observer: { if case .finished(member: 0) = $0 { isDone.send(()) } })
        let first = Unwritable(receiver: receiver.id, waits: true)
        let run = Task {
            try await journal.execute(
                allOrNothing: [first, Stubborn(), Call()], key: "open", options: options)
        }
        await isDone.next()
        // The callers wait for the run's end, and all learn at once what it left in doubt.
        let (count, inDoubt) = (100, Count())
        let jobs = await crowd.run(count) {
            let error = await thrown { _ = try await journal.execute(first) }
            if case JournalError.keyInDoubt("unwritable")? = error { inDoubt.add() }
        } allWait: {
            Stubborn.goes.send(())
        }
        #expect(inDoubt.value == count && jobs <= 4 * count)
        #expect(await thrown { try await run.value } is Mapped)
        #expect(receiver.live.count == 1 && store.records.last?.tag == "undoFailed 1")
        guard
            case JournalError.keyInDoubt("unwritable")? = await thrown({
                _ = try await journal.execute(first)
            })
        else {
            Issue.record("a run that has not ended gave an output")
            return
        }
        for _ in 0..<2 { Stubborn.begun.send(()) }  // the command is begun twice more, to obtain its proof
        let report = try await journal.recover()
        #expect(report.runs.map(\.outcome) == [.incomplete] && report.inDoubt.isEmpty)
        #expect(receiver.live.isEmpty && receiver.complaints == [])
        let failure = report.runs[0].error as? TransactionFailure
        #expect(failure?.compensationFailures.first?.error is RecordedUndoFailure)
        #expect(store.records.last?.tag == "ended")
    }

    /// A command whose output cannot be encoded, and that counts its runs.
    struct Odd: JournaledCommand {
        static let journalName = "odd"
        /// By name, because tests run concurrently.
        static let counts = Locked<[String: Int]>([:])
        var name = ""
        var hasKey = false
        var changesNothing = false
        var failsToUndo = false
        var idempotencyKey: String? { hasKey ? "odd \(failsToUndo)" : nil }
        var undoability: Undoability { changesNothing ? .noEffect : .exact }
        func perform(_ context: CommandContext) async throws -> Performed<Double, Nothing> {
            Self.counts.withLock { [name] in $0[name, default: 0] += 1 }
            return Performed(.infinity, undo: Nothing())
        }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {
            if failsToUndo { throw TestError(number: 7) }
        }
    }

    @Test(.promises("J5"))
    func `J5: a command that changes nothing and has an unencodable output ends its run`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let all: [any JournaledCommand.Type] = types + [Odd.self]
        let store = MemoryStore()
        let journal = try await CommandJournal(all) { store }
        let odd = Odd(changesNothing: true)
        #expect(await thrown { _ = try await journal.execute(odd) } is EncodingError)
        #expect(store.records.last?.tag == "ended")
        let first = store.records.count
        let members: [any JournaledCommand] = [Work(receiver: receiver.id, run: 1, number: 0), odd]
        let error = await thrown { try await journal.execute(allOrNothing: members) }
        #expect((error as? TransactionFailure)?.cause is EncodingError)
        #expect(receiver.live.isEmpty && store.records.last?.tag == "ended")
        #expect(store.records.last?.type == "rolledBack")
        let begun = try #require(store.records.lastIndex { $0.tag == "begun 1" })
        for (count, outcomes) in [(3, [JournalOutcome.failed]), (begun + 1, [.rolledBack])] {
            let cut = MemoryStore(Array(store.records.prefix(count)))
            let journal = try await CommandJournal(all) { cut }
            let report = try await journal.recover()
            #expect(report.runs.map(\.outcome) == outcomes && report.inDoubt.isEmpty)
        }
        #expect(first == 5)
    }

    /// The records of a run: its acceptance, followed by `phases`.
    private func records(_ members: [any JournaledCommand], _ phases: [(JournalRecord.Phase, Int)])
        async throws
        -> [JournalRecord]
    {
        let store = MemoryStore()
        let journal = try await CommandJournal(types + [Odd.self]) { store }
        _ = await thrown { try await journal.execute(allOrNothing: members) }
        var records = Array(store.records.prefix(members.count + 1))
        for (phase, member) in phases {
            let payload = phase == .done ? Data("1".utf8) : Data("text".utf8)
            var record = JournalRecord(
                phase, run: 1, member: member, payload: phase == .begun ? nil : payload,
                proof: phase == .done ? Data("1000".utf8) : nil)
            record.sequence = Int64(records.count + 1)
            record.checksum = record.checksum(after: records.last!.checksum)
            records.append(record)
        }
        return records
    }

    @Test(.promises("J4"))
    func `J4: without a key and a proof, a failed undo is not rerun`() async throws {
        let receiver = Receiver()
        defer { receiver.forget() }
        let work = Work(receiver: receiver.id, run: 1, number: 0)
        let open = try await records(
            [work, Odd(name: "stays", failsToUndo: true), Call()],
            [(.begun, 0), (.done, 0), (.begun, 1), (.undoing, 1), (.undoFailed, 1)])
        for (policy, isLeft) in [
            (TransactionOptions.Compensation.continueOnFailure, false), (.stopOnFailure, true),
        ] {
            receiver.state.withLock { $0 = Receiver.State() }
            _ = receiver.perform(work.id, work.idempotencyKey)
            let count = Odd.counts.withLock { $0["stays"] }
            let journal = try await CommandJournal(types + [Odd.self]) { MemoryStore(open) }
            let report = try await journal.recover(compensation: policy)
            #expect(Odd.counts.withLock { $0["stays"] } == count)
            #expect(report.runs.map(\.outcome) == [.incomplete] && report.inDoubt.isEmpty)
            let failure = report.runs.first?.error as? TransactionFailure
            #expect(failure?.compensationFailures.first?.error is RecordedUndoFailure)
            #expect(receiver.live.isEmpty != isLeft && receiver.complaints == [])
        }
    }

    @Test(.promises("J3"))
    func `J3: a run in compensation is undone, even once a missing proof is given`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let work = Work(receiver: receiver.id, run: 1, number: 0)
        let open = try await records([work], [(.begun, 0), (.undoing, 0), (.done, 0)])
        for policy in [CommandJournal.Unfinished.compensate, .resume] {
            receiver.state.withLock { $0 = Receiver.State() }
            _ = receiver.perform(work.id, work.idempotencyKey)
            let report = try await journal(MemoryStore(open)).recover(policy)
            #expect(report.runs.map(\.outcome) == [.rolledBack])
            #expect(receiver.live.isEmpty && receiver.complaints == [])
        }
    }

    @Test(.promises("J4")) func `J4: work a recovery leaves open is reported`() async throws {
        // Both lack a proof. The undo of the second throws, and that stops the compensation.
        let open = try await records(
            [Odd(hasKey: true), Odd(hasKey: true, failsToUndo: true), Call()], [(.begun, 0), (.begun, 1)])
        let journal = try await CommandJournal(types + [Odd.self]) { MemoryStore(open) }
        let report = try await journal.recover(compensation: .stopOnFailure)
        #expect(report.runs.isEmpty)
        #expect(report.inDoubt.map(\.member) == [0])
    }

    @Test(.promises("J3"))
    func `J3: a failed undo that lacks a proof reruns the work for it, with a key`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        for fails in [false, true] {
            let works = [Plan(fails: fails), Plan()].enumerated().map { number, plan in
                Work(receiver: receiver.id, run: 1, number: number, plan: plan)
            }
            let open = try await records(
                works,
                works.indices.flatMap { [(.begun, $0), (.undoing, $0), (.undoFailed, $0)] })
            receiver.state.withLock { $0 = Receiver.State() }
            let done = works.filter { !$0.plan.fails }
            for work in done { _ = receiver.perform(work.id, work.idempotencyKey) }
            let store = MemoryStore(open)
            let report = try await journal(store).recover()
            #expect(report.runs.map(\.outcome) == [.rolledBack] && report.inDoubt.isEmpty)
            #expect(receiver.live.isEmpty && receiver.complaints == [])
            // Each member is recorded as undoing again before it is begun again. If one fails, the other is settled all the
            // same.
            let tags = store.records.dropFirst(open.count).map(\.tag)
            let settled = ["undoing 0", fails ? "failed 0" : "done 0", "undoing 1", "done 1"]
            #expect(Array(tags.prefix(4)) == settled)
        }
    }

    @Test(.promises("J5")) func `J5: of several in doubt, failing ones do not keep others so`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let plans = [Plan(fails: true), Plan(fails: true), Plan()]
        let works = plans.enumerated().map { Work(receiver: receiver.id, run: 1, number: $0, plan: $1) }
        let whole = MemoryStore()
        _ = await thrown { try await journal(whole).execute(allOrNothing: works) }
        // The records that three members in parallel would leave.
        var log = JournalLog()
        var records = Array(whole.records.prefix(4))
        for record in records { try log.apply(record) }
        for member in 0..<3 {
            var record = JournalRecord(.begun, run: 1, member: member)
            record.sequence = log.last + 1
            record.checksum = record.checksum(after: log.checksum)
            try log.apply(record)
            records.append(record)
        }
        for policy in [CommandJournal.Unfinished.compensate, .resume] {
            receiver.state.withLock { $0 = Receiver.State() }
            let report = try await journal(MemoryStore(records)).recover(policy)
            #expect(report.runs.map(\.outcome) == [.rolledBack])
            #expect(receiver.log == ["do 1.2", "undo 1.2"] && receiver.complaints == [])
        }
    }

    @Test(.promises("J5"))
    func `J5: an irreversible command passed before a crash is in the outcome`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        var works = works(receiver, keys: [true, true, true])
        works[1].plan.kind = .irreversible
        let journal = try await journal(cut(works, after: "undone 1", fails: true))
        #expect(try await journal.recover().runs.map(\.outcome) == [.rolledBackExceptIrreversible])
        #expect(receiver.live.map(\.number) == [1])
    }

    @Test(.promises("J3")) func `J3: a cancelled recovery ends its current run`() async throws {
        let receiver = Receiver()
        defer { receiver.forget() }
        let (begun, goes) = (Mail<Void>(), Mail<Void>())
        let isCancelled = Locked(false)
        let call = Call(key: "waits") { context in
            begun.send(())
            await goes.next()
            isCancelled.withLock { $0 = context.isCancelled }
        }
        let store = MemoryStore()
        goes.send(())
        _ = try await journal(store).execute(call)
        await begun.next()
        let open = MemoryStore(Array(store.records.prefix(3)))
        let journal = try await journal(open)
        let recovery = Task { try await journal.recover() }
        await begun.next()
        recovery.cancel()
        goes.send(())
        #expect(try await recovery.value.runs.map(\.outcome) == [.finished])
        #expect(isCancelled.withLock { $0 } == false)
        #expect(open.records.last?.phase == .ended)
    }

    @Test(.promises("J3")) func `J3: a stopped recovery reports what it did`() async throws {
        let calls = [Call(), Call()]
        defer { for call in calls { call.forget() } }
        var open: [[JournalRecord]] = []
        for call in calls {
            let store = MemoryStore()
            _ = try await journal(store).execute(call)
            open.append(Array(store.records.prefix(3)))
        }
        for isCancelled in [true, false] {
            let ends = Count()
            let store = MemoryStore(joined(open)) { records in
                let isEnd = records.contains { $0.phase == .ended }
                if !isCancelled, isEnd, ends.add() == 2 { throw TestError(number: 28) }
            }
            let journal = try await journal(store)
            let recovery = Task {
                try await journal.recover { _ in
                    if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
                    return .again
                }
            }
            let error = await thrown { _ = try await recovery.value }
            guard case JournalError.recoveryStopped(let report, let cause)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(report.runs.map(\.number) == [1] && report.runs.map(\.outcome) == [.finished])
            if isCancelled { #expect(cause is CancellationError) } else { #expect("\(cause)".contains("28")) }
            // Another journal continues from there.
            let next = try await CommandJournalTests.journal(MemoryStore(store.records))
            #expect(try await next.recover { _ in .again }.runs.map(\.number) == [4])
        }
    }

    @Test(.promises("J1")) func `J1: nothing is executed before runs of an earlier process are recovered`()
        async throws
    {
        let receiver = Receiver()
        defer { receiver.forget() }
        let journal = try await journal(cut(works(receiver, keys: [true, true]), after: "begun 1"))
        for _ in 0..<2 {
            guard case JournalError.needsRecovery? = await thrown({ _ = try await journal.execute(Call()) })
            else {
                Issue.record("it was executed")
                return
            }
            guard case JournalError.needsRecovery? = await thrown({ _ = try await journal.replay() }) else {
                Issue.record("it was replayed")
                return
            }
        }
        _ = try await journal.recover()
        _ = try await journal.execute(Call())
    }
}
