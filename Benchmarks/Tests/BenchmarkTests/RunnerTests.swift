import BenchmarkHarness
import Foundation
import Testing

/// The program as its user sees it: arguments in; a sentence, an exit status and files out.
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
        (["run", "--sizes", "10,many"], "'many' is not a size."),
        (["run", "--sweep-threads", "1,all"], "'all' is not a number of threads."),
        (["run", "--seed", "x"], "The value 'x' is invalid for '--seed <seed>'"),
        (["compare", "none.json", "none.json"], "The file 'none.json' cannot be read."),
        (["report", "bad.json"], "The file 'bad.json' is not the JSON of a benchmark run."),
        (["check", "bad.json"], "The file 'bad.json' is not the JSON of a benchmark run."),
        (["list", "W99"], "There is no workload and no peer 'W99'"),
        (["list", "W8", "--json"], "'--json' lists everything, and takes no names."),
        (["measure"], "There is no command and no unit 'measure'"),
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

    @Test func `a run without ours is discarded, and the last one stays`() throws {
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
            let file = try #require(program.files("runs").first { $0.hasSuffix("-failed.json") })
            let failed = try RunDocument(contentsOf: program.folder + "/.benchmarks/runs/" + file)
            #expect(try #require(failed.series("W1", n: 300, peer: "ours")).values.count == 1)
        }
    }

    @Test func `a peer missing from the build is one line at the end, no error`() throws {
        try Program.inFolder { program in
            let result = try program.run(["run", "--smoke", "--filter", "W1,W3", "--peers", "serial,absent"])
            #expect(result.status == 0)
            #expect(result.output.components(separatedBy: "The control 'absent' is in no build").count == 2)
            #expect(!(result.output + result.errors).contains("rror:"))
            let run = try program.document()
            #expect(run.peers.map(\.name) == ["ours", "serial"])
            #expect(!run.results.contains { $0.peer == "absent" })
            // Other warnings, about a busy machine, do not matter here.
            #expect(!run.controls.warnings.contains { $0.contains("absent") })
        }
    }

    @Test func `a peer that hangs is killed and shown, and the run goes on`() throws {
        try Program.inFolder { program in
            let result = try program.run([
                "run", "--smoke", "--filter", "W1", "--peers", "serial,hang", "--limit", "0.5",
            ])
            #expect(result.status == 0)
            #expect(result.output.contains("W1 with n = 1k, hang: killed after 1.0 seconds."))
            let run = try program.document()
            #expect(
                try #require(run.series("W1", n: 1_000, peer: "hang")).stopped == "killed after 1.0 seconds")
            #expect(try #require(run.series("W1", n: 1_000, peer: "serial")).values.count == 1)
            #expect(try #require(run.series("W1", n: 1_000, peer: "ours")).values.count == 1)
        }
    }

    @Test func `an interrupt keeps the measured units, and the run can be resumed to its end`() throws {
        try Program.inFolder { program in
            // With this seed, ours is measured before the peer in the round in which the peer stalls.
            let running = try program.start([
                "run", "--smoke", "--filter", "W1,W3", "--peers", "stall", "--limit", "600", "--seed", "2",
            ])
            running.wait(forError: "stalled")
            running.interrupt()
            let result = running.wait()
            #expect(result.status == 130)
            #expect(result.errors.contains("'swift run benchmarks run --resume' continues."))
            #expect(result.output.contains("The run was ended early"))
            let part = try program.document()
            #expect(part.isPartial && part.units?.map(\.unit.description) == ["W1/0"])
            #expect(part.series("W1", n: 1_000, peer: "ours")?.values.count == 1)
            #expect(part.results.allSatisfy { $0.workload == "W1" || $0.values.isEmpty })
            #expect(program.read(".benchmarks/report.html")?.contains("<svg") == true)

            #expect(try program.run(["run", "--resume", "--filter", "W1"]).status == 64)
            #expect(try program.run(["run", "--resume", "--name", "other"]).status == 64)
            #expect(try program.run(["run", "--resume"]).status == 0)
            let whole = try program.document()
            #expect(!whole.isPartial && whole.units?.map(\.unit.description) == ["W1/0", "W3/0"])
            #expect(whole.series("W3", n: 1_000, peer: "ours")?.values.count == 1)
            #expect(
                whole.series("W1", n: 1_000, peer: "ours")?.values
                    == part.series("W1", n: 1_000, peer: "ours")?.values)
        }
    }

    @Test func `an interrupted run resumes with missing units, and keeps the rest`() throws {
        try Program.inFolder { program in
            let options = ["--smoke", "--filter", "W1,W3,W10", "--peers", "serial", "--seed", "7"]
            #expect(try program.run(["run", "--name", "whole"] + options).status == 0)
            var part = try program.document()
            #expect(part.units?.map(\.unit.workload) == ["W1", "W3", "W10"])
            part.isPartial = true
            part.units?.removeLast()
            part.results.removeAll { $0.workload == "W10" }
            try part.write(to: program.folder + "/.benchmarks/runs/part.json")
            #expect(try program.run(["run", "--resume", "--name", "part"]).status == 0)
            let resumed = try program.document()
            #expect(!resumed.isPartial && resumed.seed == 7)
            #expect(resumed.units?.map(\.unit.workload) == ["W1", "W3", "W10"])
            #expect(try #require(resumed.series("W10", n: 1_000, peer: "ours")).values.count == 1)
            #expect(
                resumed.series("W3", n: 1_000, peer: "ours")?.values
                    == part.series("W3", n: 1_000, peer: "ours")?.values)
            let again = try program.run(["run", "--resume", "--name", "part"])
            #expect(again.status == 64 && again.errors.contains("was not interrupted"))
            part.build["commit"] = "another"
            try part.write(to: program.folder + "/.benchmarks/runs/other.json")
            let other = try program.run(["run", "--resume", "--name", "other"])
            #expect(other.status == 64 && other.errors.contains("began with another commit ('another'"))
        }
    }

    @Test func `a thread sweep is stored next to the run, for peers with a settable thread count`() throws {
        try Program.inFolder { program in
            let run = try program.run([
                "run", "--smoke", "--filter", "W1,W15-suspend", "--peers", "pthread,dispatch", "--threads",
                "2",
                "--sweep-threads", "1,2,3",
            ])
            #expect(run.status == 0)
            let document = try program.document()
            let sweep = try #require(document.threadSweep)
            let names = sweep.map { "\($0.workload) \($0.peer) \($0.threads ?? 0) \($0.values.count)" }
            #expect(Set(names) == ["W1 ours 1 1", "W1 pthread 1 1", "W1 ours 3 1", "W1 pthread 3 1"])
            #expect(names.count == 4 && document.results.allSatisfy { $0.threads == nil })
            #expect(try #require(document.series("W1", n: 1_000, peer: "dispatch")).values.count == 1)
            #expect(program.read(".benchmarks/report.html")?.contains("<h2 id=\"threads\">") == true)
            #expect(document.units?.map(\.unit.description) == ["W1/0", "W15-suspend/0", "W1/0@1", "W1/0@3"])
        }
    }

    @Test func `each run has files of its own, and links lead to the last`() throws {
        try Program.inFolder { program in
            try program.write("from before there were links", to: ".benchmarks/latest.json")
            let options = ["--smoke", "--filter", "W1", "--peers", "serial"]
            for name in ["first", "second"] {
                #expect(try program.run(["run", "--name", name] + options).status == 0)
                let latest = try #require(program.read(".benchmarks/latest.json"))
                #expect(latest == program.read(".benchmarks/runs/\(name).json"))
                #expect(
                    program.read(".benchmarks/report.html") == program.read(".benchmarks/runs/\(name).html"))
            }
            #expect(program.read(".benchmarks/runs/first.json") != program.read(".benchmarks/latest.json"))
            // A redrawn page replaces the link, not the link's target.
            let second = program.read(".benchmarks/runs/second.html")
            #expect(try program.run(["report", ".benchmarks/runs/first.json"]).status == 0)
            #expect(program.read(".benchmarks/report.html") == program.read(".benchmarks/runs/first.html"))
            #expect(program.read(".benchmarks/runs/second.html") == second)
            #expect(try program.run(["report", "--all"]).output.contains("\nW1 "))
            #expect(program.read(".benchmarks/report.html") == second)
            let before = try #require(program.files("runs").first { $0.hasPrefix("until-") })
            #expect(program.read(".benchmarks/runs/" + before) == "from before there were links")
            let taken = try program.run(["run", "--name", "first"] + options)
            #expect(taken.status == 64 && taken.errors.contains("There is already a run 'first'"))
            for name in ["../x", "", ".hidden", "a b"] {
                let result = try program.run(["run", "--name", name] + options)
                #expect(result.status == 64 && result.errors.contains("'\(name)' is not a name for a run"))
            }
            #expect(try program.run(["run"] + options).status == 0)
            // Two files of each run, the files from before, and the redrawn page.
            #expect(program.files("runs").count == 3 * 2 + 1 + 1)
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
            #expect(same.status == 1 && same.output.contains("W9"))
            #expect(same.output.contains("With so few restarts nothing can be shown"))
            for (format, sign) in [
                ("csv", "W9,10,serial,1,1,"), ("jmh", "\"W9.ours\""), ("github-action-benchmark", "W9 n=10"),
            ] {
                let file = ".benchmarks/latest.json"
                let export = try program.run(["export", file, "--format", format, "--output", "exported"])
                #expect(export.status == 0 && program.read("exported")?.contains(sign) == true)
            }
            let present = try program.run(["check", "--present"])
            #expect(present.status == 0 && present.output.contains("All gates hold."))
            let whole = try program.run(["check"])
            #expect(whole.status == 1 && !whole.output.contains("All gates hold."))
            #expect(whole.output.contains("MISSING W5 with dispatch was not measured."))
            #expect(whole.output.contains("MISSING W27-set with ours was not measured."))
            #expect(!whole.output.contains("MISSING W1 "))
        }
    }

    @Test func `handwritten loops have a separate table, and the page says what it omits`()
        throws
    {
        try Program.inFolder { program in
            let run = try program.run([
                "run", "--smoke", "--filter", "W1,W16-last,W23-open", "--peers", "serial,closures,flag",
            ])
            #expect(run.status == 0)
            let table = try program.run(["report", "--all", ".benchmarks/latest.json"])
            let heads = table.output.split(separator: "\n").filter { $0.hasPrefix("workload") }
            #expect(heads.map { $0.contains(" serial") } == [true, false])
            #expect(heads.map { $0.contains(" closures") && $0.contains(" flag") } == [false, true])
            let page = try #require(program.read(".benchmarks/report.html"))
            #expect(page.contains("<strong>closures</strong>: do and catch"))
            #expect(page.contains("No events, no snapshot"))
            #expect(!page.contains("href=\"../"))
            #expect(program.read(".benchmarks/forest-scheduler.svg")?.contains("closures") == false)
            #expect(program.read(".benchmarks/headline.svg")?.contains("Libraries") == true)
            #expect(program.read(".benchmarks/forest-libraries.svg")?.contains("closures") == true)
        }
    }

    @Test func `leftovers of a cancelled or pending tree are counted, and are none`() throws {
        try Program.inFolder { program in
            let run = try program.run([
                "run", "--smoke", "--filter", "W14,W20,W21-memory", "--peers", "ours", "--sizes",
                "10000",
            ])
            #expect(run.status == 0)
            let document = try program.document()
            for workload in ["W14-0", "W14-1", "W14-50", "W20", "W20-queued", "W21-memory"] {
                let counts = try #require(document.series(workload, n: 10_000, peer: "ours")).counts
                #expect(counts["bytes_left"] == 0)
                if workload.hasPrefix("W14-") { #expect(counts["ran_after_cancel"] == 0) }
            }
            let check = try program.run(["check", "--counts", "--present"])
            #expect(check.output.contains("All gates hold."))
        }
    }

    @Test func `server needs are measured on peers that have them, with their slopes`() throws {
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

    /// The 40 transactions of 100 keys together make room for the old values of 1,000 keys, and for their log: about 25
    /// allocations each. The model of 1,000 keys needs 1,000 allocations and more, before the clock starts.
    @Test func `allocations are counted only while the clock runs`() throws {
        try Program.inFolder { program in
            let result = try program.run(["run", "--smoke", "--filter", "W22-commit", "--peers", "ours"])
            #expect(result.status == 0)
            let series = try #require(try program.document().series("W22-commit", n: 100, peer: "ours"))
            let allocations = try #require(series.counts["allocations_per_op"])
            #expect((25..<26).contains(allocations))
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
