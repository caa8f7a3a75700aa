// Ledger.swift - the receiver: a file with one line per effect. It remembers keys, and so does nothing twice.

import CompositeOperations
import Glibc
@_spi(Faces) import Runs

/// Effects, in the order in which they happened: "+ 3.1" was done, "- 3.1" was undone. Each line is a single write, so a killed
/// process leaves only whole lines. A line is both the effect and its record.
final class Ledger: Sendable {
    private let path: String
    private let file: Int32
    private let known: Guarded<Set<String>>

    init(_ path: String) {
        self.path = path
        file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o644)
        guard file >= 0 else { fatalError("JournalCrash: \(path) cannot be opened") }
        known = Guarded(Set(Self.lines(of: path)))
    }

    deinit { close(file) }

    /// The lines of the file.
    var lines: [String] { Self.lines(of: path) }

    /// - Parameter hasKey: without a key, the ledger cannot know whether this is the same work.
    func add(_ line: String, hasKey: Bool) {
        let isNew = known.withLock { $0.insert(line).inserted }
        if isNew || !hasKey { write(line) }
    }

    func write(_ line: String) {
        let line = line + "\n"
        guard Glibc.write(file, line, line.utf8.count) == line.utf8.count else {
            fatalError("JournalCrash: the ledger cannot be written")
        }
    }

    static func lines(of path: String) -> [String] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = read(file, &chunk, chunk.count)
            if count <= 0 { break }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
