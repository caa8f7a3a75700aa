// Events.swift - what the killed program reports to its killer: a byte for each step.

import CommandJournal
import Glibc

/// A step that the program is about to take, or has taken. During a recovery, lower-case letters become upper-case.
enum Event: String, CaseIterable {
    /// Records are about to be committed.
    case committing = "c"
    /// The records are durable.
    case committed = "d"
    /// A command begins.
    case working = "w"
    /// The command's effect is in place.
    case worked = "x"
    /// An undo begins.
    case undoing = "u"
    /// The effect is gone.
    case undone = "v"
    /// The caller has its answer.
    case answered = "a"
    case recoveryBegan = "("
    case recoveryEnded = ")"
    case replayBegan = "<"
    case replayed = "."
    case replayEnded = ">"
}

/// Writes events to a pipe.
final class Events: Sendable {
    private let pipe: Int32
    nonisolated(unsafe) private var isRecovering = false

    init(_ pipe: Int32) { self.pipe = pipe }

    func tell(_ event: Event) {
        // Nothing but a recovery runs while this changes.
        if event == .recoveryBegan { isRecovering = true }
        if event == .recoveryEnded { isRecovering = false }
        let letter = isRecovering ? event.rawValue.uppercased() : event.rawValue
        _ = write(pipe, letter, 1)
    }
}

/// A store that reports its commits.
final class TellingStore: JournalStore {
    private let store: SQLiteStore
    private let events: Events

    init(_ path: String, _ events: Events) throws {
        store = try SQLiteStore(path: path)
        self.events = events
    }

    var path: String { store.path }
    var maximumSize: Int { store.maximumSize }

    func records(after sequence: Int64, limit: Int) throws -> [JournalRecord] {
        try store.records(after: sequence, limit: limit)
    }
    func records(ofRun run: Int64) throws -> [JournalRecord] { try store.records(ofRun: run) }
    func place(ofKey key: String) throws -> KeyPlace? { try store.place(ofKey: key) }
    func replayable(after sequence: Int64, limit: Int) throws -> [ReplayedRecord] {
        try store.replayable(after: sequence, limit: limit)
    }
    func commit(_ records: [JournalRecord]) throws {
        events.tell(.committing)
        try store.commit(records)
        events.tell(.committed)
    }
    func anchor() throws -> JournalAnchor? { try store.anchor() }
    func setAnchor(_ anchor: JournalAnchor) throws { try store.setAnchor(anchor) }
    func removeRecords(after sequence: Int64) throws { try store.removeRecords(after: sequence) }
    func close() { store.close() }
}
