import BenchmarkCore
import BenchmarkHarness
import BenchmarkReport
import Foundation
import Testing

/// The statements on the page and in the terminal, their order, and how certain they are.
@Suite struct ReportTests {
    private let whole = SyntheticRun().document()

    // MARK: The mean of a peer

    /// By peer and row, one value for each restart.
    private func run(_ rows: [String: [String: [Double]]]) -> RunDocument {
        let names = Set(rows.values.flatMap(\.keys)).subtracting(["ours-again"]).sorted()
        var document = RunDocument(
            date: "2026-01-01T00:00:00Z", seed: 7, build: [:], machine: [:],
            peers: names.map { RunDocument.PeerDescription(name: $0, version: "", allocator: "", threads: 2) }
        )
        for (workload, peers) in rows {
            for (peer, values) in peers {
                document.results.append(
                    RunDocument.Series(
                        workload: workload, params: ["n": 1_000], peer: peer, unit: "ns/op",
                        restarts: values.map { RunDocument.Restart(rounds: [$0]) }, counts: [:], checksum: 0,
                        stopped: nil))
            }
        }
        document.isPartial = false
        return document
    }

    private let even = [Double](repeating: 100, count: 6)
    private func times(_ factors: Double...) -> [Double] { factors.map { 100 * $0 } }

    /// The line of a peer under the title of a subject.
    private func line(of peer: String, _ document: RunDocument) -> String? {
        TerminalReport(document).render().split(separator: "\n").first { $0.hasPrefix("  \(peer) ") }
            .map { $0.split(separator: " ").dropLast().joined(separator: " ") }
    }

