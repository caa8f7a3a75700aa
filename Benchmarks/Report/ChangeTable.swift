import BenchmarkCore
public import BenchmarkHarness
import Rainbow
import TextTable

/// Two runs beside each other, sorted by how much changed; what lies inside the noise is grey.
public struct ChangeTable {
    private struct Row {
        let name: String
        let before: String
        let after: String
        let change: Double
        let isNoise: Bool
    }

    private let rows: [Row]

    /// Compares the series that both runs have.
    ///
    /// - Throws: ``BenchmarkError`` when they have none in common.
    public init(before: RunDocument, after: RunDocument) throws {
        rows = before.results.compactMap { old -> Row? in
            guard let new = after.series(old.workload, n: old.n, peer: old.peer),
                let was = Estimate(old.restartMedians), let now = Estimate(new.restartMedians),
                was.median > 0,
                now.median > 0
            else { return nil }
            return Row(
                name: "\(old.workload) n=\(Format.count(Double(old.n))) \(old.peer)",
                before: Format.value(was.median, unit: old.unit),
                after: Format.value(now.median, unit: new.unit),
                change: now.median / was.median, isNoise: was.low <= now.high && now.low <= was.high)
        }
        if rows.isEmpty { throw BenchmarkError("The two files have no series in common.") }
    }

    /// The table as text.
    public func render() -> String {
        let sorted = rows.sorted { abs($0.change - 1) > abs($1.change - 1) }
        let table = TextTable<Row> { row in
            let change = "\(Format.number(row.change))×"
            return [
                Column(title: "series", value: row.name),
                Column(title: "before", value: row.before, align: .right),
                Column(title: "after", value: row.after, align: .right),
                Column(
                    title: "after / before", value: row.isNoise ? "\(change) (noise)".lightBlack : change,
                    align: .right),
            ]
        }
        return (table.string(for: sorted, style: Style.simple) ?? "") + "\n"
    }
}
