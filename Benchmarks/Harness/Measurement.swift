package import BenchmarkCore
import Histogram

/// Turns one sample into the one value that is compared, and its costs.
package enum Measurement {
    /// The value, in the workload's unit: nanoseconds per operation, the 99th percentile of the
    /// latencies in microseconds, or the cost.
    static func value(of sample: Sample, in workload: Workload) -> Double {
        switch workload.metric {
        case .throughput: Double(sample.nanoseconds) / Double(max(1, sample.operations))
        case .latency: percentile(99, of: sample.latencies_ns) / 1_000  // microseconds
        case .cost: sample.extra[Self.costKey(of: workload)] ?? 0
        }
    }

    /// The value of a sample of another program: nanoseconds per operation, or microseconds.
    package static func value(of sample: Sample, by metric: ListedWorkload.Metric) -> Double {
        switch metric {
        case .time: Double(sample.nanoseconds) / Double(max(1, sample.operations))
        case .latency_p99: percentile(99, of: sample.latencies_ns) / 1_000
        }
    }

    /// The figure by which a cost workload is compared.
    static func costKey(of workload: Workload) -> String {
        workload.unit == "bytes/op" ? "bytes_per_op" : "idle_switches_per_s"
    }

    /// All costs of a sample by name, per operation where that makes sense.
    static func counts(of sample: Sample, costs: Costs?) -> [String: Double] {
        var counts = sample.extra
        let operations = Double(max(1, sample.operations))
        if let costs {
            counts["cpu_ns_per_op"] = costs.cpu_ns / operations
            counts["voluntary_switches_per_op"] = costs.voluntary / operations
            counts["involuntary_switches_per_op"] = costs.involuntary / operations
            counts["peak_resident_bytes"] = costs.peakResident_bytes
        }
        if !sample.latencies_ns.isEmpty {
            for p in [50, 90, 99, 99.9, 100] {
                counts["latency_p\(p)_ns"] = percentile(p, of: sample.latencies_ns)
            }
        }
        return counts
    }

    private static func percentile(_ percentile: Double, of latencies_ns: [UInt64]) -> Double {
        var histogram = Histogram<UInt32>(
            highestTrackableValue: 60_000_000_000, numberOfSignificantValueDigits: .three)
        for latency in latencies_ns { _ = histogram.record(min(latency, 60_000_000_000)) }
        return Double(histogram.valueAtPercentile(percentile))
    }
}
