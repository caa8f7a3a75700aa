import Subprocess

/// The first line of output of a program on PATH; nil if it prints none, fails, or cannot be started.
func firstLine(of command: String, _ arguments: String...) async -> String? {
    let result = try? await run(
        .name(command), arguments: Arguments(arguments), output: .string(limit: 1 << 20), error: .discarded)
    guard let result, result.terminationStatus.isSuccess else { return nil }
    return result.standardOutput.split(separator: "\n").first.map(String.init)
}
