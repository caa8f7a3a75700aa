import ArgumentParser
import BenchmarkCore
import BenchmarkHarness
import BenchmarkPeers
import BenchmarkReport
import Foundation

/// Counts what the operations of ours execute, and compares the counts with the record.
struct Counts: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Count instructions, allocations and retains of ours, and compare them with the recorded ones.",
        discussion: """
            Counts are the same on every machine, whatever else runs there. Rows run under valgrind's callgrind, with one \
            worker. Exit 1 if a count is off by more than its row allows.
            """)

    @Option(help: "Workload identifiers, separated by commas, W14 for all W14-...; default: all.")
    var filter: String?

    @Flag(help: "Only the rows that cover the code of all others; takes a minute.")
    var hotPaths = false

    @Flag(help: "Write the counts into the record, and print what changed.")
    var record = false

    @Option(help: "The record; default: Benchmarks/counts.json of this package.")
    var file: String?

    @Option(help: "How many rows to count at a time; default: the number of CPUs.")
    var jobs: Int?

    func run() async throws {
        let file = file ?? RecordedCounts.path
        if Machine.isDebug {
            throw BenchmarkError(
                "This is a debug build, whose counts mean nothing; use 'swift run benchmarks counts'.")
        }
        let jobs = jobs ?? ProcessInfo.processInfo.activeProcessorCount
        guard jobs >= 1 else { throw BenchmarkError("The number of jobs must be at least 1, not \(jobs).") }
        let rows = try chosen()
        var recorded =
            record && !FileManager.default.fileExists(atPath: file)
            ? RecordedCounts() : try RecordedCounts(contentsOf: file)
        let counted = try await cancelledByInterrupt { try await Self.count(rows, jobs: jobs) }
        print(CountTable(counted).render(), terminator: "")
        let tools = await CountingRun.tools()
        if record { return try write(counted, tools, into: &recorded, file) }
        for (tool, version) in recorded.tools.sorted(by: <) where tools[tool] != version {
            print(
                "Recorded with \(version), counted with \(tools[tool] ?? "none"): counts may differ for that reason."
            )
        }
        for (reason, rows) in Dictionary(grouping: rows, by: \.band.reason).sorted(by: {
            $0.key ?? "" < $1.key ?? ""
        }) {
            guard let reason else { continue }
            let names = rows.map(\.name).joined(separator: ", ")
            print("Within \(Int((100 * rows[0].band.share).rounded())) %, not 1 %: \(names). \(reason)")
        }
        let failures = try await Self.failures(of: counted, recorded, jobs: jobs)
        for failure in failures { print("FAILED \(failure)") }
        if !failures.isEmpty {
            print(
                "If that is intended: 'swift run benchmarks counts --record', and commit Benchmarks/counts.json."
            )
            throw ExitCode(1)
        }
        print("All \(counted.count) rows are as recorded.")
    }

    /// A sentence for each figure that differs from the record, in the process that came closest to it. A worker may
    /// find its work awake, or asleep, for the whole life of a process, so a row that differs is counted again in other
    /// processes.
    private static func failures(
        of counted: [(row: CountedRow, counts: OperationCounts)], _ recorded: RecordedCounts, jobs: Int
    ) async throws -> [String] {
        var failures: [String: [String]] = [:]
        for (row, counts) in counted { failures[row.name] = recorded.differences(counts, of: row) }
        for process in 1..<processesWhereThreadsShare {
            let off = counted.map(\.row).filter { row in
                failures[row.name]?.isEmpty == false
                    && (process < processesElsewhere || row.band.reason != nil)
            }
            if off.isEmpty { break }
            print("Counted again, each in another process: \(off.map(\.name).joined(separator: ", ")).")
            for (row, counts) in try await cancelledByInterrupt({ try await count(off, jobs: jobs) }) {
                let again = recorded.differences(counts, of: row)
                if again.count < failures[row.name, default: []].count { failures[row.name] = again }
            }
        }
        return counted.flatMap { failures[$0.row.name, default: []] }
    }

    private static let processesElsewhere = 3
    /// The number of processes for rows in which threads share the work. On a busy machine a worker is mostly ahead of
    /// the submitting thread, and searches in vain more often.
    private static let processesWhereThreadsShare = 10

    private func write(
        _ counted: [(row: CountedRow, counts: OperationCounts)], _ tools: [String: String],
        into recorded: inout RecordedCounts, _ file: String
    ) throws {
        var changes: [String] = []
        for (row, counts) in counted { changes += recorded.record(counts, of: row) }
        recorded.tools = tools
        try recorded.write(to: file)
        for change in changes { print(change) }
        print(changes.isEmpty ? "Nothing changed." : "Recorded in \(file).")
    }

    private func chosen() throws -> [CountedRow] {
        let ours = peerTypes.filter { $0.name == "ours" || $0.name.hasPrefix("ours-") }
        let all = Workload.countedRows(peers: ours.map { $0.name }) { workload, name in
            ours.contains { $0.name == name && $0.notApplicable(workload) == nil }
        }
        let names = filter.map(namesByComma)
        func belongs(_ row: CountedRow, _ name: String) -> Bool {
            row.workload.id == name || row.workload.id.hasPrefix("\(name)-")
        }
        for name in names ?? [] where !all.contains(where: { belongs($0, name) }) {
            throw BenchmarkError(
                "No operations of '\(name)' are counted; those of \(Set(all.map(\.workload.id)).sorted().joined(separator: ", ")) are."
            )
        }
        return all.filter { row in
            (names?.contains { belongs(row, $0) } ?? true) && (!hotPaths || row.isHotPath)
        }
    }

    /// Results are in the order of the rows.
    private static func count(_ rows: [CountedRow], jobs: Int) async throws -> [(
        row: CountedRow, counts: OperationCounts
    )] {
        let run = try await CountingRun(program: "/proc/self/exe")
        defer { run.remove() }
        return try await withThrowingTaskGroup(of: (Int, OperationCounts).self) { group in
            var begun = 0
            func begin() {
                guard begun < rows.count else { return }
                let index = begun
                begun += 1
                group.addTask { (index, try await run.counts(of: rows[index])) }
            }
            for _ in 0..<jobs { begin() }
            var counts: [Int: OperationCounts] = [:]
            while let (index, counted) = try await group.next() {
                counts[index] = counted
                writeToStandardError("counted \(counts.count) of \(rows.count): \(rows[index].name)\n")
                begin()
            }
            return rows.indices.compactMap { index in counts[index].map { (rows[index], $0) } }
        }
    }
}
