import BenchmarkCore
import BenchmarkHarness
import BenchmarkReport
import Foundation
import Testing

@Suite struct CallgrindProfileTests {
    /// In callgrind's format: two functions of the program, one of which calls the other and allocates; the allocator,
    /// which locks its own mutex; and a recursion.
    private static let text = """
        version: 1
        positions: line
        events: Ir Ge
        summary: 1000 9

        ob=(1) /tmp/x/counted
        fl=(1) ???
        fn=(1) $s10Scheduling9SchedulerC6submityyF
        0 10 1
        +3 5
        cob=(2) /usr/lib/libjemalloc.so.2
        cfi=(1)
        cfn=(2) malloc
        calls=3 0
        0 600 4
        cfn=(3) csched_deque_push
        calls=2 0
        * 40 2
        0 1

        fn=(3)
        0 38 2
        fn=(4) csched_run'2
        0 4

        ob=(2)
        fn=(2)
        0 90
        cob=(3) /lib/libc.so.6
        cfn=(5) pthread_mutex_lock
        calls=7 0
        0 70 7

        ob=(3)
        fn=(5)
        0 70 7
        """

    @Test
    func `each function has its own costs, and calls are counted where they are not the allocator's own`()
        throws
    {
        var profile = CallgrindProfile()
        try profile.add(Self.text)
        func cost(_ object: String, _ name: String) -> [Int]? {
            profile.costs[CallgrindProfile.Function(object: object, name: name)].map {
                [$0.instructions, $0.atomics]
            }
        }
        #expect(cost("counted", "$s10Scheduling9SchedulerC6submityyF") == [16, 1])
        #expect(cost("counted", "csched_deque_push") == [38, 2])
        #expect(cost("counted", "csched_run") == [4, 0])
        #expect(cost("libjemalloc.so.2", "malloc") == [90, 0])
        #expect(cost("libc.so.6", "pthread_mutex_lock") == [70, 7])
        #expect(profile.calls == ["malloc": 3, "csched_deque_push": 2])
        try profile.add(Self.text)  // a loop in two parts
        #expect(cost("counted", "csched_deque_push") == [76, 4])
        #expect(profile.calls["malloc"] == 6)
    }

    @Test func `a loop becomes what one operation costs`() throws {
        var profile = CallgrindProfile()
        try profile.add(Self.text)
        let counts = OperationCounts(profile, n: 4, operations: 4)
        #expect(counts.instructions == [.layers: 4, .scheduler: 10.5, .allocation: 22.5, .system: 17.5])
        #expect([counts.allocations, counts.atomics, counts.mutexes] == [0.75, 2.5, 0])
        #expect(counts.allInstructions == 54.5)
        #expect(OperationCounts(figures: counts.figures) == counts)
    }

    @Test func `another file is refused`() {
        #expect(throws: BenchmarkError.self) {
            var profile = CallgrindProfile()
            try profile.add("events: Ir\nfn=(1) main\n0 5\n")
        }
    }

    @Test(
        arguments: [
            ("counted", "$s14BenchmarkPeers4MarkV3runyyF", .workload),
            ("counted", "$s19CompositeOperations12AnyOperationC4turnyyF", .layers),
            ("counted", "$s7NIOCore9EventLoopP", .system),
            ("counted", "$sSa6appendyyxnFs5Int32V_Tg5", .library),
            ("counted", "csched_worker_spawn", .scheduler),
            ("counted", "__swift_instantiateConcreteTypeFromMangledName", .runtime),
            ("liburcu-bp.so.8.0.0", "urcu_bp_read_lock", .scheduler),
            ("libjemalloc.so.2", "0x00000000000a95f0", .allocation),
            ("libswiftCore.so", "swift_allocObject", .allocation),
            ("libswiftCore.so", "swift_retain", .references),
            ("libswiftCore.so", "swift_beginAccess", .exclusivity),
            ("libswiftCore.so", "swift_getAssociatedTypeWitness", .runtime),
            ("libswift_Concurrency.so", "swift_task_switch", .tasks),
            ("libc.so.6", "memcpy", .system),
        ] as [(String, String, CountCategory)])
    func `a function belongs to a category`(object: String, name: String, category: CountCategory) {
        #expect(CountCategory(CallgrindProfile.Function(object: object, name: name)) == category)
    }
}

