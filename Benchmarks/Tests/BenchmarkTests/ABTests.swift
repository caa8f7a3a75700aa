import BenchmarkHarness
import Foundation
import Glibc
import Testing

/// `benchmarks ab` as its user sees it, over the commits of a repository whose path contains a space. Most of the compared
/// programs are scripts that report fixed times, so that the verdict does not depend on the machine.
@Suite struct ABTests {
    private static let options = ["--command", "sh 'serve it.sh'"]

    /// A program of the protocol: `a` takes 100 ns per operation, `b` the given time.
    private static func script(b: Int, checksum: Int = 7) -> String {
        """
        while read -r line; do
            case $line in
            *'"list":true'*) echo '{"protocol":1,"workloads":[{"workload":"a","n":[10]},{"workload":"b","n":[10],"new":1}]}' ;;
            *'"workload":"b"'*) echo '{"sample":{"nanoseconds":\(b),"operations":10,"checksum":\(checksum)},"new":{}}' ;;
            *) echo '{"sample":{"nanoseconds":1000,"operations":10}}' ;;
            esac
        done
        """
    }

    @Test func `a commit against itself passes, and the same commits are not built again`() throws {
        try GitRepository.inFolder { repository in
            try repository.commit(["serve it.sh": Self.script(b: 1_000)])
            let build = ["--build-command", "echo built >>\"$BENCHMARK_PACKAGE/../builds\""]
            for _ in 1...2 {
                let result = try repository.program.run(["ab", "HEAD", "HEAD"] + build + Self.options)
                #expect(result.status == 0 && result.output.contains("Nothing is worse by more than 2 %."))
                #expect(result.output.contains("Of 2 rows: 2 not changed."))
            }
            let hash = try repository.git("rev-parse", "HEAD")
            #expect(repository.program.read(".benchmarks/ab/\(hash)/builds") == "built\n")
            #expect(try repository.git("worktree", "list").split(separator: "\n").count == 1)
            #expect(try repository.git("status", "--porcelain") == "")
        }
    }

