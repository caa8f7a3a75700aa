import BenchmarkHarness
public import Foundation

/// The result of one run of `ab`: the commits, the rule, the raw values and the verdicts.
public struct GateDocument: Encodable, Sendable {
    /// One row.
    public struct Line: Encodable, Sendable {
        /// The workload and its size.
        public var row: Row
        /// The unit of the values.
        public var unit: String
        /// The verdict.
        public var verdict: Verdict
        /// HEAD over BASE; nil without values.
        public var change: Interval?
        /// BASE again over BASE.
        public var control: Interval?
        /// Why there are no values.
        public var failure: String?
        /// The raw values of the first pass.
        public var screening: [Restart]
        /// The raw values of the second pass.
        public var confirmation: [Restart]
    }

    /// The version of the format.
    public var schema = 1
    /// When the comparison ended, in ISO 8601.
    public var date: String
    /// The seed of every shuffle.
    public var seed: UInt64
    /// The earlier commit.
    public var base: Commit
    /// The later commit.
    public var head: Commit
    /// The rule of the verdicts.
    public var rule: GateRule
    /// The machine.
    public var machine: [String: String]
    /// The verdict on the whole comparison.
    public var outcome: GateOutcome
    /// All rows, the worst first.
    public var rows: [Line]
    /// Rows that only BASE has.
    public var onlyBase: [Row]
    /// Rows that only HEAD has.
    public var onlyHead: [Row]

    /// Summarises a trial.
    public init(_ trial: Trial, of rows: SideBySide.Rows, base: Commit, head: Commit, seed: UInt64) {
        date = Date().formatted(.iso8601)
        self.seed = seed
        self.base = base
        self.head = head
        rule = trial.rule
        machine = Machine.description()
        onlyBase = rows.onlyBase
        onlyHead = rows.onlyHead
        self.rows = trial.rows.map { row in
            Line(
                row: row, unit: rows.metrics[row] == .latency_p99 ? "µs" : "ns/op",
                verdict: trial.verdict(of: row), change: trial.change(of: row).map(Interval.init),
                control: trial.control(of: row).map(Interval.init), failure: trial.failures[row],
                screening: trial.screening[row] ?? [], confirmation: trial.confirmation[row] ?? [])
        }.sorted { ($0.change?.median ?? .infinity) > ($1.change?.median ?? .infinity) }
        outcome = GateOutcome(self.rows.map(\.verdict))
    }

    /// The document as JSON.
    public func json() throws -> Data { try readableJSON(self) }
}

/// The verdict of a whole comparison, which decides the exit status.
public enum GateOutcome: String, Codable, Sendable {
    /// No row is worse.
    case passed
    /// At least one row is worse.
    case worse
    /// No row is worse, but at least one has no verdict, or there are no rows.
    case notMeasured = "not measured"

    /// Summarises verdicts.
    public init(_ verdicts: [Verdict]) {
        if verdicts.contains(.worse) {
            self = .worse
        } else if verdicts.isEmpty || verdicts.contains(.controlOff) || verdicts.contains(.failed) {
            self = .notMeasured
        } else {
            self = .passed
        }
    }

    /// The exit status. A loss is 3, which cannot be mistaken for a failed build (1), a wrong result (2) or a wrong
    /// argument (64).
    public var status: Int32 {
        switch self {
        case .passed: 0
        case .notMeasured: 1
        case .worse: 3
        }
    }
}
