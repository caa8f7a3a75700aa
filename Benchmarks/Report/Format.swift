import Foundation

/// Numbers for human readers.
enum Format {
    /// A value with its unit: nanoseconds are scaled to microseconds, milliseconds and seconds.
    static func value(_ value: Double, unit: String) -> String {
        if unit == "us" { return Self.value(value * 1_000, unit: "ns") }
        guard unit.hasPrefix("ns") else { return "\(number(value)) \(unit)" }
        let rest = unit.dropFirst(2)
        for (limit, name) in [(1e9, "s"), (1e6, "ms"), (1e3, "µs")] where value >= limit {
            return "\(number(value / limit)) \(name)\(rest)"
        }
        return "\(number(value)) \(unit)"
    }

    /// A value where the unit is already stated: its denominator is not repeated.
    static func short(_ value: Double, unit: String) -> String {
        guard unit.hasPrefix("ns") || unit == "us" else { return count(value) }
        let parts = Self.value(value, unit: unit == "us" ? unit : "ns").split(separator: " ")
        var number = parts[0]
        if number.contains(".") && !number.contains("e") {
            while number.last == "0" { number.removeLast() }
            if number.last == "." { number.removeLast() }
        }
        return "\(number) \(parts[1])"
    }

    /// Three significant digits.
    static func number(_ value: Double) -> String {
        switch abs(value) {
        case 0: "0"
        case ..<0.001: String(format: "%.1e", value)
        case ..<0.0995: String(format: "%.3f", value)
        case ..<10: String(format: "%.2f", value)
        case ..<99.95: String(format: "%.1f", value)
        case ..<100_000: String(format: "%.0f", value)
        default: count(value)
        }
    }

    /// A count whose last digits matter: two decimals below 100, one above.
    static func exact(_ value: Double) -> String {
        let text = String(format: abs(value) < 100 ? "%.2f" : "%.1f", value)
        for end in [".00", ".0"] where text.hasSuffix(end) { return String(text.dropLast(end.count)) }
        return text
    }

    /// A size: 1e5 as 100k.
    static func count(_ value: Double) -> String {
        for (limit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] where abs(value) >= limit {
            return plain(value / limit) + name
        }
        return plain(value)
    }

    private static func plain(_ value: Double) -> String {
        value == value.rounded() ? String(format: "%.0f", value) : String(format: "%.3g", value)
    }

    /// A label on an axis.
    static func tick(_ value: Double) -> String { value < 1 ? String(format: "%g", value) : count(value) }

    /// How many times.
    static func times(_ value: Double) -> String { "\(number(value))×" }

    /// A ratio with its interval.
    static func ratio(_ estimate: (median: Double, low: Double, high: Double)) -> String {
        "\(times(estimate.median)) \(interval(estimate.low, estimate.high))"
    }

    static func interval(_ low: Double, _ high: Double) -> String { "[\(number(low)), \(number(high))]" }
}
