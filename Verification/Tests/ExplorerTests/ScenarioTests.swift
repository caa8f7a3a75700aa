// Tests of the `explore` command, run as a user runs it, and of the core's scenarios within small bounds.
// .ci/explore.sh runs larger ones.

import Foundation
import Testing

/// The program next to the tests. It is a separate process because it contains a second copy of the core, built for
/// the explorer.
private func explore(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
        path: "explore")
    try #require(
        FileManager.default.isExecutableFile(atPath: program.path),
        "build it by: swift build --package-path Verification --product explore")
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: output, as: UTF8.self))
}

@Suite struct ScenarioTests {
    @Test(arguments: [
        "call", "deque", "inbox", "registry", "completion", "capacity", "idle", "parking", "life", "lane",
        "join",
    ])
    func `the core holds under the first schedules of every scenario`(part: String) throws {
        let result = try explore([
            "run", part, "--bound", "1", "--limit", "20", "--random", "5", "--jobs", "1",
        ])
        #expect(result.status == 0, "\(result.output)")
        #expect(result.output.contains(" 0 violations"))
    }

    @Test func `there are 25 scenarios at least`() throws {
        let result = try explore(["list"])
        #expect(result.output.split(separator: "\n").count >= 25)
    }

    @Test func `the litmus tests are as expected`() throws {
        let result = try explore(["litmus"])
        #expect(result.status == 0)
        let verdict = result.output.firstMatch(of: /litmus: (\d+) of (\d+) as expected/)
        let (held, all) = (verdict.flatMap { Int($0.1) }, verdict.flatMap { Int($0.2) })
        #expect(held == all && all ?? 0 >= 18, "\(result.output)")
    }

    @Test func `a replayed schedule prints its steps`() throws {
        let result = try explore(["replay", "deque-last", "t1@3"])
        #expect(result.status == 0)
        #expect(result.output.contains("deque.c:"))
        #expect(result.output.contains("deque-last, "))
    }

    @Test(arguments: [
        (["run", "nothing"], "no program's name begins with 'nothing'"),
        (["run", "--bound", "many"], "--bound needs a number up to 100, and 'many' is none"),
        (["run", "--no-such"], "'--no-such' is no option"),
        (["replay", "deque-last", "x9"], "'x9' is no schedule"),
        (["replay", "deque", "-"], "there is no program 'deque'"),
        (["replay", "capacity-full", "f1@2"], "does not claim that it goes on without a thread"),
        (["dance"], "'dance' is no command"),
    ])
    func `bad input is named`(arguments: [String], sentence: String) throws {
        let result = try explore(arguments)
        #expect(result.status == 64)
        #expect(result.output.contains(sentence), "\(result.output)")
    }
}