    @Test func `the mean is geometric by restart, and its interval that of the restarts`() {
        // Means of the restarts: 2, 2, 2, 2, 4, 8, from a row of twice and a row of half that value.
        let one = times(4, 4, 4, 4, 8, 16)
        let other = times(1, 1, 1, 1, 2, 4)
        let document = run(["W1": ["ours": even, "dispatch": one], "W3": ["ours": even, "dispatch": other]])
        #expect(line(of: "dispatch", document)?.hasPrefix("dispatch 2.00× [2.00, 8.00] 2 rows") == true)
        #expect(
            TerminalReport(document).render().contains("Ours is faster than every peer in 1 of 2 workloads"))
    }

    @Test func `a row where ours differs from itself is in no mean, and noted`() throws {
        let document = run([
            "W1": ["ours": even, "ours-again": even, "dispatch": times(2, 2, 2, 2, 2, 2)],
            "W3": ["ours": even, "ours-again": times(2, 2, 2, 2, 2, 2), "dispatch": times(8, 8, 8, 8, 8, 8)],
            "W9": ["ours": even, "dispatch": times(8, 8, 8, 8, 8, 8)],
        ])
        #expect(line(of: "dispatch", document)?.hasPrefix("dispatch 2.00× [2.00, 2.00] 1 row ") == true)
        let page = try Page(document).render()
        #expect(
            page.contains(
                "Not in the means: W9: not compared with itself; W3: ours differs from itself (A/A)."))
        #expect(page.contains("Ahead of dispatch on average: it takes 2.00× our time."))
    }

    @Test func `a row with missing restarts is in no mean if it has fewer than an interval needs`() {
        let document = run([
            "W1": ["ours": even, "dispatch": times(2, 2, 2, 2, 2, 2)],
            "W3": ["ours": even, "dispatch": times(8, 8)],
        ])
        #expect(line(of: "dispatch", document)?.hasPrefix("dispatch 2.00× [2.00, 2.00] 1 row ") == true)
    }

    @Test func `bytes of pending work are no time, and in no mean`() {
        let document = run([
            "W1": ["ours": even, "dispatch": times(2, 2, 2, 2, 2, 2)],
            "W20": ["ours": even, "dispatch": times(8, 8, 8, 8, 8, 8)],
        ])
        #expect(line(of: "dispatch", document)?.hasPrefix("dispatch 2.00× [2.00, 2.00] 1 row ") == true)
    }

    @Test(arguments: [
        ([2.0, 3, 4], "Ahead of all 3 peers on average: they take from 2.00× (a) to 4.00× (c) our time."),
        (
            [0.5, 0.25, 0.1],
            "Behind all 3 peers on average: they take from 0.10× (c) to 0.50× (a) our time."
        ),
        ([0.5, 2, 4], "Ahead of 2 of 3 peers on average; behind a (0.50×)."),
    ]) func `a subject's sentence names the peers ahead and behind`(
        factors: [Double], sentence: String
    )
        throws
    {
        var peers = ["ours": even]
        for (name, factor) in zip(["a", "b", "c"], factors) { peers[name] = even.map { $0 * factor } }
        #expect(try Page(run(["W1": peers])).render().contains(sentence))
    }

    @Test func `a peer whose interval holds 1 is level`() throws {
        let document = run([
            "W1": ["ours": even, "a": times(2, 0.5, 2, 0.5, 2, 0.5), "b": even.map { $0 * 2 }]
        ])
        #expect(try Page(document).render().contains("Ahead of 1 of 2 peers on average; level with a."))
    }

    // MARK: Certainty

    @Test func `a run of a single restart names no peer ahead or behind`() throws {
        var document = SyntheticRun(restarts: 1, rounds: 1).document()
        document.results.removeAll { !["ns/op", "us"].contains($0.unit) }  // bytes are the same each time
        let page = try Page(document).render()
        #expect(page.contains("Ours is faster than every peer in 0 of "))
        #expect(page.contains("The run is too short to say who is ahead: it needs 5 restarts."))
        #expect(
            page.contains("Restarts: 1; an interval needs 5, so there is no verdict yet.")
        )
        #expect(page.contains("Unknown: no workload has a verdict."))
        #expect(TerminalReport(document).render().contains("not sure"))
        document.isPartial = true  // a terminal shows one warning: this one
        #expect(TerminalReport(document).render().contains(Page.endedEarly))
    }

    @Test(arguments: [
        ([0.44, 0.5, 0.7, 0.85, 0.9, 0.96], true), ([1.05, 1.2, 1.25, 1.3, 1.4, 1.5], true),
        ([1.12, 1.2, 1.25, 1.3, 1.4, 1.5], false), ([0.6, 0.7, 0.75, 0.8, 0.85, 0.89], false),
    ])
    func `ours differs from itself where the whole interval exceeds a tenth`(
        ratios: [Double], isWithin: Bool
    ) throws {
        #expect(Summary.isWithinBand(try #require(Estimate(ratios))) == isWithin)
    }

    @Test func `a row of few restarts casts no doubt on others`() throws {
        var document = SyntheticRun().document()
        for index in document.results.indices where document.results[index].workload == "W3" {
            document.results[index].restarts.removeLast(document.results[index].restarts.count - 2)
        }
        let page = try Page(document).render()
        #expect(page.contains("too few restarts for an interval"))
        #expect(!page.contains("no verdict yet"))
    }

    @Test func `a loss is named with its peer, amount, interval and number of restarts`()
        throws
    {
        let document = run([
            "W1": [
                "ours": even, "dispatch": times(0.5, 0.4, 0.5, 0.5, 0.6, 0.5), "nio": even.map { $0 * 2 },
            ],
            "W3": ["ours": even, "dispatch": times(0.5, 0.5, 0.5, 0.5, 0.5, 2)],
            "W23-open": ["ours": even, "flag": even.map { $0 / 100 }],
        ])
        let page = try Page(document).render()
        let losses = try #require(page.components(separatedBy: "<h2 id=\"losses\">").last)
            .components(separatedBy: "<h2 ")[0]
        #expect(losses.contains("<strong>Scheduler</strong>: 1 of 2 workloads"))
        #expect(losses.contains("<strong>Libraries</strong>: 1 of 1 workloads"))
        #expect(losses.contains("dispatch <strong>0.50×</strong>"))
        #expect(losses.contains("[0.40, 0.60], 6 of 6"))
        #expect(losses.contains("href=\"#W1\"") && !losses.contains("#W3\"") && !losses.contains("nio"))
        #expect(page.contains("id=\"W1\""))
        let text = TerminalReport(document).render()
        #expect(text.contains("What we lose  2 of 3 workloads"))
        #expect(text.contains("  W1 Submit from outside             dispatch 0.50× [0.40, 0.60]"))
    }

    // MARK: The terminal report

    @Test(arguments: DrawingTests.runs.indices) func `the terminal gets at most 60 lines of 100 columns`(
        run: Int
    ) {
        let lines = TerminalReport(DrawingTests.runs[run].document).render().split(
            separator: "\n", omittingEmptySubsequences: false)
        // The program adds an empty line, and two that name its files; the last of these follows the last newline.
        #expect(lines.count - 1 + 3 <= 60)
        #expect(lines.filter { $0.count > 100 } == [])
    }

    @Test func `the terminal follows the page's order`() throws {
        let text = TerminalReport(SyntheticRun(absent: ["tbb"]).document()).render()
        let order = [
            "Ours is faster than every peer in ", "Scheduler", "Operations", "Libraries", "Workloads",
            "What we lose",
            "A/A: ours against ours is NOT 1", "Missing: tbb: It was built where it is not installed.",
            "Cut or stopped: W6 with n = 10k, operationqueue: predicted to take 41 s a sample.",
        ]
        var rest = text[...]
        for words in order { rest = rest[try #require(rest.range(of: words), "\(words)").upperBound...] }
        #expect(!text.contains("allocated_bytes_per_op"))
        #expect(FullReport(whole).render().contains("allocated_bytes_per_op"))
    }

    // MARK: The self-contained page

    @Test func `the page has no script, no companion file, and no dead link`() throws {
        var document = whole
        for repository in [nil, "https://example.org/owner/name"] {
            document.build["repository"] = repository
            let page = try Page(document).render()
            #expect(!page.contains("<script") && !page.contains(" src=") && !page.contains("url("))
            let links = page.components(separatedBy: "href=\"").dropFirst().map { $0.prefix { $0 != "\"" } }
            #expect(links.count > 10)
            for link in links where link.hasPrefix("#") {
                #expect(page.contains("id=\"\(link.dropFirst())\""))
            }
            let outside = Set(links.filter { !$0.hasPrefix("#") })
            if repository == nil {
                #expect(outside.isEmpty)
            } else {
                let commit = "0123456789abcdef0123456789abcdef01234567"
                #expect(
                    outside.contains(
                        "https://example.org/owner/name/blob/\(commit)/Benchmarks/Peers/dispatch.swift"))
                #expect(outside.allSatisfy { $0.hasPrefix("https://example.org/owner/name/blob/") })
            }
        }
    }

    @Test func `the page shows machine and build, gaps and reasons`() throws {
        let page = try Page(SyntheticRun(absent: ["tbb"]).document()).render()
        for fact in [
            "Synthetic CPU @ 2.00GHz", "6.1.0", "0.3 % of the CPU time during the run", "max 100000",
            "0123456789abcdef0123456789abcdef01234567, with changes", "jemalloc 5.3.0", "<td>seed</td>",
            "tbb: It was built where it is not installed.",
            "W6 with n = 10k, operationqueue: predicted to take 41 s",
            "Not in the means: W22-readers: ours differs from itself (A/A).",
        ] {
            #expect(page.contains(fact), "\(fact)")
        }
        #expect(page.contains("<div class=\"wide\"><svg ") && page.contains("<div class=\"narrow\"><svg "))
    }

    @Test func `sections appear if the run has data for them`() throws {
        let all = try Page(whole).render()
        let ids = [
            "answer", "losses", "all", "how", "machine", "floor", "costs", "sizes", "latency", "order",
            "cards",
        ]
        var rest = all[...]
        for id in ids { rest = rest[try #require(rest.range(of: " id=\"\(id)\""), "\(id)").upperBound...] }
        #expect(!all.contains("id=\"grain\""))
        let grains = try #require(DrawingTests.runs.first { $0.name == "grains" }).document
        #expect(try Page(grains).render().contains("<th>METG(50 %)</th>"))
        let nothing = try Page(try #require(DrawingTests.runs.first { $0.name == "nothing" }).document)
            .render()
        for id in ["floor", "costs", "sizes", "latency", "order"] {
            #expect(!nothing.contains("id=\"\(id)\""))
        }
    }

    /// A file written before peers reported why they are missing.
    @Test func `the file of an earlier run is drawn`() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try """
        {"schema":1,"date":"2026-01-01T00:00:00Z","seed":7,"isPartial":false,"build":{},"machine":{},"peers":[
        {"name":"ours","version":"","allocator":"jemalloc","threads":2},
        {"name":"dispatch","version":"","allocator":"jemalloc","threads":2}],
        "results":[{"workload":"W1","params":{"n":10},"peer":"ours","unit":"ns/op","restarts":[{"rounds":[1,2]}],
        "counts":{},"checksum":1,"stopped":null}],"controls":{"idleSwitchesPerSecond":{},"warnings":["Mind this."]}}
        """.write(to: file, atomically: true, encoding: .utf8)
        let document = try RunDocument(contentsOf: file.path)
        let page = try Page(document).render()
        #expect(page.contains("W1") && page.contains("<p class=\"warning\">Mind this.</p>"))
        #expect(page.contains("No workload of this run applies to dispatch."))
    }

    #if !DEBUG
        @Test func `a whole run is drawn in less than a second of this thread`() throws {
            func now_s() -> Double {
                var time = timespec()
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
                return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
            }
            let began_s = now_s()
            _ = try Page(whole).render()
            #expect(now_s() - began_s < 1)
        }
    #endif
}
