// JournalStore.swift - what a journal needs of the place where its records are.

/// Where a run or a member with a key is.
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
    /// Of `done`.
    package let sequence: Int64
    /// Of `accepted`, which holds the command.
    package let command: JournalRecord
    /// Whether it was undone; of one that is irreversible, whether that was acknowledged.
    package let isUndone: Bool

    package init(sequence: Int64, command: JournalRecord, isUndone: Bool) {
        self.sequence = sequence
        self.command = command
        self.isUndone = isUndone
    }
}

/// Where records are. Calls come one at a time, from a thread that may block. What cannot be read is a ``JournalCorruption``.
package protocol JournalStore: AnyObject, Sendable {
    /// Of the file, for errors.
    var path: String { get }
    /// The most bytes that texts and data of a record may have, together.
    var maximumSize: Int { get }

    /// In order, from the one after `sequence`, at most `limit`; with those that have a ``JournalRecord/damage``.
    func records(after sequence: Int64, limit: Int) throws -> [JournalRecord]
    /// In order.
    func records(ofRun run: Int64) throws -> [JournalRecord]
    func place(ofKey key: String) throws -> KeyPlace?
    /// The commands that were done, and are not being undone, in the order in which they were done.
    func replayable(after sequence: Int64, limit: Int) throws -> [ReplayedRecord]

    /// Adds records: all, or, when it throws, none that anybody can rely on. When it returns, they survive the end of the
    /// process, and that of power, and are found where the journal is opened.
    func commit(_ records: [JournalRecord]) throws
    /// The last record when the last commit returned, as it is kept elsewhere; nil: nobody knows.
    func anchor() throws -> JournalAnchor?
    /// Says that this one is the last, durably.
    func setAnchor(_ anchor: JournalAnchor) throws
    /// Takes away what is after `sequence`.
    func removeRecords(after sequence: Int64) throws
    func close()
}
