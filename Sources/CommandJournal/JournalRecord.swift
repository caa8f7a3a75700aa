// JournalRecord.swift - one line of the journal, and its checksum.

package import Foundation

/// One line of the journal. Once written, it is never changed.
package struct JournalRecord: Hashable, Sendable {
    /// The kind of record. The raw values are stored in files.
    package enum Phase: Int, CaseIterable, Sendable {
        /// A member is part of a run that is being accepted; without a member: the run is accepted, with the members recorded
        /// before.
        case accepted = 1
        /// A member's work may have been started.
        case begun = 2
        case done = 3
        /// The member threw, and the parts that it had registered are undone, as far as the record says.
        case failed = 4
        /// The undo of a member may have been started.
        case undoing = 5
        case undone = 6
        /// The undo threw.
        case undoFailed = 7
        /// The run has ended, with an outcome.
        case ended = 8
    }

    /// From 1, without a gap.
    package var sequence: Int64
    /// The sequence number of the run's first record.
    package var run: Int64
    /// nil: the record is about the run.
    package var member: Int?
    /// A phase, unless the record is corrupt.
    package var code: Int
    /// For `accepted`: the type of the command, or the kind of the run. For `ended`: the outcome. For `failed`: the outcome of
    /// undoing the registered parts, if something is left.
    package var type: String?
    /// Only for `accepted`.
    package var key: String?
    /// For `accepted`: the command. For `done`: its output. For a failure: a text.
    package var payload: Data?
    /// For `done`: the data that undo needs.
    package var proof: Data?
    package var checksum: UInt64 = 0
    /// The reason that the row does not hold what was written; nil if all types are as expected.
    package var damage: String?

    package init(
        _ phase: Phase, run: Int64 = 0, member: Int? = nil, type: String? = nil, key: String? = nil,
        payload: Data? = nil, proof: Data? = nil
    ) {
        sequence = 0
        self.run = run
        self.member = member
        code = phase.rawValue
        self.type = type
        self.key = key
        self.payload = payload
        self.proof = proof
    }

    package var phase: Phase? { Phase(rawValue: code) }

    /// The size of its texts and data in bytes.
    package var size: Int {
        (type?.utf8.count ?? 0) + (key?.utf8.count ?? 0) + (payload?.count ?? 0) + (proof?.count ?? 0)
    }

    /// The checksum of this record after a record with the checksum `previous`; it binds records to their place.
    package func checksum(after previous: UInt64) -> UInt64 {
        var sum = FNV(previous)
        sum.add(sequence)
        sum.add(run)
        sum.add(Int64(member ?? -1))
        sum.add(Int64(code))
        sum.add(type.map { Data($0.utf8) })
        sum.add(key.map { Data($0.utf8) })
        sum.add(payload)
        sum.add(proof)
        return sum.value
    }
}

/// FNV-1a of 64 bits. Each step is a bijection of the sum, for a given byte, and of the byte, for a given sum: so a change of one
/// byte is always found, and any other change is missed once in 2^64.
///
/// Source: Fowler, Noll, Vo, Eastlake, *The FNV Non-Cryptographic Hash Algorithm*.
struct FNV {
    private(set) var value: UInt64

    init(_ previous: UInt64) {
        value = 0xCBF2_9CE4_8422_2325
        add(Int64(bitPattern: previous))
    }

    mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }

    mutating func add(_ number: Int64) {
        for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    /// Adds the length too, so different sequences of fields are different sequences of bytes.
    mutating func add(_ bytes: Data?) {
        add(Int64(bytes?.count ?? -1))
        for byte in bytes ?? Data() { add(byte) }
    }
}
