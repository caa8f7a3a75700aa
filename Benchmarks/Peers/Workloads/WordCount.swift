import BenchmarkCore
import Foundation

/// R3: a parallel loop over the files of a folder, and then one table for all of them.
func countWords(_ pool: some Pool, files: Int) throws -> Sample {
    try TextFolder.with(files: files) { folder in
        let tables = Tables(count: files)
        let start = startClock()
        pool.loop(files) { tables.set($0, table(of: folder.path(ofFile: $0))) }
        let words = tables.merged
        let stop = stopClock()
        return Sample(
            from: start, to: stop, operations: files * Texts.inFile,
            checksum: Texts.checksum(ofTable: words))
    }
}

/// The words of a file; none if it cannot be read, which makes the result wrong.
private func table(of path: String) -> [UInt64: Int] {
    guard let data = FileManager.default.contents(atPath: path) else { return [:] }
    return data.withUnsafeBytes { bytes in
        var table: [UInt64: Int] = [:]
        var word = Texts.hashOfNothing
        for byte in bytes {
            if byte > UInt8(ascii: " ") {
                word = Texts.hash(word, byte)
            } else if word != Texts.hashOfNothing {
                table[word, default: 0] += 1
                word = Texts.hashOfNothing
            }
        }
        return table
    }
}

/// A table for each file.
///
/// Sendable: each is written once, and read after all have been written.
private final class Tables: @unchecked Sendable {
    private let tables: UnsafeMutableBufferPointer<[UInt64: Int]>

    init(count: Int) {
        tables = .allocate(capacity: count)
        tables.initialize(repeating: [:])
    }

    deinit { tables.deinitialize().deallocate() }

    func set(_ index: Int, _ table: [UInt64: Int]) { tables[index] = table }

    var merged: [UInt64: Int] {
        tables.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
    }
}

/// A folder of files for the time of one sample. It is created for each sample, not for each process, because
/// processes are killed: the next sample removes what a killed process has left.
private struct TextFolder {
    private static let prefix = "operation-benchmarks-"
    private let url: URL

    static func with(files: Int, _ body: (TextFolder) throws -> Sample) throws -> Sample {
        let temporary = FileManager.default.temporaryDirectory
        removeThoseLeft(in: temporary)
        let url = temporary.appendingPathComponent("\(prefix)\(getpid())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: url) }
        let folder = TextFolder(url: url)
        for file in 0..<files {
            try Data(Texts.text(ofFile: file)).write(to: URL(fileURLWithPath: folder.path(ofFile: file)))
        }
        return try body(folder)
    }

    func path(ofFile file: Int) -> String { "\(url.path)/\(file).txt" }

    private static func removeThoseLeft(in folder: URL) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        where name.hasPrefix(prefix) {
            guard let pid = Int32(name.dropFirst(prefix.count)), kill(pid, 0) != 0, errno == ESRCH else {
                continue
            }
            try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
    }
}
