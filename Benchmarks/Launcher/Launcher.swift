import Glibc

/// `swift run benchmarks`, in whatever configuration: hands over to the measuring program, built with `-c
/// release`.
///
/// A debug build measures nothing that anybody runs, and `swift run` builds debug. So this program is tiny,
/// is built in no time, and replaces itself by `swift run -c release bench-runner` with the same arguments,
/// and a build folder inside that of this package.
@main
struct Launcher {
    static func main() {
        let program = pathOfThisProgram()
        // <build folder>/<triple>/<configuration>/benchmarks
        let scratch = parent(of: parent(of: parent(of: program)))
        // <the package in Benchmarks>/Launcher/Launcher.swift
        let package = parent(of: parent(of: #filePath))
        // SwiftPM does not notice files that came to a package on which another depends by path. Without its
        // plan it looks again, and builds no more than it has to.
        unlink("\(scratch)/benchmarks/release/description.json")
        // Nor that a library came, which the manifest looks for: but it asks a manifest again in another environment.
        setenv("BENCHMARKS_HAS_TBB", access("/usr/include/tbb/task_group.h", R_OK) == 0 ? "1" : "0", 1)
        let command = [
            "swift", "run", "-c", "release", "--package-path", package,
            "--scratch-path", "\(scratch)/benchmarks", "bench-runner",
        ]
        execute(command + CommandLine.arguments.dropFirst())
        fail("'swift' is not on PATH; run \(scratch)/benchmarks/release/bench-runner yourself.")
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

    private static func fail(_ sentence: String) -> Never {
        let line = "benchmarks: \(sentence)\n"
        _ = write(STDERR_FILENO, line, line.utf8.count)
        exit(70)
    }
}
