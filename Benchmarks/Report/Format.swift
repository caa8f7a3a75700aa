import Foundation

/// Numbers as people read them.
enum Format {
    /// A value with its unit: nanoseconds grow to microseconds, milliseconds and seconds.
    static func value(_ value: Double, unit: String) -> String {
        guard unit.hasPrefix("ns") else { return "\(number(value)) \(unit)" }
        let rest = unit.dropFirst(2)
        for (limit, name) in [(1e9, "s"), (1e6, "ms"), (1e3, "µs")] where value >= limit {
            return "\(number(value / limit)) \(name)\(rest)"
        }
        return "\(number(value)) \(unit)"
    }

    /// Three significant digits.
    static func number(_ value: Double) -> String {
        switch abs(value) {
        case 0: "0"
        case ..<0.01: String(format: "%.1e", value)
        case ..<1: String(format: "%.2f", value)
        case ..<10: String(format: "%.2f", value)
        case ..<100: String(format: "%.1f", value)
        case ..<100_000: String(format: "%.0f", value)
        default: count(value)
        }
    }

    /// A count, whose last digits matter: two behind the point below 100, one above.
    static func exact(_ value: Double) -> String {
        let text = String(format: abs(value) < 100 ? "%.2f" : "%.1f", value)
        for end in [".00", ".0"] where text.hasSuffix(end) { return String(text.dropLast(end.count)) }
        return text
    }

    /// A size: 1e5 as 100k.
    static func count(_ value: Double) -> String {
        for (limit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] where abs(value) >= limit {
            let scaled = value / limit
            return (scaled == scaled.rounded() ? "\(Int(scaled))" : String(format: "%.1f", scaled)) + name
        }
        return value == value.rounded() ? "\(Int(value))" : String(format: "%.1f", value)
    }

    /// A place on an axis.
    static func tick(_ value: Double) -> String { value < 1 ? String(format: "%g", value) : count(value) }

    /// A ratio with its interval.
    static func ratio(_ estimate: (median: Double, low: Double, high: Double)) -> String {
        "\(number(estimate.median))× [\(number(estimate.low)), \(number(estimate.high))]"
    }
}
