import Glibc
import Launching

/// `swift run benchmarks`, in any configuration: runs the measuring program, built with `-c release`.
///
/// The texts in `Answers` are printed without that program: a release build takes minutes.
@main
struct Launcher {
    /// <the package in Benchmarks>/Launcher
    private static let folder = Launching.parent(of: #filePath)

    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let answer = answer(arguments) {
            print(answer, terminator: "")
            return
        }
        // SwiftPM does not notice when a library that the manifest checks for is installed, but it evaluates the manifest
        // again when the environment has changed.
        setenv("BENCHMARKS_HAS_TBB", hasTBB ? "1" : "0", 1)
        Launching(name: "benchmarks", product: "bench-runner", package: Launching.parent(of: folder))
            .launch(arguments)
    }

    /// Without this library the list reports a missing peer.
    private static var hasTBB: Bool { access("/usr/include/tbb/task_group.h", R_OK) == 0 }

    /// The text that the measuring program would print; nil if that requires more than a file. `LauncherTests` compares the
    /// two.
    private static func answer(_ arguments: [String]) -> String? {
        switch arguments {
        case ["--version"]: version()
        case ["list"] where hasTBB: read("\(folder)/Answers/list.txt")
        case ["--help"], ["-h"], ["help"]: read("\(folder)/Answers/help.txt")
        case let two where two.count == 2 && two[0] == "help": help(two[1])
        case let two where two.count == 2 && ["--help", "-h"].contains(two[1]): help(two[0])
        default: nil
        }
    }

    private static func help(_ command: String) -> String? {
        guard command.allSatisfy({ $0.isLetter || $0 == "-" }) else { return nil }
        return read("\(folder)/Answers/help-\(command).txt")
    }

    /// The version according to git, or a statement that git reports none.
    private static func version() -> String {
        let unknown = "benchmarks, unknown commit\n"
        guard chdir(folder) == 0, let output = popen("git describe --always --dirty --tags 2>/dev/null", "r")
        else { return unknown }
        defer { pclose(output) }
        let commit = text(output)
        return commit.isEmpty ? unknown : "benchmarks, commit \(commit)"
    }

    private static func read(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        return text(file)
    }

    private static func text(_ file: UnsafeMutablePointer<FILE>) -> String {
        var text: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&part, 1, part.count, file), count > 0 { text += part[..<count] }
        return String(decoding: text, as: UTF8.self)
    }
}
