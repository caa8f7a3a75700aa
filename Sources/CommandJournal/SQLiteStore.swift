// SQLiteStore.swift - records in a file, by SQLite. The only file that knows GRDB, which comes with the trait Journal.

#if Journal

    internal import CompositeOperationsBasics
    internal import Foundation
    internal import GRDB

    /// Records in a file of SQLite. One connection has it, and nobody else; a commit survives the loss of power.
    package final class SQLiteStore: JournalStore {
        /// Of the tables below.
        package static let version = 1
        /// In the head of the file: what it is. The letters are COjl.
        package static let application = 0x434F_6A6C

        private let database: DatabaseQueue
        private let instance = Instance(.stores)

        /// Opens a journal, or makes one where there is no file, or an empty one.
        ///
        /// - Throws: ``JournalError``; the file was not changed then.
        package init(path: String) throws {
            var configuration = Configuration()
            configuration.label = "journal"
            // Before the first access: then the lock is had for good, and there is no index of the log in shared memory.
            configuration.prepareDatabase { try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE") }
            do {
                database = try DatabaseQueue(path: path, configuration: configuration)
                try database.writeWithoutTransaction { try Self.open($0, path) }
            } catch let error as DatabaseError {
                switch error.resultCode {
                case .SQLITE_BUSY, .SQLITE_LOCKED: throw JournalError.inUse(path: path)
                case .SQLITE_NOTADB: throw JournalError.notAJournal(path: path)
                default: throw JournalError.cannotOpen(path: path, error)
                }
            }
        }

        /// SQLite makes one in memory, or one that goes with the process, for some paths.
        private struct NoFile: Error, CustomStringConvertible {
            var description: String { "it would be in no file, and not survive" }
        }

        private static func open(_ database: Database, _ path: String) throws {
            func number(_ sql: String) throws -> Int { try Int.fetchOne(database, sql: sql) ?? 0 }
            let isEmpty = try number("SELECT count(*) FROM sqlite_schema") == 0
            let (found, kind) = try (number("PRAGMA user_version"), number("PRAGMA application_id"))
            if !isEmpty || found != 0 || kind != 0 {
                guard kind == application else { throw JournalError.notAJournal(path: path) }
                guard found == version else {
                    throw JournalError.schemaVersion(found: found, expected: version)
                }
            }
            // What is committed is in the log, and the log on the disk, before the commit returns.
            guard try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL") == "wal" else {
                throw JournalError.cannotOpen(path: path, NoFile())
            }
            try database.execute(sql: "PRAGMA synchronous = FULL")
            try database.inTransaction(.exclusive) {
                if isEmpty { try database.execute(sql: schema) }
                return .commit
            }
        }

        private static let schema = """
            CREATE TABLE record (
                sequence INTEGER PRIMARY KEY,
                run INTEGER NOT NULL,
                member INTEGER,
                phase INTEGER NOT NULL,
                type TEXT,
                key TEXT,
                payload BLOB,
                proof BLOB,
                checksum INTEGER NOT NULL
            ) STRICT;
            CREATE INDEX record_of_run ON record (run, member, phase);
            CREATE UNIQUE INDEX record_of_key ON record (key) WHERE key IS NOT NULL;
            PRAGMA user_version = \(version);
            PRAGMA application_id = \(application);
            """

        private static let columns = [
            "sequence", "run", "member", "phase", "type", "key", "payload", "proof", "checksum",
        ]

        private static func record(_ row: Row) -> JournalRecord {
            // What is no phase, and the like, is found by whoever reads: a corrupt record is told by its number.
            var record = JournalRecord(
                .ended, run: row["run"], member: row["member"], type: row["type"], key: row["key"],
                payload: row["payload"], proof: row["proof"])
            record.sequence = row["sequence"]
            record.code = row["phase"]
            record.checksum = UInt64(bitPattern: row["checksum"])
            return record
        }

        package func records(after sequence: Int64, limit: Int) throws -> [JournalRecord] {
            try database.writeWithoutTransaction { database in
                try Row.fetchAll(
                    database, sql: "SELECT * FROM record WHERE sequence > ? ORDER BY sequence LIMIT ?",
                    arguments: [sequence, limit]
                ).map(Self.record)
            }
        }

        package func records(ofRun run: Int64) throws -> [JournalRecord] {
            try database.writeWithoutTransaction { database in
                try Row.fetchAll(
                    database, sql: "SELECT * FROM record WHERE run = ? ORDER BY sequence", arguments: [run]
                ).map(Self.record)
            }
        }

        package func place(ofKey key: String) throws -> KeyPlace? {
            try database.writeWithoutTransaction { database in
                try Row.fetchOne(
                    database, sql: "SELECT run, member FROM record WHERE key = ?", arguments: [key]
                )
                .map { KeyPlace(run: $0["run"], member: $0["member"]) }
            }
        }

        package func replayable(after sequence: Int64, limit: Int) throws -> [ReplayedRecord] {
            let sql = """
                SELECT command.*, done.sequence AS doneSequence, EXISTS (
                    SELECT 1 FROM record AS undone
                    WHERE undone.run = done.run AND undone.member = done.member AND undone.phase = :undone
                ) AS isUndone
                FROM record AS done JOIN record AS command
                    ON command.run = done.run AND command.member = done.member AND command.phase = :accepted
                WHERE done.phase = :done AND done.sequence > :after
                    AND (
                        SELECT last.phase FROM record AS last
                        WHERE last.run = done.run AND last.member = done.member
                        ORDER BY last.sequence DESC LIMIT 1) <> :undoing
                ORDER BY done.sequence LIMIT :limit
                """
            return try database.writeWithoutTransaction { database in
                try Row.fetchAll(
                    database, sql: sql,
                    arguments: [
                        "accepted": JournalRecord.Phase.accepted.rawValue,
                        "done": JournalRecord.Phase.done.rawValue,
                        "undone": JournalRecord.Phase.undone.rawValue,
                        "undoing": JournalRecord.Phase.undoing.rawValue, "after": sequence, "limit": limit,
                    ]
                ).map {
                    ReplayedRecord(
                        sequence: $0["doneSequence"], command: Self.record($0), isUndone: $0["isUndone"])
                }
            }
        }

        package func commit(_ records: [JournalRecord]) throws {
            let places = Self.columns.map { _ in "?" }.joined(separator: ", ")
            try database.writeWithoutTransaction { database in
                try database.inTransaction(.immediate) {
                    let statement = try database.cachedStatement(
                        sql: "INSERT INTO record (\(Self.columns.joined(separator: ", "))) VALUES (\(places))"
                    )
                    for record in records {
                        try statement.execute(arguments: [
                            record.sequence, record.run, record.member, record.code, record.type, record.key,
                            record.payload, record.proof, Int64(bitPattern: record.checksum),
                        ])
                    }
                    return .commit
                }
            }
        }

        package func removeRecords(after sequence: Int64) throws {
            try database.write {
                try $0.execute(sql: "DELETE FROM record WHERE sequence > ?", arguments: [sequence])
            }
        }

        /// How durable commits are: for tests.
        package func durability() throws -> [String] {
            try database.writeWithoutTransaction { database in
                try ["journal_mode", "synchronous", "locking_mode"].map { name in
                    try String.fetchOne(database, sql: "PRAGMA \(name)") ?? ""
                }
            }
        }

        /// As if the disk were full, at so many pages: for tests.
        package func limit(pages: Int) throws {
            try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
        }

        package func close() { try? database.close() }
    }

#endif
