public import BenchmarkHarness
import Foundation

/// A workload at one size: one line of the result.
public struct Row: Codable, Sendable, Hashable {
    /// The workload's name.
    public var workload: String
    /// The size.
    public var n: Int

    /// Creates a row.
    public init(workload: String, n: Int) {
        self.workload = workload
        self.n = n
    }
}

/// The values of a row in one set of processes: equally many of each, close together in time.
public struct Restart: Codable, Sendable, Hashable {
    /// Values of BASE, by round.
    public var base: [Double]
    /// Values of the second process of BASE.
    public var again: [Double]
    /// Values of HEAD.
    public var head: [Double]

    /// Creates a restart.
    public init(base: [Double] = [], again: [Double] = [], head: [Double] = []) {
        self.base = base
        self.again = again
        self.head = head
    }

    /// The logarithm of HEAD over the mean of the two values of BASE; nil if there are no values, or none that can be divided.
    var change: Double? { median { log($0.head) - (log($0.base) + log($0.again)) / 2 } }
    /// The logarithm of BASE again over BASE.
    var control: Double? { median { log($0.again) - log($0.base) } }

    private func median(_ ratio: ((base: Double, again: Double, head: Double)) -> Double) -> Double? {
        Estimate.median(
            zip(base, zip(again, head)).compactMap { base, others in
                let round = (base: base, again: others.0, head: others.1)
                return min(round.base, round.again, round.head) > 0 ? ratio(round) : nil
            })
    }
}

/// The verdict on a row.
public enum Verdict: String, Codable, Sendable {
    /// A loss above the threshold is confirmed.
    case worse
    /// A gain above the threshold is confirmed.
    case better
    /// Neither, and a change that matters is excluded.
    case same
    /// Neither, but the interval is too wide to exclude a change that matters.
    case unclear
    /// BASE differs from itself, so nothing can be concluded.
    case controlOff = "control off"
    /// There are no values.
    case failed
}

/// The state of one run of `ab`: which rows the next set of processes has to measure, and what the values show. Pure:
/// the same rules apply to real processes and, in the tests, to synthetic noise.
public struct Trial: Sendable {
    /// The rule.
    public let rule: GateRule
    /// All rows.
    public let rows: [Row]
    /// The restarts of the first pass.
    public private(set) var screening: [Row: [Restart]] = [:]
    /// The restarts of the second pass.
    public private(set) var confirmation: [Row: [Restart]] = [:]
    /// Why rows were not measured.
    public private(set) var failures: [Row: String] = [:]

    private var restarts = 0
    private var chosen: [Row] = []
    private var open: Set<Row> = []
    private var worse: SequentialHolm
    private var better: SequentialHolm

    /// Creates a trial before its first restart.
    public init(_ rule: GateRule, rows: [Row]) {
        self.rule = rule
        self.rows = rows
        worse = SequentialHolm(alpha: rule.alpha, looks: rule.looks.count, count: 0)
        better = worse
    }

    /// Whether the second pass is running.
    public var isConfirming: Bool { restarts >= rule.screening }

    /// The rows that the next set of processes has to measure; empty: the trial is over.
    public var next: [Row] {
        isConfirming ? chosen.filter(open.contains) : rows.filter { failures[$0] == nil }
    }

    /// Stops measuring a row.
    public mutating func fail(_ row: Row, _ reason: String) {
        failures[row] = reason
        open.remove(row)
    }

    /// Adds the values of one set of processes, and tests them if a look is due.
    public mutating func add(_ values: [Row: Restart]) {
        let confirms = isConfirming
        for (row, restart) in values where failures[row] == nil && restart.change != nil {
            if confirms {
                confirmation[row, default: []].append(restart)
            } else {
                screening[row, default: []].append(restart)
            }
        }
        restarts += 1
        if restarts == rule.screening {
            choose()
        } else if rule.looks.contains(restarts - rule.screening) {
            look(isLast: restarts - rule.screening == rule.looks.last)
        }
    }

    /// Ends the first pass by choosing the rows of the second.
    private mutating func choose() {
        chosen = rows.filter { row in
            guard failures[row] == nil, let restarts = screening[row],
                let change = Estimate.median(restarts.compactMap(\.change))
            else { return false }
            let controls = restarts.compactMap(\.control)
            let isOneSided = controls.allSatisfy { $0 > 0 } || controls.allSatisfy { $0 < 0 }
            return abs(change) > rule.suspicion
                || isOneSided && abs(Estimate.median(controls) ?? 0) > rule.suspicion
        }
        open = Set(chosen)
        worse = SequentialHolm(alpha: rule.alpha, looks: rule.looks.count, count: chosen.count)
        better = worse
    }

    private mutating func look(isLast: Bool) {
        var losses: [Int: Double] = [:]
        var gains: [Int: Double] = [:]
        for (index, row) in chosen.enumerated() where open.contains(row) {
            let changes = (confirmation[row] ?? []).compactMap(\.change)
            losses[index] = Tails.sign(changes.count { $0 > rule.margin }, of: changes.count)
            gains[index] = Tails.sign(changes.count { $0 < -rule.margin }, of: changes.count)
        }
        worse.look(losses)
        better.look(gains)
        for (index, row) in chosen.enumerated() where open.contains(row) {
            let isDecided = worse.rejected.contains(index) || better.rejected.contains(index)
            if isLast || isDecided || isWithin(row) { open.remove(row) }
        }
    }

    /// Whether the values show, at 95 % each, that the row is neither worse nor better.
    private func isWithin(_ row: Row) -> Bool {
        let changes = (confirmation[row] ?? []).compactMap(\.change)
        return Tails.sign(changes.count { $0 < rule.margin }, of: changes.count) <= 0.05
            && Tails.sign(changes.count { $0 > -rule.margin }, of: changes.count) <= 0.05
    }

    // MARK: Verdicts

    /// The restarts by which a row is judged. For a selected row, these exclude the restarts that selected it.
    public func restarts(of row: Row) -> [Restart] { confirmation[row] ?? screening[row] ?? [] }

    /// HEAD over BASE, a factor.
    public func change(of row: Row) -> Estimate? {
        Estimate(restarts(of: row).compactMap(\.change))?.map(exp)
    }

    /// BASE again over BASE, a factor.
    public func control(of row: Row) -> Estimate? {
        Estimate(restarts(of: row).compactMap(\.control))?.map(exp)
    }

    /// The verdict on a row; before the end of the trial, as far as it is known.
    public func verdict(of row: Row) -> Verdict {
        guard failures[row] == nil, let change = change(of: row) else { return .failed }
        if isControlOff(row) { return .controlOff }
        if let index = chosen.firstIndex(of: row) {
            if worse.rejected.contains(index) { return .worse }
            if better.rejected.contains(index) { return .better }
        }
        return max(-log(change.low), log(change.high)) < rule.resolution ? .same : .unclear
    }

    /// Whether the two processes of BASE differ by more than chance, and by enough to matter. A few restarts cannot
    /// show that, so the first pass only selects such a row, and the second one judges it.
    private func isControlOff(_ row: Row) -> Bool {
        let controls = restarts(of: row).compactMap(\.control)
        guard let median = Estimate.median(controls), abs(median) > rule.suspicion else { return false }
        let above = controls.count { $0 > 0 }
        let p = 2 * Tails.sign(max(above, controls.count - above), of: controls.count)
        return p <= GateRule.alphaOfControls / Double(max(1, chosen.count))
    }
}
