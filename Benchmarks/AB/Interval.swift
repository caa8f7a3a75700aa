import BenchmarkHarness

/// A factor, later over earlier, with the interval that it lies in.
public struct Interval: Codable, Sendable, Hashable {
    /// The median.
    public var median: Double
    /// The lower end.
    public var low: Double
    /// The upper end.
    public var high: Double
    /// The probability that the interval holds the true median.
    public var coverage: Double

    init(_ estimate: Estimate) {
        self.init(
            median: estimate.median, low: estimate.low, high: estimate.high, coverage: estimate.coverage)
    }

    init(median: Double, low: Double, high: Double, coverage: Double) {
        self.median = median
        self.low = low
        self.high = high
        self.coverage = coverage
    }

    func map(_ transform: (Double) -> Double) -> Interval {
        Interval(median: transform(median), low: transform(low), high: transform(high), coverage: coverage)
    }

    /// How much larger the values of one sample are than those of another that was not measured side by side with it:
    /// the median of all differences, with the exact interval of the Mann-Whitney test, at least 95 % if there are
    /// enough values.
    ///
    /// Source: Hodges and Lehmann, Estimates of location based on rank tests (1963). The interval assumes that the
    /// values are independent, and that the two distributions differ only by a shift.
    package static func shift(from before: [Double], to after: [Double]) -> Interval? {
        let differences = after.flatMap { after in before.map { after - $0 } }.sorted()
        guard let median = Estimate.median(differences) else { return nil }
        var rank = 0
        func coverage(_ rank: Int) -> Double {
            1 - 2 * Tails.mannWhitney(differences.count - rank, before.count, after.count)
        }
        while 2 * (rank + 1) < differences.count, coverage(rank + 1) >= 0.95 { rank += 1 }
        return Interval(
            median: median, low: differences[rank], high: differences[differences.count - 1 - rank],
            coverage: max(0, coverage(rank)))
    }
}
