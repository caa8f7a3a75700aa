// Helpers shared by the tests of the journal: an in-memory store, a receiver that checks keys, and commands for it.

import CommandJournal
import Commands
import CompositeOperationsTestSupport
import Dispatch
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Synchronization
import Testing

struct TestError: Error, Equatable {
    var number = 0
}

/// Records in memory, which outlive the journal. A test can make the store fail or wait.
final class MemoryStore: JournalStore {
    private let storage: Locked<[JournalRecord]>
    private let sizes = Locked<[Int]>([])
    /// Called before each commit, on the journal's queue.
    let beforeCommit: @Sendable ([JournalRecord]) throws -> Void
    /// Called before a key is looked up, on the journal's queue.
    let beforeLook: @Sendable (String) -> Void

    init(
        _ records: [JournalRecord] = [],
        beforeCommit: @escaping @Sendable ([JournalRecord]) throws -> Void = { _ in },
        beforeLook: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        storage = Locked(records)
        self.beforeCommit = beforeCommit
        self.beforeLook = beforeLook
    }

    var path: String { "in memory" }
    var maximumSize: Int { .max }
    var records: [JournalRecord] { storage.withLock { $0 } }
    /// The number of records in each commit.
    var commits: [Int] { sizes.withLock { $0 } }

    func records(after sequence: Int64, limit: Int) -> [JournalRecord] {
        Array(records.filter { $0.sequence > sequence }.prefix(limit))
    }

    func records(ofRun run: Int64) -> [JournalRecord] { records.filter { $0.run == run } }

    func place(ofKey key: String) -> KeyPlace? {
        beforeLook(key)
        let same = records.first { $0.key?.utf8.elementsEqual(key.utf8) == true }  // bytewise, as in a file
        return same.map { KeyPlace(run: $0.run, member: $0.member) }
    }

    func replayable(after sequence: Int64, limit: Int) -> [ReplayedRecord] {
        let all = records
        let last = Dictionary(all.map { (KeyPlace(run: $0.run, member: $0.member), $0.phase) }) { $1 }
        let done = all.filter {
            $0.phase == .done && $0.sequence > sequence
                && last[KeyPlace(run: $0.run, member: $0.member)] != .undoing
        }
        return done.prefix(limit).map { record in
            let command = all.first {
                $0.phase == .accepted && $0.run == record.run && $0.member == record.member
            }
            let isUndone = last[KeyPlace(run: record.run, member: record.member)] == .undone
            return ReplayedRecord(sequence: record.sequence, command: command!, isUndone: isUndone)
        }
    }

    func commit(_ records: [JournalRecord]) throws {
        try beforeCommit(records)
        sizes.withLock { $0.append(records.count) }
        storage.withLock { $0 += records }
    }

    func anchor() -> JournalAnchor? { nil }
    func setAnchor(_ anchor: JournalAnchor) {}

    func removeRecords(after sequence: Int64) {
        storage.withLock { $0.removeAll { $0.sequence > sequence } }
    }

    func close() {}
}

extension JournalRecord {
    /// Such as `done 3` for a member, or `ended` for a run.
    var tag: String { (phase.map { "\($0)" } ?? "?") + (member.map { " \($0)" } ?? "") }
}

/// The identity of a piece of work for a receiver: its key, or its number.
struct WorkID: Hashable, Sendable {
    let run: Int
    let number: Int
}

/// Does work, once per key, and remembers it. Commands are encoded, so they refer to a receiver by its number.
final class Receiver: Sendable {
    struct State {
        /// The work in effect, in the order in which it was done.
        var live: [WorkID] = []
        var log: [String] = []
        /// The keys under which work was done, or undone.
        var doneKeys: [String: Int] = [:]
        var undoneKeys: Set<String> = []
        var effects: [WorkID: Int] = [:]
        var undone: [WorkID: Int] = [:]
        /// The work that stays in effect when its run is rolled back.
        var sticky: Set<WorkID> = []
        var complaints: [String] = []
    }

