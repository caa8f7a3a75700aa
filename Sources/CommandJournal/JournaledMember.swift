// JournaledMember.swift - a command in a run: recorded before it begins and after it is done; likewise its
// undo.
//
// Orderings, by P1 and P2 of JournalWriter:
//   P1  `begun` is durable before `perform` is called, `undoing` before `undo` is.
//   P2  `done` is durable before the next member's `begun` is, and before the run's end: it is never waited
//       for separately.

internal import Commands
internal import Foundation
@_spi(Faces) internal import Runs

/// The error that an undo threw in an earlier process.
public struct RecordedUndoFailure: Error, Hashable {
    /// The error, as a text.
    public let text: String
}

/// A command in a run.
struct JournaledMember<C: JournaledCommand>: UndoableCommand {
    /// The state of the command in the journal.
    enum Past: Sendable {
        case waiting
        /// In doubt, or lacks a proof, and may be begun again.
        case begun
        case done(Performed<C.Output, C.Undo>)
        /// The undo threw, and there is no key: so the undo is not retried.
        case notUndone(Performed<C.Output, C.Undo>, RecordedUndoFailure)
    }

    let command: C
    let index: Int
    let run: JournaledRun
    let past: Past

    var undoability: Undoability { command.undoability }

    /// Whether `perform`, which threw `error`, left nothing. The error of a repeated call says nothing about
    /// the call before the crash, unless it is `NotDone`.
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
        // The part that is registered first is called last: after the parts that the command registers.
        context.onFailure { _ in
            // When it is unknown whether something is left, the command stays begun: so it is in doubt, as
            // after a crash.
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
        // Throwing here would mean that nothing was done. That is true only for a command without an effect,
        // which is never undone.
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

/// The parts of a failed command that could not be undone.
private final class LeftParts: Sendable {
    private struct State {
        var count = 0
        /// Keyed by the number of the part. A part that threw may be retried.
        var left: [Int: JournalOutcome] = [:]
    }

    private let state = Guarded(State())

    /// The worst outcome; nil: all parts are undone.
    var outcome: JournalOutcome? { .worst(state.withLock { $0.left.values.map(\.self) }) }

    /// The same part, wrapped to record whether it throws.
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
