// JournaledRun.swift - a run that writes down what happens in it.

internal import Commands
internal import CompositeOperationsBasics
internal import Foundation
@_spi(Faces) internal import Runs

/// A run of one command, or of several, that is going on.
///
/// It knows what the journal says of it: a record that cannot be is a defect of this module, and stops the process.
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

    /// Accepts a run. It is durable with whatever of it is committed first.
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

    /// Its entries in the journal.
    var run: JournalRun { state.withLock { $0.run } }

    /// Its one command's, or what it is.
    var nameForTraces: String {
        let run = run
        return run.members.count == 1 ? run.members[0].type : "all or nothing"
    }

    /// Why something that was done could not be written down, if so: then nothing more of the run begins.
    var unrecorded: (any Error)? { state.withLock { $0.unrecorded } }

    func noteUnrecorded(_ error: any Error) {
        state.withLock { state in state.unrecorded = state.unrecorded ?? error }
    }

    /// Adds a record. What must be durable is committed by whoever needs that.
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

    /// Calls what a command does; the journal knows that it does.
    func calling<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        try await ReentrancyMark.inTask(of: ReentrancyMark.innermost.with(writer), body)
    }

    /// Ends the run; returns when that is durable. One that leaves something in doubt stays open, for recovery.
    func end(_ outcome: JournalOutcome, _ error: (any Error)?) async throws {
        if run.hasDoubt { return try await commit() }
        try add(.ended, member: nil, type: outcome.rawValue, payload: error.map(Self.text))
        try await commit()  // who is told, is told what is durable
    }

    /// The beginning of its text: as much as any record can hold. Of what could not be encoded it has no value.
    static func text(_ error: any Error) -> Data {
        Data(textOf(error).utf8.prefix(10_000))
    }
}

/// The text of an error; of errors of coding, also of those that it has in itself, as ``textWithoutValues(of:)``.
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
