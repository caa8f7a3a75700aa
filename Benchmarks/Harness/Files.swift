public import Foundation
import Glibc

/// Writes a file atomically, and creates its folder. A link at `path` is replaced; its target stays as it is.
///
/// - Throws: ``BenchmarkError`` that names the file.
public func writeWhole(_ data: Data, to path: String) throws {
    let temporary = "\(path).\(getpid())"
    do {
        try FileManager.default.createDirectory(
            at: URL(fileURLWithPath: path).deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: URL(fileURLWithPath: temporary))
        guard rename(temporary, path) == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    } catch {
        unlink(temporary)
        throw BenchmarkError("The file '\(path)' cannot be written: \(error.localizedDescription)")
    }
}

/// Like ``writeWhole(_:to:)``, for a text.
public func writeWhole(_ text: String, to path: String) throws {
    try writeWhole(Data(text.utf8), to: path)
}

/// JSON for files that people read and compare: indented, with sorted keys.
public func readableJSON(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(value)
}
