import BenchmarkHarness
import Foundation
import Subprocess
import SystemPackage

/// Runs other programs to completion.
struct Shell: Sendable {
    /// How a program ended.
    struct Outcome {
        let status: Int32
        let output: String
    }

    /// Runs a program, found through PATH. When the task is cancelled, the program is sent an interrupt, which makes a
    /// build stop its compilers. If the program takes longer than ten seconds to exit, it is killed together with its descendants.
    ///
    /// - Parameters:
    ///   - folder: where it runs.
    ///   - log: the file that receives all output; nil: the standard output is in the outcome, and errors are dropped.
    /// - Throws: ``BenchmarkError`` when it cannot be started, or after an interrupt.
    func run(
        _ command: [String], in folder: String, environment: [String: String] = [:], log: String? = nil
    ) async throws -> Outcome {
        var variables: [Environment.Key: String?] = [:]
        for (name, value) in environment { variables[Environment.Key(stringLiteral: name)] = value }
        // A git hook sets these; they would redirect git from the folder to the hook's repository.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            variables.updateValue(nil, forKey: Environment.Key(stringLiteral: name))
        }
        var options = PlatformOptions()
        options.processGroupID = 0  // its own group
        options.teardownSequence = [
            .send(signal: .interrupt, toProcessGroup: true, allowedDurationToNextStep: .seconds(10)),
            .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .seconds(1)),
        ]
        let configuration = Configuration(
            executable: .name(command[0]), arguments: Arguments(Array(command.dropFirst())),
            environment: .inherit.updating(variables), workingDirectory: FilePath(folder),
            platformOptions: options)
        let outcome: Outcome
        do {
            outcome = try await run(configuration, log: log)
        } catch let error as BenchmarkError {
            throw error
        } catch {
            if Task.isCancelled { throw BenchmarkError.interrupted }
            throw BenchmarkError("'\(command[0])' cannot be started: \(error)")
        }
        if Task.isCancelled { throw BenchmarkError.interrupted }
        return outcome
    }

    private func run(_ configuration: Configuration, log: String?) async throws -> Outcome {
        guard let log else {
            let result = try await Subprocess.run(
                configuration, output: .string(limit: 1 << 24), error: .discarded)
            return Outcome(
                status: Self.status(result.terminationStatus),
                output: result.standardOutput.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(
                FilePath(log), .writeOnly, options: [.create, .truncate, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead])
        } catch {
            throw BenchmarkError("The file '\(log)' cannot be written: \(error).")
        }
        let result = try await Subprocess.run(
            configuration, output: .fileDescriptor(file, closeAfterSpawningProcess: true),
            error: .combinedWithOutput)
        return Outcome(status: Self.status(result.terminationStatus), output: "")
    }

    /// The exit status as a shell reports it.
    private static func status(_ termination: TerminationStatus) -> Int32 {
        switch termination {
        case .exited(let status): status
        case .signaled(let signal): 128 + signal
        }
    }
}

extension BenchmarkError {
    /// The error for a run that ended before there was a result.
    static let interrupted = BenchmarkError("Interrupted: there is no result.", kind: .notMeasured)
}
