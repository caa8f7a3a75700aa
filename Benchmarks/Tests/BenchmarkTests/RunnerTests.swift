import BenchmarkHarness
import Foundation
import Glibc
import Testing

/// The program as its user sees it: arguments in; a sentence, a status and files out.
@Suite struct RunnerTests {
    /// Bad input of every kind: status 64, one sentence that names it, and no file is touched.
    @Test(arguments: [
        (["run", "--filter", "W1,W99"], "There is no workload 'W99'"),
        (["run", "--peers", "gcd"], "There is no peer 'gcd'"),
        (["run", "--threads", "0"], "The number of threads must be from 1 to 256, not 0."),
        (["run", "--threads", "300"], "The number of threads must be from 1 to 256, not 300."),
        (["run", "--smoke", "--thorough"], "'--thorough' and '--smoke' exclude each other."),
        (["run", "--limit", "0"], "The limit must be more than 0 seconds"),
        (["run", "--sizes", "10,0"], "A size must be at least 1, not 0."),
        (["run", "--sizes", "10,many"], "'many' is no size."),
        (["run", "--seed", "x"], "The value 'x' is invalid for '--seed <seed>'"),
        (["compare", "none.json", "none.json"], "The file 'none.json' cannot be read."),
        (["report", "bad.json"], "The file 'bad.json' is not the JSON of a benchmark run."),
        (["check", "bad.json"], "The file 'bad.json' is not the JSON of a benchmark run."),
        (["measure"], "Unexpected argument 'measure'"),
    ]) func `bad input is named`(arguments: [String], sentence: String) throws {
        try Program.inFolder { program in
            try program.write("not JSON", to: "bad.json")
            try program.write("an earlier run", to: ".benchmarks/latest.json")
            try program.write("an earlier page", to: ".benchmarks/report.html")
            let result = try program.run(arguments)
            #expect(result.status == 64)
            #expect(result.errors.contains(sentence))
            #expect(program.read(".benchmarks/latest.json") == "an earlier run")
            #expect(program.read(".benchmarks/report.html") == "an earlier page")
        }
    }

    @Test func `a wrong result ends the run, and is no figure`() throws {
        try Program.inFolder { program in
            let result = try program.run(["run", "--smoke", "--filter", "W1", "--peers", "wrong"])
            #expect(result.status == 2)
            #expect(result.errors.contains("The peer 'wrong' computed "))
            #expect(program.read(".benchmarks/latest.json") == nil)
        }
    }

    @Test func `a run in which ours was not measured is none, and the last one stays`() throws {
        try Program.inFolder { program in
            try program.write("an earlier run", to: ".benchmarks/latest.json")
            // W19 waits for seconds at this size, whatever the machine.
            let result = try program.run([
                "run", "--smoke", "--filter", "W1,W19-task", "--peers", "serial", "--limit", "0.5",
                "--sizes", "300",
            ])
            #expect(result.status == 1)
            #expect(result.errors.contains("Ours was not measured in all workloads"))
            #expect(result.errors.contains("W19-task with n = 300: predicted to take 3 s a sample."))
            #expect(!result.output.contains("A/A"))
            #expect(program.read(".benchmarks/latest.json") == "an earlier run")
            let failed = try RunDocument(contentsOf: program.folder + "/.benchmarks/failed.json")
            #expect(try #require(failed.series("W1", n: 300, peer: "ours")).values.count == 1)
        }
    }

    @Test func `a peer that hangs is killed and shown, and the run goes on`() throws {
        try Program.inFolder { program in
            let result = try program.run([
                "run", "--smoke", "--filter", "W1", "--peers", "serial,hang", "--limit", "0.5",
            ])
            #expect(result.status == 0)
            #expect(result.output.contains("stopped"))
            let run = try program.document()
            #expect(
                try #require(run.series("W1", n: 1_000, peer: "hang")).stopped == "killed after 1.0 seconds")
            #expect(try #require(run.series("W1", n: 1_000, peer: "serial")).values.count == 1)
            #expect(try #require(run.series("W1", n: 1_000, peer: "ours")).values.count == 1)
        }
    }

    @Test func `an interrupt leaves a valid part of the run`() throws {
        try Program.inFolder { program in
            let running = try program.start(["run", "--thorough", "--filter", "W1", "--peers", "serial"])
            running.waitForChildren()
            running.interrupt()
            let result = running.wait()
            #expect(result.status == 0)
            #expect(result.output.contains("The run was ended early"))
            #expect(try program.document().isPartial)
            #expect(program.read(".benchmarks/report.html")?.contains("<svg") == true)
        }
    }

