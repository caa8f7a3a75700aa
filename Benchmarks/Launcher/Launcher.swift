import Glibc

/// `swift run benchmarks`, in whatever configuration: hands over to the measuring program, built with `-c
/// release`.
///
/// A debug build measures nothing that anybody runs, and `swift run` builds debug. So this program is tiny,
/// is built in no time, and replaces itself by `swift run -c release bench-runner` with the same arguments,
/// and a build folder inside that of this package. What is in the files of `Answers`, it says itself: a release build takes
/// minutes.
@main
struct Launcher {
    /// <the package in Benchmarks>/Launcher
    private static let folder = parent(of: #filePath)

    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let answer = answer(arguments) {
            print(answer, terminator: "")
            return
        }
        let program = pathOfThisProgram()
        // <build folder>/<triple>/<configuration>/benchmarks
        let scratch = parent(of: parent(of: parent(of: program)))
        // SwiftPM does not notice files that came to a package on which another depends by path. Without its
        // plan it looks again, and builds no more than it has to.
        unlink("\(scratch)/benchmarks/release/description.json")
        // Nor that a library came, which the manifest looks for: but it asks a manifest again in another environment.
        setenv("BENCHMARKS_HAS_TBB", hasTBB ? "1" : "0", 1)
        if access("\(scratch)/benchmarks/release/bench-runner", X_OK) != 0 {
            say("building the measuring program; that takes minutes, once.")
        }
        let command = [
            "swift", "run", "-c", "release", "--package-path", parent(of: folder),
            "--scratch-path", "\(scratch)/benchmarks", "bench-runner",
        ]
        execute(command + arguments)
        fail("'swift' is not on PATH; run \(scratch)/benchmarks/release/bench-runner yourself.")
    }

    /// Without this library the list says that a peer is missing.
    private static var hasTBB: Bool { access("/usr/include/tbb/task_group.h", R_OK) == 0 }

    /// The text that the measuring program would print; nil when that takes more than a file. `LauncherTests` compares them.
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

    /// As git says, or that it says nothing.
    private static func version() -> String {
        let unknown = "benchmarks, of an unknown commit\n"
        guard chdir(folder) == 0, let output = popen("git describe --always --dirty --tags 2>/dev/null", "r")
        else { return unknown }
        defer { pclose(output) }
        let commit = text(output)
        return commit.isEmpty ? unknown : "benchmarks, of commit \(commit)"
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

    private static func pathOfThisProgram() -> String {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let length = buffer.withUnsafeMutableBytes { bytes in
            readlink("/proc/self/exe", bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        guard length > 0 else { fail("/proc/self/exe cannot be read.") }
        return String(decoding: buffer.prefix(length), as: UTF8.self)
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return String(path[..<slash])
    }

    /// Returns only when the program cannot be found.
    private static func execute(_ command: [String]) {
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
        arguments.append(nil)
        execvp(command[0], &arguments)
    }

    private static func say(_ sentence: String) {
        let line = "benchmarks: \(sentence)\n"
        _ = write(STDERR_FILENO, line, line.utf8.count)
    }

    private static func fail(_ sentence: String) -> Never {
        say(sentence)
        exit(70)
    }
}
