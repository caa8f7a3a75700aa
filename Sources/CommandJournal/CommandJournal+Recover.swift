// CommandJournal+Recover.swift - ends what an earlier process left.

public import Commands
internal import Foundation

extension CommandJournal {
    /// What becomes of an all-or-nothing run that was in the middle, when nothing of it had failed.
    public enum Unfinished: Hashable, Sendable {
        /// It is taken back.
        case compensate
        /// It goes on.
        case resume
    }

    /// A command of which nobody knows whether it was done, or undone, and that was not begun again: it has no key; or it gave
    /// what cannot be written down, and was not taken back, because the undo of another one threw.
    public struct InDoubt: Hashable, Sendable {
        /// The number of the record that says that it was begun, or that its undo was.
        public let sequence: Int64
        /// The number of its run.
        public let run: Int64
        /// Its place in the run.
        public let member: Int
        /// The name of its type.
        public let type: String
        /// Whether it is its undo that is in doubt.
        public let isUndo: Bool
    }

    /// What is to become of something in doubt.
    public enum DoubtAnswer: Hashable, Sendable {
        /// Nobody knows: its run stays as it is.
        case leave
        /// It is begun again: it did not happen, or may happen twice.
        case again
        /// Somebody has seen to it: it counts as not done, or as undone.
        case over
    }

    /// What a recovery did.
    public struct RecoveryReport: Sendable {
        /// A run that was ended.
        public struct Run: Sendable {
            /// The number of its first record.
            public let number: Int64
            /// How it ended.
            public let outcome: JournalOutcome
            /// What went wrong meanwhile.
            public let error: (any Error)?
        }

        /// The runs that were ended, in that order.
        public internal(set) var runs: [Run] = []
        /// What is in doubt still. The runs of these have not ended.
        public internal(set) var inDoubt: [InDoubt] = []
    }

    /// Ends the runs of earlier processes, one after another: a command by itself is done; several, all or nothing, are taken
    /// back or go on. To be called once, before anything is executed; again, when something was left in doubt.
    ///
    /// What was in the middle is begun again if it has a key, or changes nothing. It may be killed and called again at any
    /// point: what it does, it writes down.
    ///
    /// - Parameters:
    ///   - unfinished: what becomes of an all-or-nothing run in the middle. One that was being taken back is taken back; one of
    ///     which all was done has succeeded.
    ///   - compensation: what happens when an undo throws.
    ///   - deciding: is asked about each command in doubt that has no key, in their order. A run begins again when
    ///     nothing in it is left.
    /// - Throws: ``JournalError/unknownType(_:sequence:)`` and ``JournalError/undecodable(type:sequence:_:)`` for a command: nothing
    ///   was done; the latter for an output or a proof, too: runs before that one have ended, and it stays as it is;
    ///   ``JournalError/busy``; ``JournalError/closed``; ``JournalError/storage(_:)``; a `CancellationError`, between runs. What a
    ///   command throws does not end it, and is in the report.
    public func recover(
        _ unfinished: Unfinished = .compensate,
        compensation: TransactionOptions.Compensation = .continueOnFailure,
        deciding: (InDoubt) async -> DoubtAnswer = { _ in .leave }
    ) async throws -> RecoveryReport {
        if let failure = writer.failure { throw failure }
        let runs = try live.beginRecovery()
        var isWhole = false
        defer { live.endRecovery(isWhole: isWhole) }
        let commands = try runs.map { run in
            try run.members.map { try types.read(WrittenCommand($0), at: $0.last) }
        }
        var report = RecoveryReport()
        for (run, commands) in zip(runs, commands) {
            try Task.checkCancellation()
            let plan = RecoveryPlan(run, unfinished)
            guard let answers = await answers(plan, run, commands, &report, deciding) else { continue }
            let journaled = JournaledRun(run, writer)
            // Nobody cancels it: to end a run in the middle is what it is for.
            let ended = await Task {
                await Result<RecoveryReport.Run?, any Error>.of {
                    try await self.carryOut(plan, journaled, commands, answers, compensation)
                }
            }.value
            live.recovered(journaled.run)
            if let ended = try ended.get() {
                report.runs.append(ended)
            } else {
                report.inDoubt += doubts(journaled.run)
            }
        }
        isWhole = true
        return report
    }

    private func doubts(_ run: JournalRun) -> [InDoubt] {
        run.members.enumerated().filter(\.element.isInDoubt).map { index, member in
            InDoubt(
                sequence: member.last, run: run.number, member: index, type: member.type,
                isUndo: member.phase == .undoing)
        }
    }

