public import BenchmarkHarness
public import Foundation

/// The change between two recorded runs, each stored in a file.
///
/// The runs were measured at different times, so their times cannot be compared directly: the machine may have been twice
/// as slow in one of them. Within each run, ours and the peers were measured side by side. So the figure compared is the
/// ratio of ours to the mean of the peers whose version is the same in both runs. The ratios of these peers to one another
/// should not change; how much they do shows how far the figure can be trusted: 95% of them change by less than the
/// ``band``. The intervals are widened by the band, and a change must exceed threshold plus band to count.
/// ``SequentialHolm``, applied to the rows' Mann-Whitney p-values, bounds the probability of a false alarm. With six
/// restarts in each run and 40 rows, a row counts as worse only if every restart of the later run exceeds every restart of
/// the earlier run by more than threshold plus band.
public struct RunComparison: Encodable, Sendable {
    /// One series of ours.
    public struct Line: Encodable, Sendable {
        /// The workload's identifier.
        public var workload: String
        /// The size.
        public var n: Int
        /// The unit of the values.
        public var unit: String
        /// The median of the earlier run.
        public var before: Double
        /// The median of the later one.
        public var after: Double
        /// Later over earlier, relative to the peers; widened by the band.
        public var change: Interval
        /// The number of peers that `change` is relative to. If 0, `change` is a ratio of times and is not judged.
        public var peers: Int
        /// The verdict.
        public var verdict: Verdict
    }

    /// The version of the format.
    public var schema = 1
    /// When the runs began.
    public var dates: [String]
    /// The change that is tolerated.
    public var threshold: Double
    /// The probability of at least one false alarm, if the machine changed by no more than the peers show.
    public var alpha: Double
    /// By what fraction the ratios of unchanged peers differ between the runs; nil: there are no such peers.
    public var band: Double?
    /// The median over these peers of later over earlier time. The ratios to the peers do not contain this factor.
    public var drift: Double?
    /// Worst first.
    public var rows: [Line]
    /// Whether there are enough restarts for any row to be judged worse.
    public var canShow: Bool
    /// Series of ours that only one run has.
    public var missing: [String]
    /// The overall verdict.
    public var outcome: GateOutcome

    /// Compares two runs.
    ///
    /// - Parameters:
    ///   - workloads: the workloads to compare; nil: all.
    ///   - isWithinBand: whether an A/A figure of a run is within its limits.
    ///   - anyMachine: whether runs from different machines may be compared.
    /// - Throws: ``BenchmarkError`` when the runs cannot be compared.
    public init(
        before: RunDocument, after: RunDocument, workloads: [String]? = nil, threshold: Double,
        alpha: Double = 0.05,
        anyMachine: Bool = false, isWithinBand: (Estimate) -> Bool
    ) throws {
        if !anyMachine { try Self.checkThatTheyCompare(before, after) }
        let rule = try GateRule(threshold: threshold, alpha: alpha)
        self.threshold = threshold
        self.alpha = alpha
        dates = [before.date, after.date]

        let pair = Pair(before: before, after: after)
        let controls = pair.controls.flatMap { pair.changes(of: $0) }
        let sizes = controls.map { abs($0.shift.median) }.sorted()
        let width = sizes.isEmpty ? nil : sizes[min(sizes.count - 1, Int(Double(sizes.count) * 0.95))]
        band = width.map { exp($0) - 1 }
        drift = Estimate.median(pair.controls.flatMap { pair.times(of: $0) }).map(exp)

        let all = pair.changes(of: "ours")
        for name in workloads ?? [] where !all.contains(where: { $0.old.workload == name }) {
            let names = all.map(\.old.workload).reduce(into: [String]()) {
                if !$0.contains($1) { $0.append($1) }
            }
            throw BenchmarkError(
                "The files do not both have '\(name)' of ours; they have \(names.joined(separator: ", ")).")
        }
        let changes = all.filter { workloads?.contains($0.old.workload) ?? true }
        guard !changes.isEmpty else {
            throw BenchmarkError("The two files have no series of ours in common.")
        }
        let limit = rule.margin + (width ?? 0)
        let judged = changes.indices.filter { changes[$0].peers > 0 && width != nil }
        canShow = judged.contains { changes[$0].leastP <= alpha / Double(judged.count) }
        var (worse, better) = (
            SequentialHolm(alpha: alpha, looks: 1, count: judged.count),
            SequentialHolm(alpha: alpha, looks: 1, count: judged.count)
        )
        worse.look(Dictionary(uniqueKeysWithValues: judged.map { ($0, changes[$0].p(above: limit)) }))
        better.look(Dictionary(uniqueKeysWithValues: judged.map { ($0, changes[$0].p(below: -limit)) }))

        rows = changes.enumerated().map { index, change in
            var shift = change.shift
            shift.low -= width ?? 0
            shift.high += width ?? 0
            let old = change.old
            let isOff = [before, after].contains { run in
                run.ratio(old.workload, n: old.n, peer: Coordinator.again).map { !isWithinBand($0) } ?? false
            }
            let verdict: Verdict
            if isOff {
                verdict = .controlOff
            } else if worse.rejected.contains(index) {
                verdict = .worse
            } else if better.rejected.contains(index) {
                verdict = .better
            } else {
                let isNarrow = max(-shift.low, shift.high) < rule.resolution
                verdict = judged.contains(index) && isNarrow ? .same : .unclear
            }
            return Line(
                workload: old.workload, n: old.n, unit: old.unit,
                before: Estimate.median(old.values) ?? 0, after: Estimate.median(change.new.values) ?? 0,
                change: shift.map(exp), peers: change.peers, verdict: verdict)
        }.sorted { $0.change.median > $1.change.median }
        missing = workloads == nil ? pair.missing : []
        outcome = canShow ? GateOutcome(rows.map(\.verdict)) : .notMeasured
    }

