import BenchmarkHarness
import Foundation
import Glibc

/// How to turn a commit into a program that serves requests.
public struct Recipe: Sendable {
    /// The folder of the package.
    public var package: String
    /// The product that SwiftPM builds; nil: it builds nothing.
    public var product: String?
    /// A command that builds in place of SwiftPM, run by `sh` in the package's folder.
    public var build: String?
    /// A command that starts a child, run by `sh` in the package's folder; `$BENCHMARK_PRODUCT` is the path of the product.
    public var command: String

    /// Creates a recipe.
    public init(package: String, product: String?, build: String?, command: String) {
        self.package = package
        self.product = product
        self.build = build
        self.command = command
    }
}

/// How to start a child.
public struct Program: Sendable, Hashable {
    /// The path and the arguments.
    var command: [String]
    /// Additions to the environment.
    var environment: [String: String] = [:]
}

/// A folder of builds, one for each commit: `<hash>/<name of the repository>` holds the files, `<hash>/build` is
/// SwiftPM's build folder, and `<hash>/built` records the recipe. A commit that is already there, built the same way,
/// is not rebuilt.
///
/// The names of the folders of BASE and HEAD have equal length. A path is compiled into a program, or passed to it, and
/// its length shifts what follows it in memory, which has a measurable effect.
public final class Builds {
    private let folder: String
    private let shell = Shell()
    private let lock: Int32

    /// How many commits are kept.
    private static let kept = 4

    /// Opens a folder, or creates it.
    ///
    /// - Throws: ``BenchmarkError`` that names it, if it cannot be written, or if another process is using it.
    public init(in path: String) throws {
        let folder = URL(fileURLWithPath: path).standardizedFileURL.path
        self.folder = folder
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try "*\n".write(toFile: folder + "/.gitignore", atomically: true, encoding: .utf8)
        } catch {
            throw BenchmarkError("The folder '\(folder)' cannot be written: \(error.localizedDescription)")
        }
        lock = open(folder + "/lock", O_CREAT | O_RDWR | O_CLOEXEC, 0o644)
        guard lock >= 0, flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            if lock >= 0 { close(lock) }
            throw BenchmarkError(
                "Another 'benchmarks ab' builds in '\(folder)'; '--cache' names another folder.")
        }
    }

    deinit { close(lock) }

    /// Looks up both commits, before anything is built.
    ///
    /// - Throws: ``BenchmarkError`` that names what does not exist.
    public func commits(_ names: [String], of recipe: Recipe) async throws -> (
        commits: [Commit], hasChanges: Bool
    ) {
        let repository = try await Repository(ofPackage: recipe.package, shell)
        var commits: [Commit] = []
        for name in names { commits.append(try await repository.commit(named: name)) }
        return (commits, try await repository.hasChanges())
    }

    /// Builds a commit.
    ///
    /// - Throws: ``BenchmarkError`` with the end of the build's output, if the build fails.
    public func build(_ commit: Commit, _ recipe: Recipe, progress: (String) -> Void) async throws -> Program
    {
        let repository = try await Repository(ofPackage: recipe.package, shell)
        let home = "\(folder)/\(commit.hash)"
        let source = "\(home)/\(URL(fileURLWithPath: repository.root).lastPathComponent)"
        let package = repository.package.isEmpty ? source : "\(source)/\(repository.package)"
        let files = FileManager.default
        if !files.fileExists(atPath: home + "/checked-out") {
            try? files.removeItem(atPath: home)
            progress("checking out \(commit.title)")
            try await repository.checkOut(commit, to: source)
            try "".write(toFile: home + "/checked-out", atomically: true, encoding: .utf8)
        }
        guard files.fileExists(atPath: package) else {
            throw BenchmarkError("The commit \(commit.title) has no folder '\(repository.package)'.")
        }
        try? files.setAttributes([.modificationDate: Date()], ofItemAtPath: home)
        var environment = ["BENCHMARK_PACKAGE": package]
        var steps: [[String]] = []
        if let product = recipe.product, recipe.build == nil {
            try pinDependencies(of: package, as: recipe.package)
            steps.append([
                "swift", "build", "-c", "release", "--package-path", package, "--scratch-path",
                home + "/build",
                "--product", product,
            ])
            environment["BENCHMARK_PRODUCT"] = "\(home)/build/release/\(product)"
        }
        if let command = recipe.build { steps.append(["sh", "-c", command]) }
        let description = "\(repository.package)\n\(steps)"
        if (try? String(contentsOfFile: home + "/built", encoding: .utf8)) != description {
            for step in steps {
                progress("building \(commit.title)")
                try await run(step, for: commit, in: package, environment, log: home + "/build.log")
            }
            try description.write(toFile: home + "/built", atomically: true, encoding: .utf8)
        }
        return Program(
            command: ["/bin/sh", "-c", "cd \"$BENCHMARK_PACKAGE\" && exec \(recipe.command)"],
            environment: environment)
    }

    private func run(
        _ step: [String], for commit: Commit, in package: String, _ environment: [String: String], log: String
    ) async throws {
        let outcome = try await shell.run(step, in: package, environment: environment, log: log)
        guard outcome.status != 0 else { return }
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        let end = text.split(separator: "\n").suffix(15).map { "  \($0)" }.joined(separator: "\n")
        throw BenchmarkError(
            """
            The commit \(commit.title) does not build: status \(outcome.status) of '\(step.joined(separator: " "))'. All of it is in \
            \(log), and this is the end:
            \(end)
            """, kind: .notMeasured)
    }

    /// Gives both commits the package's current versions of dependencies, unless a commit pins its own.
    private func pinDependencies(of package: String, as original: String) throws {
        let files = FileManager.default
        let (pins, theirs) = ("\(original)/Package.resolved", "\(package)/Package.resolved")
        guard files.fileExists(atPath: pins), !files.fileExists(atPath: theirs) else { return }
        try files.copyItem(atPath: pins, toPath: theirs)
    }

    /// Removes the least recently used builds.
    public func removeOldest() {
        let files = FileManager.default
        func used(_ path: String) -> Date {
            (try? files.attributesOfItem(atPath: path)[.modificationDate] as? Date) ?? .distantPast
        }
        let homes = ((try? files.contentsOfDirectory(atPath: folder)) ?? []).map { "\(folder)/\($0)" }
            .filter { files.fileExists(atPath: $0 + "/checked-out") }
        for home in homes.sorted(by: { used($0) > used($1) }).dropFirst(Self.kept) {
            try? files.removeItem(atPath: home)
        }
    }
}
