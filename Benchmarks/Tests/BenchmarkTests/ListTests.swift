import BenchmarkHarness
import Foundation
import Glibc
import Testing

@Suite struct ListTests {
    @Test func `the list fits a screen, and names each family once`() throws {
        try Program.inFolder { program in
            let list = try program.run(["list"])
            #expect(list.status == 0)
            let lines = list.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            #expect((40...60).contains(lines.count))
            #expect(lines.allSatisfy { $0.count <= 100 && !$0.hasSuffix(" ") })
            let families = lines.prefix { !$0.hasPrefix("Peers") }.dropFirst().map {
                $0.split(separator: " ")[0]
            }
            let expected = try Self.catalogue(program).workloads.map { $0.id.prefix { $0 != "-" } }
            #expect(Set(families) == Set(expected) && families.count == Set(expected).count)
            #expect(families.starts(with: ["W0", "W1", "W2", "W3", "W4"]))
        }
    }

    @Test func `one workload or peer is shown in full`() throws {
        try Program.inFolder { program in
            let family = try program.run(["list", "W8"]).output
            for id in ["W8 ", "W8-levels ", "W8-declared "] {
                #expect(family.contains("\n\(id)") || family.hasPrefix(id))
            }
            #expect(family.contains("    operationqueue Operations with dependencies, added together."))
            #expect(family.contains("    closures       n/a: It schedules nothing."))
            let peer = try program.run(["list", "undomanager"]).output
            #expect(peer.contains("Benchmarks/Peers/ByHand/UndoManagerPeer.swift"))
            #expect(
                peer.contains(
                    "n/a W21-execute, W21-undo, W21-redo, W21-now, W21-memory: Foundation has no UndoManager")
            )
            #expect((family + peer).split(separator: "\n").allSatisfy { $0.count <= 100 })
        }
    }

    @Test func `the machine-readable list names each peer's file, and a reason for each missing one`()
        throws
    {
        try Program.inFolder { program in
            let list = try Self.catalogue(program)
            let ids = Set(list.workloads.map(\.id))
            #expect(ids.count == list.workloads.count && ids.count >= 76)
            for workload in list.workloads {
                let texts = [
                    workload.title, workload.sentence, workload.unit, workload.metric, workload.subject,
                ]
                #expect(texts.allSatisfy { !$0.isEmpty && !$0.contains("\n") })
                let sizes = workload.sizes
                #expect(
                    [sizes.quick, sizes.smoke, sizes.thorough].allSatisfy { !$0.isEmpty && $0 == $0.sorted() }
                )
            }
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../..")
            #expect(list.peers.count >= 17 && !list.peers.contains { $0.name == "wrong" })
            for peer in list.peers {
                #expect(FileManager.default.fileExists(atPath: root.appendingPathComponent(peer.source).path))
                #expect(ids.isSuperset(of: Set(peer.forms.keys).union(peer.notApplicable.keys)))
                #expect(
                    peer.notApplicable.values.allSatisfy {
                        (10...140).contains($0.count) && $0.hasSuffix(".")
                    })
            }
            let closures = try #require(list.peers.first { $0.name == "closures" })
            #expect(try #require(closures.forms["W16-last"]).hasPrefix("do and catch"))
        }
    }

    /// The rows of operations that take time, of graphs and of real work: every peer that the list does not excuse
    /// runs them, with a correct result, which the run checks.
    @Test func `each unexcused peer runs a row`() throws {
        try Program.inFolder { program in
            let run = try program.run(["run", "--smoke", "--filter", Self.rows.joined(separator: ",")])
            #expect(run.status == 0)
            let document = try program.document()
            let list = try Self.catalogue(program)
            let ids = list.workloads.map(\.id).filter { id in
                Self.rows.contains { id == $0 || id.hasPrefix("\($0)-") }
            }
            #expect(ids.count == 11)
            for peer in list.peers where peer.missing == nil {
                for id in ids {
                    let results = document.results.filter { $0.workload == id && $0.peer == peer.name }
                    if peer.notApplicable[id] != nil {
                        #expect(results.isEmpty, "\(peer.name) in \(id)")
                    } else {
                        #expect(!results.isEmpty, "\(peer.name) in \(id)")
                        #expect(
                            results.allSatisfy { $0.values.count == 1 && $0.stopped == nil },
                            "\(peer.name) in \(id)")
                    }
                }
            }
            // No folder of R3 is left by a process that has ended; the folder of a live process may belong to another
            // run.
            let temporary = FileManager.default.temporaryDirectory.path
            for name in try FileManager.default.contentsOfDirectory(atPath: temporary)
            where name.hasPrefix("operation-benchmarks-") {
                let pid = try #require(Int32(name.split(separator: "-")[2]))
                #expect(kill(pid, 0) == 0, "\(name)")
            }
            #expect(document.effectiveGrain("ours", efficiency: 0.5) != nil)
            // A ratio of times: load that is present during only one of them shifts it, so there are three attempts.
            func efficiencies(_ document: RunDocument) throws -> [Double] {
                try [1_000, 10_000].map { n in try #require(document.efficiency("W17", n: n, peer: "serial"))
                }
            }
            var measured = try efficiencies(document)
            for _ in 0..<2 where measured.contains(where: { $0 >= 1.5 }) {
                _ = try program.run(["run", "--smoke", "--filter", "W17"])
                measured = try efficiencies(try program.document())
            }
            #expect(measured.allSatisfy { $0 > 0 && $0 < 1.5 })
        }
    }

    private static let rows = ["W4", "W8", "W17", "W18", "W25", "R1", "R2", "R3"]

    private static func catalogue(_ program: Program) throws -> Catalogue {
        let text = try program.run(["list", "--json"]).output
        return try JSONDecoder().decode(Catalogue.self, from: Data(text.utf8))
    }

    private struct Catalogue: Decodable {
        let workloads: [Entry]
        let peers: [PeerEntry]

        struct Entry: Decodable {
            let id, title, sentence, unit, metric, subject: String
            let sizes: Sizes
        }

        struct Sizes: Decodable {
            let allowed: String
            let quick, smoke, thorough: [Int]
        }

        struct PeerEntry: Decodable {
            let name, version, source: String
            let missing: String?
            let forms, notApplicable: [String: String]
        }
    }
}
