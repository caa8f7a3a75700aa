import BenchmarkHarness
import BenchmarkReport
import Foundation
import Testing

/// Parts of one run: those of one host form one run; those of many hosts yield the medians over the
/// hosts.
@Suite struct MergeTests {
    private let options = PlanOptions(filter: ["W1", "W5"], threads: 2, seed: 1, depth: .quick)

    /// A part in which `peer` takes `ratio` times as long as ours, and ours-again `again` times.
    private func part(
        host: String = "a", units: [String] = ["W1/0"], ratio: Double = 2, again: Double = 1,
        time: Double = 10,
        seed: UInt64 = 1, commit: String = "c"
    ) throws -> RunDocument {
        var options = options
        options.seed = seed
        var document = RunDocument(
            date: "2026-01-01T00:00:00Z", seed: seed, options: options,
            build: ["commit": commit, "compiler": "6"],
            machine: ["host": host, "processor": "p", "cpus": "2"], peers: [])
        document.isPartial = false
        document.peers = ["ours", "dispatch"].map {
            RunDocument.PeerDescription(name: $0, version: "1", allocator: "jemalloc", threads: 2)
        }
        for unit in units {
            let parts = unit.split(separator: "/")
            let restart = try #require(Int(parts[1]))
            document.units =
                (document.units ?? []) + [
                    RunDocument.Measured(
                        unit: RunUnit(workload: String(parts[0]), restart: restart), seconds: 1)
                ]
            for (peer, factor) in [("ours", 1), ("dispatch", ratio), (Coordinator.again, again)] {
                let empty = (0..<restart).map { _ in RunDocument.Restart(rounds: []) }
                document.results.append(
                    RunDocument.Series(
                        workload: String(parts[0]), params: ["n": 10], peer: peer, unit: "ns/op",
                        restarts: empty + [RunDocument.Restart(rounds: [time * factor])],
                        counts: ["cpu_ns_per_op": time * factor], checksum: 7, stopped: nil))
            }
        }
        return document
    }

    @Test func `parts of one host are one run`() throws {
        let parts = try [part(units: ["W1/0", "W5/0"]), part(units: ["W1/1"], time: 20, seed: 2)]
        let merge = try Merge(parts.enumerated().map { (name: "\($0)", document: $1) })
        let whole = try #require(merge.hosts.first)
        #expect(merge.hosts.count == 1 && merge.remarks == [])
        #expect(whole.units?.map(\.unit.description) == ["W1/0", "W5/0", "W1/1"])
        let ours = try #require(whole.series("W1", n: 10, peer: "ours"))
        #expect(ours.restarts.map(\.rounds) == [[10], [20]])
        #expect(ours.counts["cpu_ns_per_op"] == 15 && ours.checksum == 7)
        #expect(whole.ratio("W1", n: 10, peer: "dispatch")?.median == 2)
        let units = whole.units.map { $0.map(\.unit) } ?? []
        #expect(merge.lacking(of: units) == [])
        let more = units + [RunUnit(workload: "W5", restart: 1)]
        #expect(merge.lacking(of: more) == ["a lacks 1 of 4 units: W5/1."])
    }

    @Test func `the units of a thread sweep are merged separately`() throws {
        var swept = try part(units: ["W1/0", "W1/1"])
        swept.units = [
            RunDocument.Measured(unit: RunUnit(workload: "W1", restart: 1, threads: 8), seconds: 1)
        ]
        swept.threadSweep = swept.results.suffix(3).map { series in
            var series = series
            series.params["threads"] = 8
            return series
        }
        swept.results = []
        let merge = try Merge([("a", part()), ("b", swept)])
        let whole = try #require(merge.hosts.first)
        #expect(whole.units?.map(\.unit.description) == ["W1/0", "W1/1@8"])
        #expect(whole.series("W1", n: 10, peer: "ours")?.restarts.map(\.rounds) == [[10]])
        #expect(whole.threadSweep?.map(\.peer) == ["ours", "dispatch", Coordinator.again])
        #expect(whole.threadSweep?.first?.restarts.map(\.rounds) == [[], [10]])
    }