    @Test func `a run can be drawn again, compared and checked`() throws {
        try Program.inFolder { program in
            let first = try program.run([
                "run", "--smoke", "--filter", "W1,W9", "--peers", "serial", "--seed", "7",
            ])
            #expect(first.status == 0)
            #expect(try program.document().seed == 7)
            let page = try #require(program.read(".benchmarks/report.html"))
            try program.write("", to: ".benchmarks/report.html")
            #expect(try program.run(["report", ".benchmarks/latest.json"]).status == 0)
            #expect(program.read(".benchmarks/report.html") == page)
            let same = try program.run(["compare", ".benchmarks/latest.json", ".benchmarks/latest.json"])
            #expect(same.status == 0 && same.output.contains("W9"))
            let present = try program.run(["check", "--present"])
            #expect(present.status == 0 && present.output.contains("All gates hold."))
            let whole = try program.run(["check"])
            #expect(whole.status == 1 && !whole.output.contains("All gates hold."))
            #expect(whole.output.contains("MISSING W5 with dispatch was not measured."))
            #expect(whole.output.contains("MISSING W27-set with ours was not measured."))
            #expect(!whole.output.contains("MISSING W1 "))
        }
    }

    @Test
    func
        `the list names the file of each peer, and says what is written by hand and why something is missing`()
        throws
    {
        try Program.inFolder { program in
            let list = try program.run(["list"]).output
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
                "../../..")
            let sources = list.split(separator: "\n").filter { $0.contains("\t") && $0.hasSuffix(".swift") }
                .compactMap { $0.split(separator: " ").last }
            #expect(sources.count >= 17)
            for source in sources {
                #expect(FileManager.default.fileExists(atPath: root.appendingPathComponent("\(source)").path))
            }
            #expect(list.contains("    W16-last, W16-half: do and catch"))
            #expect(
                list.contains(
                    "n/a W21-execute, W21-undo, W21-redo, W21-now, W21-memory: Foundation has no UndoManager")
            )
        }
    }

    @Test func `what is written by hand stands in a table of its own, and the page says what it leaves out`()
        throws
    {
        try Program.inFolder { program in
            let run = try program.run([
                "run", "--smoke", "--filter", "W1,W16-last,W23-open", "--peers", "serial,closures,flag",
            ])
            #expect(run.status == 0)
            let heads = run.output.split(separator: "\n").filter { $0.hasPrefix("workload") }
            #expect(heads.map { $0.contains(" serial") } == [true, false])
            #expect(heads.map { $0.contains(" closures") && $0.contains(" flag") } == [false, true])
            let page = try #require(program.read(".benchmarks/report.html"))
            #expect(page.contains("<strong>closures</strong>: do and catch"))
            #expect(page.contains("No events, no snapshot"))
            #expect(page.contains("<a href=\"../Benchmarks/Peers/ByHand/ClosuresPeer.swift\">closures</a>"))
            #expect(program.read(".benchmarks/forest.svg")?.contains("closures") == false)
            #expect(program.read(".benchmarks/forest-libraries.svg")?.contains("closures") == true)
        }
    }

    @Test func `what is left of a cancelled or pending tree is counted, and nothing is`() throws {
        try Program.inFolder { program in
            let run = try program.run([
                "run", "--smoke", "--filter", "W14,W20-queued,W21-memory", "--peers", "ours", "--sizes",
                "10000",
            ])
            #expect(run.status == 0)
            let document = try program.document()
            for workload in ["W14-0", "W14-1", "W14-50", "W20-queued", "W21-memory"] {
                let counts = try #require(document.series(workload, n: 10_000, peer: "ours")).counts
                #expect(counts["bytes_left"] == 0)
                if workload.hasPrefix("W14-") { #expect(counts["ran_after_cancel"] == 0) }
            }
            let check = try program.run(["check", "--counts", "--present"])
            #expect(check.output.contains("All gates hold."))
        }
    }

    @Test func `what a server needs is measured with those who have it, and its slopes are shown`() throws {
        try Program.inFolder { program in
            let run = try program.run([
                "run", "--smoke", "--filter", "W19-task,W24,W26,W27-cancel", "--peers",
                "taskgroup,operationqueue", "--sizes", "100,200",
            ])
            #expect(run.status == 0)
            let document = try program.document()
            #expect(try #require(document.build["commit"]).prefix(while: \.isHexDigit).count == 40)
            #expect(document.machine["governor"] != nil && document.machine["quota"] != nil)
            let allocator = try #require(document.build["allocator"])
            #expect(allocator.hasPrefix("jemalloc 5."))
            #expect(allocator.hasSuffix(", lg_extent_max_active_fit 64, oversize_threshold 0"))
            for workload in ["W19-task", "W24-group", "W24-actor-main", "W26", "W27-cancel"] {
                for peer in ["ours", "taskgroup"] {
                    #expect(try #require(document.series(workload, n: 200, peer: peer)).values.count == 1)
                }
            }
            #expect(document.series("W19-task", n: 200, peer: "operationqueue") != nil)
            #expect(document.series("W27-cancel", n: 200, peer: "operationqueue") == nil)
            let slopes = try program.run(["slopes"])
            #expect(slopes.status == 0)
            let lines = slopes.output.split(separator: "\n")
            #expect(lines.count { $0.hasPrefix("W24-") } == 2 * 12)
            #expect(lines.contains { $0.hasPrefix("W27-cancel\ttaskgroup\t") })
        }
    }

    /// A transaction of 100 keys allocates 107 times; what 40 of them need once, a model of 1,000 keys, 2,000 more.
    @Test func `allocations are counted while the clock runs, and not before`() throws {
        try Program.inFolder { program in
            let result = try program.run(["run", "--smoke", "--filter", "W22-commit", "--peers", "ours"])
            #expect(result.status == 0)
            let series = try #require(try program.document().series("W22-commit", n: 100, peer: "ours"))
            let allocations = try #require(series.counts["allocations_per_op"])
            #expect((106..<109).contains(allocations))
        }
    }

    @Test func `bad input to the counts is named`() throws {
        try Program.inFolder { program in
            try program.write("{}", to: "bad.json")
            for (arguments, sentence) in [
                (["--filter", "W99"], "No operations of 'W99' are counted"),
                (["--jobs", "0"], "The number of jobs must be at least 1, not 0."),
                (["--file", "none.json"], "The recorded counts 'none.json' cannot be read"),
                (["--file", "bad.json"], "The file 'bad.json' holds no recorded counts"),
            ] {
                let result = try program.run(["counts"] + arguments)
                #expect(result.status == 64)
                #expect(result.errors.contains(sentence))
            }
        }
    }

    #if DEBUG
        @Test func `a debug build refuses to measure`() throws {
            try Program.inFolder { program in
                let result = try program.run(["run", "--smoke"], allowDebug: false)
                #expect(result.status == 64)
                #expect(result.errors.contains("This is a debug build, whose numbers mean nothing"))
            }
        }
    #endif
}

