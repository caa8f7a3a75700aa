import Foundation
import PropertyTesting
import PropertyTestingSupport
import Testing

/// The test's own folder, which is removed with this object.
private final class Folder {
    let path = NSTemporaryDirectory() + "/examples-\(UUID().uuidString)"
    var examples: ExampleDatabase { ExampleDatabase(folder: path) }
    var files: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }
    deinit { try? FileManager.default.removeItem(atPath: path) }
}

private func tape(_ choices: UInt64...) -> Tape { Tape(choices) }

@Suite struct ExampleDatabaseTests {
    @Test func `counterexamples are kept, the newest first, and each once`() throws {
        let folder = Folder()
        #expect(folder.examples.tapes(of: "a") == [])
        for found in [tape(1, 2), tape(3), tape(), tape(3)] {
            try folder.examples.note(found, held: [], of: "a")
        }
        #expect(folder.examples.tapes(of: "a") == [tape(3), tape(), tape(1, 2)])
        #expect(folder.examples.tapes(of: "b") == [])
        #expect(folder.files.count == 1, "nothing unfinished is left")
    }

    @Test func `ten are kept`() throws {
        let folder = Folder()
        for number in 0..<13 as Range<UInt64> { try folder.examples.note(tape(number), held: [], of: "a") }
        #expect(folder.examples.tapes(of: "a") == (3...12).reversed().map { tape($0) })
    }

    @Test func `after ten passes one is forgotten, and its file`() throws {
        let folder = Folder()
        try folder.examples.note(tape(7), held: [], of: "a")
        for _ in 1...9 { try folder.examples.note(nil, held: [tape(7)], of: "a") }
        try folder.examples.note(tape(8), held: [], of: "a")
        #expect(folder.examples.tapes(of: "a") == [tape(8), tape(7)])
        try folder.examples.note(nil, held: [tape(7)], of: "a")
        #expect(folder.examples.tapes(of: "a") == [tape(8)])
        for _ in 1...10 { try folder.examples.note(nil, held: [tape(8)], of: "a") }
        #expect(folder.files == [])
    }

    @Test func `a new failure resets its count`() throws {
        let folder = Folder()
        try folder.examples.note(tape(7), held: [], of: "a")
        for _ in 1...9 { try folder.examples.note(nil, held: [tape(7)], of: "a") }
        try folder.examples.note(tape(7), held: [], of: "a")
        try folder.examples.note(nil, held: [tape(7)], of: "a")
        #expect(folder.examples.tapes(of: "a") == [tape(7)])
    }

    @Test func `a damaged file yields its readable part`() throws {
        let folder = Folder()
        try folder.examples.note(tape(7), held: [], of: "a")
        let path = folder.path + "/" + folder.files[0]
        try "0 7\n\nx\n-1 3\n2 1.z!\n4 1.2 5\n\u{0}\n3 a.b\n9 8".write(
            toFile: path, atomically: true, encoding: .utf8)
        #expect(folder.examples.tapes(of: "a") == [tape(7), tape(10, 11), tape(8)])
    }

    @Test func `an unwritable folder is named`() throws {
        let examples = ExampleDatabase(folder: "/proc/no/such/folder")
        #expect(examples.tapes(of: "a") == [])
        let error = #expect(throws: ExampleDatabaseError.self) {
            try examples.note(tape(1), held: [], of: "a")
        }
        #expect(try #require(error).description.contains("/proc/no/such/folder/"))
        #expect(throws: Never.self) { try examples.note(nil, held: [], of: "a") }
    }

    @Test func `names that differ only in punctuation have own files`() throws {
        let folder = Folder()
        for name in ["a/b", "a-b", "a b", String(repeating: "x", count: 1_000)] {
            try folder.examples.note(tape(UInt64(name.utf8.count)), held: [], of: name)
        }
        #expect(folder.files.count == 4)
        #expect(folder.examples.tapes(of: "a/b") == [tape(3)])
    }

    @Test func `forAll first checks earlier failures until they hold`() async throws {
        let folder = Folder()
        let limit = Locked(900)
        let values = Locked([Int]())
        func run(fails: Bool) async -> String? {
            values.withLock { $0 = [] }
            let told = Locked<String?>(nil)
            await withKnownIssue(isIntermittent: true) {
                await forAll(.int(in: 0...1_000), examples: folder.examples) { value in
                    values.withLock { $0.append(value) }
                    #expect(value < limit.withLock { $0 })
                }
            } matching: { issue in
                told.withLock { $0 = "\(issue)" }
                return true
            }
            let text = told.withLock { $0 }
            #expect((text != nil) == fails)
            return text
        }
        let first = try #require(await run(fails: true))
        #expect(first.contains("counterexample (after "))
        #expect(first.contains(": 900\n"))
        let second = try #require(await run(fails: true))
        #expect(second.contains("counterexample (of an earlier run, 0 shrinks"))
        #expect(values.withLock { $0.first } == 900, "the kept one is checked first")
        limit.withLock { $0 = 950 }  // 900 holds now, and others do not
        let third = try #require(await run(fails: true))
        #expect(third.contains("counterexample (after "))
        #expect(third.contains(": 950\n"))
        limit.withLock { $0 = 1_001 }
        _ = await run(fails: false)
        #expect(values.withLock { Array($0.prefix(2)) } == [950, 900], "the newest first")
        #expect(values.withLock { $0.count } == 102, "they are no cases")
        for _ in 1...9 { _ = await run(fails: false) }
        #expect(folder.files == [])
    }

    @Test func `only the examples checked before the failing one have held`()
        async throws
    {
        let folder = Folder()
        /// The number of runs in which each example has held, the newest example first.
        func run(_ fails: @escaping @Sendable (Int) -> Bool) async throws -> [String] {
            await withKnownIssue {
                await forAll(.int(in: 0...1_000), examples: folder.examples) { #expect(!fails($0)) }
            }
            let file = try String(contentsOfFile: folder.path + "/" + folder.files[0], encoding: .utf8)
            return file.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
        }
        _ = try await run { $0 >= 900 }
        #expect(try await run { $0 >= 950 } == ["0", "1"])
        #expect(try await run { $0 >= 970 } == ["0", "1", "2"], "970, 950, 900")
        // 970 holds; 950 fails, and becomes 940; 900 is not reached.
        #expect(try await run { (940...960).contains($0) } == ["0", "1", "1", "2"])
    }

    @Test func `a counterexample the generator no longer makes is left out`() async throws {
        let outcome = await check(
            Generator<Int>.int(in: 0...9).filter { $0 > 5 },
            options: PropertyOptions(cases: 5, seed: 1, examples: [tape(2)])
        ) { _ in nil }
        guard case .held(let cases, _) = outcome else { return #expect(Bool(false)) }
        #expect(cases == 5)
    }
}
