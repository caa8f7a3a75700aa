import Foundation

/// Maps values to places on a logarithmic axis.
package struct Scale {
    private let low: Double
    private let high: Double
    private let from: Double
    private let to: Double

    /// - Parameters:
    ///   - values: the values that must fit; positive.
    ///   - including: a value that is always shown.
    ///   - limits: the limits of the axis; a value beyond them is drawn at its end.
    package init(
        _ values: [Double], including: Double? = nil, limits: ClosedRange<Double>? = nil,
        margin: Double = 1.4,
        from: Double, to: Double
    ) {
        let shown = (values + (including.map { [$0] } ?? [])).filter { $0 > 0 && $0.isFinite }
            .map { value in limits.map { min(max(value, $0.lowerBound), $0.upperBound) } ?? value }
        low = (shown.min() ?? 1) / margin
        high = (shown.max() ?? 1) * margin
        self.from = from
        self.to = to
    }

    package func callAsFunction(_ value: Double) -> Double {
        let share = log(max(value, low) / low) / log(high / low)
        return from + min(1, share) * (to - from)
    }

    func holds(_ value: Double) -> Bool { value >= low && value <= high }

    /// Where to centre a value's label: near the ends of the axis it is moved inside.
    ///
    /// - Parameter room: the length of the label along the axis.
    package func middle(_ value: Double, room: Double) -> Double {
        let (first, last) = (min(from, to) + room / 2, max(from, to) - room / 2)
        return min(max(self(value), first), last)
    }

    /// As many round numbers as there is room for, each with a label, `gap` apart along the axis.
    ///
    /// - Parameter room: the length of a label along the axis.
    package func ticks(gap: Double = 10, room: (Double) -> Double) -> [Double] {
        candidates.first { ticks in
            zip(ticks, ticks.dropFirst()).allSatisfy { one, next in
                let (here, there) = (middle(one, room: room(one)), middle(next, room: room(next)))
                return abs(there - here) >= (room(one) + room(next)) / 2 + gap
            }
        } ?? []
    }

    /// The candidates, from many ticks to few.
    private var candidates: [[Double]] {
        var all: [[Double]] = []
        if high / low < 4 {  // there may be no decade: use equal differences
            for step in [0.01, 0.02, 0.05, 0.1, 0.2, 0.5] {
                let size = pow(10, floor(log10(high))) * step
                let first = (low / size).rounded(.up)
                let last = (high / size).rounded(.down)
                if last >= first { all.append(stride(from: first, through: last, by: 1).map { $0 * size }) }
            }
        }
        let exponents = Int(floor(log10(low)))...Int(ceil(log10(high)))
        for multiples in [[1.0, 2, 5], [1, 3], [1]] {
            all.append(exponents.flatMap { exponent in multiples.map { $0 * pow(10, Double(exponent)) } })
        }
        for step in 2...6 {
            all.append(exponents.filter { $0 % step == 0 }.map { pow(10, Double($0)) })
        }
        return all.map { $0.filter(holds) }.filter { !$0.isEmpty }
    }
}
