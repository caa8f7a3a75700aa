import BenchmarkCore
public import BenchmarkHarness
import Foundation

/// Measures two programs side by side, with BASE in two processes, as a ``Trial`` requires.
public final class SideBySide {
    /// The programs that take part.
    private enum Side: String, CaseIterable {
        case base = "BASE"
        case again = "BASE again"
        case head = "HEAD"
    }

    private let programs: [Side: Program]
    private let limit: Duration
    private let progress: (String) -> Void
    private var random: SeededGenerator
    private var metrics: [Row: ListedWorkload.Metric] = [:]
    private var rounds: [Row: Int] = [:]
    private var checksums: [Row: [Side: UInt64]] = [:]

    /// Creates a measurement.
    ///
    /// - Parameter limit: the longest that a sample may take; a process that takes longer is killed.
    public init(
        base: Program, head: Program, limit: Duration, seed: UInt64, progress: @escaping (String) -> Void
    ) {
        programs = [.base: base, .again: base, .head: head]
        self.limit = limit
        self.progress = progress
        random = SeededGenerator(seed: seed)
    }

    // MARK: Rows

    /// The rows that both programs have, in the order of HEAD, and those that only one of them has.
    public struct Rows: Sendable {
        /// Rows of both programs.
        public var common: [Row] = []
        /// Rows of BASE only, with nothing to compare them with.
        public var onlyBase: [Row] = []
        /// Rows of HEAD only.
        public var onlyHead: [Row] = []
        /// The metric by which a row is compared, if that is not the time.
        public var metrics: [Row: ListedWorkload.Metric] = [:]
    }

    /// Finds the rows.
    ///
    /// - Parameter wanted: `name` for all sizes that the programs list, or `name=n` for that size. Nil: all
    ///   rows.
    /// - Throws: ``BenchmarkError`` that names what is unknown, or a program that does not answer.
    public func rows(_ wanted: [String]?) async throws -> Rows {
        let chosen = try wanted.map { try $0.map(Self.choice) }
        // A program that predates the list can still run a workload that is named with its size.
        let isOptional = chosen?.allSatisfy { $0.n != nil } ?? false
        let (base, head) = (try await list(.base, isOptional), try await list(.head, isOptional))
        for workload in (head ?? []) + (base ?? []) {
            for n in workload.n { metrics[Row(workload: workload.workload, n: n)] = workload.metric }
        }
        var rows = Rows()
        if let chosen {
            for (name, n) in chosen {
                let listed = [head, base].compactMap(\.self).map { $0.filter { $0.workload == name } }
                if let known = [head, base].compactMap(\.self).first(where: {
                    !$0.contains { $0.workload == name }
                }) {
                    let names = known.map(\.workload).joined(separator: ", ")
                    throw BenchmarkError(
                        "There is no workload '\(name)' in both commits; there are \(names).")
                }
                for n in n.map({ [$0] }) ?? listed.first?.first?.n ?? [] {
                    let row = Row(workload: name, n: n)
                    metrics[row] = listed.first?.first?.metric
                    if !rows.common.contains(row) { rows.common.append(row) }
                }
            }
        } else {
            let (base, head) = (Self.rows(base), Self.rows(head))
            rows.common = head.filter(base.contains)
            rows.onlyBase = base.filter { !head.contains($0) }
            rows.onlyHead = head.filter { !base.contains($0) }
        }
        rows.metrics = metrics
        guard !rows.common.isEmpty else {
            throw BenchmarkError("The two commits have no workload in common.", kind: .notMeasured)
        }
        return rows
    }

    private static func rows(_ list: [ListedWorkload]?) -> [Row] {
        (list ?? []).flatMap { workload in workload.n.map { Row(workload: workload.workload, n: $0) } }
    }

    private static func choice(_ text: String) throws -> (name: String, n: Int?) {
        guard let equals = text.lastIndex(of: "=") else { return (text, nil) }
        guard let n = Int(text[text.index(after: equals)...]), n > 0 else {
            throw BenchmarkError("'\(text)' is no workload with a size: W1=1000 is one.")
        }
        return (String(text[..<equals]), n)
    }

    /// Returns nil if the program has no list and does not need one.
    private func list(_ side: Side, _ isOptional: Bool) async throws -> [ListedWorkload]? {
        let children = Children(programs)
        let answer = try await children.child(side).ask(.list, limit: limit)
        await children.endAll()
        if Task.isCancelled { throw BenchmarkError.interrupted }
        let what: String
        switch answer {
        case .answered(let response):
            if let workloads = response.workloads {
                guard (response.protocol ?? 1) == Request.currentProtocol else {
                    throw BenchmarkError(
                        "\(side.rawValue) speaks version \(response.protocol ?? 1) of the protocol; this is \(Request.currentProtocol).",
                        kind: .notMeasured)
                }
                return workloads
            }
            what = "answers: \(response.error ?? "no workloads")"
        case .timedOut: what = "does not answer within \(limit)"
        case .died: what = "ends, or answers with what is not JSON of the protocol"
        }
        if isOptional { return nil }
        throw BenchmarkError(
            """
            Asked for its workloads, \(side.rawValue) \(what). A program from before it could name them is compared by \
            '--workloads NAME=N'. The protocol is in docs/benchmark-protocol.md.
            """, kind: .notMeasured)
    }

