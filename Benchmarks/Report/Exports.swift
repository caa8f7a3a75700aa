public import BenchmarkHarness
public import Foundation

/// A run in the formats of other programs.
public enum Exports {
    /// One line for each value.
    ///
    /// Columns: workload, n, peer, restart and round (from 1), value, unit. RFC 4180, except that a line ends with a
    /// line feed alone.
    public static func csv(_ run: RunDocument) -> String {
        var lines = ["workload,n,peer,restart,round,value,unit"]
        for series in run.results {
            for (restart, values) in series.restarts.enumerated() {
                for (round, value) in values.rounds.enumerated() {
                    let cells = [
                        series.workload, "\(series.n)", series.peer, "\(restart + 1)", "\(round + 1)",
                        "\(value)",
                        series.unit,
                    ]
                    lines.append(cells.map(quoted).joined(separator: ","))
                }
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func quoted(_ cell: String) -> String {
        guard cell.contains(where: { $0 == "," || $0 == "\"" || $0.isNewline }) else { return cell }
        return "\"\(cell.replacing("\"", with: "\"\""))\""
    }

    /// The JSON that JMH writes with `-rf json`, as far as its viewers read it: a benchmark for each workload and peer,
    /// and a fork for each restart.
    ///
    /// The score is the median, and its confidence interval that of ``Estimate``; JMH itself uses a mean and a normal
    /// interval.
    public static func jmh(_ run: RunDocument) throws -> Data {
        try encode(
            run.results.filter { !$0.values.isEmpty }.map { series in
                let restarts = series.restarts.filter { !$0.rounds.isEmpty }
                let sorted = series.values.sorted()
                let estimate = Estimate(restarts.compactMap { Estimate.median($0.rounds) })
                let (low, high) = (estimate?.low ?? sorted[0], estimate?.high ?? sorted[0])
                func percentile(_ p: Double) -> Double {
                    sorted[max(0, Int((Double(sorted.count) * p / 100).rounded(.up)) - 1)]
                }
                return JMHBenchmark(
                    benchmark: "\(series.workload).\(series.peer)", mode: "avgt",
                    threads: run.peers.first { $0.name == series.peer }?.threads ?? 1, forks: restarts.count,
                    warmupIterations: 1, measurementIterations: restarts.map(\.rounds.count).max() ?? 0,
                    params: ["n": "\(series.n)"],
                    primaryMetric: JMHMetric(
                        score: estimate?.median ?? sorted[0], scoreError: (high - low) / 2,
                        scoreConfidence: [low, high],
                        scorePercentiles: Dictionary(
                            uniqueKeysWithValues: [0.0, 50, 90, 95, 99, 100].map { ("\($0)", percentile($0)) }
                        ),
                        scoreUnit: series.unit, rawData: restarts.map(\.rounds)),
                    secondaryMetrics: [:])
            })
    }

    private struct JMHBenchmark: Encodable {
        let benchmark: String
        let mode: String
        let threads: Int
        let forks: Int
        let warmupIterations: Int
        let measurementIterations: Int
        let params: [String: String]
        let primaryMetric: JMHMetric
        let secondaryMetrics: [String: JMHMetric]
    }

    private struct JMHMetric: Encodable {
        let score: Double
        let scoreError: Double
        let scoreConfidence: [Double]
        let scorePercentiles: [String: Double]
        let scoreUnit: String
        let rawData: [[Double]]
    }

    /// The input of github-action-benchmark's tool `customSmallerIsBetter`: the median of each series.
    public static func githubActionBenchmark(_ run: RunDocument) throws -> Data {
        struct Entry: Encodable {
            let name: String
            let unit: String
            let value: Double
            let range: String?
            let extra: String
        }
        return try encode(
            run.results.compactMap { series -> Entry? in
                guard let estimate = Estimate(series.restarts.compactMap { Estimate.median($0.rounds) })
                else {
                    return nil
                }
                return Entry(
                    name: "\(series.workload) n=\(series.n) \(series.peer)", unit: series.unit,
                    value: estimate.median,
                    range: "\(estimate.low) to \(estimate.high)",
                    extra:
                        "\(series.values.count) values in \(series.restarts.count) restarts; \(run.build["commit"] ?? "")"
                )
            })
    }

    private static func encode(_ value: some Encodable) throws -> Data {
        try readableJSON(value) + Data("\n".utf8)
    }
}
