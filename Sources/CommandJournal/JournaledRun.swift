// JournaledRun.swift - a run that records its own progress.

internal import Commands
internal import CompositeOperationsBasics
internal import Foundation
@_spi(Faces) internal import Runs

/// An active run of one command, or of several.
///
/// The run mirrors its records in the journal: an illegal record is a defect of this module, and stops the
/// process.
final class JournaledRun: Sendable {
    private struct State {
        var run: JournalRun
        var unrecorded: (any Error)?
    }

    let number: Int64
    private let writer: JournalWriter
    private let state: Guarded<State>
    private let instance = Instance(.journaledRuns)

    /// A run that an earlier process began.
    init(_ run: JournalRun, _ writer: JournalWriter) {
        number = run.number
        self.writer = writer
        state = Guarded(State(run: run))
    }

    /// Accepts a run. It becomes durable with the first commit of one of its records.
    init(_ kind: JournalRun.Kind, key: String?, _ members: [WrittenCommand], _ writer: JournalWriter) throws {
        var records = members.enumerated().map { index, member in
            JournalRecord(
                .accepted, member: index, type: member.type, key: member.key, payload: member.payload)
        }
        records.append(JournalRecord(.accepted, type: kind.rawValue, key: key))
        records = try writer.add(records)
        number = records[0].run
        self.writer = writer
        var run = JournalRun(number: number)
        for record in records { Self.apply(record, to: &run) }
        state = Guarded(State(run: run))
    }

    private static func apply(_ record: JournalRecord, to run: inout JournalRun) {
        do { try run.apply(record) } catch {
            fatalError("CommandJournal: its own record is illegal: \(error)")
        }
    }

    /// The state of the run in the journal.
    var run: JournalRun { state.withLock { $0.run } }

    /// The type of its only command, or its kind.
    var nameForTraces: String {
        let run = run
        return run.members.count == 1 ? run.members[0].type : "all or nothing"
    }

    /// The reason that completed work could not be recorded, if any: then nothing more of the run begins.
    var unrecorded: (any Error)? { state.withLock { $0.unrecorded } }

    func noteUnrecorded(_ error: any Error) {
        state.withLock { state in state.unrecorded = state.unrecorded ?? error }
    }

    /// Adds a record. A caller that needs it to be durable must call `commit()`.
    func add(
        _ phase: JournalRecord.Phase, member: Int?, type: String? = nil, payload: Data? = nil,
        proof: Data? = nil
    ) throws {
        let record = try writer.add([
            JournalRecord(phase, run: number, member: member, type: type, payload: payload, proof: proof)
        ])[0]
        state.withLock { Self.apply(record, to: &$0.run) }
    }

    func commit() async throws { try await writer.commit() }

    /// Calls code of a command, marked so that the journal can detect re-entrancy.
    func calling<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        try await ReentrancyMark.inTask(of: ReentrancyMark.innermost.with(writer), body)
    }

    /// Ends the run; returns when that is durable. A run that leaves something in doubt stays open, for
    /// recovery.
    func end(_ outcome: JournalOutcome, _ error: (any Error)?) async throws {
        if run.hasDoubt { return try await commit() }
        try add(.ended, member: nil, type: outcome.rawValue, payload: error.map(Self.text))
        try await commit()  // who is told, is told what is durable
    }

    /// The beginning of the error's text: short enough for any record. The text contains no value that
    /// could not be encoded.
    static func text(_ error: any Error) -> Data {
        Data(textOf(error).utf8.prefix(10_000))
    }
}

/// The text of an error; for coding errors, including nested ones, as ``textWithoutValues(of:)``.
func textOf(_ error: any Error) -> String {
    switch error {
    case is EncodingError, is DecodingError: return textWithoutValues(of: error)
    case let error as NotDone: return "not done: \(textOf(error.cause))"
    case let failure as TransactionFailure:
        let errors: [any Error] = [failure.rootCause] + failure.compensationFailures.map { $0.error }
        guard errors.contains(where: { $0 is EncodingError || $0 is DecodingError || $0 is NotDone }) else {
            return String(describing: failure)
        }
        return errors.map(textOf).joined(separator: "; ")
    default: return String(describing: error)
    }
}
