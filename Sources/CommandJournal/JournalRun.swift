// JournalRun.swift - the state of one run, computed by applying its records one by one. Pure.
//
// Invariants:
//   I1  a member's work is begun once, unless it was in doubt: only a member that waits can become `begun`.
//   I2  a member that is undone was done or in doubt, and is undone once.
//   I3  a run that has ended has no member in doubt, and accepts no more records.

package import Foundation

/// How a run ended.
public enum JournalOutcome: String, Hashable, Sendable {
    /// All commands were done.
    case finished = "succeeded"  // the stored name
    /// A single command threw, or a run of several was refused before its first command.
    case failed
    /// All commands that were done were undone.
    case rolledBack
    /// All commands except irreversible ones were undone.
    case rolledBackExceptIrreversible
    /// Something that could have been undone was not.
    case incomplete
}

extension JournalOutcome {
    /// The worst outcome, which is `incomplete` if present; nil: there is none.
    static func worst(_ outcomes: [JournalOutcome]) -> JournalOutcome? {
        outcomes.contains(.incomplete) ? .incomplete : outcomes.first
    }
}

/// A record that may not follow the records before it.
package struct IllegalRecord: Error, Equatable {
    package let reason: String
}

/// A member of a run, as far as it is known.
package struct JournalMember: Equatable, Sendable {
    package let type: String
    package let key: String?
    package let payload: Data
    /// nil: the member has not begun.
    package var phase: JournalRecord.Phase?
    /// The sequence number of its last record.
    package var last: Int64
    /// The sequence number of `begun`, later that of `done`.
    package var order: Int64 = .max
    package var output: Data?
    package var proof: Data?
    /// The text of its error.
    package var text: String?
    /// The outcome of undoing its registered parts, if the member threw and some of them are left.
    package var left: JournalOutcome?
    /// Whether its undo was begun: the run is then undone, whatever follows.
    package var isGivenUp = false

    /// Whether its work, or its undo, may or may not have happened.
    package var isInDoubt: Bool { phase == .begun || phase == .undoing }

    /// Whether its undo threw and, with neither a key nor a proof, cannot be retried.
    package var stays: Bool { phase == .undoFailed && key == nil && proof == nil }

    /// Whether it must be begun again before it can be undone.
    package var needsProof: Bool { proof == nil && !stays && (isInDoubt || phase == .undoFailed) }
}

/// A run, as far as it is known.
package struct JournalRun: Equatable, Sendable {
    /// The kind of a run.
    package enum Kind: String, Sendable {
        case one
        case allOrNothing
    }

    package let number: Int64
    /// nil: not accepted yet.
    package private(set) var kind: Kind?
    package private(set) var key: String?
    package private(set) var members: [JournalMember] = []
    package private(set) var outcome: JournalOutcome?
    package private(set) var text: String?

    package init(number: Int64) { self.number = number }

    package var hasDoubt: Bool { members.contains(where: \.isInDoubt) }

    /// The outcome of undoing members that threw and left something; nil: none did.
    package var left: JournalOutcome? { .worst(members.compactMap(\.left)) }

    /// - Throws: `IllegalRecord`; then nothing has changed.
    package mutating func apply(_ record: JournalRecord) throws {
        guard let phase = record.phase else { throw IllegalRecord(reason: "there is no such phase") }
        if outcome != nil { throw IllegalRecord(reason: "its run has ended") }
        switch (phase, record.member) {
        case (.accepted, let member?): try accept(member, record)
        case (.accepted, nil):
            guard kind == nil, let kind = record.type.flatMap(Kind.init) else {
                throw IllegalRecord(reason: "it accepts a run without a kind, or a second time")
            }
            self.kind = kind
            key = record.key
        case (.ended, nil):
            guard kind != nil, !hasDoubt, let outcome = record.type.flatMap(JournalOutcome.init) else {
                throw IllegalRecord(reason: "its run cannot end here")  // I3
            }
            self.outcome = outcome
            text = record.payload.map { String(decoding: $0, as: UTF8.self) }
        case (_, let member?):
            guard kind != nil, members.indices.contains(member) else {
                throw IllegalRecord(reason: "its run has no such member")
            }
            try members[member].apply(phase, record)
        case (_, nil): throw IllegalRecord(reason: "it names no member")
        }
    }

    private mutating func accept(_ member: Int, _ record: JournalRecord) throws {
        guard kind == nil, member == members.count, let type = record.type, let payload = record.payload
        else {
            throw IllegalRecord(reason: "it adds no member to its run")
        }
        members.append(JournalMember(type: type, key: record.key, payload: payload, last: record.sequence))
    }
}

extension JournalMember {
    fileprivate mutating func apply(_ phase: JournalRecord.Phase, _ record: JournalRecord) throws {
        // A member whose undo lacks a proof is performed again to get one: see DESIGN.md.
        let lacksProof = self.phase == .undoing && proof == nil
        switch (self.phase, phase) {
        case (nil, .begun), (.begun, .done), (.begun, .failed), (.begun, .undoing), (.done, .undoing),
            (.undoing, .undoing), (.undoing, .undone), (.undoing, .undoFailed), (.undoFailed, .undoing):
            break
        case (.undoing, .done) where lacksProof, (.undoing, .failed) where lacksProof: break
        default:
            throw IllegalRecord(
                reason: "a member that is \(self.phase.map { "\($0)" } ?? "waiting") cannot be \(phase)")
        }
        if phase == .begun { order = record.sequence }
        if phase == .undoing { isGivenUp = true }
        if phase == .done {
            guard let payload = record.payload, let proof = record.proof else {
                throw IllegalRecord(reason: "it lacks an output, or a proof")
            }
            (output, self.proof, order) = (payload, proof, record.sequence)
        }
        if phase == .failed || phase == .undoFailed {
            text = record.payload.map { String(decoding: $0, as: UTF8.self) }
        }
        if phase == .failed { left = record.type.flatMap(JournalOutcome.init) }
        self.phase = phase
        last = record.sequence
    }
}
