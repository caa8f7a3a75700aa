// A crash after every record: random runs are cut anywhere, recovered, cut again during the recovery, and recovered again. Each
// result is compared with a prediction from the records, once as if the work in doubt had happened, and once as if it had not.

import CommandJournal
import Commands
import CompositeOperationsTestSupport
import Foundation
import GRDB
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct TruncationTests {
    /// A command or a run to execute.
    struct Job: Sendable {
        var isSingle = false
        var plans: [Plan] = []
        var isParallel = false
        var stopsOnFailure = false

        static let generator = Generator<Job> { source in
            var job = Job()
            job.isSingle = source.draw(below: 3) == 0
            let plans = Generator.array(of: Plan.generator, count: job.isSingle ? 1...1 : 0...4)
            job.plans = try plans.value(from: &source)
            job.isParallel = source.draw(below: 4) == 3
            return job
        }
    }

    /// Executes jobs, one after another.
    static func run(_ jobs: [Job], _ journal: CommandJournal, _ receiver: Receiver) async throws {
        for (number, job) in jobs.enumerated() {
            let works = job.plans.enumerated().map { index, plan in
                Work(receiver: receiver.id, run: number, number: index, plan: plan)
            }
            do {
                if job.isSingle {
                    _ = try await journal.execute(works[0])
                } else {
                    try await journal.execute(
                        allOrNothing: works,
                        options: TransactionOptions(order: job.isParallel ? .parallel(limit: 3) : .sequential)
                    )
                }
            } catch is NotDone {} catch is TransactionFailure {}
        }
    }

    /// The same records, for another receiver. Each command encodes its receiver.
    static func records(_ records: some Sequence<JournalRecord>, for receiver: Receiver) throws
        -> [JournalRecord]
    {
        var checksum: UInt64 = 0
        return try records.map { record in
            var record = record
            if record.phase == .accepted, let payload = record.payload {
                let work = try JSONDecoder().decode(Work.self, from: payload)
                let other = Work(receiver: receiver.id, run: work.run, number: work.number, plan: work.plan)
                let encoder = JSONEncoder()
                encoder.outputFormatting = .sortedKeys
                record.payload = try encoder.encode(other)
            }
            record.checksum = record.checksum(after: checksum)
            checksum = record.checksum
            return record
        }
    }

    /// Recovers from `records`, and compares the result with the prediction.
    ///
    /// - Returns: the records afterwards.
    static func recover(
        _ records: [JournalRecord], happened: Bool, resumes: Bool, _ where: String
    ) async throws -> [JournalRecord] {
        let prediction = Prediction(records, happened: happened)
        let receiver = Receiver(prediction.receiver(happened: happened))
        defer { receiver.forget() }
        let store = MemoryStore(try Self.records(records, for: receiver))
        let journal = try await journal(store)
        let report = try await journal.recover(resumes ? .resume : .compensate)
        let doubts = report.inDoubt.map { KeyPlace(run: $0.run, member: $0.member) }
        #expect(doubts == prediction.inDoubt, "\(`where`)")
        #expect(Set(receiver.live) == prediction.effects(resumes: resumes), "\(`where`)")
        #expect(receiver.complaints == [], "\(`where`)")
        let ended = prediction.recovered(resumes: resumes).filter { $0.outcome != nil }
        #expect(report.runs.map(\.number) == ended.map(\.number), "\(`where`)")
        #expect(report.runs.map(\.outcome) == ended.map(\.outcome), "\(`where`)")
        let left = Set(doubts.map(\.run))
        #expect(
            Prediction(store.records, happened: false).runs.filter { !$0.isEnded }.map(\.number)
                .allSatisfy { left.contains($0) }, "\(`where`)")
        // A second recovery has nothing left to do.
        let (log, size) = (receiver.log, store.records.count)
        let again = try await journal.recover(resumes ? .resume : .compensate)
        #expect(again.runs.isEmpty && again.inDoubt == report.inDoubt, "\(`where`)")
        #expect(receiver.log == log && store.records.count == size, "\(`where`)")
        return store.records
    }

    @Test(.promises("B10", "J2", "J3"))
    func
        `J2, J3: cut after any record, a journal is recovered as the records say; and again, when that is cut`()
        async
    {
        await forAll(
            .array(of: Job.generator, count: 1...4), cases: isSanitized ? 8 : 25,
            covering: [.cover(50, "all or nothing") { $0.contains { !$0.isSingle && $0.plans.count > 1 } }]
        ) { jobs in
            let receiver = Receiver(watchesOrder: !jobs.contains(where: \.isParallel))
            defer { receiver.forget() }
            let store = MemoryStore()
            let live = try await journal(store)
            try await Self.run(jobs, live, receiver)
            #expect(receiver.complaints == [])
            let records = store.records
            let whole = Prediction(records, happened: false)
            #expect(Set(receiver.live) == whole.effects(resumes: false))
            #expect(whole.runs.filter { !$0.isEnded }.count == 0)
            for count in 0...records.count {
                for (happened, resumes) in [(false, false), (true, true), (true, false), (false, true)] {
                    let cut = Array(records.prefix(count))
                    let place = "cut after \(count), happened: \(happened), resumes: \(resumes)"
                    let after = try await Self.recover(cut, happened: happened, resumes: resumes, place)
                    // The recovery is cut too, at one place, a different one each time.
                    guard after.count > count, happened == resumes else { continue }
                    let second = count + (count * 7 + 3) % (after.count - count)
                    _ = try await Self.recover(
                        Array(after.prefix(second)), happened: !happened, resumes: !resumes,
                        place + ", then after \(second)")
                }
            }
        }
    }

    @Test(.promises("J2")) func `J2: a file cut after any record is recovered like one in memory`()
        async throws
    {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let path = folder.file()
        let jobs = [
            Job(isSingle: true, plans: [Plan()]),
            Job(plans: [Plan(), Plan(failsToUndo: true), Plan(fails: true)]),
        ]
        let journal = try await CommandJournal(path: path, types: types)
        try await Self.run(jobs, journal, receiver)
        await journal.close()
        let records = try SQLiteStore(path: path).records(after: 0, limit: 1000)
        #expect(records.last?.phase == .ended)
        for count in 0...records.count {
            let cut = folder.file("\(count).journal")
            let prediction = Prediction(Array(records.prefix(count)), happened: false)
            let receiver = Receiver(prediction.receiver(happened: false))
            defer { receiver.forget() }
            let store = try SQLiteStore(path: cut)
            try store.commit(Self.records(records.prefix(count), for: receiver))
            store.close()
            let journal = try await CommandJournal(path: cut, types: types)
            let report = try await journal.recover()
            #expect(report.inDoubt.isEmpty)
            #expect(Set(receiver.live) == prediction.effects(resumes: false), "cut after \(count)")
            #expect(receiver.complaints == [])
            await journal.close()
        }
    }

    @Test(.promises("J2"))
    func `J2: a log cut at any byte, as by a power failure, holds a prefix of whole commits`()
        async throws
    {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let path = folder.file()
        let journal = try await CommandJournal(path: path, types: types)
        try await Self.run(
            [Job(isSingle: true, plans: [Plan()]), Job(plans: [Plan(), Plan(), Plan(fails: true)])], journal,
            receiver)
        let (file, log) = try (
            Data(contentsOf: URL(fileURLWithPath: path)),
            Data(contentsOf: URL(fileURLWithPath: path + "-wal"))
        )
        await journal.close()
        let all = try SQLiteStore(path: path).records(after: 0, limit: 1000)
        var lengths: Set<Int> = []
        var random = SplitMix64(seed: 7)
        for cut in 0..<40 {
            let other = folder.file("\(cut)")
            let end = cut == 0 ? log.count : Int(random.next() % UInt64(log.count))
            try file.write(to: URL(fileURLWithPath: other))
            // The bytes after the cut may be present as zeros.
            let rest = Data(count: cut % 2 == 0 ? 0 : log.count - end)
            try (log.prefix(end) + rest).write(to: URL(fileURLWithPath: other + "-wal"))
            let store = try SQLiteStore(path: other)
            let records = try store.records(after: 0, limit: 1000)
            store.close()
            #expect(records == Array(all.prefix(records.count)), "cut at \(end)")
            lengths.insert(records.count)
            let state = Prediction(records, happened: true)
            let receiver = Receiver(state.receiver(happened: true))
            defer { receiver.forget() }
            let whole = MemoryStore(try Self.records(records, for: receiver))
            let recovered = try await CommandJournalTests.journal(whole)
            #expect(recovered.dropped.isEmpty)
            #expect(try await recovered.recover().inDoubt.isEmpty)
            #expect(Set(receiver.live) == state.effects(resumes: false) && receiver.complaints == [])
        }
        #expect(lengths.contains(all.count) && lengths.count > 4)
    }
}
