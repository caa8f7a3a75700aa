// The pure part: which records may follow which, and how an altered record is detected.

import CommandJournal
import CompositeOperationsTestSupport
import Foundation
import PropertyTesting
import PropertyTestingSupport
import Testing

@Suite(.inTurn, .watched(testLimit), .leavesNothing)
struct LogTests {
    /// Whether a member may have this history: b(egun), d(one), f(ailed), u(ndoing), v: undone, x: the undo failed. A member is begun
    /// once. It is done, or fails, once, possibly during an undo that lacks the proof. It is undone once, at the end.
    private static func isLegal(_ history: String) -> Bool {
        let undoes = "(u+x)*"
        let untilProof = "b\(undoes)(u+)?"
        let ends = "b(\(undoes)u+)?f|b\(undoes)u+v"
        let withProof = "b(\(undoes)u+)?d\(undoes)(u+v?)?"
        return history.isEmpty
            || history.range(of: "^(\(untilProof)|\(ends)|\(withProof))$", options: .regularExpression) != nil
    }

    private static let letters: [JournalRecord.Phase: String] = [
        .begun: "b", .done: "d", .failed: "f", .undoing: "u", .undone: "v", .undoFailed: "x",
    ]

    /// The records of a run of two members, accepted.
    private static let accepted = [
        JournalRecord(.accepted, member: 0, type: "t", payload: Data("0".utf8)),
        JournalRecord(.accepted, member: 1, type: "t", key: "k", payload: Data("1".utf8)),
        JournalRecord(.accepted, type: "allOrNothing"),
    ]

    private static func numbered(_ records: [JournalRecord], after log: JournalLog, run: Int64 = 1)
        -> [JournalRecord]
    {
        var (last, checksum) = (log.last, log.checksum)
        return records.map { record in
            var record = record
            last += 1
            (record.sequence, record.run) = (last, run)
            checksum = record.checksum(after: checksum)
            record.checksum = checksum
            return record
        }
    }

    @Test(.promises("J2"))
    func `J2: a run takes the records that the rules allow, and no other, in any sequence`() async {
        let phases: [JournalRecord.Phase] = [
            .begun, .done, .undoing, .undone, .undoFailed, .failed, .begun, .done, .undoing, .ended,
            .accepted,
        ]
        let step = Generator<(JournalRecord.Phase, Int)>.zip(.element(of: phases), .int(in: 0...1))
        await forAll(.array(of: step, count: 1...14), cases: 1500) { steps in
            var log = JournalLog()
            var run = JournalRun(number: 1)
            for record in Self.numbered(Self.accepted, after: log) {
                try log.apply(record)
                try run.apply(record)
            }
            var histories = ["", ""]
            var hasEnded = false
            for (phase, member) in steps {
                let isRun = phase == .ended || phase == .accepted
                let record = Self.numbered(
                    [
                        JournalRecord(
                            phase, member: isRun ? nil : member, type: isRun ? "rolledBack" : nil,
                            payload: Data("p".utf8), proof: phase == .done ? Data("q".utf8) : nil)
                    ], after: log)[0]
                let next = histories[member] + (Self.letters[phase] ?? "")
                let isInDoubt = histories.contains { $0.last == "b" || $0.last == "u" }
                let isLegal =
                    switch phase {
                    case .accepted: false
                    case .ended: !hasEnded && !isInDoubt
                    default: !hasEnded && Self.isLegal(next)
                    }
                let before = log.unfinished
                var answer = true
                do throws(JournalCorruption) { try log.apply(record) } catch { answer = false }
                #expect(answer == isLegal, "\(histories), then \(phase) of \(member)")
                #expect(((try? run.apply(record)) != nil) == isLegal)
                if !answer {
                    #expect(log.unfinished == before && log.last == record.sequence - 1)
                    continue
                }
                if phase == .ended { hasEnded = true } else { histories[member] = next }
                #expect(log.unfinished.isEmpty == hasEnded)
            }
        }
    }

    @Test(.promises("J7")) func `J7: a record that is altered or misplaced is detected`()
        async
    {
        let records = Self.numbered(Self.accepted, after: JournalLog())
        await forAll(.zip(.zip(.int(in: 0...2), .int(in: 0...7)), .int(in: 0...7))) { places, bit in
            let (index, field) = places
            var changed = records
            func flip(_ data: Data?) -> Data? {
                data.map { Data([$0[0] ^ UInt8(1 << bit)] + $0.dropFirst()) }
            }
            switch field {
            case 0: changed[index].run += Int64(1 << bit)
            case 1: changed[index].member = (changed[index].member ?? 0) + 1 << bit
            case 2: changed[index].code += 1 << bit
            case 3: changed[index].type?.append("\(bit)")
            case 4: changed[index].key = (changed[index].key ?? "") + "\(bit)"
            case 5: changed[index].payload = flip(changed[index].payload) ?? Data([UInt8(bit)])
            case 6: changed[index].proof = Data([UInt8(bit)])
            default: changed[index].checksum ^= 1 << bit
            }
            var log = JournalLog()
            var found: Int64?
            for record in changed {
                do throws(JournalCorruption) { try log.apply(record) } catch {
                    found = error.sequence
                    break
                }
            }
            #expect(found == Int64(index + 1))
        }
        var log = JournalLog()
        #expect(throws: JournalCorruption.self) { try log.apply(records[1]) }
        // The same bytes, divided differently between two fields.
        let (one, other) = (
            JournalRecord(.ended, type: "ab", key: "c"), JournalRecord(.ended, type: "a", key: "bc")
        )
        #expect(one.checksum(after: 0) != other.checksum(after: 0))
        #expect(one.checksum(after: 0) != one.checksum(after: 1))
    }
}
