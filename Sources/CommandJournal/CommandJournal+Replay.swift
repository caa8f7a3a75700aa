// CommandJournal+Replay.swift - re-runs the commands that were done.

internal import Commands
internal import Foundation

extension CommandJournal {
    /// The result of a replay.
    public struct ReplayReport: Hashable, Sendable {
        /// How many commands it ran.
        public internal(set) var count = 0
        /// The numbers of the records that it skipped, because their type is unknown.
        public internal(set) var skipped: [Int64] = []
    }

    /// Re-runs the commands that were done and not undone, in the order in which they were done, for receivers that keep their
    /// state only in memory. Nothing is recorded.
    ///
    /// Irreversible commands are run even if their run was undone, because they themselves were not. Commands in doubt are not
    /// run. During a replay, nothing else can be executed.
    ///
    /// - Parameter skipsUnknownTypes: whether records of types that the journal was not given are skipped.
    /// - Throws: ``JournalError/unknownType(_:sequence:)`` and ``JournalError/undecodable(type:sequence:_:)``: the commands before
    ///   that record were run; ``JournalError/replay(type:sequence:_:)``, when a command throws; ``JournalError/busy``, while
    ///   anything runs; ``JournalError/needsRecovery``; ``JournalError/closed`` and ``JournalError/storage(_:)``; a
    ///   `CancellationError`, between commands.
    /// - Complexity: O(records), some hundreds of commands in memory at a time.
    public func replay(skipsUnknownTypes: Bool = false) async throws -> ReplayReport {
        try live.beginReplay()
        defer { live.endReplay() }
        let chunk = 250
        var report = ReplayReport()
        var last: Int64 = 0
        while true {
            let records = try await writer.read { [last] in try $0.replayable(after: last, limit: chunk) }
            for record in records {
                try Task.checkCancellation()
                last = record.sequence
                let written = WrittenCommand(record.command)
                if !types.knows(written.type), record.isUndone { continue }
                if !types.knows(written.type), skipsUnknownTypes {
                    report.skipped.append(record.sequence)
                    continue
                }
                let command = try types.read(written, at: record.sequence)
                if record.isUndone, !command.undoability.isIrreversible { continue }
                do { try await perform(command) } catch {
                    throw JournalError.replay(type: written.type, sequence: record.sequence, error)
                }
                report.count += 1
            }
            if records.count < chunk { return report }
        }
    }

    private func perform<C: JournaledCommand>(_ command: C) async throws {
        // As a transaction, so a command that throws leaves nothing behind.
        _ = try await TransactionCommand(command).execute(CommandContext())
    }
}
