import Foundation

/// A median with an exact interval that assumes only that the values are independent.
///
/// Source: the order statistics of a sample bracket its median with binomial probability (Conover, Practical
/// Nonparametric Statistics). No bootstrap, and no value is left out.
public struct Estimate: Sendable, Hashable {
    /// The median.
    public let median: Double
    /// The lower end of the interval.
    public let low: Double
    /// The upper end of the interval.
    public let high: Double
    /// The probability that the interval contains the true median; below 0.95 when there are fewer than 6
    /// values.
    public let coverage: Double

    /// Estimates the median of the distribution of `values`; nil without values.
    public init?(_ values: [Double]) {
        guard let median = Self.median(values) else { return nil }
        let sorted = values.sorted()
        let rank = Self.rank(count: sorted.count, coverage: 0.95)
        self.median = median
        self.low = sorted[rank]
        self.high = sorted[sorted.count - 1 - rank]
        self.coverage = Self.coverage(count: sorted.count, rank: rank)
    }

    private init(median: Double, low: Double, high: Double, coverage: Double) {
        self.median = median
        self.low = low
        self.high = high
        self.coverage = coverage
    }

    /// The same estimate for a monotonically increasing function of the values.
    public func map(_ transform: (Double) -> Double) -> Estimate {
        Estimate(median: transform(median), low: transform(low), high: transform(high), coverage: coverage)
    }

    /// The middle value, or the mean of the two in the middle; nil without values.
    public static func median(_ values: [Double]) -> Double? {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// The probability that the values of this rank from either end bracket the median.
    package static func coverage(count: Int, rank: Int) -> Double {
        // The interval misses the median if at most `rank` values lie below it, or at most `rank` above: each
        // with probability P(B <= rank).
        var term = pow(0.5, Double(count))
        var tail = 0.0
        for k in 0...rank {
            tail += term
            term *= Double(count - k) / Double(k + 1)
        }
        return max(0, 1 - 2 * tail)
    }

    /// The largest rank whose interval still has this coverage; 0 (the whole range) if there is none.
    package static func rank(count: Int, coverage wanted: Double) -> Int {
        var rank = 0
        while rank + 1 < (count + 1) / 2, coverage(count: count, rank: rank + 1) >= wanted { rank += 1 }
        return rank
    }
}
