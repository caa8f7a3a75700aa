import Foundation

/// Maps values to places on a logarithmic axis.
struct Scale {
    private let low: Double
    private let high: Double
    private let from: Double
    private let to: Double

    /// - Parameters:
    ///   - values: what must fit; positive.
    ///   - including: a value that is shown in any case.
    init(_ values: [Double], including: Double? = nil, from: Double, to: Double) {
        let positive = (values + (including.map { [$0] } ?? [])).filter { $0 > 0 && $0.isFinite }
        let least = positive.min() ?? 1
        let most = positive.max() ?? 1
        low = least / 1.4
        high = most * 1.4
        self.from = from
        self.to = to
    }

    func callAsFunction(_ value: Double) -> Double {
        let share = (log(max(value, low)) - log(low)) / (log(high) - log(low))
        return from + min(1, share) * (to - from)
    }

    /// Round numbers inside the axis: powers of ten, with 2 and 5 between them when there is room.
    var ticks: [Double] {
        let multiples = high / low < 150 ? [1.0, 2, 5] : [1.0]
        let exponents = Int(floor(log10(low)))...Int(ceil(log10(high)))
        return exponents.flatMap { exponent in multiples.map { $0 * pow(10, Double(exponent)) } }
            .filter { $0 >= low && $0 <= high }
    }
}
