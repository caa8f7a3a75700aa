public import BenchmarkCore
public import BenchmarkHarness
import TextTable

/// The counts, a line for each row.
public struct CountTable {
    private let rows: [(name: String, counts: OperationCounts)]

    /// Creates a table of rows.
    public init(_ rows: [(row: CountedRow, counts: OperationCounts)]) {
        self.rows = rows.map { ($0.row.name, $0.counts) }
    }

    /// The table as text; figures are those of one operation.
    public func render() -> String {
        let shown = CountCategory.allCases.filter { category in
            rows.contains { $0.counts.instructions[category] != nil }
        }
        let table = TextTable<(name: String, counts: OperationCounts)> { row in
            let counts = row.counts
            let figures: [(String, Double)] =
                [
                    ("instructions", counts.allInstructions), ("allocations", counts.allocations),
                    ("retains", counts.retains), ("releases", counts.releases), ("atomics", counts.atomics),
                    ("mutexes", counts.mutexes),
                ] + shown.map { ($0.rawValue, counts.instructions[$0] ?? 0) }
            return [
                Column(title: "row", value: row.name),
                Column(title: "n", value: "\(counts.n)", align: .right),
            ]
                + figures.map { Column(title: $0.0, value: Format.exact($0.1), align: .right) }
        }
        return (table.string(for: rows, style: Style.simple) ?? "") + "\n"
    }
}