@Suite struct RecordedCountsTests {
    private let row: CountedRow
    private let counts = OperationCounts(
        n: 3_000, instructions: [.layers: 1_000, .references: 400, .allocation: 600], allocations: 2,
        retains: 6,
        releases: 9, atomics: 22, mutexes: 0)
    private var recorded = RecordedCounts()

    init() throws {
        let cascade = try #require(workloads.first { $0.id == "W6-cascade" })
        row = try #require(CountedRow(cascade, peer: "ours"))
        recorded.rows[row.name] = counts
    }

    private func changed(_ change: (inout OperationCounts) -> Void) -> OperationCounts {
        var changed = counts
        change(&changed)
        return changed
    }

    @Test func `counts within a hundredth pass`() {
        #expect(recorded.differences(counts, of: row).isEmpty)
        let near = changed {
            $0.instructions[.layers] = 1_019
            $0.atomics = 22.2
            $0.retains = 6.04
        }
        #expect(recorded.differences(near, of: row).isEmpty)
    }

    @Test func `an allocation, a retain, an atomic more or less is found`() {
        let found = recorded.differences(changed { $0.allocations = 3 }, of: row)
        #expect(found == ["W6-cascade ours: allocations 3 per operation, recorded 2 (+1, 50.0 %)."])
        #expect(recorded.differences(changed { $0.retains = 7 }, of: row).count == 1)
        #expect(recorded.differences(changed { $0.releases = 8 }, of: row).count == 1)
        #expect(recorded.differences(changed { $0.atomics = 23 }, of: row).count == 1)
        #expect(recorded.differences(changed { $0.mutexes = 1 }, of: row).count == 1)
    }

    @Test func `instructions that move between categories are found although the sum stays`() {
        let moved = changed {
            $0.instructions[.layers] = 900
            $0.instructions[.tasks] = 100
        }
        let found = recorded.differences(moved, of: row)
        #expect(found.count == 2)
        #expect(
            found[0].hasPrefix("W6-cascade ours: instructions of layers 900 per operation, recorded 1000"))
        #expect(found[1].hasPrefix("W6-cascade ours: instructions of tasks 100 per operation, recorded 0"))
    }

    @Test func `metadata lookups may differ, with all other counts the same`() throws {
        var record = RecordedCounts()
        record.rows[row.name] = changed { $0.instructions[.runtime] = 1_000 }
        #expect(record.differences(changed { $0.instructions[.runtime] = 1_150 }, of: row).isEmpty)
        #expect(record.differences(changed { $0.instructions[.runtime] = 1_200 }, of: row).count == 2)
        let other = changed {
            $0.instructions[.runtime] = 1_000
            $0.instructions[.layers] = 1_040
        }
        #expect(record.differences(other, of: row).count == 1)
    }

    @Test func `a row unrecorded, or recorded at another size, does not pass`() throws {
        #expect(RecordedCounts().differences(counts, of: row).count == 1)
        #expect(recorded.differences(changed { $0.n = 10 }, of: row).count == 1)
    }

    @Test func `recording adopts changes, but no noise`() {
        var record = recorded
        #expect(record.record(changed { $0.instructions[.layers] = 1_009 }, of: row).isEmpty)
        #expect(record.rows[row.name] == counts)
        let more = changed { $0.retains = 7 }
        #expect(record.record(more, of: row) == ["W6-cascade ours: retains 6 -> 7 (+1, 16.7 %)"])
        #expect(record.rows[row.name] == more)
    }

    @Test func `the file round-trips, with one figure per line`() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var record = recorded
        record.pendingBytes = ["W20-leaf": 201]
        try record.write(to: path)
        let read = try RecordedCounts(contentsOf: path)
        #expect(read.rows == record.rows)
        #expect(read.pendingBytes == record.pendingBytes)
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.contains("\"W6-cascade ours: releases\" : 9,\n    \"W6-cascade ours: retains\" : 6\n"))
    }

    /// Each row of ours is recorded at the size at which it is counted, or else the record is out of date.
    @Test func `the record in the repository holds every workload that is counted`() throws {
        let record = try RecordedCounts(contentsOf: RecordedCounts.path)
        let missing = workloads.compactMap { CountedRow($0, peer: "ours") }.filter {
            record.rows[$0.name]?.n != $0.n
        }
        #expect(missing.map(\.name) == [])
        #expect(
            workloads.allSatisfy {
                CountedRow($0, peer: "ours").map { row in row.workload.sizes.contain(row.n) } ?? true
            })
    }
}
