import BenchmarkCore
import Foundation

/// Writes measurements into the document of a run.
struct Recorder {
    private(set) var document: RunDocument

    init(_ document: RunDocument) { self.document = document }

    /// The index of the series of a peer, which is created if it does not exist.
    mutating func index(of peer: String, _ workload: Workload, n: Int) -> Int {
        if let index = document.results.firstIndex(where: {
            $0.workload == workload.id && $0.n == n && $0.peer == peer
        }) {
            return index
        }
        document.results.append(
            RunDocument.Series(
                workload: workload.id, params: ["n": n], peer: peer, unit: workload.unit, restarts: [],
                counts: [:], checksum: 0, stopped: nil))
        return document.results.count - 1
    }

    subscript(index: Int) -> RunDocument.Series { document.results[index] }

    /// Records that a size was skipped because it would take too long.
    mutating func leaveOut(_ index: Int, _ reason: String) {
        document.results[index].stopped = reason
        document.results[index].isLeftOut = true
    }

    /// Records why there are no further values.
    mutating func stop(_ index: Int, _ reason: String) { document.results[index].stopped = reason }

    mutating func add(_ sample: Sample, _ costs: Costs?, at index: Int, _ workload: Workload, restart: Int) {
        while document.results[index].restarts.count <= restart {
            document.results[index].restarts.append(RunDocument.Restart(rounds: []))
        }
        let before = Double(document.results[index].values.count)
        document.results[index].restarts[restart].rounds.append(Measurement.value(of: sample, in: workload))
        document.results[index].checksum = sample.checksum
        for (key, value) in Measurement.counts(of: sample, costs: costs) {
            let mean = document.results[index].counts[key] ?? 0
            document.results[index].counts[key] = mean + (value - mean) / (before + 1)
        }
    }

    mutating func count(_ name: String, _ value: Double, at index: Int) {
        document.results[index].counts[name] = value
    }

    mutating func warn(_ sentence: String) { document.controls.warnings.append(sentence) }

    mutating func noteIdleSwitches(of peer: String, perSecond: Double) {
        document.controls.idleSwitchesPerSecond[peer] = perSecond
    }

    /// Makes ``index(of:_:n:)`` and the other methods work on the series of a sweep, with this number of
    /// threads, until ``leave(threads:results:)``.
    ///
    /// - Returns: the series of the run.
    mutating func enter(threads: Int) -> [RunDocument.Series] {
        let results = document.results
        document.results = (document.threadSweep ?? []).filter { $0.threads == threads }
        return results
    }

    /// Stores the series of the sweep, and restores `results`, which ``enter(threads:)`` returned.
    mutating func leave(threads: Int, results: [RunDocument.Series]) {
        let others = (document.threadSweep ?? []).filter { $0.threads != threads }
        document.threadSweep =
            others
            + document.results.map { series in
                var series = series
                series.params["threads"] = threads
                return series
            }
        document.results = results
    }

    mutating func finish(_ unit: RunUnit, seconds: Double) {
        document.units = (document.units ?? []) + [RunDocument.Measured(unit: unit, seconds: seconds)]
    }

    mutating func note(machine key: String, _ value: String) { document.machine[key] = value }

    mutating func end(isPartial: Bool) { document.isPartial = isPartial }
}
