// CommandJournal+Recover.swift - ends the runs that an earlier process left unfinished.

public import Commands
internal import Foundation

extension CommandJournal {
    /// How recovery treats an unfinished all-or-nothing run in which nothing has failed.
    public enum Unfinished: Hashable, Sendable {
        /// The run is undone.
        case compensate
        /// The run continues.
        case resume
    }

    /// A command that may or may not have been done, or undone. Either it has no key and was not begun again; or it was begun again and
    /// threw an error other than ``NotDone``; or its result could not be encoded, and it was not undone because the undo of another
    /// command threw.
    public struct InDoubt: Hashable, Sendable {
        /// The number of the record that says that the command, or its undo, was begun.
        public let sequence: Int64
        /// The number of its run.
        public let run: Int64
        /// Its place in the run.
        public let member: Int
        /// The name of its type.
        public let type: String
        /// Whether its undo is in doubt.
        public let isUndo: Bool
        /// The error that the command threw when this recovery began it again; nil if it was not begun again, or threw nothing. Equality
        /// ignores the error.
        public let error: (any Error)?

        /// Whether both are in doubt because of the same record.
        public static func == (one: InDoubt, other: InDoubt) -> Bool { one.sequence == other.sequence }

        /// Hashes the number of the record.
        public func hash(into hasher: inout Hasher) { hasher.combine(sequence) }
    }

    /// The decision about a command in doubt.
    public enum DoubtAnswer: Hashable, Sendable {
        /// Not known: its run stays as it is.
        case leave
        /// The command is begun again: it did not happen, or may happen twice. For a command that threw in this recovery, the next
        /// recovery begins it again.
        case again
        /// The doubt was resolved outside the journal: the command counts as not done, or as undone.
        case over
    }

    /// How recovery treats an unreadable run: the journal was not given one of its types, or a command, an output or a proof cannot be
    /// decoded.
    public enum Undecodable: Hashable, Sendable {
        /// The recovery throws; if a command cannot be read, before it does anything.
        case stop
        /// The run stays as it is, for a later recovery that can read it. All other runs are recovered, and commands can be executed.
        case park
        /// The run is ended, ``JournalOutcome/incomplete`` if any of its effects may be left; nothing is done or undone. Its keys stay
        /// known.
        case abandon
    }

    /// The result of a recovery.
    public struct RecoveryReport: Sendable {
        /// A run that was ended.
        public struct Run: Sendable {
            /// The number of its first record.
            public let number: Int64
            /// How it ended.
            public let outcome: JournalOutcome
            /// The error of the run, if any.
            public let error: (any Error)?
        }

        /// The runs that were ended, in the order in which they ended.
        public internal(set) var runs: [Run] = []
        /// The commands that are still in doubt. Their runs have not ended.
        public internal(set) var inDoubt: [InDoubt] = []

        /// A run that was not recovered because it cannot be read.
        public struct Parked: Sendable {
            /// The number of its first record.
            public let number: Int64
            /// ``JournalError/unknownType(_:sequence:)`` or ``JournalError/undecodable(type:sequence:_:)``.
            public let error: any Error
        }

        /// The runs that were parked, in order. They have not ended.
        public internal(set) var parked: [Parked] = []
    }

