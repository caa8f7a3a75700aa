public import BenchmarkCore
import Foundation
import Glibc
import Subprocess

/// Counts what the operations of rows execute: each row in its own process, under valgrind's callgrind.
///
/// A process has one worker, and callgrind runs one thread at a time, so counts are nearly the same each time. The costs
/// of a loop are known exactly, from `measured_loop_began` until `measured_loop_ended`, so nothing has to be subtracted.
/// (The difference between two sizes would also exclude fixed costs, but has the noise of two measurements.) An extra
/// search for work or an extra wake-up adds to the count, so samples are repeated until the three lowest agree, and the
/// lowest one is the result.
public struct CountingRun: Sendable {
    /// The name of the copy of the program that is counted.
    package static let programName = "counted"

    /// How many of the lowest samples must agree.
    private static let agreeing = 3
    /// How far apart they may be, as a fraction of the row's tolerance.
    private static let agreement = 0.2
    /// The most samples of a row.
    private static let mostSamples = 9
    /// Samples that only trigger lazy loading: symbols, metadata, the allocator's caches.
    private static let warmUps = 2
    private static let limit: Duration = .seconds(300)

    private let folder: URL

    /// Prepares the program that is counted.
    ///
    /// - Parameter program: the program that serves a peer when it is run with `child`.
    /// - Throws: ``BenchmarkError`` when a tool is missing.
    public init(program: String) async throws {
        for tool in ["valgrind", "strip"] where !Self.isInstalled(tool) {
            throw BenchmarkError(
                "'\(tool)' is not installed; './bootstrap --ci' installs it.", kind: .notMeasured)
        }
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("counts-\(getpid())")
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            // Valgrind cannot read the compiler's debug information, and does not need it: the symbols stay.
            let stripped = try await Subprocess.run(
                .name("strip"),
                arguments: [
                    "-g", "-o", copy, URL(fileURLWithPath: program).resolvingSymlinksInPath().path,
                ], output: .discarded)
            guard stripped.terminationStatus.isSuccess else { throw CocoaError(.fileWriteUnknown) }
        } catch {
            remove()
            throw BenchmarkError(
                "The program cannot be copied to '\(folder.path)': \(error)", kind: .notMeasured)
        }
    }

    /// Removes the files that ``init(program:)`` created.
    public func remove() { try? FileManager.default.removeItem(at: folder) }

    private var copy: String { folder.appendingPathComponent(Self.programName).path }

    private static func isInstalled(_ tool: String) -> Bool {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
            access("\($0)/\(tool)", X_OK) == 0
        }
    }

    /// The versions of everything that the counts depend on, except the program: the compiler with its runtime, the
    /// allocator, the C library, and the tool.
    public static func tools() async -> [String: String] {
        let build = await Machine.build()
        return [
            "allocator": build["allocator"] ?? "unknown", "compiler": build["compiler"] ?? "unknown",
            "libc": await firstLine(of: "getconf", "GNU_LIBC_VERSION") ?? "unknown",
            "valgrind": await firstLine(of: "valgrind", "--version") ?? "unknown",
        ]
    }

    /// Counts a row. Rows can be counted side by side.
    ///
    /// - Throws: ``BenchmarkError`` when the process ended, or computed a wrong result.
    public func counts(of row: CountedRow) async throws -> OperationCounts {
        let dumps = try Dumps(in: folder, of: row)
        defer { dumps.remove() }
        let child = try await start(row, dumps)
        let counts: OperationCounts
        do {
            counts = try await self.counts(of: row, child, dumps)
        } catch {
            await child.end()
            throw error
        }
        await child.end()
        return counts
    }

    private func counts(of row: CountedRow, _ child: ChildProcess, _ dumps: Dumps) async throws
        -> OperationCounts
    {
        var least: [(profile: CallgrindProfile, total: Int, operations: Int)] = []
        for turn in 0..<Self.warmUps + Self.mostSamples {
            let sample = try await ask(child, row)
            let profile = try dumps.read()
            if turn < Self.warmUps { continue }
            let total = profile.costs.values.reduce(0) { $0 + $1.instructions }
            least = Array(
                (least + [(profile, total, sample.operations)]).sorted { $0.total < $1.total }
                    .prefix(Self.agreeing))
            if least.count == Self.agreeing,
                Double(least.last!.total) <= Double(least[0].total) * (1 + Self.agreement * row.band.share)
            {
                break
            }
        }
        return OperationCounts(least[0].profile, n: row.n, operations: least[0].operations)
    }

    private func start(_ row: CountedRow, _ dumps: Dumps) async throws -> ChildProcess {
        let theirs = ProcessInfo.processInfo.environment["MALLOC_CONF"].map { $0 + "," } ?? ""
        return try await ChildProcess(
            program: "/usr/bin/env",
            arguments: [
                "valgrind", "--tool=callgrind", "--quiet", "--vgdb=no", "--collect-bus=yes",
                "--zero-before=measured_loop_began", "--dump-before=measured_loop_ended",
                "--callgrind-out-file=\(dumps.prefix)", copy, "child", "--peer", row.peer, "--threads", "1",
                "--fair-by-count",
            ],
            environment: [
                "LD_BIND_NOW": "1", "SWIFT_DETERMINISTIC_HASHING": "1",
                // By default jemalloc returns pages to the kernel at times that depend on the clock.
                "MALLOC_CONF": theirs + "dirty_decay_ms:-1,muzzy_decay_ms:-1",
            ])
    }

    private func ask(_ child: ChildProcess, _ row: CountedRow) async throws -> Sample {
        let request = Request(workload: row.workload.id, n: row.n)
        switch await child.ask(request, limit: Self.limit) {
        case .timedOut:
            throw BenchmarkError(
                "\(row.name) took longer than \(Self.limit) under callgrind.", kind: .notMeasured)
        case .died:
            throw BenchmarkError("The process of \(row.name) ended under callgrind.", kind: .notMeasured)
        case .answered(let response):
            guard let sample = response.sample else {
                throw BenchmarkError("\(row.name): \(response.error ?? "no answer")", kind: .notMeasured)
            }
            let expected = row.workload.expectedChecksum(row.n)
            guard sample.checksum == expected else {
                throw BenchmarkError(
                    "\(row.name) computed \(sample.checksum) with n = \(row.n); the right result is \(expected).",
                    kind: .wrongResult)
            }
            return sample
        }
    }
}

/// The files that callgrind writes for one process, one for each end of a loop.
private final class Dumps {
    private let folder: URL
    private let row: CountedRow
    private var count = 0

    init(in parent: URL, of row: CountedRow) throws {
        self.row = row
        folder = parent.appendingPathComponent(row.name.replacingOccurrences(of: " ", with: "-"))
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        } catch {
            throw BenchmarkError(
                "The folder '\(folder.path)' cannot be created: \(error)", kind: .notMeasured)
        }
    }

    var prefix: String { folder.appendingPathComponent("profile").path }

    /// Returns the sum of the profiles written since the last call.
    func read() throws -> CallgrindProfile {
        var profile = CallgrindProfile()
        let first = count
        while let text = try? String(contentsOfFile: "\(prefix).\(count + 1)", encoding: .utf8) {
            try profile.add(text)
            count += 1
        }
        if count == first {
            throw BenchmarkError(
                "\(row.workload.id) does not mark where its loop begins and ends: see startClock().",
                kind: .notMeasured)
        }
        return profile
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }
}
