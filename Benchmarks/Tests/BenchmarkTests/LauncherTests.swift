import Foundation
import Testing

/// The launcher answers from files, without a release build. The files contain the output of the measuring program.
///
/// `RECORD_ANSWERS=1` in the environment rewrites them.
@Suite struct LauncherTests {
    static let commands = [
        "run", "list", "units", "merge", "ab", "compare", "counts", "trace", "report", "export", "slopes",
        "check",
    ]

    @Test(
        arguments: (hasTBB ? [(["list"], "list")] : []) + [(["--help"], "help")]
            + commands.map { (["help", $0], "help-\($0)") })
    func `the launcher answers as the program does`(arguments: [String], name: String) throws {
        try Program.inFolder { program in
            let result = try program.run(arguments)
            #expect(result.status == 0)
            let path = "\(Self.folder)/\(name).txt"
            if ProcessInfo.processInfo.environment["RECORD_ANSWERS"] != nil {
                try result.output.write(toFile: path, atomically: true, encoding: .utf8)
            }
            #expect(try String(contentsOfFile: path, encoding: .utf8) == result.output)
            #expect(!result.output.contains(" /"), "a path of this machine")
        }
    }

    @Test func `each command has an answer, and no answer is for a removed command`() throws {
        try Program.inFolder { program in
            let help = try program.run(["--help"]).output
            let shown = try #require(help.range(of: "SUBCOMMANDS:")).upperBound
            let commands = help[shown...].split(separator: "\n").prefix { $0.hasPrefix("  ") }.filter {
                !$0.hasPrefix("   ") && !$0.hasPrefix("  See ")
            }
            .compactMap { $0.split(separator: " ").first.map(String.init) }
            #expect(commands == Self.commands)
            let names = ["list", "help"] + Self.commands.map { "help-\($0)" }
            let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder)
            #expect(files.sorted() == names.map { "\($0).txt" }.sorted())
        }
    }

    /// Without oneTBB the launcher leaves the list to the program.
    static let hasTBB = FileManager.default.fileExists(atPath: "/usr/include/tbb/task_group.h")

    private static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().appendingPathComponent("../../Launcher/Answers").standardized.path
}
