// JournalLog.swift - the whole journal, record by record: which runs have not ended, and where it is corrupt. Pure.
//
// Invariants:
//   I1  sequence numbers have no gap, and checksums are a chain: what is not as it was written, or where, is found.
//   I2  `unfinished` holds the runs that are accepted and have not ended; memory is theirs alone.
//   I3  at most one run is being accepted: its records come in one commit, so next to each other.

/// Where a journal is not as it was written.
package struct JournalCorruption: Error, Equatable {
    package let sequence: Int64
    package let reason: String
}

/// What the records so far say.
package struct JournalLog: Sendable {
    package private(set) var last: Int64 = 0
    package private(set) var checksum: UInt64 = 0
    package private(set) var unfinished: [Int64: JournalRun] = [:]
    /// The run whose members have been written, and whose own record has not.
    package private(set) var accepting: JournalRun?

    package init() {}

    /// - Throws: ``JournalCorruption``, and nothing has changed.
    package mutating func apply(_ record: JournalRecord) throws(JournalCorruption) {
        func corrupt(_ reason: String) -> JournalCorruption {
            JournalCorruption(sequence: last + 1, reason: reason)
        }
        guard record.sequence == last + 1 else { throw corrupt("it is missing") }
        let sum = record.checksum(after: checksum)
        guard sum == record.checksum else { throw corrupt("its checksum is not that of what it holds") }
        var run: JournalRun
        if let accepting {
            guard record.phase == .accepted, record.run == accepting.number else {
                throw corrupt("the run before it was not accepted whole")
            }
            run = accepting
        } else if record.run == record.sequence {
            guard record.phase == .accepted else { throw corrupt("its run was never accepted") }
            run = JournalRun(number: record.run)
        } else {
            guard let known = unfinished[record.run] else {
                throw corrupt("its run is unknown, or has ended")
            }
            run = known
        }
        do { try run.apply(record) } catch {
            throw corrupt((error as? IllegalRecord)?.reason ?? "\(error)")
        }
        accepting = run.kind == nil ? run : nil
        unfinished[run.number] = run.kind == nil || run.outcome != nil ? nil : run
        last = record.sequence
        checksum = sum
    }
}
