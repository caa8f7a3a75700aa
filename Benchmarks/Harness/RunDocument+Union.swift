extension RunDocument {
    /// Whether two parts belong to one run: they have the same program, and the same plan except for the order of its rounds.
    public func isOfSameRun(as other: RunDocument) -> Bool {
        guard var ours = options, var theirs = other.options else { return false }
        (ours.seed, theirs.seed) = (0, 0)
        return ours == theirs && build["commit"] == other.build["commit"]
            && build["compiler"] == other.build["compiler"]
    }

    /// Adds the units of another part of the same run, measured on the same host.
    ///
    /// - Returns: the units that both parts have; their values are not taken from `other`.
    /// - Complexity: O(series²).
    public mutating func takeIn(_ other: RunDocument) -> [RunUnit] {
        let have = Set((units ?? []).map(\.unit))
        let new = (other.units ?? []).filter { !have.contains($0.unit) }
        let restarts = Dictionary(grouping: new.map(\.unit)) { Self.key($0.workload, $0.threads) }
            .mapValues { Set($0.map(\.restart)) }
        for series in other.results {
            guard let wanted = restarts[Self.key(series.workload, nil)] else { continue }
            Self.take(series, of: wanted, into: &results)
        }
        for series in other.threadSweep ?? [] {
            guard let wanted = restarts[Self.key(series.workload, series.threads)] else { continue }
            var sweep = threadSweep ?? []
            Self.take(series, of: wanted, into: &sweep)
            threadSweep = sweep
        }
        units = (units ?? []) + new
        for peer in other.peers where !peers.contains(peer) { peers.append(peer) }
        for warning in other.controls.warnings where !controls.warnings.contains(warning) {
            controls.warnings.append(warning)
        }
        controls.idleSwitchesPerSecond.merge(other.controls.idleSwitchesPerSecond) { max($0, $1) }
        isPartial = isPartial || other.isPartial
        return (other.units ?? []).map(\.unit).filter(have.contains)
    }

    private static func key(_ workload: String, _ threads: Int?) -> String {
        "\(workload)@\(threads.map(String.init) ?? "")"
    }

    private static func take(_ series: Series, of restarts: Set<Int>, into results: inout [Series]) {
        let index =
            results.firstIndex {
                $0.workload == series.workload && $0.params == series.params && $0.peer == series.peer
            }
            ?? {
                var empty = series
                empty.restarts = []
                empty.counts = [:]
                results.append(empty)
                return results.count - 1
            }()
        let (before, added) = (
            Double(results[index].values.count),
            Double(
                series.restarts.enumerated().filter { restarts.contains($0.offset) }.flatMap(\.element.rounds)
                    .count)
        )
        for (restart, values) in series.restarts.enumerated() where restarts.contains(restart) {
            while results[index].restarts.count <= restart {
                results[index].restarts.append(Restart(rounds: []))
            }
            results[index].restarts[restart] = values
        }
        for (name, value) in series.counts {
            // Means over the values; one-time counts, made in the first restart, come from one part only.
            let mean = results[index].counts[name]
            results[index].counts[name] =
                mean.map { ($0 * before + value * added) / max(1, before + added) } ?? value
        }
        if results[index].checksum == 0 { results[index].checksum = series.checksum }
        if results[index].stopped == nil {
            results[index].stopped = series.stopped
            results[index].isLeftOut = series.isLeftOut
        }
    }
}
