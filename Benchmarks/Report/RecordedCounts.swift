public import BenchmarkCore
public import BenchmarkHarness
import Foundation

/// The counts of each row of ours, as of the last intended change: the file `Benchmarks/counts.json`.
public struct RecordedCounts: Sendable {
    /// The tools that the counts depend on: the compiler, the allocator, the counting tool. With other tools the counts
    /// differ.
    public var tools: [String: String] = [:]
    /// The counts by the name of the row, "W3 ours".
    public var rows: [String: OperationCounts] = [:]
    /// Live bytes of each pending operation, including those of its closures, by workload, at ``sizeOfBytes``: measured by
    /// a run, recorded by hand.
    public var pendingBytes: [String: Double] = [:]

    /// How far a run may exceed the record, since it has many workers, any size, and no repetition.
    static let toleranceOfRuns = 1.05

    /// The least size at which one-time allocations of a run are negligible.
    static let leastSize = 1_000

    /// The size at which the bytes were recorded: storage that grows by doubling is filled differently at another size.
    static let sizeOfBytes = 10_000

    /// Creates a record without rows.
    public init() {}

    /// The path of the file in the repository that this program was built in.
    public static let path = (0..<2).reduce(URL(fileURLWithPath: #filePath)) { path, _ in
        path.deletingLastPathComponent()
    }.appendingPathComponent("counts.json").path

    /// Reads a file.
    ///
    /// - Throws: ``BenchmarkError`` when there is none, or it has other contents.
    public init(contentsOf path: String) throws {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw BenchmarkError(
                "The recorded counts '\(path)' cannot be read; 'swift run benchmarks counts --record' creates them."
            )
        }
        do {
            let content = try JSONDecoder().decode(Content.self, from: data)
            var figures: [String: [String: Double]] = [:]
            for (key, value) in content.figures {
                guard let colon = key.range(of: ": ") else { throw CocoaError(.fileReadCorruptFile) }
                figures[String(key[..<colon.lowerBound]), default: [:]][String(key[colon.upperBound...])] =
                    value
            }
            for (name, figures) in figures {
                guard let counts = OperationCounts(figures: figures) else {
                    throw CocoaError(.fileReadCorruptFile)
                }
                rows[name] = counts
            }
            pendingBytes = content.pendingBytes
            tools = content.tools
        } catch {
            throw BenchmarkError("The file '\(path)' holds no recorded counts: \(error)")
        }
    }

    /// Writes the file: sorted, one figure per line with the name of its row, so that a diff of two versions is readable.
    ///
    /// - Throws: ``BenchmarkError`` when it cannot be written.
    public func write(to path: String) throws {
        var content = Content(figures: [:], pendingBytes: pendingBytes, tools: tools)
        for (name, counts) in rows {
            for (figure, value) in counts.figures { content.figures["\(name): \(figure)"] = value }
        }
        try writeWhole(readableJSON(content) + Data("\n".utf8), to: path)
    }

    /// The file, as JSON.
    private struct Content: Codable {
        var figures: [String: Double]
        var pendingBytes: [String: Double]
        var tools: [String: String]
    }

    /// A sentence for each count of a row that differs from the record.
    public func differences(_ seen: OperationCounts, of row: CountedRow) -> [String] {
        guard let recorded = rows[row.name] else {
            return ["\(row.name): not recorded."]
        }
        guard recorded.n == seen.n else {
            return ["\(row.name): recorded with n = \(recorded.n), not \(seen.n)."]
        }
        return Figure.all(recorded, seen).filter { $0.differs(by: row.band.share) }.map { figure in
            """
            \(row.name): \(figure.name) \(Format.exact(figure.seen)) per operation, recorded \
            \(Format.exact(figure.recorded)) (\(figure.change)).
            """
        }
    }

    /// Records the counts of a row. Counts within half of the row's band keep their recorded values, so that a diff of the
    /// file shows changes and no noise.
    ///
    /// - Returns: the changes, a line each.
    public mutating func record(_ seen: OperationCounts, of row: CountedRow) -> [String] {
        guard let recorded = rows[row.name], recorded.n == seen.n else {
            rows[row.name] = seen
            return ["\(row.name) recorded: \(Format.exact(seen.allInstructions)) instructions per operation."]
        }
        let changes = Figure.all(recorded, seen).filter { $0.differs(by: row.band.share / 2) }
        if changes.isEmpty { return [] }
        rows[row.name] = seen
        return changes.map { figure in
            "\(row.name): \(figure.name) \(Format.exact(figure.recorded)) -> \(Format.exact(figure.seen)) (\(figure.change))"
        }
    }
}

/// One of the figures of a row, recorded and current.
private struct Figure {
    let name: String
    let recorded: Double
    let seen: Double
    /// The count that a share refers to. For the instructions of one category, that is the number of all instructions.
    let whole: Double
    /// The smallest difference that counts.
    let least: Double
    /// Additional tolerance beyond the row's band.
    var slack = 0.0

    func differs(by share: Double) -> Bool { abs(seen - recorded) > max(whole * share, least) + slack }

    var change: String {
        let difference = seen - recorded
        let share = recorded == 0 ? "new" : "\(Format.number(100 * difference / recorded)) %"
        return (difference > 0 ? "+" : "") + Format.exact(difference) + ", " + share
    }

    static func all(_ recorded: OperationCounts, _ seen: OperationCounts) -> [Figure] {
        let whole = recorded.allInstructions
        // The runtime looks up metadata in hash tables keyed by address, which collide differently in each build.
        // W21-execute had 3,200 instructions of the runtime in one build, and 3,519 in another.
        let collisions = 0.15 * (recorded.instructions[.runtime] ?? 0)
        let parts = CountCategory.allCases.map { category in
            Figure(
                name: "instructions of \(category.rawValue)", recorded: recorded.instructions[category] ?? 0,
                seen: seen.instructions[category] ?? 0, whole: whole, least: 3,
                slack: category == .runtime ? collisions : 0)
        }
        func count(_ name: String, _ path: KeyPath<OperationCounts, Double>, least: Double = 0.05) -> Figure {
            Figure(
                name: name, recorded: recorded[keyPath: path], seen: seen[keyPath: path],
                whole: recorded[keyPath: path], least: least)
        }
        return [
            Figure(
                name: "instructions", recorded: whole, seen: seen.allInstructions, whole: whole, least: 3,
                slack: collisions)
        ] + parts + [
            count("allocations", \.allocations), count("retains", \.retains), count("releases", \.releases),
            count("atomics", \.atomics),
            // The runtime locks a mutex where two tasks meet.
            count("mutexes", \.mutexes, least: 0.25),
        ]
    }
}