    /// Ends the runs of earlier processes, one after another: a single command is completed; an all-or-nothing run is undone or
    /// continued. Call it once, before anything is executed, and again when something was left in doubt.
    ///
    /// Unfinished commands are begun again if they have a key, or change nothing. When one throws, the call before the crash may still
    /// have had its effect: the command stays in doubt, unless the error is ``NotDone``. A recovery may be killed and called again at any
    /// point: it records its own progress.
    ///
    /// - Parameters:
    ///   - unfinished: the treatment of an unfinished all-or-nothing run. A run that was already being undone is undone; a run whose
    ///     members were all done has succeeded.
    ///   - compensation: what happens when an undo throws.
    ///   - undecodable: the treatment of a run that cannot be read.
    ///   - deciding: called for each command in doubt that has no key, in order, and then for each that threw when it was begun again. A
    ///     run continues when nothing in it is left in doubt.
    /// - Throws: ``JournalError/busy``, ``JournalError/closed``, ``JournalError/fileReplaced(path:)`` and ``JournalError/storage(_:)``;
    ///   and, with `Undecodable.stop`, ``JournalError/unknownType(_:sequence:)`` and ``JournalError/undecodable(type:sequence:_:)`` for a
    ///   command that cannot be read: nothing was done then. ``JournalError/recoveryStopped(_:_:)``, with the report so far, when the
    ///   recovery has begun and the journal cannot be written, an output or a proof cannot be decoded, or the recovery is cancelled
    ///   between runs. The error of a command does not end the recovery; the report contains it.
    public func recover(
        _ unfinished: Unfinished = .compensate,
        compensation: TransactionOptions.Compensation = .continueOnFailure,
        undecodable: Undecodable = .stop,
        deciding: (InDoubt) async -> DoubtAnswer = { _ in .leave }
    ) async throws -> RecoveryReport {
        if let failure = writer.failure { throw failure }
        let runs = try live.beginRecovery()
        var isWhole = false
        defer { live.endRecovery(isWhole: isWhole) }
        let read = runs.map { run in
            Result { try run.members.map { try types.read(WrittenCommand($0), at: $0.last) } }
        }
        if undecodable == .stop { for each in read { _ = try each.get() } }
        var report = RecoveryReport()
        do {
            for (run, commands) in zip(runs, read) {
                try Task.checkCancellation()
                let journaled = JournaledRun(run, writer)
                do {
                    try await recover(
                        journaled, commands.get(), unfinished, compensation, &report, deciding)
                } catch let error as JournalError where error.isUnreadable && undecodable != .stop {
                    if undecodable == .park {
                        report.parked.append(RecoveryReport.Parked(number: run.number, error: error))
                    } else {
                        report.runs.append(try await abandon(journaled, error))
                    }
                }
            }
        } catch { throw JournalError.recoveryStopped(report, error) }
        isWhole = true
        return report
    }

    /// Ends a run, or reports its commands in doubt.
    private func recover(
        _ journaled: JournaledRun, _ commands: [any JournaledCommand], _ unfinished: Unfinished,
        _ compensation: TransactionOptions.Compensation, _ report: inout RecoveryReport,
        _ deciding: (InDoubt) async -> DoubtAnswer
    ) async throws {
        let run = journaled.run
        // Checks that the whole run can be read, before any of it is done.
        for index in commands.indices { _ = try member(index, commands, journaled) }
        let unrepeatable = doubts(run).filter { doubt in
            let command = commands[doubt.member]
            return command.idempotencyKey == nil && command.undoability != .noEffect
        }
        // While a command is in doubt, nothing else of its run is done or undone.
        let left = try await decide(unrepeatable, leaving: [.leave], journaled, deciding)
        report.inDoubt += left
        guard left.isEmpty else { return }
        let failures = try await uncancelled(journaled) { try await self.settle(journaled, commands) }
        let errors = Dictionary(uniqueKeysWithValues: failures.map { ($0.member, $0.error) })
        let unsettled = doubts(journaled.run, errors).filter { $0.error != nil }
        guard try await decide(unsettled, leaving: [.leave, .again], journaled, deciding).isEmpty else {
            // Includes commands that threw nothing but whose results cannot be encoded.
            report.inDoubt += doubts(journaled.run, errors)
            return
        }
        let ended = try await uncancelled(journaled) {
            try await self.carryOut(
                RecoveryPlan(run, unfinished), journaled, commands, failures.first?.error, compensation)
        }
        if let ended { report.runs.append(ended) } else { report.inDoubt += doubts(journaled.run) }
    }

    /// Ends a run that cannot be read, without doing or undoing anything.
    private func abandon(_ run: JournaledRun, _ error: any Error) async throws -> RecoveryReport.Run {
        let members = run.run.members
        let isLeft = members.contains { $0.phase != nil && ($0.phase != .failed || $0.left != nil) }
        for (index, member) in members.enumerated() where member.isInDoubt {
            let isUndo = member.phase == .undoing
            try run.add(
                isUndo ? .undoFailed : .failed, member: index,
                type: isUndo ? nil : JournalOutcome.incomplete.rawValue, payload: JournaledRun.text(error))
        }
        let outcome = isLeft ? JournalOutcome.incomplete : .failed
        try await run.end(outcome, error)
        live.recovered(run.run)
        return RecoveryReport.Run(number: run.number, outcome: outcome, error: error)
    }

