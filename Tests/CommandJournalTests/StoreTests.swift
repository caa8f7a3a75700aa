// The journal's file: its content after a loss, its owner, its version, and its limits.

import CommandJournal
import Commands
import CompositeOperationsTestSupport
import Foundation
import GRDB
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct StoreTests {
    /// A journal of some records, closed.
    private func filled(_ path: String, _ receiver: Receiver, runs: Int = 2) async throws {
        let journal = try await CommandJournal(path: path, types: types)
        for run in 0..<runs {
            _ = try await journal.execute(Work(receiver: receiver.id, run: run, number: 0))
        }
        await journal.close()
    }

    /// Modifies the file from outside, as any process can.
    private func change(_ path: String, _ sql: String) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }

    @Test(.promises("J1")) func `J1: a journal's records are there when it is reopened`() async throws {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        try await filled(folder.file(), receiver)
        let journal = try await CommandJournal(path: folder.file(), types: types)
        #expect(journal.dropped.isEmpty)
        #expect(try await journal.execute(Work(receiver: receiver.id, run: 1, number: 0)) == 0)
        #expect(receiver.log == ["do 0.0", "do 1.0"])
        await journal.close()
        // Every field survives the round trip.
        let store = try SQLiteStore(path: folder.file("fields"))
        var record = JournalRecord(
            .done, run: 5, member: 2, type: "t", key: "k", payload: Data([0, 255]), proof: Data())
        (record.sequence, record.checksum) = (6, .max)
        try store.commit([record])
        #expect(try store.records(after: 0, limit: 9) == [record])
        #expect(try store.records(ofRun: 5) == [record])
        #expect(try store.place(ofKey: "k") == KeyPlace(run: 5, member: 2))
        #expect(try store.place(ofKey: "l") == nil)
    }

    @Test(.promises("J1"))
    func `J1: commits are in the log of the file, and on the disk, before they return`() async throws {
        let folder = try Folder()
        let store = try SQLiteStore(path: folder.file())
        #expect(try store.durability() == ["wal", "2", "exclusive"])
        store.close()
    }

    @Test(.promises("J7")) func `J7: a corrupt last record is dropped, and reported`() async throws {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let path = folder.file()
        try await filled(path, receiver)
        try change(path, "UPDATE record SET payload = x'00' WHERE sequence = 10")
        let journal = try await CommandJournal(path: path, types: types)
        #expect(journal.dropped == [10])
        // The dropped record was the end of the run.
        let report = try await journal.recover()
        #expect(report.runs.map(\.outcome) == [.finished])
        await journal.close()
        let again = try await CommandJournal(path: path, types: types)
        #expect(again.dropped.isEmpty)
        await again.close()
    }

    @Test(.promises("J7")) func `J7: a run that was not accepted whole was never accepted`() async throws {
        let receiver = Receiver()
        defer { receiver.forget() }
        let store = MemoryStore()
        let works = (0..<3).map { Work(receiver: receiver.id, run: 1, number: $0) }
        try await journal(store).execute(allOrNothing: works)
        for count in 1...3 {
            let cut = MemoryStore(Array(store.records.prefix(count)))
            let journal = try await journal(cut)
            #expect(journal.dropped == Array(1...Int64(count)) && cut.records.isEmpty)
            try await journal.execute(allOrNothing: works)
        }
        #expect(receiver.complaints == [])
    }

    @Test(.promises("J7"))
    func `J7: a corrupt record before the last is an error with its number, and nothing is changed`()
        async throws
    {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let changes = [
            "UPDATE record SET checksum = checksum + 1 WHERE sequence = 4": 4,
            "UPDATE record SET phase = 99 WHERE sequence = 9": 9,
            "UPDATE record SET run = 77 WHERE sequence = 1": 1,
            "DELETE FROM record WHERE sequence = 3": 3,
            "DELETE FROM record WHERE sequence = 1": 1,
        ]
        for (number, change) in changes.enumerated() {
            let path = folder.file("\(number)")
            try await filled(path, receiver)
            receiver.state.withLock { $0 = Receiver.State() }
            try self.change(path, change.key)
            let before = try SQLiteStore(path: path)
            let records = try before.records(after: 0, limit: 100)
            before.close()
            let error = await thrown { _ = try await CommandJournal(path: path, types: types) }
            guard case JournalError.corrupt(path, let sequence, _)? = error else {
                Issue.record("\(change.key): \(String(describing: error))")
                return
            }
            #expect(sequence == Int64(change.value) && "\(error!)".contains("Record \(sequence)"))
            #expect("\(error!)".contains(path))
            let after = try SQLiteStore(path: path)
            #expect(try after.records(after: 0, limit: 100) == records)
            after.close()
        }
    }

    /// Returns the files left by a process that is killed with a journal open, keyed by the suffixes of their
    /// names.
    private func left(_ path: String, _ receiver: Receiver, runs: Int) async throws -> [String: Data] {
        let journal = try await CommandJournal(path: path, types: types)
        for run in 0..<runs {
            _ = try await journal.execute(Work(receiver: receiver.id, run: run, number: 0))
        }
        var files: [String: Data] = [:]
        for end in ["", "-wal", "-anchor"] {
            files[end] = try Data(contentsOf: URL(fileURLWithPath: path + end))
        }
        await journal.close()
        return files
    }

    private func put(_ files: [String: Data], _ path: String) throws {
        for (end, data) in files { try data.write(to: URL(fileURLWithPath: path + end)) }
    }

    @Test(.promises("J7")) func `J7: losses of a damaged or missing log are reported by number`()
        async throws
    {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let whole = try await left(folder.file(), receiver, runs: 12)
        let log = try #require(whole["-wal"])
        var random = SplitMix64(seed: 5)
        var losses = 0
        for number in 0..<24 {
            let path = folder.file("\(number)")
            var files = whole
            switch number {
            case 0: break
            case 1: files["-wal"] = nil
            case 2: files["-wal"] = Data()
            default: files["-wal"]![Int(random.next() % UInt64(log.count))] ^= 1 << UInt8(random.next() % 8)
            }
            try put(files, path)
            let store = try SQLiteStore(path: path)
            let count = Int64(try store.records(after: 0, limit: 1000).count)
            store.close()
            let journal = try await CommandJournal(path: path, types: types)
            #expect(journal.dropped == Array(stride(from: count + 1, through: 60, by: 1)), "\(number)")
            if count < 60 { losses += 1 }
            #expect((number > 0) || count == 60)
            // New records reuse the numbers of the lost ones.
            _ = try await journal.recover()
            _ = try await journal.execute(Work(receiver: receiver.id, run: 100 + number, number: 0))
            await journal.close()
            let again = try await CommandJournal(path: path, types: types)
            #expect(again.dropped.isEmpty)
            await again.close()
        }
        #expect(losses > 15)
    }

    @Test(.promises("J7"))
    func `J7: a torn, older or missing anchor is ignored, and a newer one is refused`()
        async throws
    {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let whole = try await left(folder.file(), receiver, runs: 3)
        for (name, anchor) in [
            ("torn", whole["-anchor"]!.prefix(20) + Data(count: 12)), ("short", whole["-anchor"]!.prefix(9)),
            ("missing", nil),
            ("old", Data(JournalAnchor(sequence: 0, checksum: 0).bytes())),
        ] {
            var files = whole
            files["-anchor"] = anchor
            try put(files, folder.file(name))
            let journal = try await CommandJournal(path: folder.file(name), types: types)
            #expect(journal.dropped.isEmpty, "\(name)")
            await journal.close()
            let made = try Data(contentsOf: URL(fileURLWithPath: folder.file(name) + "-anchor"))
            #expect(made == whole["-anchor"], "\(name)")
        }
        // A new journal has nothing to lose, whatever anchor is there.
        let new = folder.file("new")
        try put(["-anchor": whole["-anchor"]!], new)
        let journal = try await CommandJournal(path: new, types: types)
        #expect(journal.dropped.isEmpty)
        await journal.close()
        // An anchor with the same number, but of another record.
        let other = folder.file("other")
        var files = whole
        let anchor = JournalAnchor(sequence: 5, checksum: 7)
        files["-anchor"] = Data(anchor.bytes())
        try put(files, other)
        let error = await thrown { _ = try await CommandJournal(path: other, types: types) }
        guard case JournalError.corrupt(other, 5, _)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect("\(error!)".contains(other + "-anchor"))
        let newer = folder.file("newer")
        files["-anchor"] = Data(anchor.bytes(version: 2))
        try put(files, newer)
        let refusal = await thrown { _ = try await CommandJournal(path: newer, types: types) }
        guard case JournalError.schemaVersion(found: 2, expected: 1)? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
    }

    @Test(.promises("J7"))
    func `J7: a value of another type is a corrupt record, named by number; the others are readable`()
        async throws
    {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let strict =
            "PRAGMA writable_schema = ON; "
            + "UPDATE sqlite_schema SET sql = replace(replace(sql, ' STRICT', ''), ' NOT NULL', '') WHERE name = 'record'"
        let values = ["run": "NULL", "member": "'a secret'", "phase": "2.5", "type": "x'00'"]
        let others = ["key": "x'00'", "payload": "'a secret'", "proof": "7", "checksum": "NULL"]
        for (column, value) in values.merging(others, uniquingKeysWith: { $1 }) {
            for sequence in [4, 10] {
                let path = folder.file("\(column) \(sequence)")
                try await filled(path, receiver)
                receiver.state.withLock { $0 = Receiver.State() }
                try change(path, strict)
                try change(path, "UPDATE record SET \(column) = \(value) WHERE sequence = \(sequence)")
                let store = try SQLiteStore(path: path)
                let damaged = try store.records(after: 0, limit: 100).filter { $0.damage != nil }
                #expect(damaged.map(\.sequence) == [Int64(sequence)])
                #expect(damaged.map(\.damage) == ["its '\(column)' is of another type"])
                store.close()
                if sequence == 10 {
                    let journal = try await CommandJournal(path: path, types: types)
                    #expect(journal.dropped == [10])
                    await journal.close()
                    continue
                }
                let error = await thrown { _ = try await CommandJournal(path: path, types: types) }
                guard case JournalError.corrupt(path, 4, _)? = error else {
                    Issue.record("\(column): \(String(describing: error))")
                    return
                }
                #expect(!"\(error!)".contains("secret"))
            }
        }
    }

    @Test(.promises("J7"))
    func `J7: with any damaged page a journal error is thrown, or the journal opens`()
        async throws
    {
        let folder = try Folder()
        let receiver = Receiver()
        defer { receiver.forget() }
        let path = folder.file()
        try await filled(path, receiver, runs: 30)
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        var random = SplitMix64(seed: 11)
        let (pages, flips) = (whole.count / 2048, 60)
        var corrupt = 0
        for number in 0..<(pages + flips) {
            var bytes = whole
            if number < pages {
                bytes.replaceSubrange(2048 * number..<2048 * (number + 1), with: Data(count: 2048))
            } else {
                bytes[Int(random.next() % UInt64(whole.count))] ^= 1 << UInt8(random.next() % 8)
            }
            let other = folder.file("\(number)")
            try bytes.write(to: URL(fileURLWithPath: other))
            let error = await thrown {
                let journal = try await CommandJournal(path: other, types: types)
                _ = await thrown { _ = try await journal.recover() }
                _ = await thrown {
                    _ = try await journal.execute(Work(receiver: receiver.id, run: 3, number: 0))
                }
                _ = await thrown { _ = try await journal.replay() }
                await journal.close()
            }
            #expect(error == nil || error is JournalError, "\(number): \(String(describing: error))")
            if case JournalError.corrupt(other, let sequence, _)? = error, sequence > 0 { corrupt += 1 }
        }
        #expect(corrupt > 5)
    }

    @Test(.promises("J10")) func `J10: a file in use is refused within the process`() async throws {
        let folder = try Folder()
        let path = folder.file()
        let journal = try await CommandJournal(path: path, types: types)
        let error = await thrown { _ = try await CommandJournal(path: path, types: types) }
        guard case JournalError.inUse(path)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect("\(error!)".contains(path))
        _ = try await journal.execute(Call())
        await journal.close()
        await (try CommandJournal(path: path, types: types)).close()
    }

    @Test(.promises("J10"))
    func `J10: a file in use by another process is refused until that ends, in any way`()
        async throws
    {
        let folder = try Folder()
        let path = folder.file()
        let program = try JournalCrash.start(["hold", path])
        #expect(program.nextByte() == UInt8(ascii: "h"))
        guard
            case JournalError.inUse(path)? = await thrown({
                _ = try await CommandJournal(path: path, types: types)
            })
        else {
            Issue.record("two have the file")
            return
        }
        program.kill()
        await (try CommandJournal(path: path, types: types)).close()
    }

    @Test(.promises("J10"))
    func `J10: a journal whose file was moved or removed confirms no write`()
        async throws
    {
        let folder = try Folder()
        let files = FileManager.default
        let changes: [(String) throws -> Void] = [
            { try files.moveItem(atPath: $0, toPath: $0 + ".old") },
            { try files.removeItem(atPath: $0) },
            { try files.removeItem(atPath: $0 + "-wal") },
            { path in
                try files.moveItem(atPath: path, toPath: path + ".old")
                try files.copyItem(atPath: path + ".old", toPath: path)
            },
            { path in
                let link = (path as NSString).deletingLastPathComponent
                try files.removeItem(atPath: link)
                try files.createSymbolicLink(atPath: link, withDestinationPath: folder.path)
            },
        ]
        for (number, change) in changes.enumerated() {
            let (real, link) = (folder.file("real \(number)"), folder.file("link \(number)"))
            try files.createDirectory(atPath: real, withIntermediateDirectories: false)
            try files.createSymbolicLink(atPath: link, withDestinationPath: real)
            let path = link + "/a.journal"
            let journal = try await CommandJournal(path: path, types: types)
            let calls = Count()
            let call = Call { _ in calls.add() }
            defer { call.forget() }
            _ = try await journal.execute(call)
            try change(path)
            for _ in 0..<2 {
                let error = await thrown { _ = try await journal.execute(call) }
                guard case JournalError.fileReplaced(path)? = error else {
                    Issue.record("\(number): \(String(describing: error))")
                    return
                }
                #expect("\(error!)".contains(path))
            }
            #expect(calls.value == 1)
            await journal.close()
        }
    }

    @Test(.promises("J11")) func `J11: another version or format is refused and not changed`()
        async throws
    {
        let folder = try Folder()
        let path = folder.file()
        await (try CommandJournal(path: path, types: types)).close()
        try change(path, "PRAGMA user_version = 7")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let error = await thrown { _ = try await CommandJournal(path: path, types: types) }
        guard case JournalError.schemaVersion(found: 7, expected: 1)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect("\(error!)".contains("7"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)

        func isRefused(_ path: String) async -> Bool {
            if case JournalError.notAJournal(path)? = await thrown({
                _ = try await CommandJournal(path: path, types: types)
            }) {
                true
            } else {
                false
            }
        }
        let other = folder.file("other")
        try change(other, "CREATE TABLE t (x); INSERT INTO t VALUES (1)")
        let others = try Data(contentsOf: URL(fileURLWithPath: other))
        #expect(await isRefused(other))
        #expect(try Data(contentsOf: URL(fileURLWithPath: other)) == others)
        let text = folder.file("text")
        try Data(String(repeating: "This is no database. ", count: 90).utf8).write(
            to: URL(fileURLWithPath: text))
        #expect(await isRefused(text))
    }

    @Test(.promises("J11")) func `J11: a new file and its log are private to their owner`()
        async throws
    {
        let folder = try Folder()
        let files = FileManager.default
        let (path, link, shared) = (folder.file(), folder.file("link"), folder.file("shared"))
        try files.createSymbolicLink(atPath: link, withDestinationPath: folder.file("behind"))
        // The journal must not change the permissions of an existing file.
        #expect(files.createFile(atPath: shared, contents: nil, attributes: [.posixPermissions: 0o640]))
        for (path, permissions) in [(path, 0o600), (link, 0o600), (shared, 0o640)] {
            let journal = try await CommandJournal(path: path, types: types)
            let call = Call()
            defer { call.forget() }
            _ = try await journal.execute(call)
            let file = path == link ? folder.file("behind") : path
            let made = try files.contentsOfDirectory(atPath: folder.path).map { folder.file($0) }
                .filter { $0.hasPrefix(file) }
            #expect(made.count >= 2)
            for each in made {
                let attributes = try files.attributesOfItem(atPath: each)
                #expect((attributes[.posixPermissions] as? Int) == permissions, "\(each)")
            }
            await journal.close()
        }
    }

    @Test(.promises("J11"))
    func `J11: no journal is made at an impossible path, and the error names it`() async throws {
        let folder = try Folder()
        for path in [folder.path, folder.file("none/a.journal"), ":memory:", ""] {
            let error = await thrown { _ = try await CommandJournal(path: path, types: types) }
            guard case JournalError.cannotOpen(path, _)? = error else {
                Issue.record("'\(path)': \(String(describing: error))")
                return
            }
            #expect("\(error!)".hasPrefix("The journal \(path) cannot be opened: "))
        }
    }

    @Test(.promises("J12")) func `J12: a full disk is an error, and what was durable stays`() async throws {
        let folder = try Folder()
        let path = folder.file()
        let store = try SQLiteStore(path: path)
        try store.limit(pages: 12)
        let journal = try await CommandJournal(types) { store }
        var last = 0
        let error = await thrown {
            for index in 0..<1000 {
                _ = try await journal.execute(Call())
                last = index
            }
        }
        guard case JournalError.storage? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(last > 0)
        await journal.close()
        let again = try await CommandJournal(path: path, types: types)
        _ = try await again.recover { _ in .over }
        #expect(try await again.replay().count > last)
        await again.close()
    }

    /// A command of any size, whose output or error has the size `size`.
    struct Large: JournaledCommand {
        static let journalName = "large"
        static let undone = Locked<[String]>([])
        let text: String
        var size = 0
        var key: String?
        var idempotencyKey: String? { key }
        func perform(_ context: CommandContext) async throws -> Performed<String, Nothing> {
            if size < 0 { throw ErrorOfSize(text: String(repeating: "e", count: -size)) }
            return Performed(String(repeating: "o", count: size), undo: Nothing())
        }
        func undo(_ undo: Nothing, _ context: CommandContext) async throws {
            Self.undone.withLock { $0.append(text) }
        }
    }

    struct ErrorOfSize: Error { let text: String }

    @Test(.promises("J12")) func `J12: a value too large for a record is refused alone`()
        async throws
    {
        let folder = try Folder()
        let path = folder.file()
        let store = try SQLiteStore(path: path, limit: 50_000)
        let journal = try await CommandJournal(types + [Large.self]) { store }
        let large = Large(text: String(repeating: "l", count: 49_500), key: "key")
        @Sendable func isTooLarge(_ body: @Sendable () async throws -> Void) async -> Bool {
            let error = await thrown(body)
            guard case JournalError.tooLarge(let size, let limit)? = error else {
                Issue.record("\(String(describing: error))")
                return false
            }
            return size > limit && !"\(error!)".contains("lll")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { _ = try await journal.execute(Call()) }
                group.addTask { #expect(await isTooLarge { _ = try await journal.execute(large) }) }
            }
            try await group.waitForAll()
        }
        let called = Count()
        let call = Call { _ in called.add() }
        defer { call.forget() }
        #expect(await isTooLarge { try await journal.execute(allOrNothing: [call, large]) })
        #expect(called.value == 0)
        // The refused command did not use up the key, and a command that fits exactly is recorded.
        _ = try await journal.execute(Large(text: String(repeating: "f", count: 48_900), key: "key"))
        // An output that is too large cannot be recorded either: its command is undone.
        let giving = Large(text: "gives", size: 60_000)
        #expect(await isTooLarge { _ = try await journal.execute(giving) })
        #expect(Large.undone.withLock { $0 } == ["gives"])
        let failing = Large(text: "fails", size: -60_000, key: "fails")
        #expect(await thrown { _ = try await journal.execute(failing) } is ErrorOfSize)
        guard
            case JournalError.recorded(_, .failed, _)? = await thrown({
                _ = try await journal.execute(failing)
            })
        else {
            Issue.record("it was not written down")
            return
        }
        await journal.close()
        let again = try await CommandJournal(path: path, types: types + [Large.self])
        #expect(try await again.recover().runs.isEmpty)
        await again.close()
    }

    @Test func `two types of one name stop the process`() async {
        await #expect(processExitsWith: .failure) {
            struct Other: JournaledCommand {
                static let journalName = "call"
                var idempotencyKey: String? { nil }
                func perform(_ context: CommandContext) async throws -> Performed<Nothing, Nothing> {
                    Performed()
                }
                func undo(_ undo: Nothing, _ context: CommandContext) async throws {}
            }
            _ = try await journal(MemoryStore(), [Call.self, Other.self])
        }
    }
}
