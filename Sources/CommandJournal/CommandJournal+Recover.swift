// CommandJournal+Recover.swift - ends what an earlier process left.

public import Commands
internal import Foundation

extension CommandJournal {
    /// How recovery treats an all-or-nothing run that was in the middle, when nothing of it had failed.
    public enum Unfinished: Hashable, Sendable {
        /// The run is taken back.
        case compensate
        /// The run goes on.
        case resume
    }

    /// A command of which nobody knows whether it was done, or undone: it has no key, and was not begun again; or it was done again,
    /// and threw something other than ``NotDone``; or it gave what cannot be written down, and was not taken back, because the undo of
    /// another one threw.
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
        /// The error that it threw when this recovery began it again; nil: it was not begun again, or threw nothing. Equality ignores it.
        public let error: (any Error)?

        /// Whether both are in doubt by the same record.
        public static func == (one: InDoubt, other: InDoubt) -> Bool { one.sequence == other.sequence }

        /// Hashes the number of the record.
        public func hash(into hasher: inout Hasher) { hasher.combine(sequence) }
    }

    /// The fate of a command in doubt.
    public enum DoubtAnswer: Hashable, Sendable {
        /// Nobody knows: its run stays as it is.
        case leave
        /// The command is begun again: it did not happen, or may happen twice. Once it has thrown, that is for the next recovery.
        case again
        /// Somebody has seen to it: it counts as not done, or as undone.
        case over
    }

    /// How recovery treats a run that cannot be read: a type in it is not among those that the journal was given, or a command, an output
    /// or a proof cannot be decoded.
    public enum Undecodable: Hashable, Sendable {
        /// The recovery throws; before it does anything, if it is a command that cannot be read.
        case stop
        /// The run stays as it is, for a later recovery that can read it; all other runs are recovered, and commands executed.
        case park
        /// The run is ended, ``JournalOutcome/incomplete`` if anything of it may be left: nothing is done, or undone. Its keys stay known.
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
            /// The error that it met.
            public let error: (any Error)?
        }

        /// The runs that were ended, in that order.
        public internal(set) var runs: [Run] = []
        /// The commands that are still in doubt. Their runs have not ended.
        public internal(set) var inDoubt: [InDoubt] = []

        /// A run that was not recovered, as it cannot be read.
        public struct Parked: Sendable {
            /// The number of its first record.
            public let number: Int64
            /// ``JournalError/unknownType(_:sequence:)`` or ``JournalError/undecodable(type:sequence:_:)``.
            public let error: any Error
        }

        /// The runs that were parked, in order. They have not ended.
        public internal(set) var parked: [Parked] = []
    }

    /// Ends the runs of earlier processes, one after another: a command by itself is done; several, all or nothing, are taken
    /// back or go on. To be called once, before anything is executed; again, when something was left in doubt.
    ///
    /// Commands in the middle are begun again if they have a key, or change nothing. When one throws, the call before the crash may have
    /// had its effect all the same: it stays in doubt, unless the error is ``NotDone``. A recovery may be killed and called again at
    /// any point: what it does, it writes down.
    ///
    /// - Parameters:
    ///   - unfinished: what becomes of an all-or-nothing run in the middle. One that was being taken back is taken back; one of
    ///     which all was done has succeeded.
    ///   - compensation: what happens when an undo throws.
    ///   - undecodable: what becomes of a run that cannot be read.
    ///   - deciding: is asked about each command in doubt that has no key, in their order, and then about each that threw when it
    ///     was begun again. A run goes on when nothing in it is left.
    /// - Throws: ``JournalError/busy``, ``JournalError/closed``, ``JournalError/fileReplaced(path:)`` and
    ///   ``JournalError/storage(_:)``; and, unless `undecodable` says
    ///   otherwise, ``JournalError/unknownType(_:sequence:)`` and ``JournalError/undecodable(type:sequence:_:)`` for a command:
    ///   nothing was done. ``JournalError/recoveryStopped(_:_:)``, with the report up to then, when it has begun, and the journal
    ///   cannot be written, an output or a proof cannot be decoded, or it is cancelled, between runs. What a command throws does not
    ///   end it, and is in the report.
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

    /// Ends a run, or reports what is in doubt of it.
    private func recover(
        _ journaled: JournaledRun, _ commands: [any JournaledCommand], _ unfinished: Unfinished,
        _ compensation: TransactionOptions.Compensation, _ report: inout RecoveryReport,
        _ deciding: (InDoubt) async -> DoubtAnswer
    ) async throws {
        let run = journaled.run
        // Whether all of it can be read, before anything of it is done.
        for index in commands.indices { _ = try member(index, commands, journaled) }
        let unrepeatable = doubts(run).filter { doubt in
            let command = commands[doubt.member]
            return command.idempotencyKey == nil && command.undoability != .noEffect
        }
        // Nothing is done, or taken back, beside what is in doubt.
        let left = try await decide(unrepeatable, leaving: [.leave], journaled, deciding)
        report.inDoubt += left
        guard left.isEmpty else { return }
        let failures = try await uncancelled(journaled) { try await self.settle(journaled, commands) }
        let errors = Dictionary(uniqueKeysWithValues: failures.map { ($0.member, $0.error) })
        let unsettled = doubts(journaled.run, errors).filter { $0.error != nil }
        guard try await decide(unsettled, leaving: [.leave, .again], journaled, deciding).isEmpty else {
            // With those that threw nothing, and gave what cannot be written down.
            report.inDoubt += doubts(journaled.run, errors)
            return
        }
        let ended = try await uncancelled(journaled) {
            try await self.carryOut(
                RecoveryPlan(run, unfinished), journaled, commands, failures.first?.error, compensation)
        }
        if let ended { report.runs.append(ended) } else { report.inDoubt += doubts(journaled.run) }
    }

    /// Ends a run that cannot be read, as it is.
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

    /// Calls `body` in a task that nobody cancels: to end a run in the middle is what a recovery is for.
    private func uncancelled<Value: Sendable>(
        _ run: JournaledRun, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let result = await Task { await Result<Value, any Error>.of(body) }.value
        live.recovered(run.run)
        return try result.get()
    }

    /// - Parameter errors: what was thrown, by member, when they were begun again.
    private func doubts(_ run: JournalRun, _ errors: [Int: any Error] = [:]) -> [InDoubt] {
        run.members.enumerated().filter(\.element.isInDoubt).map { index, member in
            InDoubt(
                sequence: member.last, run: run.number, member: index, type: member.type,
                isUndo: member.phase == .undoing, error: errors[index])
        }
    }

    /// Asks about each of them, and writes down what is over; or, when something is left, nothing.
    ///
    /// - Parameter leaving: the answers that leave something in doubt.
    /// - Returns: what is left.
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

    /// - Parameter failure: what the first command threw that did as it was begun again.
    /// - Returns: nil when something is in doubt still.
    private func carryOut(
        _ plan: RecoveryPlan, _ run: JournaledRun, _ commands: [any JournaledCommand],
        _ failure: (any Error)?, _ compensation: TransactionOptions.Compensation
    ) async throws -> RecoveryReport.Run? {
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
        } catch {
            if let failure = writer.failure { throw failure }
            guard let outcome = run.run.outcome else { return nil }
            return RecoveryReport.Run(number: run.number, outcome: outcome, error: failure ?? reason(error))
        }
        return RecoveryReport.Run(number: run.number, outcome: .finished, error: nil)
    }

    /// Begins again what is in doubt, or lacks a proof, one after another: then it is known whether it was done, and with which.
    ///
    /// - Returns: those that threw, in that order, and what they threw.
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