    // MARK: Measuring

    /// Carries out a trial.
    ///
    /// - Throws: ``BenchmarkError`` when a result is wrong, no process can be started, or after an interrupt.
    public func run(_ rule: GateRule, _ rows: [Row]) async throws -> Trial {
        var trial = Trial(rule, rows: rows)
        var count = 0
        while !trial.next.isEmpty {
            count += 1
            try await measure(trial.next, in: &trial, restart: count)
        }
        return trial
    }

    private func measure(_ rows: [Row], in trial: inout Trial, restart count: Int) async throws {
        let children = Children(programs)
        do {
            try await measure(rows, in: &trial, restart: count, children)
        } catch {
            await children.endAll()
            throw error
        }
        await children.endAll()
    }

    private func measure(
        _ rows: [Row], in trial: inout Trial, restart count: Int, _ children: Children
    ) async throws {
        // In shuffled order, because the memory layout of the first process to start differs.
        for side in Side.allCases.shuffled(using: &random) {
            _ = try await children.child(side)
        }
        let pass = trial.isConfirming ? "confirming" : "screening"
        let last =
            trial.isConfirming ? trial.rule.screening + (trial.rule.looks.last ?? 0) : trial.rule.screening
        var values: [Row: Restart] = [:]
        for (index, row) in rows.shuffled(using: &random).enumerated() {
            progress(
                "\(pass), restart \(count) of at most \(last), row \(index + 1) of \(rows.count): \(row.workload) n=\(row.n)"
            )
            do {
                values[row] = try await measure(row, trial.rule, children)
            } catch let failure as Failure {
                trial.fail(row, failure.sentence)
            }
        }
        trial.add(values)
    }

    /// Why one row has no values.
    private struct Failure: Error { let sentence: String }

    private func measure(_ row: Row, _ rule: GateRule, _ children: Children) async throws -> Restart {
        // The first sample of a process includes its start-up; a long sample is warm for most of its time.
        var seconds = try await warmUp(row, children)
        if seconds < 0.2 { seconds = try await warmUp(row, children) }
        // Taken from the first set of processes, so that the number does not depend on later measurements.
        let rounds = self.rounds[row] ?? rule.rounds(ofSample: seconds)
        self.rounds[row] = rounds
        var restart = Restart()
        for _ in 0..<rounds {
            var values: [Side: Double] = [:]
            for side in Side.allCases.shuffled(using: &random) {
                values[side] = try await sample(row, side, children)
            }
            restart.base.append(values[.base, default: 0])
            restart.again.append(values[.again, default: 0])
            restart.head.append(values[.head, default: 0])
        }
        return restart
    }

    /// Runs each side once.
    ///
    /// - Returns: the seconds of a sample, on average.
    private func warmUp(_ row: Row, _ children: Children) async throws -> Double {
        let began = ContinuousClock.now
        for side in Side.allCases.shuffled(using: &random) { _ = try await sample(row, side, children) }
        return (ContinuousClock.now - began) / .seconds(3)
    }

    private func sample(_ row: Row, _ side: Side, _ children: Children) async throws -> Double {
        let request = Request(workload: row.workload, n: row.n)
        let answer = try await children.child(side).ask(request, limit: limit)
        if Task.isCancelled { throw BenchmarkError.interrupted }
        switch answer {
        case .timedOut: throw Failure(sentence: "\(side.rawValue) was ended after \(limit)")
        case .died:
            throw Failure(
                sentence: "\(side.rawValue) ended, or answered with what is not JSON of the protocol")
        case .answered(let response):
            guard let sample = response.sample else {
                throw Failure(sentence: "\(side.rawValue): \(response.error ?? "an answer without a sample")")
            }
            try check(sample, of: row, side)
            let value = Measurement.value(of: sample, by: metrics[row] ?? .time)
            guard value > 0 else {
                throw Failure(sentence: "\(side.rawValue) measured 0, which nothing can be compared with")
            }
            return value
        }
    }

    /// Both commits have to do the same work, every time.
    private func check(_ sample: Sample, of row: Row, _ side: Side) throws {
        let known = checksums[row, default: [:]]
        guard let (other, expected) = known.first(where: { $0.value != sample.checksum }) else {
            checksums[row, default: [:]][side] = sample.checksum
            return
        }
        let results = [(other, expected), (side, sample.checksum)].sorted { $0.0.rawValue < $1.0.rawValue }
        let sentence = results.map { "\($0.0.rawValue) computed \($0.1)" }.joined(separator: " and ")
        throw BenchmarkError(
            """
            In \(row.workload) with n = \(row.n) \(sentence): they do not do the same work, or one of them is wrong.
            """, kind: .wrongResult)
    }

    /// One set of processes; a process that died is restarted when it is used again.
    private final class Children {
        private let programs: [Side: Program]
        private var children: [Side: ChildProcess] = [:]

        init(_ programs: [Side: Program]) { self.programs = programs }

        func child(_ side: Side) async throws -> ChildProcess {
            if let child = children[side], child.isAlive { return child }
            guard let program = programs[side] else { fatalError("no program of \(side)") }
            let child = try await ChildProcess(
                program: program.command[0], arguments: Array(program.command.dropFirst()),
                environment: program.environment)
            children[side] = child
            return child
        }

        func endAll() async { for child in children.values { await child.end() } }
    }
}
