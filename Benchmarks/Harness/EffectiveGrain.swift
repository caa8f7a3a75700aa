import Foundation

/// The least length of an operation at which a peer still spends a given share of its time on operations.
///
/// Source: METG, the minimum effective task granularity, of Slaughter et al., Task Bench: A Parameterized Benchmark for
/// Evaluating Parallel Runtime Performance (2020).
public enum EffectiveGrain: Hashable, Sendable {
    /// Between two of the lengths that were measured.
    case about(ns: Double)
    /// The shortest measured length is long enough.
    case atMost(ns: Double)
    /// The longest measured length is too short.
    case moreThan(ns: Double)
}

extension RunDocument {
    /// The least time over the time that a peer took, at one size; nil if none was measured, or if the workload has no
    /// least time.
    ///
    /// The least time is that of the work alone, divided evenly among as many threads as have a CPU.
    public func efficiency(_ workload: String, n: Int, peer: String) -> Double? {
        guard let series = series(workload, n: n, peer: peer),
            let ideal_ns = series.counts["ideal_ns_per_op"],
            let took_ns = Estimate.median(series.values), took_ns > 0
        else { return nil }
        return ideal_ns / took_ns
    }

    /// How long operations have to be for this efficiency, METG(50 %) with 0.5: where the curve over the measured
    /// lengths crosses it for the last time, interpolated linearly over the logarithm of the length.
    ///
    /// - Parameter efficiency: from 0 to 1.
    /// - Returns: nil if no length was measured.
    public func effectiveGrain(_ peer: String, efficiency: Double, workload: String = "W17")
        -> EffectiveGrain?
    {
        let points = sizes(workload).compactMap { n -> (grain_ns: Double, efficiency: Double)? in
            guard let efficiency = self.efficiency(workload, n: n, peer: peer) else { return nil }
            let grain_ns = series(workload, n: n, peer: peer)?.counts["grain_ns"] ?? Double(n)
            return (grain_ns, efficiency)
        }
        guard let longest = points.last else { return nil }
        if longest.efficiency < efficiency { return .moreThan(ns: longest.grain_ns) }
        guard let last = points.lastIndex(where: { $0.efficiency < efficiency }) else {
            return .atMost(ns: points[0].grain_ns)
        }
        let (short, long) = (points[last], points[last + 1])
        let share = (efficiency - short.efficiency) / (long.efficiency - short.efficiency)
        return .about(ns: short.grain_ns * pow(long.grain_ns / short.grain_ns, share))
    }
}
