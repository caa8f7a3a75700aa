// JournalStore.swift - the interface to the place where a journal keeps its records.

/// The place of a run or a member with a key.
package struct KeyPlace: Hashable, Sendable {
    package let run: Int64
    /// nil: the key is the run's own.
    package let member: Int?

    package init(run: Int64, member: Int?) {
        self.run = run
        self.member = member
    }
}

/// A command that was done.
package struct ReplayedRecord: Sendable {
    /// The number of its `done` record.
    package let sequence: Int64
    /// The `accepted` record, which holds the command.
    package let command: JournalRecord
    /// Whether the command was undone; for an irreversible one, whether it was recorded as undone.
    package let isUndone: Bool

    package init(sequence: Int64, command: JournalRecord, isUndone: Bool) {
        self.sequence = sequence
        self.command = command
        self.isUndone = isUndone
    }
}

/// The place where records are kept. Calls come one at a time, from a thread that may block. An unreadable record throws
/// a ``JournalCorruption``.
package protocol JournalStore: AnyObject, Sendable {
    /// The path of the file, for errors.
    var path: String { get }
    /// The maximum total size of the texts and data of a record.
    var maximumSize: Int { get }

    /// The records after `sequence`, in order, at most `limit`; including records with a ``JournalRecord/damage``.
    func records(after sequence: Int64, limit: Int) throws -> [JournalRecord]
    /// The records of a run, in order.
    func records(ofRun run: Int64) throws -> [JournalRecord]
    func place(ofKey key: String) throws -> KeyPlace?
    /// The commands that were done and are not being undone, in the order in which they were done.
    func replayable(after sequence: Int64, limit: Int) throws -> [ReplayedRecord]

    /// Adds all records. When the call throws, none of them can be relied on. When it returns, they survive the end of
    /// the process and a loss of power, and are found when the journal is opened.
    func commit(_ records: [JournalRecord]) throws
    /// The last record as of the return of the last commit, kept separately; nil if unknown.
    func anchor() throws -> JournalAnchor?
    /// Records durably that this record is the last.
    func setAnchor(_ anchor: JournalAnchor) throws
    /// Removes the records after `sequence`.
    func removeRecords(after sequence: Int64) throws
    func close()
}
