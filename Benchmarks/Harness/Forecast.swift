/// How much of a run is done, and how long the rest takes: a unit is assumed to take as long as in the previous restart,
/// or, in the first, as long as the other units on average.
package struct Forecast: Sendable {
    private let units: [RunUnit]
    private var done: Set<RunUnit>
    private var seconds: [String: Double] = [:]
    private var spent = 0.0

    package init(units: [RunUnit], measured: [RunDocument.Measured]) {
        self.units = units
        done = []
        for unit in measured { note(unit.unit, seconds: unit.seconds) }
    }

    package mutating func note(_ unit: RunUnit, seconds: Double) {
        guard done.insert(unit).inserted else { return }
        spent += seconds
        // The first restart includes one-time counts and the peers that are stopped: later restarts are shorter.
        self.seconds[unit.workload] = seconds
    }

    /// The seconds that are left; nil while there is nothing to extrapolate from.
    package var left: Double? {
        guard !seconds.isEmpty else { return nil }
        let mean = seconds.values.reduce(0, +) / Double(seconds.count)
        return units.lazy.filter { !done.contains($0) }.map { seconds[$0.workload] ?? mean }.reduce(0, +)
    }

    /// The completed share, from 0 to 1.
    package var share: Double { left.map { spent / max(spent + $0, 1e-9) } ?? 0 }
}
