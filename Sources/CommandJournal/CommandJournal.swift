// CommandJournal.swift - the public class: opening and closing.

internal import CompositeOperationsBasics
internal import Dispatch
internal import Foundation
internal import Runs

/// An append-only journal of commands, in an SQLite file: after a crash, the commands that had begun are known, and can be ended.
///
/// ```swift
/// let journal = try await CommandJournal(path: "orders.journal", types: [Deposit.self, Withdraw.self])
/// let report = try await journal.recover()  // what an earlier process left
/// let balance = try await journal.execute(Deposit(account: "yours", amount: 10, order: "17"))
/// try await journal.execute(allOrNothing: [Withdraw(…), Deposit(…)])
/// ```
///
/// A command begins only after its record is durable, so a later process knows of it. A result that `execute` returned is durable,
/// too. After a crash, ``recover(_:compensation:undecodable:deciding:)`` ends the runs that have not ended. Work is done exactly
/// once if its command has a key and the receiver checks it; see ``JournaledCommand/idempotencyKey``. Without a key nothing is done
/// twice, but whether it was done once may remain in doubt; such a command is reported.
///
/// Calls may come from any thread. None blocks: files are written on a dispatch queue. Concurrent calls share file writes, which
/// are most of the cost of each call.
public final class CommandJournal: Sendable {
    /// The version of the file's tables.
    public static let schemaVersion = 1

    /// The numbers of records at the end of the file that were torn, corrupt or lost, and were dropped as the journal was opened.
    public let dropped: [Int64]

    let types: CommandTypes
    let writer: JournalWriter
    let live: LiveRuns
    /// See ``JournalLog/otherKeys``.
    let otherKeys: [String: String]
    private let instance = Instance(.journals)

    /// Opens a journal whose records are in `store`, which the journal owns from now on.
    package init(
        _ types: [any JournaledCommand.Type],
        store make: @escaping @Sendable () throws -> any JournalStore
    ) async throws {
        self.types = CommandTypes(types)
        let queue = DispatchQueue(label: "journal")
        let (store, log, dropped) = try await queue.perform { try Self.load(make()) }
        self.dropped = dropped
        writer = JournalWriter(store, log, queue)
        live = LiveRuns(unfinished: log.unfinished)
        otherKeys = log.otherKeys
    }

    /// Reads the whole journal. Damaged records at the end are dropped, as if they had never been written.
    private static func load(
        _ store: any JournalStore
    ) throws -> (any JournalStore, JournalLog, dropped: [Int64]) {
        let chunk = 500
        var log = JournalLog()
        var corruption: JournalCorruption?
        var last: Int64 = 0
        do {
            let anchor = try store.anchor()
            reading: while true {
                let records = try store.records(after: last, limit: chunk)
                for record in records {
                    last = record.sequence
                    if let corruption { throw corruption }  // and this record follows the corrupt one
                    do throws(JournalCorruption) { try log.apply(record) } catch { corruption = error }
                    if let anchor, log.last == anchor.sequence, log.checksum != anchor.checksum {
                        let reason =
                            "its checksum differs from \(store.path)-anchor; remove it if the journal is right"
                        throw JournalCorruption(sequence: anchor.sequence, reason: reason)
                    }
                }
                if records.count < chunk { break reading }
            }
            // The number of a damaged record need not be the next one, or even a greater one.
            var dropped: Set<Int64> = []
            if let corruption {
                if last <= log.last { throw corruption }
                dropped = [corruption.sequence, last]
            }
            // A run that was not accepted whole is a torn commit: no caller was told that it succeeded.
            let whole = log.last
            log.dropTorn()
            if log.last < whole { dropped.formUnion((log.last + 1)...whole) }
            // Records that were committed, and are missing.
            if let anchor, log.last < anchor.sequence { dropped.formUnion((log.last + 1)...anchor.sequence) }
            if !dropped.isEmpty { try store.removeRecords(after: log.last) }
            // Before anything is added: otherwise the anchor might name a record whose number has been reused.
            try store.setAnchor(JournalAnchor(sequence: log.last, checksum: log.checksum))
            return (store, log, dropped.sorted())
        } catch {
            store.close()
            throw JournalError(reading: store, error)
        }
    }

    /// Writes the records that have been added, and closes the file; from now on, all calls throw ``JournalError/closed``. Call it
    /// when nothing runs: active runs are left as after a crash.
    public func close() async { await writer.close() }
}

extension CommandJournal {
    #if Journal
        /// Opens a journal, or creates one if there is no file; only the file's owner may read and write it.
        ///
        /// - Parameters:
        ///   - path: the path of the file. Two other files next to it belong to it: the log of SQLite, whose name ends in `-wal`;
        ///     and a file whose name ends in `-anchor`, which detects that the end of the log has been lost.
        ///   - types: all types of commands that the journal contains, or will contain.
        /// - Throws: ``JournalError/inUse(path:)``, ``JournalError/notAJournal(path:)``, ``JournalError/cannotOpen(path:_:)``,
        ///   ``JournalError/schemaVersion(found:expected:)``, ``JournalError/corrupt(path:sequence:reason:)``: the file was not
        ///   changed then; or ``JournalError/fileReplaced(path:)`` and ``JournalError/storage(_:)``.
        /// - Precondition: no two types have the same ``JournaledCommand/journalName``.
        /// - Complexity: O(records) time, O(runs that have not ended) memory, plus the keys that an earlier version wrote in
        ///   non-canonical form.
        public convenience init(path: String, types: [any JournaledCommand.Type]) async throws {
            try await self.init(types) { try SQLiteStore(path: path) }
        }
    #else
        /// There is no journal without the package's trait `Journal`.
        @available(*, unavailable, message: "CommandJournal needs the trait 'Journal' of CompositeOperations")
        public convenience init(path: String, types: [any JournaledCommand.Type]) async throws {
            fatalError("CommandJournal: there is no SQLite")
        }
    #endif
}
