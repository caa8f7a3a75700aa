// JournalLog.swift - the whole journal, record by record: the runs that have not ended, and where the journal
// is corrupt. Pure.
//
// Invariants:
//   I1  sequence numbers have no gap, and checksums are a chain: a record that was changed or moved is
//       detected.
//   I2  `unfinished` holds the runs that are accepted and have not ended; no other run takes memory.
//   I3  at most one run is being accepted: its records come in one commit, so they are adjacent.
//   I4  `otherKeys` holds the keys that are not recorded in canonical form; such keys are no longer written.

/// A place where a journal is not as it was written.
package struct JournalCorruption: Error, Equatable {
    package let sequence: Int64
    package let reason: String
}

/// The state after the records applied so far.
package struct JournalLog: Sendable {
    package private(set) var last: Int64 = 0
    package private(set) var checksum: UInt64 = 0
    package private(set) var unfinished: [Int64: JournalRun] = [:]
    /// For each canonical form, the first key equal to it, as recorded.
    package private(set) var otherKeys: [String: String] = [:]
    /// The run whose members are written but whose own record is not, and the state before it.
    private var accepting: (run: JournalRun, last: Int64, checksum: UInt64)?

    package init() {}

    /// Whether the last run was not accepted whole.
    package var isTorn: Bool { accepting != nil }

    /// Drops a run that was not accepted whole.
    package mutating func dropTorn() {
        guard let accepting else { return }
        (last, checksum) = (accepting.last, accepting.checksum)
        self.accepting = nil
    }

    /// - Throws: ``JournalCorruption``; nothing has changed then.
    package mutating func apply(_ record: JournalRecord) throws(JournalCorruption) {
        func corrupt(_ reason: String) -> JournalCorruption {
            JournalCorruption(sequence: last + 1, reason: reason)
        }
        guard record.sequence == last + 1 else { throw corrupt("it is missing") }
        if let damage = record.damage { throw corrupt(damage) }
        let sum = record.checksum(after: checksum)
        guard sum == record.checksum else { throw corrupt("its checksum does not match its contents") }
        do {
            // In place: a run may have many members.
            if let number = accepting?.run.number {
                guard record.phase == .accepted, record.run == number else {
                    throw IllegalRecord(reason: "the run before it was not accepted completely")
                }
                try accepting!.run.apply(record)
            } else if record.run == record.sequence {
                guard record.phase == .accepted else {
                    throw IllegalRecord(reason: "its run was never accepted")
                }
                var run = JournalRun(number: record.run)
                try run.apply(record)
                accepting = (run, last, checksum)
            } else {
                guard unfinished[record.run] != nil else {
                    throw IllegalRecord(reason: "its run is unknown, or has ended")
                }
                try unfinished[record.run]!.apply(record)
            }
        } catch {
            throw corrupt((error as? IllegalRecord)?.reason ?? "\(error)")
        }
        if let run = accepting?.run, run.kind != nil {
            unfinished[run.number] = run
            accepting = nil
        }
        if unfinished[record.run]?.outcome != nil { unfinished[record.run] = nil }
        if let key = record.key {
            let canonical = key.canonical
            if !canonical.utf8.elementsEqual(key.utf8), otherKeys[canonical] == nil {
                otherKeys[canonical] = key
            }
        }
        last = record.sequence
        checksum = sum
    }
}
