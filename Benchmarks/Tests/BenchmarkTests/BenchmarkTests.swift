import BenchmarkCore
import BenchmarkHarness
import BenchmarkReport
import Foundation
import Testing

@Suite struct EstimateTests {
    /// All 2^n ways in which values can lie below or above the median, enumerated.
    @Test(arguments: 1...12) func `the coverage matches counting every case`(count: Int) {
        for rank in 0..<(count + 1) / 2 {
            let outside = (0..<(1 << count)).count { below in
                below.nonzeroBitCount <= rank || count - below.nonzeroBitCount <= rank
            }
            let expected = max(0, 1 - Double(outside) / Double(1 << count))
            #expect(abs(Estimate.coverage(count: count, rank: rank) - expected) < 1e-12)
        }
    }

    @Test func `the interval is the narrowest that covers 95 percent`() throws {
        let six = try #require(Estimate([3, 1, 2, 6, 5, 4]))
        #expect(six.median == 3.5 && six.low == 1 && six.high == 6 && six.coverage > 0.95)
        let fifteen = try #require(Estimate((1...15).map(Double.init)))
        #expect(fifteen.median == 8 && fifteen.low == 4 && fifteen.high == 12 && fifteen.coverage > 0.95)
        #expect(Estimate([]) == nil)
    }
}

@Suite struct RunDocumentTests {
    private func document() -> RunDocument {
        RunDocument(date: "2026-01-01T00:00:00Z", seed: 7, build: [:], machine: [:], peers: [])
    }

    private func inFolder(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.path)
    }

    @Test func `documents are read back`() throws {
        try inFolder { folder in
            try document().write(to: folder + "/run.json")
            let read = try RunDocument(contentsOf: folder + "/run.json")
            #expect(read.seed == 7 && read.schema == RunDocument.currentSchema && read.isPartial)
        }
    }

    @Test func `a file that cannot be read is named`() throws {
        try inFolder { folder in
            #expect(throws: BenchmarkError("The file '\(folder)/none.json' cannot be read.")) {
                try RunDocument(contentsOf: folder + "/none.json")
            }
            try "not JSON".write(toFile: folder + "/bad.json", atomically: true, encoding: .utf8)
            #expect(
                throws: BenchmarkError("The file '\(folder)/bad.json' is not the JSON of a benchmark run.")
            ) {
                try RunDocument(contentsOf: folder + "/bad.json")
            }
            try #"{"schema": 2}"#.write(toFile: folder + "/new.json", atomically: true, encoding: .utf8)
            #expect(
                throws: BenchmarkError(
                    "The file '\(folder)/new.json' has schema 2; this program reads schema 1.")
            ) { try RunDocument(contentsOf: folder + "/new.json") }
        }
    }

    @Test func `a ratio pairs values of the same restart and round`() throws {
        var run = document()
        for (peer, factor) in [("ours", 1.0), ("dispatch", 3.0)] {
            // The machine slows down tenfold during the run: paired ratios are not affected.
            let restarts = (0..<6).map { restart in
                RunDocument.Restart(rounds: (1...3).map { factor * Double($0) * pow(10, Double(restart)) })
            }
            run.results.append(
                RunDocument.Series(
                    workload: "W1", params: ["n": 10], peer: peer, unit: "ns/op", restarts: restarts,
                    counts: [:],
                    checksum: 0, stopped: nil))
        }
        let ratio = try #require(run.ratio("W1", n: 10, peer: "dispatch"))
        #expect(abs(ratio.median - 3) < 1e-9 && abs(ratio.low - 3) < 1e-9 && abs(ratio.high - 3) < 1e-9)
        #expect(try Page(run).render().contains("<svg"))
    }
}
