/// A distribution of durations.
public struct Distribution: Hashable, Sendable, CustomStringConvertible {
    /// The number of durations.
    public let count: Int
    private let sorted_ns: [UInt64]

    init(_ nanoseconds: [UInt64]) {
        sorted_ns = nanoseconds.sorted()
        count = nanoseconds.count
    }

    /// The duration that the given share of all durations, between 0 and 1, did not exceed; nil if there are no
    /// durations.
    public func quantile(_ share: Double) -> Duration? {
        guard let last = sorted_ns.indices.last, (0...1).contains(share) else { return nil }
        return .nanoseconds(sorted_ns[min(last, Int(share * Double(sorted_ns.count)))])
    }

    /// The median, the 99th percentile and the longest.
    public var description: String {
        guard let median = quantile(0.5), let late = quantile(0.99), let longest = quantile(1) else {
            return "none"
        }
        return "\(count): \(median.short) median, \(late.short) p99, \(longest.short) longest"
    }
}

extension Recording {
    /// How long operations that have begun had waited since they were submitted. If events were lost, only operations
    /// submitted since the time from which all tracks are complete are included.
    public var waits: Distribution {
        Distribution(
            handovers().map { handover in
                let (submitted, begun) = (self[handover.submitted].time_ns, self[handover.begun].time_ns)
                return begun - min(submitted, begun)
            })
    }

    /// How long the bodies that have begun and ended took.
    public var runs: Distribution {
        Distribution(
            tracks.flatMap { track in
                track.bodies().compactMap { body in body.end_ns.map { $0 - body.begin_ns } }
            })
    }
}

extension Duration {
    /// With a suitable unit, as in `1.3 µs`: three digits, or all digits before the decimal point.
    var short: String {
        let nanoseconds = Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")]
        let (size, unit) = units.first { nanoseconds >= $0.0 } ?? (1, "ns")
        let value = nanoseconds / size
        let places = value < 10 ? 100.0 : value < 100 ? 10 : 1
        let rounded = (value * places).rounded() / places
        return "\(rounded == rounded.rounded() ? "\(Int(rounded))" : "\(rounded)") \(unit)"
    }
}
