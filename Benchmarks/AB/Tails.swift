import Foundation

/// Exact tails of the two tests that `ab` and `compare` use. Neither assumes a distribution of the noise.
package enum Tails {
    /// The probability of at least `successes` heads in `count` throws of a fair coin: the sign test.
    package static func sign(_ successes: Int, of count: Int) -> Double {
        guard successes > 0 else { return 1 }
        guard successes <= count else { return 0 }
        var term = pow(0.5, Double(count))  // of exactly `count` heads, and then of fewer
        var tail = 0.0
        for heads in stride(from: count, through: successes, by: -1) {
            tail += term
            term *= Double(heads) / Double(count - heads + 1)
        }
        return min(1, tail)
    }

    /// The probability that at least `pairs` of all pairs of `m` and `n` values have the second value above the
    /// first, if both samples come from one distribution: the Mann-Whitney test.
    ///
    /// - Complexity: O((m·n)²) at most. The numbers of orders are the coefficients of a Gaussian binomial.
    package static func mannWhitney(_ pairs: Int, _ m: Int, _ n: Int) -> Double {
        guard pairs > 0, m > 0, n > 0 else { return 1 }
        let counts = ordersByPairs(m, n)
        guard pairs < counts.count else { return 0 }
        return counts[pairs...].reduce(0, +) / counts.reduce(0, +)
    }

    /// How many of the orders of `m` and `n` values have 0, 1, 2, ... such pairs.
    static func ordersByPairs(_ m: Int, _ n: Int) -> [Double] {
        // The product of (1 - q^(n + i)) / (1 - q^i) over i in 1...m, as coefficients of the powers of q.
        var counts = [Double](repeating: 0, count: m * n + 1)
        counts[0] = 1
        for i in 1...m {
            for power in stride(from: m * n, through: 0, by: -1) where power >= n + i {
                counts[power] -= counts[power - n - i]
            }
            for power in 0...(m * n) where power >= i { counts[power] += counts[power - i] }
        }
        return counts
    }
}
