// SQLiteStore.swift - records in an SQLite file. The only source file that uses GRDB, which comes with the
// trait Journal.

#if Journal

    internal import CompositeOperationsBasics
    internal import Foundation
    internal import GRDB
    internal import GRDBSQLite

    /// Creates a file with access for its owner only, if there is none: SQLite would let other users read it.
    /// Its log gets the same permissions.
    ///
    /// - Returns: whether it created the file.
    private func makeFile(_ path: String) -> Bool {
        if path.isEmpty || path == ":memory:" { return false }
        // An existing file is not opened: closing it would release the locks that this process may hold on
        // it.
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC
        var file = open(path, flags | O_EXCL, 0o600)
        var status = stat()
        // A dangling symbolic link.
        if file < 0, errno == EEXIST, stat(path, &status) != 0 { file = open(path, flags, 0o600) }
        if file < 0 { return false }  // SQLite reports the reason
        close(file)
        return true
    }

    /// The file of an anchor. It is not locked: the lock of the journal protects it.
    private final class AnchorFile: Sendable {
        private let path: String
        private let descriptor: Int32

        /// - Parameters:
        ///   - path: the path of the journal.
        ///   - isNew: whether there was no journal, so an existing anchor belongs to another one.
        init(ofJournal path: String, isNew: Bool) throws {
            self.path = path + "-anchor"
            // `deinit` closes it, even when this initializer throws.
            descriptor = open(self.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            var (journal, mine) = (stat(), stat())
            let isOpen = descriptor >= 0 && stat(path, &journal) == 0 && fstat(descriptor, &mine) == 0
            if isOpen, mine.st_size > JournalAnchor.size { throw JournalError.notAJournal(path: self.path) }
            guard isOpen, !isNew || ftruncate(descriptor, 0) == 0 else {
                throw JournalError.cannotOpen(
                    path: self.path, POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO))
            }
            // Owner and permissions are those of the journal, as far as possible, as SQLite does with the
            // log.
            if mine.st_size == 0 {
                _ = fchmod(descriptor, journal.st_mode & 0o777)
                if geteuid() == 0 { _ = fchown(descriptor, journal.st_uid, journal.st_gid) }
            }
        }

        deinit { if descriptor >= 0 { close(descriptor) } }

        func read() throws -> JournalAnchor? {
            var bytes = [UInt8](repeating: 0, count: JournalAnchor.size)
            let count = pread(descriptor, &bytes, bytes.count, 0)
            if count < 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            return try JournalAnchor(bytes: Array(bytes.prefix(count)))
        }

        /// - Parameter isSynced: whether the anchor survives a loss of power as soon as this returns.
        func write(_ anchor: JournalAnchor, isSynced: Bool) throws {
            let bytes = anchor.bytes()
            guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count,
                !isSynced || fdatasync(descriptor) == 0
            else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        }

        func sync() { fdatasync(descriptor) }
    }

    /// Records in an SQLite file. One connection owns the file exclusively; a commit survives a loss of
    /// power.
    package final class SQLiteStore: JournalStore {
        /// The version of the tables below.
        package static let version = 1
        /// The application ID in the file header: the letters COjl.
        package static let application = 0x434F_6A6C

        package let path: String
        package let maximumSize: Int
        private let database: DatabaseQueue
        private let files: [File]
        private let anchorFile: AnchorFile
        private let instance = Instance(.stores)

        /// Opens a journal, or creates one where there is no file or an empty one.
        ///
        /// - Parameter limit: the maximum size of a row in bytes, as if SQLite had been built with a lower
        ///   limit: for tests.
        /// - Throws: ``JournalError``; the file was not changed then.
        package init(path: String, limit: Int32 = -1) throws {
            self.path = path
            let isNew = makeFile(path)
            var configuration = Configuration()
            configuration.label = "journal"
            // Set before the first access, so the lock is held permanently, and the log has no index in
            // shared memory.
            configuration.prepareDatabase { try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE") }
            do {
                database = try DatabaseQueue(path: path, configuration: configuration)
                try database.writeWithoutTransaction { try Self.open($0, path) }
                maximumSize = database.writeWithoutTransaction { database in
                    sqlite3_limit(database.sqliteConnection, SQLITE_LIMIT_LENGTH, limit)
                    let length = sqlite3_limit(database.sqliteConnection, SQLITE_LIMIT_LENGTH, -1)
                    return Int(length) - 1000  // numbers and the row header
                }
                let (resolved, files) = try database.writeWithoutTransaction { try Self.files($0, path) }
                self.files = files
                anchorFile = try AnchorFile(ofJournal: resolved, isNew: isNew)
            } catch let error as DatabaseError {
                switch error.resultCode {
                case .SQLITE_BUSY, .SQLITE_LOCKED: throw JournalError.inUse(path: path)
                case .SQLITE_NOTADB: throw JournalError.notAJournal(path: path)
                default: throw JournalError.cannotOpen(path: path, error)
                }
            }
        }

        /// For some paths SQLite creates a database in memory, or one that is deleted with the process.
        private struct NoFile: Error, CustomStringConvertible {
            var description: String { "it would be in no file, and would not survive" }
        }

        /// A file as it was when the journal was opened.
        private struct File {
            let path: String
            let device: dev_t
            let inode: ino_t

            /// nil: there is no such file.
            init?(_ path: String) {
                var status = stat()
                if stat(path, &status) != 0 { return nil }
                (self.path, device, inode) = (path, status.st_dev, status.st_ino)
            }

            /// Whether the path still names this file.
            var isThere: Bool {
                guard let now = File(path) else { return false }
                return (now.device, now.inode) == (device, inode)
            }
        }

        /// The file, by the path that other code would use to open it; and its log, which is next to the file
        /// that symbolic links lead to.
        private static func files(
            _ database: Database, _ path: String
        ) throws -> (resolved: String, files: [File]) {
            let resolved = try String.fetchOne(database, sql: "SELECT file FROM pragma_database_list") ?? path
            // The current folder may change. The kernel resolves `..` after a symbolic link.
            let absolute =
                path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
            let files = [absolute, resolved + "-wal"].compactMap { File($0) }
            guard files.count == 2 else { throw JournalError.fileReplaced(path: path) }
            return (resolved, files)
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
            // A committed transaction is in the log, and the log is on the disk, before the commit returns.
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

        /// Values of a row, each of the type that its column declares. A damaged page may hold values of any
        /// type.
        private struct Values {
            let row: Row
            /// The first value of another type.
            var damage: String?

            /// - Parameter make: returns nil when the value is of another type.
            mutating func take<Value>(
                _ column: String, or none: Value, _ make: (DatabaseValue.Storage) -> Value?
            ) throws -> Value {
                // For a value of another type, GRDB's own errors show the whole row, and its subscripts stop
                // the process.
                let storage = try row.decode(DatabaseValue.self, forColumn: column).storage
                if let value = make(storage) { return value }
                damage = damage ?? "its '\(column)' is of another type"
                return none
            }

            mutating func integer(_ column: String) throws -> Int64 {
                try take(column, or: 0) { if case .int64(let value) = $0 { value } else { nil } }
            }

            mutating func optionalInteger(_ column: String) throws -> Int64? {
                try optional(column) { if case .int64(let value) = $0 { value } else { nil } }
            }

            mutating func text(_ column: String) throws -> String? {
                try optional(column) { if case .string(let value) = $0 { value } else { nil } }
            }

            mutating func bytes(_ column: String) throws -> Data? {
                try optional(column) { if case .blob(let value) = $0 { value } else { nil } }
            }

            private mutating func optional<Value>(
                _ column: String, _ make: (DatabaseValue.Storage) -> Value?
            ) throws -> Value? {
                try take(column, or: nil) { storage -> Value?? in
                    if case .null = storage { return .some(nil) }
                    return make(storage).map { .some($0) }
                }
            }
        }

        private static func record(_ row: Row) throws -> JournalRecord {
            // The reader finds invalid phases and the like: a corrupt record is reported by its number.
            var values = Values(row: row)
            var record = JournalRecord(
                .ended, run: try values.integer("run"),
                member: try values.optionalInteger("member").map { Int($0) }, type: try values.text("type"),
                key: try values.text("key"), payload: try values.bytes("payload"),
                proof: try values.bytes("proof"))
            record.sequence = try values.integer("sequence")
            record.code = Int(try values.integer("phase"))
            record.checksum = UInt64(bitPattern: try values.integer("checksum"))
            record.damage = values.damage
            return record
        }

        /// Calls `body` with each row of a query's result.
        ///
        /// - Parameter body: returns the number of the row's record.
        /// - Throws: `JournalCorruption`, when SQLite finds that a page is damaged.
        private func forEach(
            _ sql: String, _ arguments: StatementArguments, after sequence: Int64,
            _ body: (Row) throws -> Int64
        ) throws {
            var last = sequence
            do {
                try database.writeWithoutTransaction { database in
                    let rows = try Row.fetchCursor(database, sql: sql, arguments: arguments)
                    while let row = try rows.next() { last = try body(row) }
                }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
                throw JournalCorruption(sequence: last + 1, reason: "SQLite cannot read its page")
            }
        }

        package func records(after sequence: Int64, limit: Int) throws -> [JournalRecord] {
            var records: [JournalRecord] = []
            let sql = "SELECT * FROM record WHERE sequence > ? ORDER BY sequence LIMIT ?"
            try forEach(sql, [sequence, limit], after: sequence) { row in
                records.append(try Self.record(row))
                return records.last!.sequence
            }
            return records
        }

        package func records(ofRun run: Int64) throws -> [JournalRecord] {
            var records: [JournalRecord] = []
            try forEach(
                "SELECT * FROM record WHERE run = ? ORDER BY sequence", [run], after: run - 1
            ) { row in
                records.append(try Self.undamaged(row))
                return records.last!.sequence
            }
            return records
        }

        /// - Throws: `JournalCorruption`.
        private static func undamaged(_ row: Row) throws -> JournalRecord {
            let record = try record(row)
            if let damage = record.damage {
                throw JournalCorruption(sequence: record.sequence, reason: damage)
            }
            return record
        }

        package func place(ofKey key: String) throws -> KeyPlace? {
            var place: KeyPlace?
            try forEach("SELECT * FROM record WHERE key = ?", [key], after: 0) { row in
                let record = try Self.undamaged(row)
                place = KeyPlace(run: record.run, member: record.member)
                return record.sequence
            }
            return place
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
            let arguments: StatementArguments = [
                "accepted": JournalRecord.Phase.accepted.rawValue,
                "done": JournalRecord.Phase.done.rawValue,
                "undone": JournalRecord.Phase.undone.rawValue,
                "undoing": JournalRecord.Phase.undoing.rawValue, "after": sequence, "limit": limit,
            ]
            var records: [ReplayedRecord] = []
            try forEach(sql, arguments, after: sequence) { row in
                var values = Values(row: row)
                let (done, isUndone) = try (values.integer("doneSequence"), values.integer("isUndone"))
                records.append(
                    ReplayedRecord(
                        sequence: done, command: try Self.undamaged(row), isUndone: isUndone != 0))
                return done
            }
            return records
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
            // Checked after the commit: a check before the commit could miss a replacement between the two.
            guard files.allSatisfy(\.isThere) else { throw JournalError.fileReplaced(path: path) }
            guard let last = records.last else { return }
            // A1 of JournalAnchor. Waiting for the disk here too would take twice as long; the kernel's copy
            // survives a crash of the process.
            try anchorFile.write(
                JournalAnchor(sequence: last.sequence, checksum: last.checksum), isSynced: false)
        }

        package func anchor() throws -> JournalAnchor? { try anchorFile.read() }

        package func setAnchor(_ anchor: JournalAnchor) throws {
            try anchorFile.write(anchor, isSynced: true)
        }

        package func removeRecords(after sequence: Int64) throws {
            try database.write {
                try $0.execute(sql: "DELETE FROM record WHERE sequence > ?", arguments: [sequence])
            }
        }

        /// The settings that make commits durable: for tests.
        package func durability() throws -> [String] {
            try database.writeWithoutTransaction { database in
                try ["journal_mode", "synchronous", "locking_mode"].map { name in
                    try String.fetchOne(database, sql: "PRAGMA \(name)") ?? ""
                }
            }
        }

        /// Simulates a full disk at this number of pages: for tests.
        package func limit(pages: Int) throws {
            try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
        }

        package func close() {
            try? database.close()
            anchorFile.sync()
        }
    }

#endif
