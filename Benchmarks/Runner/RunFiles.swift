import BenchmarkHarness
import Foundation
import Glibc

/// The paths of a run's files: each run has its own, and `latest.json` and `report.html` are links to those of the last
/// run.
struct RunFiles {
    /// The raw values.
    let json: String
    /// The page.
    let html: String
    /// Links that should lead to the two files; none if the user named a file.
    private let links: [(link: String, target: String)]

    private static let folder = ".benchmarks"
    /// The link to the raw values of the last run.
    static let latest = "\(folder)/latest.json"
    /// The link to the page of the last run.
    static let page = "\(folder)/report.html"

    /// - Parameters:
    ///   - name: the name of the run; nil: its date.
    ///   - json: a file that the user named.
    ///   - html: a page that the user named.
    init(name: String, json: String?, html: String?) {
        let own = (json: Self.json(ofRun: name), html: "\(Self.folder)/runs/\(name).html")
        self.json = json ?? own.json
        self.html = html ?? own.html
        links =
            (json == nil ? [(Self.latest, own.json)] : []) + (html == nil ? [(Self.page, own.html)] : [])
    }

    /// The raw values of a run with a given name.
    static func json(ofRun name: String) -> String { "\(folder)/runs/\(name).json" }

    /// The name of a new run.
    ///
    /// - Throws: ``BenchmarkError`` when the requested name is invalid or taken.
    static func newName(_ wanted: String?, date: Date) throws -> String {
        if let wanted {
            let isName =
                !wanted.isEmpty && !wanted.hasPrefix(".")
                && wanted.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
            guard isName else {
                throw BenchmarkError(
                    "'\(wanted)' is not a name for a run: use letters, digits, '-', '_' and '.', with no '.' first."
                )
            }
            guard !isTaken(wanted) else {
                throw BenchmarkError(
                    "There is already a run '\(wanted)', \(json(ofRun: wanted)): choose another name, or continue it with --resume."
                )
            }
            return wanted
        }
        let name = date.formatted(.iso8601).replacing(":", with: "-")
        return ([name] + (2...1_000).map { "\(name)-\($0)" }).first { !isTaken($0) } ?? name
    }

    private static func isTaken(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: json(ofRun: name))
    }

    /// The file for a failed run, next to the raw values.
    var failed: String { json.hasSuffix(".json") ? "\(json.dropLast(5))-failed.json" : "\(json)-failed" }

    /// Points the links to the files of this run, one after the other.
    ///
    /// - Throws: ``BenchmarkError`` that names a link that cannot be created.
    func link() throws {
        for (link, target) in links {
            try keep(link)
            let relative = target.dropFirst(Self.folder.count + 1)
            let temporary = "\(link).\(getpid())"
            unlink(temporary)
            guard symlink(String(relative), temporary) == 0, rename(temporary, link) == 0 else {
                throw BenchmarkError(
                    "The link '\(link)' cannot be created: \(String(cString: strerror(errno))).")
            }
        }
    }

    /// Runs that predate the links are in a file of this name: it becomes one of the runs.
    private func keep(_ path: String) throws {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
        let date = Date(timeIntervalSince1970: Double(status.st_mtim.tv_sec))
        let suffix = path.split(separator: ".").last ?? ""
        let name = date.formatted(.iso8601).replacing(":", with: "-")
        let target = "\(Self.folder)/runs/until-\(name).\(suffix)"
        guard rename(path, target) == 0 else {
            throw BenchmarkError(
                "The file '\(path)' cannot be moved to '\(target)': \(String(cString: strerror(errno))).")
        }
    }
}
