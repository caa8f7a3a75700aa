// CommandJournal+Replay.swift - does again what was done.

internal import Commands
internal import Foundation

extension CommandJournal {
    /// The result of a replay.
    public struct ReplayReport: Hashable, Sendable {
        /// How many commands it ran.
        public internal(set) var count = 0
        /// The numbers of the records that it skipped, because nobody knows their type.
        public internal(set) var skipped: [Int64] = []
    }

    /// Runs what was done and not undone once more, in the order in which it was done: for receivers that forget. Nothing of it
    /// is written down.
    ///
    /// Irreversible commands were not undone, although their run was taken back. Commands in doubt are not run. While it runs, nothing else can be executed.
    ///
    /// - Parameter skipsUnknownTypes: whether records of types that the journal was not given are left out.
    /// - Throws: ``JournalError/unknownType(_:sequence:)`` and ``JournalError/undecodable(type:sequence:_:)``: what came before it
    ///   was run; ``JournalError/replay(type:sequence:_:)``, when a command throws; ``JournalError/busy``, while anything runs;
    ///   ``JournalError/needsRecovery``; ``JournalError/closed`` and ``JournalError/storage(_:)``; a `CancellationError`, between
    ///   commands.
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
        // As a run, so that one that throws leaves nothing behind.
        _ = try await TransactionCommand(command).execute(CommandContext())
    }
}
