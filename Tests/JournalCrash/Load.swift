// Load.swift - the program that is killed: it recovers, then executes commands of all kinds, and replays now and then.

import CommandJournal
import Commands
import CompositeOperations
import Foundation
import PropertyTesting
@_spi(Faces) import Runs

/// Work that is written into the ledger.
struct Entry: JournaledCommand {
    static let journalName = "entry"
    struct Failed: Error {}

    let job: String
    let number: Int
    let hasKey: Bool
    let fails: Bool

    var name: String { "\(job).\(number)" }
    var idempotencyKey: String? { hasKey ? name : nil }

    func perform(_ context: CommandContext) async throws -> Performed<String, String> {
        let process = Process.current!
        if process.isReplaying.withLock({ $0 }) {
            process.replayed.withLock { $0.append(name) }
            process.events.tell(.replayed)
            return Performed(name, undo: name)
        }
        process.events.tell(.working)
        if fails { throw NotDone(because: Failed()) }
        process.ledger.add("+ \(name)", hasKey: hasKey)
        process.events.tell(.worked)
        return Performed(name, undo: name)
    }

    func undo(_ undo: String, _ context: CommandContext) async throws {
        let process = Process.current!
        if undo != name { fatalError("JournalCrash: \(name) got the proof of \(undo)") }
        process.events.tell(.undoing)
        process.ledger.add("- \(name)", hasKey: hasKey)
        process.events.tell(.undone)
    }
}

/// The state of one process.
final class Process: Sendable {
    nonisolated(unsafe) static var current: Process!

    let ledger: Ledger
    let answers: Ledger
    let events: Events
    let isReplaying = Guarded(false)
    let replayed = Guarded<[String]>([])

    init(_ folder: String, _ events: Events) {
        ledger = Ledger("\(folder)/ledger")
        answers = Ledger("\(folder)/answers")
        self.events = events
    }
}

func fail(_ sentence: String) -> Never {
    FileHandle.standardError.write(Data("JournalCrash: \(sentence)\n".utf8))
    exit(1)
}

/// Recovers the journal in the folder, and executes commands until the process is killed or has done `jobs` jobs.
func work(in folder: String, _ events: Events, seed: UInt64, session: Int, jobs: Int) async throws {
    let process = Process(folder, events)
    Process.current = process
    let journal = try await CommandJournal([Entry.self]) { try TellingStore("\(folder)/journal", events) }
    if !journal.dropped.isEmpty { fail("records were dropped: \(journal.dropped)") }
    var random = SplitMix64(seed: seed)
    events.tell(.recoveryBegan)
    let report = try await journal.recover(random.next() % 2 == 0 ? .compensate : .resume)
    events.tell(.recoveryEnded)
    let again = try await journal.recover()
    if !again.runs.isEmpty || again.inDoubt != report.inDoubt {
        fail("a second recovery had something to do")
    }

    try await replay(journal, process, inDoubt: report.inDoubt)
    let next = Guarded(0)
    let seeds = [random.next(), random.next(), random.next()]
    try await withThrowingTaskGroup(of: Void.self) { group in
        for seed in seeds {
            group.addTask {
                var random = SplitMix64(seed: seed)
                while true {
                    let job = next.withLock { next in
                        next += 1
                        return next
                    }
                    if job > jobs { return }
                    try await execute("\(session)-\(job)", journal, process, &random)
                }
            }
        }
        try await group.waitForAll()
    }
    try await replay(journal, process, inDoubt: report.inDoubt)
    await journal.close()
}

/// Executes one command, or several all-or-nothing; some fail, and some are executed twice.
private func execute(
    _ job: String, _ journal: CommandJournal, _ process: Process, _ random: inout SplitMix64
) async throws {
    func answer(_ outcome: String) {
        process.answers.write("\(job) \(outcome)")
        process.events.tell(.answered)
    }
    if random.next() % 3 == 0 {
        let command = Entry(
            job: job, number: 0, hasKey: random.next() % 4 != 0, fails: random.next() % 5 == 0)
        do {
            let output = try await journal.execute(command)
            if command.hasKey {
                async let twice = journal.execute(command)
                let once = try await journal.execute(command)
                guard try await (output, output) == (once, twice) else { fail("\(job) has two outputs") }
            }
            answer("succeeded")
        } catch is NotDone { answer("failed") }
        return
    }
    let count = 1 + Int(random.next() % 4)
    let failing = Int(random.next() % 8)
    let lacksKey = random.next() % 6 == 0 ? Int(random.next() % 4) : -1
    let members = (0..<count).map { number in
        Entry(job: job, number: number, hasKey: number != lacksKey, fails: number == failing)
    }
    do {
        try await journal.execute(allOrNothing: members, key: "run \(job)")
        answer("succeeded")
    } catch is TransactionFailure { answer("rolledBack") }
}

/// Replays, and checks that the replayed work is the work that the ledger records as done and not undone, except for
/// work in doubt.
private func replay(
    _ journal: CommandJournal, _ process: Process, inDoubt: [CommandJournal.InDoubt]
) async throws {
    process.isReplaying.withLock { $0 = true }
    process.replayed.withLock { $0 = [] }
    process.events.tell(.replayBegan)
    let report = try await journal.replay()
    process.events.tell(.replayEnded)
    process.isReplaying.withLock { $0 = false }
    let replayed = process.replayed.withLock { $0 }
    guard report.count == replayed.count, Set(replayed).count == report.count else {
        fail("a replay ran \(replayed.count) commands, and says \(report.count)")
    }
    var live: Set<String> = []
    for line in process.ledger.lines {
        let name = String(line.dropFirst(2))
        if line.hasPrefix("+") { live.insert(name) } else { live.remove(name) }
    }
    let missing = live.subtracting(replayed)
    guard live.isSuperset(of: replayed), missing.count <= inDoubt.count else {
        fail(
            "a replay ran \(Set(replayed).subtracting(live)), which is not there, and not \(missing), which is; "
                + "\(inDoubt.count) are in doubt")
    }
}
