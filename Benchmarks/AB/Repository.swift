import BenchmarkHarness
import Foundation

/// A commit that is compared.
public struct Commit: Codable, Sendable, Hashable {
    /// Its name on the command line.
    public var name: String
    /// All digits of its hash.
    public var hash: String
    /// The first line of its message.
    public var subject: String

    /// A readable form.
    public var title: String { "\(hash.prefix(10)) (\(subject))" }
}

/// The git repository that a package is in.
struct Repository {
    private let shell: Shell
    /// Its folder.
    let root: String
    /// The path of the package in the repository; empty if the package is its root.
    let package: String

    /// Finds the repository.
    ///
    /// - Throws: ``BenchmarkError`` that names the package, if it is in no repository.
    init(ofPackage path: String, _ shell: Shell) async throws {
        self.shell = shell
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            throw BenchmarkError("There is no folder '\(path)'; '--package' names the one of the package.")
        }
        func ask(_ question: String) async throws -> String? {
            let answer = try await shell.run(["git", "rev-parse", question], in: path)
            return answer.status == 0 ? answer.output : nil
        }
        guard let root = try await ask("--show-toplevel"), let package = try await ask("--show-prefix") else {
            throw BenchmarkError("'\(path)' is in no git repository, so there are no commits to compare.")
        }
        self.root = root
        self.package = package.hasSuffix("/") ? String(package.dropLast()) : package
    }

    /// Looks up a commit.
    ///
    /// - Throws: ``BenchmarkError`` that names the commit, if there is none.
    func commit(named name: String) async throws -> Commit {
        let hash = try await shell.run(
            ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", "\(name)^{commit}"], in: root)
        guard hash.status == 0 else {
            throw BenchmarkError(
                "There is no commit '\(name)' in '\(root)'. In a shallow clone it may have to be fetched first."
            )
        }
        let subject = try await shell.run(["git", "log", "-1", "--format=%s", hash.output], in: root)
        return Commit(name: name, hash: hash.output, subject: subject.output)
    }

    /// Whether tracked files of the package differ from HEAD; uncommitted changes are not measured.
    func hasChanges() async throws -> Bool {
        let status = try await shell.run(["git", "status", "--porcelain", "--untracked-files=no"], in: root)
        return !status.output.isEmpty
    }

    /// Checks a commit out into a new folder, in a repository that borrows the objects of this one.
    ///
    /// The folder is not a worktree: this repository has no record of it, so there is nothing to clean up here,
    /// however the program ends. It is not a clone either: a clone would need a branch that contains the commit,
    /// and more than a shallow history.
    func checkOut(_ commit: Commit, to folder: String) async throws {
        let files = FileManager.default
        try files.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try await git(["init", "--quiet", "--template="], in: folder)
        let objects = try await path("objects")
        try files.createDirectory(atPath: folder + "/.git/objects/info", withIntermediateDirectories: true)
        try "\(objects)\n".write(
            toFile: folder + "/.git/objects/info/alternates", atomically: true, encoding: .utf8)
        let shallow = try await path("shallow")
        if files.fileExists(atPath: shallow) {
            try files.copyItem(atPath: shallow, toPath: folder + "/.git/shallow")
        }
        try await git(["checkout", "--quiet", "--detach", commit.hash], in: folder)
    }

    private func path(_ name: String) async throws -> String {
        try await shell.run(["git", "rev-parse", "--path-format=absolute", "--git-path", name], in: root)
            .output
    }

    private func git(_ arguments: [String], in folder: String) async throws {
        let status = try await shell.run(["git"] + arguments, in: folder).status
        guard status == 0 else {
            throw BenchmarkError(
                "'git \(arguments[0])' failed in '\(folder)' with status \(status).", kind: .notMeasured)
        }
    }
}