/// The built program, in a folder of its own.
private struct Program {
    let folder: String

    static func inFolder(_ body: (Program) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(Program(folder: folder.path))
    }

    func write(_ text: String, to name: String) throws {
        let url = URL(fileURLWithPath: folder + "/" + name)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: url, atomically: true, encoding: .utf8)
    }

    func read(_ name: String) -> String? { try? String(contentsOfFile: folder + "/" + name, encoding: .utf8) }

    func document() throws -> RunDocument {
        try RunDocument(contentsOf: folder + "/.benchmarks/latest.json")
    }

    func run(_ arguments: [String], allowDebug: Bool = true) throws -> Result {
        try start(arguments, allowDebug: allowDebug).wait()
    }

    func start(_ arguments: [String], allowDebug: Bool = true) throws -> Running {
        var arguments = arguments
        #if DEBUG
            if arguments.first == "run", allowDebug { arguments.append("--allow-debug") }
        #endif
        let process = Process()
        // Beside the program of the tests, because these depend on it.
        process.executableURL = try #require(Bundle.main.executableURL).deletingLastPathComponent()
            .appendingPathComponent("bench-runner")
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        // Files and not pipes: a pipe that nobody reads meanwhile would block the program.
        for name in ["output", "errors"] { try write("", to: name) }
        process.standardOutput = FileHandle(forWritingAtPath: folder + "/output")
        process.standardError = FileHandle(forWritingAtPath: folder + "/errors")
        try process.run()
        return Running(process: process, program: self)
    }

    struct Result {
        let status: Int32
        let output: String
        let errors: String
    }
}

private struct Running {
    let process: Process
    let program: Program

    func wait() -> Program.Result {
        process.waitUntilExit()
        return Program.Result(
            status: process.terminationStatus, output: program.read("output") ?? "",
            errors: program.read("errors") ?? "")
    }

    /// Returns when the program has started the processes of its peers.
    func waitForChildren() {
        let children = "/proc/\(process.processIdentifier)/task/\(process.processIdentifier)/children"
        while (try? String(contentsOfFile: children, encoding: .utf8))?.contains(" ") != true {
            sched_yield()
        }
    }

    func interrupt() { kill(process.processIdentifier, SIGINT) }
}