    private static let all = Locked<[Int: Receiver]>([:])
    private static let last = Atomic(0)

    let id = Receiver.last.add(1, ordering: .relaxed).newValue
    let state: Locked<State>
    /// Whether the receiver checks the order of undos.
    let watchesOrder: Bool

    init(_ state: State = State(), watchesOrder: Bool = true) {
        self.state = Locked(state)
        self.watchesOrder = watchesOrder
        Self.all.withLock { $0[id] = self }
    }

    static subscript(id: Int) -> Receiver { all.withLock { $0[id]! } }

    /// Unregisters the receiver. A command that names it afterwards stops the process.
    func forget() { Self.all.withLock { $0[id] = nil } }

    var live: [WorkID] { state.withLock { $0.live } }
    var log: [String] { state.withLock { $0.log } }
    var complaints: [String] { state.withLock { $0.complaints } }

    func perform(_ work: WorkID, _ key: String?) -> Int {
        state.withLock { state in
            state.log.append("do \(work.run).\(work.number)")
            if let key, let proof = state.doneKeys[key] { return proof }
            state.effects[work, default: 0] += 1
            if state.effects[work]! > 1 { state.complaints.append("\(work) was done twice") }
            state.live.append(work)
            let proof = work.run * 1000 + work.number
            if let key { state.doneKeys[key] = proof }
            return proof
        }
    }

    func undo(_ work: WorkID, _ key: String?, _ proof: Int, fails: Bool, stays: Bool) throws {
        try state.withLock { state in
            state.log.append("undo \(work.run).\(work.number)")
            if proof != work.run * 1000 + work.number {
                state.complaints.append("\(work) got another's proof")
            }
            if let key, state.undoneKeys.contains(key) { return }
            let after = state.live.drop { $0 != work }.dropFirst().filter { $0.run == work.run }
            if watchesOrder, after.contains(where: { !state.sticky.contains($0) }) {
                state.complaints.append("\(work) was undone before \(after)")
            }
            if fails {
                state.sticky.insert(work)
                throw TestError(number: work.number)
            }
            state.undone[work, default: 0] += 1
            if state.undone[work]! > 1 { state.complaints.append("\(work) was undone twice") }
            if let key { state.undoneKeys.insert(key) }
            if stays {
                state.sticky.insert(work)
            } else if let place = state.live.firstIndex(of: work) {
                state.live.remove(at: place)
            } else {
                state.complaints.append("\(work) was undone, and is not there")
            }
        }
    }
}

/// How a command behaves.
struct Plan: Codable, Hashable, Sendable {
    enum Kind: String, Codable { case exact, noEffect, irreversible }

    var hasKey = true
    var fails = false
    var failsToUndo = false
    var kind = Kind.exact

    static let generator = Generator<Plan> { source in
        var plan = Plan()
        plan.hasKey = source.draw(below: 3) != 1
        switch source.draw(below: 10) {
        case 1: plan.fails = true
        case 2: plan.failsToUndo = true
        case 3: plan.kind = .noEffect
        case 4: plan.kind = .irreversible
        default: break
        }
        return plan
    }
}

/// Work at a receiver, which behaves as planned.
struct Work: JournaledCommand, Hashable {
    static let journalName = "work"

    let receiver: Int
    let run: Int
    let number: Int
    var plan = Plan()

    var id: WorkID { WorkID(run: run, number: number) }
    var idempotencyKey: String? { plan.hasKey ? "work \(run).\(number)" : nil }

    var undoability: Undoability {
        switch plan.kind {
        case .exact: .exact
        case .noEffect: .noEffect
        case .irreversible: .irreversible("gone")
        }
    }

    func perform(_ context: CommandContext) async throws -> Performed<Int, Int> {
        if plan.fails { throw NotDone(because: TestError(number: number)) }
        if plan.kind == .noEffect { return Performed(0, undo: 0) }
        return Performed(number, undo: Receiver[receiver].perform(id, idempotencyKey))
    }

