import Glibc

/// A launcher of another program, which is built with `-c release` in a package with its own dependencies.
///
/// Measurements of a debug build are meaningless, and `swift run` builds debug. So the launcher is tiny and builds quickly. It
/// replaces itself with `swift run -c release` of the other program, with the same arguments, and with a build folder inside
/// that of the package that contains both.
package struct Launching {
    private let name: String
    private let product: String
    private let package: String

    /// - Parameters:
    ///   - name: the command, for messages.
    ///   - product: the program to run.
    ///   - package: the folder of its package.
    package init(name: String, product: String, package: String) {
        self.name = name
        self.product = product
        self.package = package
    }

    /// Replaces this program.
    package func launch(_ arguments: [String]) -> Never {
        let program = pathOfThisProgram()
        // <build folder>/<triple>/<configuration>/<name>
        let scratch = Self.parent(of: Self.parent(of: Self.parent(of: program)))
        // SwiftPM does not notice files that were added to a package on which another depends by path. Without the stored plan
        // of its last build, it looks for files again, and builds no more than necessary.
        unlink("\(scratch)/benchmarks/release/description.json")
        if access("\(scratch)/benchmarks/release/\(product)", X_OK) != 0 {
            say("building the program for release; that takes minutes, once.")
        }
        let command = [
            "swift", "run", "-c", "release", "--package-path", package, "--scratch-path",
            "\(scratch)/benchmarks", product,
        ]
        execute(command + arguments)
        fail("'swift' is not on PATH; run \(scratch)/benchmarks/release/\(product) yourself.")
    }

    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return String(path[..<slash])
    }

    private func pathOfThisProgram() -> String {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let length = buffer.withUnsafeMutableBytes { bytes in
            readlink("/proc/self/exe", bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        guard length > 0 else { fail("/proc/self/exe cannot be read.") }
        return String(decoding: buffer.prefix(length), as: UTF8.self)
    }

    /// Returns only when the program cannot be found.
    private func execute(_ command: [String]) {
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
        arguments.append(nil)
        execvp(command[0], &arguments)
    }

    private func say(_ sentence: String) {
        let line = "\(name): \(sentence)\n"
        _ = write(STDERR_FILENO, line, line.utf8.count)
    }

    private func fail(_ sentence: String) -> Never {
        say(sentence)
        exit(70)
    }
}