    @Test func `a loss of 5 percent ends with status 3, and says so in Markdown and in JSON`() throws {
        try GitRepository.inFolder { repository in
            try repository.commit(["serve it.sh": Self.script(b: 1_000)])
            try repository.commit(["serve it.sh": Self.script(b: 1_050)], message: "Slower | <b>")
            let files = ["--json", "ab.json", "--markdown", "ab.md"]
            let result = try repository.program.run(["ab", "HEAD~1"] + Self.options + files)
            #expect(result.status == 3)
            #expect(
                result.output.contains("Worse by more than 2 %: b n=10. Of 2 rows: 1 worse, 1 not changed."))
            let markdown = try #require(repository.program.read("ab.md"))
            #expect(markdown.hasPrefix("### 🔴 ") && markdown.contains("(Slower \\| &lt;b>)"))
            #expect(
                markdown.contains(
                    "| b n=10 | 100 ns/op | 105 ns/op | +5.0 % | +5.0 % … +5.0 % | +0.0 % | worse |"))
            struct Document: Decodable {
                struct Line: Decodable {
                    struct Name: Decodable { let workload: String }
                    let row: Name
                    let verdict: String
                    let confirmation: [[String: [Double]]]
                }
                let outcome: String
                let rows: [Line]
            }
            let json = try #require(repository.program.read("ab.json"))
            let document = try JSONDecoder().decode(Document.self, from: Data(json.utf8))
            #expect(document.outcome == "worse" && document.rows.map(\.row.workload) == ["b", "a"])
            #expect(document.rows[0].confirmation.count == 10)
            #expect(document.rows[0].confirmation[0]["head"]?.allSatisfy { $0 == 105 } == true)
            // In the other direction the change is a gain, which is no reason to fail. A higher threshold tolerates the loss.
            let back = try repository.program.run(["ab", "HEAD", "HEAD~1"] + Self.options)
            #expect(back.status == 0 && back.output.contains("1 better"))
            let tolerated = try repository.program.run(
                ["ab", "HEAD~1", "--threshold", "0.06"] + Self.options)
            #expect(tolerated.status == 0)
        }
    }

    /// A row without values does not pass: each fault has its status, and a sentence that names it.
    @Test(arguments: [
        (script(b: 1_000, checksum: 8), 2, "In b with n = 10 BASE"),
        (
            "while read -r line; do echo '{\"error\":\"Out of order.\"}'; done", 1,
            "HEAD answers: Out of order."
        ),
        ("echo no JSON", 1, "Asked for its workloads, HEAD ends, or answers with what is not JSON"),
        (
            script(b: 1_000).replacing("\"protocol\":1", with: "\"protocol\":9"), 1,
            "HEAD speaks version 9 of the protocol"
        ),
        (
            script(b: 1_000).replacing("\"workload\":\"b\",\"n\"", with: "\"workload\":\"c\",\"n\""), 0,
            "Only BASE has b n=10."
        ),
        (script(b: 1_000).replacing("*'\"workload\":\"b\"'*)", with: "*b*) exit ;; x)"), 1, "b n=10"),
        (script(b: 0), 1, "failed: HEAD measured 0"),
        (
            script(b: 1_000).replacing("*'\"workload\":\"b\"'*)", with: "*b*) exec sleep 600 ;; x)"), 1,
            "HEAD was ended after 2.0 seconds"
        ),
    ]) func `a HEAD fault is shown`(script: String, status: Int32, sentence: String) throws {
        try GitRepository.inFolder { repository in
            try repository.commit(["serve it.sh": Self.script(b: 1_000)])
            try repository.commit(["serve it.sh": script])
            let result = try repository.program.run(["ab", "HEAD~1", "--limit", "2"] + Self.options)
            #expect(result.status == status)
            #expect((result.output + result.errors).contains(sentence))
            #expect(status == 0 || !result.output.contains("Nothing is worse"))
            #expect(repository.processes() == [])
        }
    }

    @Test(arguments: [
        (["ab", "no-such"] + options, 64, "There is no commit 'no-such' in '"),
        (["ab", "HEAD", "--package", "none"] + options, 64, "There is no folder 'none'"),
        (["ab", "HEAD", "--package", "/"] + options, 64, "'/' is in no git repository"),
        (["ab", "HEAD", "--package", "."], 64, "'--product' or '--command' must say"),
        (["ab", "HEAD", "--build-command", "make"], 64, "'--build-command' requires '--command'"),
        (["ab", "HEAD", "--threads", "2"] + options, 64, "'--threads' is for this package"),
        (
            ["ab", "HEAD", "--threshold", "5"] + options, 64,
            "The threshold must be more than 0 and less than 1, not 5.0"
        ),
        (["ab", "HEAD", "--limit", "0"] + options, 64, "The limit must be more than 0 seconds"),
        (
            ["ab", "HEAD", "--workloads", "a,none"] + options, 64,
            "There is no workload 'none' in both commits; there are a, b."
        ),
        (["ab", "HEAD", "--workloads", "a=x"] + options, 64, "'a=x' is no workload with a size"),
        (["ab", "HEAD", "--build-command", "echo it is broken >&2; exit 5"] + options, 1, "it is broken"),
        (["ab", "HEAD", "--product", "none"], 1, "does not build: status 1"),
    ]) func `invalid comparisons are named`(arguments: [String], status: Int32, sentence: String) throws {
        try GitRepository.inFolder { repository in
            try repository.commit(["serve it.sh": Self.script(b: 1_000)])
            let result = try repository.program.run(arguments)
            #expect(result.status == status)
            #expect(result.errors.contains(sentence))
            #expect(repository.processes() == [])
        }
    }

    @Test func `a program too old to list workloads runs the ones named with their size`()
        throws
    {
        try GitRepository.inFolder { repository in
            let old = Self.script(b: 1_000).replacing("\"workloads\":[", with: "\"other\":[")
            try repository.commit(["serve it.sh": old])
            let refused = try repository.program.run(["ab", "HEAD"] + Self.options)
            #expect(refused.status == 1 && refused.errors.contains("'--workloads NAME=N'"))
            let named = try repository.program.run(["ab", "HEAD", "--workloads", "b=20"] + Self.options)
            #expect(named.status == 0 && named.output.contains("b n=20"))
        }
    }

    /// Interrupted while it measures, and while it builds.
    @Test(
        arguments: [SIGINT, SIGTERM],
        [options, options + ["--build-command", ": >../began; exec sleep 600"]])
    func `an interrupt leaves neither processes nor worktrees`(signal: Int32, options: [String]) throws {
        try GitRepository.inFolder { repository in
            let slow = "while read -r line; do : >../began; exec sleep 600; done"
            try repository.commit(["serve it.sh": slow])
            let running = try repository.program.start(
                ["ab", "HEAD", "--workloads", "a=1", "--limit", "1"] + options)
            let hash = try repository.git("rev-parse", "HEAD")
            while !repository.exists(".benchmarks/ab/\(hash)/began") { sched_yield() }
            kill(running.process.processIdentifier, signal)
            let result = running.wait()
            #expect(result.status == 1 && result.errors.contains("there is no result"))
            #expect(repository.processes() == [])
            #expect(try repository.git("worktree", "list").split(separator: "\n").count == 1)
            // Nothing prevents the next run.
            try repository.commit(["serve it.sh": Self.script(b: 1_000)])
            #expect(try repository.program.run(["ab", "HEAD"] + Self.options).status == 0)
        }
    }

    /// The only test that builds, and measures real time: it checks only that a measurement is made, not its result.
    @Test func `the example is built from a commit, and compared`() throws {
        try GitRepository.inFolder { repository in
            let example = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../../Examples/benchmark-protocol").standardizedFileURL
            var files: [String: String] = [:]
            for name in ["Package.swift", "Sources/checksum-benchmark/main.swift"] {
                files["a package/\(name)"] = try String(
                    contentsOf: example.appendingPathComponent(name), encoding: .utf8)
            }
            try repository.commit(files)
            let result = try repository.program.run([
                "ab", "HEAD", "HEAD", "--package", "a package", "--product", "checksum-benchmark",
                "--workloads", "mix=100",
                "--json", "ab.json", "--threshold", "0.5",
            ])
            #expect([0, 1].contains(result.status), "\(result.errors)")
            #expect(result.output.contains("mix n=100"))
            #expect(repository.program.read("ab.json")?.contains("\"median\"") == true)
        }
    }

    /// The whole protocol with our program, as already built: only the script that starts it is checked out.
    @Test func `our program names its workloads and runs them`() throws {
        try GitRepository.inFolder { repository in
            try repository.commit(["nothing": ""])
            let program = try #require(Bundle.main.executableURL).deletingLastPathComponent()
                .appendingPathComponent("bench-runner").path
            let result = try repository.program.run([
                "ab", "HEAD", "HEAD", "--command", "'\(program)' child --peer ours --threads 2",
                "--workloads",
                "W1=1000,W11=200", "--threshold", "0.5",
            ])
            #expect([0, 1].contains(result.status), "\(result.errors)")
            #expect(result.output.contains("W1 n=1k") && result.output.contains("W11 n=200"))
            let unknown = try repository.program.run([
                "ab", "HEAD", "HEAD", "--command", "'\(program)' child --peer ours --threads 2",
                "--workloads", "W99",
            ])
            #expect(unknown.status == 64 && unknown.errors.contains("there are W1, W2, W3"))
        }
    }
}

/// A git repository in a separate folder, in which the program runs.
struct GitRepository {
    let program: Program

    static func inFolder(_ body: (GitRepository) throws -> Void) throws {
        try Program.inFolder { outer in
            let folder = outer.folder + "/a repository"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            let repository = GitRepository(program: Program(folder: folder))
            try repository.git("init", "--quiet", "--initial-branch=main")
            try repository.program.write(".benchmarks\noutput\nerrors\n*.json\n*.md\n", to: ".gitignore")
            try body(repository)
        }
    }

    func commit(_ files: [String: String], message: String = "A commit") throws {
        for (name, text) in files { try program.write(text, to: name) }
        try git("add", "--all")
        try git(
            "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "--allow-empty",
            "--message=\(message)")
    }

    @discardableResult func git(_ arguments: String...) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["git", "-C", program.folder] + arguments
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: "\(program.folder)/\(name)")
    }

    /// The processes that are still running in a folder of the repository.
    func processes() -> [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.filter { name in
            Int(name) != nil
                && (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(name)/cwd"))?
                    .hasPrefix(program.folder) == true
        }
    }
}