    func undo(_ undo: Int, _ context: CommandContext) async throws {
        try Receiver[receiver].undo(
            id, idempotencyKey, undo, fails: plan.failsToUndo, stays: plan.kind == .irreversible)
    }
}

/// Calls a closure of the test.
struct Call: JournaledCommand {
    static let journalName = "call"
    private static let bodies = Locked<[Int: @Sendable (CommandContext) async throws -> Void]>([:])
    private static let last = Atomic(0)

    let id: Int
    var key: String?
    var idempotencyKey: String? { key }

    init(key: String? = nil, _ body: @escaping @Sendable (CommandContext) async throws -> Void = { _ in }) {
        id = Self.last.add(1, ordering: .relaxed).newValue
        self.key = key
        Self.bodies.withLock { [id] bodies in bodies[id] = body }
    }

    /// Releases the closure. Calling it afterwards stops the process.
    func forget() { Self.bodies.withLock { $0[id] = nil } }

    func perform(_ context: CommandContext) async throws -> Performed<Nothing, Nothing> {
        let body = Self.bodies.withLock { $0[id]! }
        try await body(context)
        return Performed()
    }

    func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
}

let types: [any JournaledCommand.Type] = [Work.self, Call.self]

func journal(_ store: MemoryStore, _ types: [any JournaledCommand.Type] = types) async throws
    -> CommandJournal
{
    try await CommandJournal(types) { store }
}

/// A folder that is removed with the test.
final class Folder: Sendable {
    let path: String

    init() throws {
        path =
            FileManager.default.temporaryDirectory.appendingPathComponent("journal-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String = "a.journal") -> String { "\(path)/\(name)" }
}

/// Runs jobs on request, on the requesting thread.
final class HeldExecutor: TaskExecutor {
    private let jobs = Locked<[UnownedJob]>([])
    /// One letter for each arrival.
    let arrivals = Mail<Void>()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        arrivals.send(())
    }

    /// - Returns: whether a job was pending.
    @discardableResult
    func runNext() -> Bool {
        guard let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return false }
        job.runSynchronously(on: asUnownedTaskExecutor())
        return true
    }
}

/// Calls that run one job at a time. A key is looked up only when no call can proceed: a call that looks one up lets all
/// others run first.
final class Crowd: Sendable {
    private let held = HeldExecutor()
    private let isThere = Locked(false)
    private let mayLook = DispatchSemaphore(value: 0)

    /// Called by a store before it looks up a key.
    func look() {
        guard isThere.withLock({ $0 }) else { return }
        held.arrivals.send(())
        mayLook.wait()
    }

    /// - Parameter allWait: called when every call has reached its first wait.
    /// - Returns: the number of jobs run until all calls had returned.
    func run(
        _ count: Int, _ body: @escaping @Sendable () async -> Void, allWait: () -> Void
    ) async -> Int {
        isThere.withLock { $0 = true }
        defer { isThere.withLock { $0 = false } }
        let left = Locked(count)
        for _ in 0..<count {
            Task(executorPreference: held) {
                await body()
                left.withLock { $0 -= 1 }
            }
        }
        var jobs = 0
        while left.withLock({ $0 }) > 0 {
            await held.arrivals.next()
            guard held.runNext() else {  // no job: a look-up has arrived
                mayLook.signal()
                continue
            }
            jobs += 1
            if jobs == count { allWait() }
        }
        return jobs
    }
}

/// The records of some runs, one after another, numbered and with their checksums.
func joined(_ runs: [[JournalRecord]]) -> [JournalRecord] {
    var records: [JournalRecord] = []
    for run in runs {
        let first = Int64(records.count + 1)
        for var record in run {
            (record.sequence, record.run) = (Int64(records.count + 1), first)
            record.checksum = record.checksum(after: records.last?.checksum ?? 0)
            records.append(record)
        }
    }
    return records
}

/// The error that `body` throws.
func thrown(_ body: () async throws -> Void) async -> (any Error)? {
    do { try await body() } catch { return error }
    return nil
}
