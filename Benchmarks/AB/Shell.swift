import BenchmarkHarness
import Foundation
import Glibc

/// Runs other programs to their end.
struct Shell {
    /// Asked while a program runs; when true it is ended, with all that it started.
    let isInterrupted: () -> Bool

    /// How a program ended.
    struct Outcome {
        let status: Int32
        let output: String
    }

    /// Runs a program, found by PATH.
    ///
    /// - Parameters:
    ///   - folder: where it runs.
    ///   - log: the file that takes all that it prints; nil: what it prints is in the outcome, errors are not.
    /// - Throws: ``BenchmarkError`` when it cannot be started, or after an interrupt.
    func run(
        _ command: [String], in folder: String, environment: [String: String] = [:], log: String? = nil
    ) throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        var variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        // Set in a hook of git: they would redirect it from the folder to the repository of the hook.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] { variables[name] = nil }
        process.environment = variables
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        if let log {
            guard FileManager.default.createFile(atPath: log, contents: nil),
                let file = FileHandle(forWritingAtPath: log)
            else {
                throw BenchmarkError("The file '\(log)' cannot be written.")
            }
            process.standardOutput = file
            process.standardError = file
        } else {
            process.standardOutput = pipe
            process.standardError = FileHandle.nullDevice
        }
        do { try process.run() } catch {
            throw BenchmarkError("'\(command[0])' cannot be started: \(error.localizedDescription)")
        }
        let output = log == nil ? pipe.fileHandleForReading.readDataToEndOfFile() : Data()
        while process.isRunning {
            if isInterrupted() {
                end(process)
                throw BenchmarkError.interrupted
            }
            poll(nil, 0, 20)
        }
        return Outcome(
            status: process.terminationReason == .exit
                ? process.terminationStatus : 128 + process.terminationStatus,
            output: String(decoding: output, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// An interrupt first, at which a build ends its compilers. Foundation starts each program in a group of its own.
    private func end(_ process: Process) {
        let group = process.processIdentifier
        kill(-group, SIGINT)
        for _ in 0..<500 where process.isRunning { poll(nil, 0, 20) }
        kill(-group, SIGKILL)
        process.waitUntilExit()
    }
}

extension BenchmarkError {
    /// The run was ended before there was a result.
    static let interrupted = BenchmarkError("Interrupted: there is no result.", kind: .notMeasured)
}