    /// Calls `body` in a task that is never cancelled: a recovery must not leave a run half-way.
    private func uncancelled<Value: Sendable>(
        _ run: JournaledRun, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let result = await Task { await Result<Value, any Error>.of(body) }.value
        live.recovered(run.run)
        return try result.get()
    }

    /// - Parameter errors: the errors of members that were begun again, by member.
    private func doubts(_ run: JournalRun, _ errors: [Int: any Error] = [:]) -> [InDoubt] {
        run.members.enumerated().filter(\.element.isInDoubt).map { index, member in
            InDoubt(
                sequence: member.last, run: run.number, member: index, type: member.type,
                isUndo: member.phase == .undoing, error: errors[index])
        }
    }

    /// Calls `deciding` for each doubt. Records the doubts that are over; if any is left, records nothing.
    ///
    /// - Parameter leaving: the answers that leave something in doubt.
    /// - Returns: the doubts that are left.
    private func decide(
        _ doubts: [InDoubt], leaving: [DoubtAnswer], _ run: JournaledRun,
        _ deciding: (InDoubt) async -> DoubtAnswer
    ) async throws -> [InDoubt] {
        var (left, over): ([InDoubt], [InDoubt]) = ([], [])
        for doubt in doubts {
            let answer = await deciding(doubt)
            if leaving.contains(answer) { left.append(doubt) }
            if answer == .over { over.append(doubt) }
        }
        guard left.isEmpty else { return left }
        for doubt in over {
            try run.add(
                doubt.isUndo ? .undone : .failed, member: doubt.member,
                payload: doubt.isUndo ? nil : Data("over".utf8))
        }
        return []
    }

    /// - Parameter failure: the error of the first command that threw when it was begun again.
    /// - Returns: nil when something is still in doubt.
    private func carryOut(
        _ plan: RecoveryPlan, _ run: JournaledRun, _ commands: [any JournaledCommand],
        _ failure: (any Error)?, _ compensation: TransactionOptions.Compensation
    ) async throws -> RecoveryReport.Run? {
        // A command that was in doubt may have failed; or all members may be done now.
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
        } catch {
            if let failure = writer.failure { throw failure }
            guard let outcome = run.run.outcome else { return nil }
            return RecoveryReport.Run(number: run.number, outcome: outcome, error: failure ?? reason(error))
        }
        return RecoveryReport.Run(number: run.number, outcome: .finished, error: nil)
    }

    /// Begins again, one after another, each command that is in doubt or lacks a proof. Afterwards it is known whether the command was
    /// done, and what its proof is.
    ///
    /// - Returns: the members that threw, in that order, and their errors.
    private func settle(
        _ run: JournaledRun, _ commands: [any JournaledCommand]
    ) async throws -> [(member: Int, error: any Error)] {
        var failures: [(member: Int, error: any Error)] = []
        let members = run.run.members
        for index in members.indices.filter({ members[$0].needsProof }).sorted(by: {
            members[$0].order < members[$1].order
        }) {
            func open<C: UndoableCommand>(_ command: C) async throws {
                _ = try await TransactionCommand(command).execute(CommandContext())
            }
            do { try await open(member(index, commands, run)) } catch { failures.append((index, error)) }
            if let failure = writer.failure { throw failure }
        }
        return failures
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

    /// - Returns: nil when nothing failed but `TakeBack`, which triggers the undoing.
    private func reason(_ error: any Error) -> (any Error)? {
        guard let failure = error as? TransactionFailure, failure.cause is TakeBack.Order else {
            return error
        }
        return failure.compensationFailures.isEmpty ? nil : failure
    }
}

/// A command that was done and whose undo threw. It has neither a key nor a proof, so neither its work nor its undo is begun again.
private struct Staying: UndoableCommand {
    let failure: RecordedUndoFailure

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> { Performed() }
    func undo(_ undo: Void, _ context: CommandContext) async throws { throw failure }
}

/// The last member of a run that is to be undone: its failure triggers the undoing.
private struct TakeBack: UndoableCommand {
    struct Order: Error {}

    func perform(_ context: CommandContext) async throws -> Performed<Void, Void> { throw Order() }
    func undo(_ undo: Void, _ context: CommandContext) async throws {}
}
