import BenchmarkHarness
import Foundation
import Glibc
import Testing

/// The built program, run in a separate folder.
struct Program {
    let folder: String

    static func inFolder(_ body: (Program) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(Program(folder: folder.path))
    }

    func write(_ text: String, to name: String) throws {
        let url = URL(fileURLWithPath: folder + "/" + name)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: url, atomically: true, encoding: .utf8)
    }

    func read(_ name: String) -> String? { try? String(contentsOfFile: folder + "/" + name, encoding: .utf8) }

    /// The files of a folder of the runs.
    func files(_ name: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder + "/.benchmarks/" + name)) ?? []
    }

    func document() throws -> RunDocument {
        try RunDocument(contentsOf: folder + "/.benchmarks/latest.json")
    }

    func run(_ arguments: [String], allowDebug: Bool = true) throws -> Result {
        try start(arguments, allowDebug: allowDebug).wait()
    }

    func start(_ arguments: [String], allowDebug: Bool = true) throws -> Running {
        var arguments = arguments
        #if DEBUG
            if arguments.first == "run", allowDebug { arguments.append("--allow-debug") }
        #endif
        let process = Process()
        // Next to the test program, because the tests depend on it.
        process.executableURL = try #require(Bundle.main.executableURL).deletingLastPathComponent()
            .appendingPathComponent("bench-runner")
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        // Files rather than pipes: a pipe that is not being read would block the program.
        for name in ["output", "errors"] { try write("", to: name) }
        process.standardOutput = FileHandle(forWritingAtPath: folder + "/output")
        process.standardError = FileHandle(forWritingAtPath: folder + "/errors")
        try process.run()
        return Running(process: process, program: self)
    }

    struct Result {
        let status: Int32
        let output: String
        let errors: String
    }
}

struct Running {
    let process: Process
    let program: Program

    func wait() -> Program.Result {
        process.waitUntilExit()
        return Program.Result(
            status: process.terminationStatus, output: program.read("output") ?? "",
            errors: program.read("errors") ?? "")
    }

    /// Returns when the program, or one of its processes, has written this text to standard error, or
    /// has ended.
    func wait(forError text: String) {
        while process.isRunning, program.read("errors")?.contains(text) != true { sched_yield() }
    }

    func interrupt() { kill(process.processIdentifier, SIGINT) }
}
