// JournaledMember.swift - a command in a run: written down before it begins, after it is done, and the same for its undo.
//
// Orderings, by P1 and P2 of JournalWriter:
//   P1  `begun` is durable before `perform` is called, `undoing` before `undo` is.
//   P2  `done` is durable before the next member's `begun` is, and before the run's end: nobody waits for it by itself.

internal import Commands
internal import Foundation
@_spi(Faces) internal import Runs

/// The error of an undo in an earlier process.
public struct RecordedUndoFailure: Error, Hashable {
    /// The error, as a text.
    public let text: String
}

/// A command in a run.
struct JournaledMember<C: JournaledCommand>: UndoableCommand {
    /// Its entries in the journal.
    enum Past: Sendable {
        case waiting
        /// In doubt, or lacks a proof, and may be begun again.
        case begun
        case done(Performed<C.Output, C.Undo>)
        /// Its undo threw, and it has no key: so it is not tried again.
        case notUndone(Performed<C.Output, C.Undo>, RecordedUndoFailure)
    }

    let command: C
    let index: Int
    let run: JournaledRun
    let past: Past

    var undoability: Undoability { command.undoability }

    /// Whether `perform`, which threw `error`, left nothing. A repeated call answers for the one before the crash only if it says so.
    private func leftNothing(_ error: any Error) -> Bool {
        if case .begun = past, command.undoability != .noEffect { return error is NotDone }
        return !isUnknown(error)
    }

    func perform(_ context: CommandContext) async throws -> Performed<C.Output, C.Undo> {
        switch past {
        case .done(let performed), .notUndone(let performed, _): return performed
        case .begun where run.run.members[index].phase == .undoFailed:
            try run.add(.undoing, member: index)
            try await run.commit()  // its undo is what this is begun for again
        case .begun: break
        case .waiting:
            if let error = run.unrecorded { throw error }
            try run.add(.begun, member: index)
            try await run.commit()  // P1, of begun
        }
        let cause = Guarded<(any Error)?>(nil)
        let left = LeftParts()
        // The first to be registered is the last to be called: after what the command registers.
        context.onFailure { _ in
            // A command that cannot tell stays begun: so it is in doubt, as after a crash.
            guard let error = cause.withLock({ $0 }), leftNothing(error) else { return }
            try run.add(
                .failed, member: index, type: left.outcome?.rawValue, payload: JournaledRun.text(error))
        }
        let inner = context.mappingParts { [run] part in
            left.noting { context in try await run.calling { try await part(context) } }
        }
        let performed: Performed<C.Output, C.Undo>
        do { performed = try await run.calling { try await command.perform(inner) } } catch {
            cause.withLock { $0 = error }
            throw error
        }
        // To throw here would be to say that nothing was done; which is so when it has no effect, and nobody will undo it.
        do {
            let (output, proof) = try (
                CommandTypes.encode(performed.output), CommandTypes.encode(performed.undo)
            )
            try run.add(.done, member: index, payload: output, proof: proof)
        } catch {
            if command.undoability == .noEffect {
                cause.withLock { $0 = error }
                throw error
            }
            run.noteUnrecorded(error)
        }
        return performed
    }

    func undo(_ undo: C.Undo, _ context: CommandContext) async throws {
        if case .notUndone(_, let failure) = past { throw failure }
        try run.add(.undoing, member: index)
        try await run.commit()  // P1, of undoing
        do { try await run.calling { try await command.undo(undo, context) } } catch {
            try run.add(.undoFailed, member: index, payload: JournaledRun.text(error))
            throw error
        }
        try run.add(.undone, member: index)
    }
}

/// The part of a command that threw which could not be taken back.
private final class LeftParts: Sendable {
    private struct State {
        var count = 0
        /// By part. One that threw may be tried again.
        var left: [Int: JournalOutcome] = [:]
    }

    private let state = Guarded(State())

    /// The worst of it; nil: all is taken back.
    var outcome: JournalOutcome? { .worst(state.withLock { $0.left.values.map(\.self) }) }

    /// The same part, which tells when it throws.
    func noting(
        _ part: @escaping @Sendable (CommandContext) async throws -> Void
    ) -> @Sendable (CommandContext) async throws -> Void {
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        return { [self] context in
            do { try await part(context) } catch {
                let outcome: JournalOutcome =
                    error is LeftIrreversible ? .rolledBackExceptIrreversible : .incomplete
                state.withLock { $0.left[number] = outcome }
                throw error
            }
            state.withLock { $0.left[number] = nil }
        }
    }
}

extension JournaledMember {
    /// A member of a run that an earlier process began.
    init(_ command: C, _ index: Int, _ run: JournaledRun, _ member: JournalMember) throws {
        self.command = command
        self.index = index
        self.run = run
        func performed() throws -> Performed<C.Output, C.Undo>? {
            guard let output = member.output, let proof = member.proof else { return nil }
            return Performed(
                try CommandTypes.decode(C.Output.self, output, member.type, member.last),
                undo: try CommandTypes.decode(C.Undo.self, proof, member.type, member.last))
        }
        guard member.phase != nil else {
            past = .waiting
            return
        }
        guard let performed = try performed() else {
            past = .begun
            return
        }
        if member.phase == .undoFailed, command.idempotencyKey == nil {
            past = .notUndone(performed, RecordedUndoFailure(text: member.text ?? ""))
        } else {
            past = .done(performed)
        }
    }
}
