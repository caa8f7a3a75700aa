import Foundation
import Testing

/// A headless browser, if one is installed (`./bootstrap --ci`).
enum Chromium {
    static let path = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    /// A folder next to the test program, for output to be inspected.
    static func output() throws -> URL {
        let folder = try #require(Bundle.main.executableURL).deletingLastPathComponent()
            .appendingPathComponent("report-of-the-tests")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    /// A screenshot of a page in a window of this size.
    static func photograph(_ page: URL, width: Int, height: Int, isDark: Bool, to file: URL) throws {
        try? FileManager.default.removeItem(at: file)
        _ = try run([
            "--window-size=\(width),\(height)", "--blink-settings=preferredColorScheme=\(isDark ? 0 : 1)",
            "--screenshot=\(file.path)", page.absoluteString,
        ])
    }

    /// The page after its scripts have run.
    static func content(of page: URL) throws -> String { try run(["--dump-dom", page.absoluteString]) }

    private static func run(_ arguments: [String]) throws -> String {
        let process = Process()
        let output = Pipe()
        let profile = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: profile) }
        // A browser that hangs is a failure, and must not hang the test.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
        // Chromium runs as root only without its sandbox. That is safe here: it shows nothing but our own page.
        process.arguments =
            [
                "--kill-after=5", "90", try #require(path), "--headless", "--no-sandbox", "--disable-gpu",
                "--hide-scrollbars", "--disable-dev-shm-usage",
                "--user-data-dir=\(profile.path)",
            ] + arguments
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return String(decoding: data, as: UTF8.self)
    }
}