    @Test func `duplicate units count once`() throws {
        let parts = try [part(units: ["W1/0"]), part(units: ["W1/0", "W1/1"], time: 50)]
        let merge = try Merge(parts.enumerated().map { (name: "\($0).json", document: $1) })
        let ours = try #require(merge.hosts.first?.series("W1", n: 10, peer: "ours"))
        #expect(ours.restarts.map(\.rounds) == [[10], [50]])
        #expect(merge.remarks == ["W1/0 of '1.json' was already measured; the first values are kept."])
    }

    @Test func `each of many hosts gives its ratio; one unlike itself is left out`() throws {
        let parts = try [
            part(host: "a", ratio: 2, time: 10), part(host: "b", ratio: 3, time: 1_000),
            part(host: "c", ratio: 4, time: 0.1), part(host: "d", ratio: 90, again: 1.5),
        ]
        let merge = try Merge(parts.enumerated().map { (name: "\($0)", document: $1) })
        let ratio = merge.ratio("W1", n: 10, peer: "dispatch")
        let figure = try #require(ratio.figure)
        #expect(abs(figure.median - 3) < 1e-9 && abs(figure.low - 2) < 1e-9 && abs(figure.high - 4) < 1e-9)
        #expect(ratio.leftOut == ["d"])
        let text = merge.render()
        #expect(text.contains("Medians over 4 hosts: a, b, c, d."))
        #expect(text.contains("3.00×") && text.contains("2.00 to 4.00"))
        let copy = try JSONDecoder().decode(Merge.self, from: JSONEncoder().encode(merge))
        #expect(copy.ratio("W1", n: 10, peer: "dispatch").figure == ratio.figure)
    }

    @Test func `a part of another run is refused, and named`() throws {
        let first = try part()
        #expect {
            try Merge([("a.json", first), ("b.json", part(units: ["W1/1"], commit: "d"))])
        } throws: {
            "\($0)".hasPrefix("'b.json' is from another run than 'a.json'")
        }
        #expect(throws: BenchmarkError("There is nothing to merge.")) { try Merge([]) }
    }

    @Test func `units measured apart make the same run as one process`() throws {
        try Program.inFolder { program in
            let options = ["--smoke", "--filter", "W1,W3", "--peers", "serial", "--seed", "7"]
            let names = try program.run(["units"] + options).output
            #expect(names == "W1/0\nW3/0\n")
            let json = try program.run(["units", "--json"] + options).output
            #expect(json.contains("\"unit\" : \"W3/0\""))
            for unit in ["W1/0", "W3/0"] {
                let file = unit.replacing("/", with: "-") + ".json"
                let part = try program.run(["run", unit, "--json", file, "--html", "\(file).html"] + options)
                #expect(part.status == 0)
            }
            let half = try program.run(["merge", "W1-0.json"])
            #expect(half.status == 1 && half.errors.contains("lacks 1 of 2 units: W3/0."))
            #expect(try program.run(["merge", "W1-0.json", "--partial"]).status == 0)
            let merged = try program.run(["merge", "W1-0.json", "W3-0.json", "--json", "whole.json"])
            #expect(merged.status == 0)
            #expect(try program.run(["run", "--name", "whole"] + options).status == 0)
            let (whole, single) = try (
                RunDocument(contentsOf: program.folder + "/whole.json"), program.document()
            )
            #expect(!whole.isPartial && whole.units?.map(\.unit) == single.units?.map(\.unit))
            func shape(_ run: RunDocument) -> Set<String> {
                Set(run.results.map { "\($0.workload) \($0.n) \($0.peer) \($0.checksum) \($0.values.count)" })
            }
            #expect(shape(whole) == shape(single))
            let unknown = try program.run(["run", "W1/9"] + options)
            #expect(unknown.status == 64 && unknown.errors.contains("no unit 'W1/9'"))
        }
    }
}