    private static func checkThatTheyCompare(_ before: RunDocument, _ after: RunDocument) throws {
        func differ(_ what: String, _ one: String?, _ other: String?) throws {
            guard one != other else { return }
            throw BenchmarkError(
                """
                The runs cannot be compared: \(what) '\(one ?? "unknown")' in the earlier one, '\(other ?? "unknown")' in the \
                later one. '--any-machine' compares them all the same.
                """)
        }
        try differ("the processor is", before.machine["processor"], after.machine["processor"])
        try differ("the number of CPUs is", before.machine["cpus"], after.machine["cpus"])
        try differ("the configuration is", before.build["configuration"], after.build["configuration"])
        func threads(_ run: RunDocument) -> String? {
            run.peers.first { $0.name == "ours" }.map { "\($0.threads)" }
        }
        try differ("the number of worker threads is", threads(before), threads(after))
    }

    /// As JSON.
    public func json() throws -> Data { try readableJSON(self) }
}

/// Two runs, and the series that they have in common.
private struct Pair {
    let before: RunDocument
    let after: RunDocument

    /// How one series changed.
    struct Change {
        let old: RunDocument.Series
        let new: RunDocument.Series
        let peers: Int
        let ratios: (before: [Double], after: [Double])
        let shift: Interval

        func p(above limit: Double) -> Double { p(differences.count { $0 > limit }) }
        func p(below limit: Double) -> Double { p(differences.count { $0 < limit }) }
        /// The least possible p-value: that of a change that every pair of restarts shows.
        var leastP: Double { p(differences.count) }

        private var differences: [Double] {
            ratios.after.flatMap { after in ratios.before.map { after - $0 } }
        }
        private func p(_ pairs: Int) -> Double {
            Tails.mannWhitney(pairs, ratios.before.count, ratios.after.count)
        }
    }

    /// The peers other than ours with the same version in both runs.
    var controls: [String] {
        before.peers.filter { peer in
            !peer.name.hasPrefix("ours")
                && after.peers.contains { $0.name == peer.name && $0.version == peer.version }
        }.map(\.name)
    }

    var missing: [String] {
        func keys(_ run: RunDocument) -> [String] {
            run.results.filter { $0.peer == "ours" && !$0.values.isEmpty }.map { "\($0.workload) n=\($0.n)" }
        }
        let (old, new) = (keys(before), keys(after))
        return old.filter { !new.contains($0) }.map { "\($0): only in the earlier run" }
            + new.filter { !old.contains($0) }.map { "\($0): only in the later run" }
    }

    private func both(_ workload: String, _ n: Int, _ peer: String) -> (
        old: RunDocument.Series, new: RunDocument.Series
    )? {
        guard let old = before.series(workload, n: n, peer: peer),
            let new = after.series(workload, n: n, peer: peer),
            old.values.contains(where: { $0 > 0 }), new.values.contains(where: { $0 > 0 })
        else { return nil }
        return (old, new)
    }

    /// The logarithms of later over earlier time, by series.
    func times(of peer: String) -> [Double] {
        before.results.filter { $0.peer == peer }.compactMap { series in
            guard let (old, new) = both(series.workload, series.n, peer),
                let was = Estimate.median(old.values),
                let now = Estimate.median(new.values), was > 0, now > 0
            else { return nil }
            return log(now / was)
        }
    }

    /// How a peer changed, relative to the controls other than itself; by workload and size.
    func changes(of peer: String) -> [Change] {
        before.results.filter { $0.peer == peer }.compactMap { series in
            guard let (old, new) = both(series.workload, series.n, peer) else { return nil }
            let others = controls.filter { $0 != peer }.compactMap { both(series.workload, series.n, $0) }
            let ratios = (ratios(of: old, to: others.map(\.old)), ratios(of: new, to: others.map(\.new)))
            return Interval.shift(from: ratios.0, to: ratios.1).map {
                Change(old: old, new: new, peers: others.count, ratios: ratios, shift: $0)
            }
        }
    }

    /// For each restart, the median over its rounds of log(value / geometric mean of the others' values in that round).
    private func ratios(of series: RunDocument.Series, to others: [RunDocument.Series]) -> [Double] {
        series.restarts.indices.compactMap { restart in
            let rounds = series.restarts[restart].rounds
            return Estimate.median(
                rounds.indices.compactMap { round in
                    let neighbours = others.map { other -> Double in
                        guard restart < other.restarts.count, round < other.restarts[restart].rounds.count
                        else { return 0 }
                        return other.restarts[restart].rounds[round]
                    }
                    guard rounds[round] > 0, neighbours.allSatisfy({ $0 > 0 }) else { return nil }
                    let mean =
                        neighbours.isEmpty
                        ? 0 : neighbours.map { log($0) }.reduce(0, +) / Double(neighbours.count)
                    return log(rounds[round]) - mean
                })
        }
    }
}
