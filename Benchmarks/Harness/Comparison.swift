import Foundation

extension RunDocument {
    /// How many times longer a peer takes than a reference (`ours`), at one size of one workload.
    ///
    /// Values of the same restart and round were measured close together in time, so they are paired: the figure of
    /// a restart is the median of its rounds' log ratios, and the estimate is over the restarts. (Ratios of
    /// separately measured medians gave false alarms in a quarter of all A/A comparisons.)
    public func ratio(_ workload: String, n: Int, peer: String, to reference: String = "ours") -> Estimate? {
        guard let theirs = series(workload, n: n, peer: peer),
            let ours = series(workload, n: n, peer: reference)
        else {
            return nil
        }
        return Estimate(theirs.logRatios(to: ours).compactMap(\.self))?.map(exp)
    }

    /// The logarithms of the ratio of a peer to ours, of all rounds.
    func logRatios(_ workload: String, n: Int, peer: String) -> [Double] {
        guard let theirs = series(workload, n: n, peer: peer), let ours = series(workload, n: n, peer: "ours")
        else { return [] }
        return zip(theirs.restarts, ours.restarts).flatMap { $0.logRatios(to: $1) }
    }

    /// The slope of the logarithm of the whole time over the logarithm of n; 1 is linear. Nil with fewer than
    /// two sizes.
    public func slope(_ workload: String, peer: String) -> Double? {
        slope(workload, peer: peer) { Estimate.median($0.values) }
    }

    /// Like ``slope(_:peer:)``, for the CPU time: other load on the machine makes long samples slower than short
    /// ones, and does not show here.
    public func slopeOfCPUTime(_ workload: String, peer: String) -> Double? {
        slope(workload, peer: peer) { $0.counts["cpu_ns_per_op"] }
    }

    private func slope(
        _ workload: String, peer: String, perOperation: (Series) -> Double?
    ) -> Double? {
        let points = sizes(workload).compactMap { n -> (x: Double, y: Double)? in
            guard n > 0,
                let time = series(workload, n: n, peer: peer).flatMap(perOperation), time > 0
            else { return nil }
            return (log(Double(n)), log(time * Double(n)))
        }
        guard points.count >= 2 else { return nil }
        let meanX = points.map(\.x).reduce(0, +) / Double(points.count)
        let meanY = points.map(\.y).reduce(0, +) / Double(points.count)
        let covariance = points.map { ($0.x - meanX) * ($0.y - meanY) }.reduce(0, +)
        let variance = points.map { ($0.x - meanX) * ($0.x - meanX) }.reduce(0, +)
        return variance > 0 ? covariance / variance : nil
    }
}

extension RunDocument.Series {
    /// By restart, the median over its rounds of the logarithm of this value over the other's value of the same
    /// round; nil if a restart has no such pair.
    public func logRatios(to other: RunDocument.Series) -> [Double?] {
        zip(restarts, other.restarts).map { Estimate.median($0.logRatios(to: $1)) }
    }
}

extension RunDocument.Restart {
    /// By round, the logarithm of this value over the other's; without rounds in which one of them is 0.
    fileprivate func logRatios(to other: RunDocument.Restart) -> [Double] {
        zip(rounds, other.rounds).compactMap { $0 > 0 && $1 > 0 ? log($0 / $1) : nil }
    }
}