    /// - Returns: by member, what is to become of those without a key that are in doubt; nil when one of them is left.
    private func answers(
        _ plan: RecoveryPlan, _ run: JournalRun, _ commands: [any JournaledCommand],
        _ report: inout RecoveryReport, _ deciding: (InDoubt) async -> DoubtAnswer
    ) async -> [Int: DoubtAnswer]? {
        if case .end = plan { return [:] }
        var answers: [Int: DoubtAnswer] = [:]
        var left: [InDoubt] = []
        for doubt in doubts(run) {
            let command = commands[doubt.member]
            if command.idempotencyKey != nil || command.undoability == .noEffect { continue }
            let answer = await deciding(doubt)
            answers[doubt.member] = answer
            if answer == .leave { left.append(doubt) }
        }
        report.inDoubt += left
        return left.isEmpty ? answers : nil
    }

    /// - Returns: nil when something is in doubt still.
    private func carryOut(
        _ plan: RecoveryPlan, _ run: JournaledRun, _ commands: [any JournaledCommand],
        _ answers: [Int: DoubtAnswer], _ compensation: TransactionOptions.Compensation
    ) async throws -> RecoveryReport.Run? {
        for (index, answer) in answers where answer == .over {
            let isUndo = run.run.members[index].phase == .undoing
            try run.add(isUndo ? .undone : .failed, member: index, payload: isUndo ? nil : Data("over".utf8))
        }
        let (failure, isKnown) = try await settle(run, commands)
        if !isKnown { return nil }  // nothing is done, or taken back, beside what is in doubt
        // One that was in doubt may have failed; or all may be done now.
        let plan = plan == .forward ? RecoveryPlan(run.run, .resume) : plan
        if case .end(let outcome) = plan {
            try await run.end(outcome, failure)
            return RecoveryReport.Run(number: run.number, outcome: outcome, error: failure)
        }
        var members = try plan.members(of: run.run).map { try member($0, commands, run) }
        if plan == .compensate { members.append(TakeBack()) }
        let options = TransactionOptions(compensation: compensation)
        let transaction = TransactionCommand(commands: members, options: options)
        do {
            let leavesIrreversible = zip(run.run.members, commands).contains { member, command in
                if case .irreversible = command.undoability { member.phase == .undone } else { false }
            }
            try await finish(
                run, of: transaction, CommandContext(), leavesIrreversible: leavesIrreversible)
        } catch let error as JournalError { throw error } catch {
            guard let outcome = run.run.outcome else { return nil }
            return RecoveryReport.Run(number: run.number, outcome: outcome, error: failure ?? reason(error))
        }
        return RecoveryReport.Run(number: run.number, outcome: .finished, error: nil)
    }

    /// Begins again what is in doubt, or lacks a proof, one after another: then it is known whether it was done, and with which.
    ///
    /// - Returns: what the first one threw that did; whether each could tell.
    private func settle(_ run: JournaledRun, _ commands: [any JournaledCommand]) async throws -> (
        failure: (any Error)?, isKnown: Bool
    ) {
        var failure: (any Error)?
        var isKnown = true
        let members = run.run.members
        for index in members.indices.filter({ members[$0].needsProof }).sorted(by: {
            members[$0].order < members[$1].order
        }) {
            func open<C: UndoableCommand>(_ command: C) async throws {
                _ = try await TransactionCommand(command).execute(CommandContext())
            }
            do { try await open(member(index, commands, run)) } catch {
                if isUnknown(error) { isKnown = false }
                failure = failure ?? error
            }
            if let failure = writer.failure { throw failure }
        }
        return (failure, isKnown)
    }

    private func member(
        _ index: Int, _ commands: [any JournaledCommand], _ run: JournaledRun
    ) throws -> any UndoableCommand {
        func open<C: JournaledCommand>(_ command: C) throws -> any UndoableCommand {
            try JournaledMember(command, index, run, run.run.members[index])
        }
        let member = run.run.members[index]
        if member.stays { return Staying(failure: RecordedUndoFailure(text: member.text ?? "")) }
        return try open(commands[index])
    }

    /// - Returns: nil when all that failed is that it was to be taken back.
    private func reason(_ error: any Error) -> (any Error)? {
        guard let failure = error as? TransactionFailure, failure.cause is TakeBack.Order else {
            return error
        }
        return failure.compensationFailures.isEmpty ? nil : failure
    }
}

/// Something that was done, whose undo threw; it has no key, and gave no proof, so nothing of it is begun again.
private struct Staying: UndoableCommand {
    let failure: RecordedUndoFailure

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> { Performed() }
    func undo(_ undo: Void, _ context: CommandContext) async throws { throw failure }
}

/// The last member of a run that is to be taken back: it fails.
private struct TakeBack: UndoableCommand {
    struct Order: Error {}

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> { throw Order() }
    func undo(_ undo: Void, _ context: CommandContext) async throws {}
}
