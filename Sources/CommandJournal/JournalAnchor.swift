// JournalAnchor.swift - the last record, kept outside the log, to detect that the end of the log is lost.
//
// SQLite reads the frames of its log up to the first that is not whole: after a flipped bit, or without the log, all later frames
// are dropped as if they had never existed. The checksum of a record covers all records before it, so one checksum is enough.
//
// Invariant:
//   A1  the record that an anchor names was durable before the anchor was written. So the anchor may lag behind, for example after a
//       loss of power. It is ahead only of a file that has lost records, until the loss is reported.

internal import Foundation

/// The last record of a journal.
package struct JournalAnchor: Equatable, Sendable {
    /// The version of the bytes below.
    package static let version: UInt32 = 1
    /// The size of an anchor in bytes.
    package static let size = 32

    /// 0: there was no record.
    package let sequence: Int64
    package let checksum: UInt64

    package init(sequence: Int64, checksum: UInt64) {
        self.sequence = sequence
        self.checksum = checksum
    }

    /// Letters, version, number, checksum, and the checksum of these: few enough bytes for a single write.
    package func bytes(version: UInt32 = version) -> [UInt8] {
        var bytes = Array("COja".utf8)
        func add(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
        }
        add(version)
        add(sequence)
        add(checksum)
        add(Self.sum(bytes))
        return bytes
    }

    /// - Returns: nil when the anchor was not written whole.
    /// - Throws: ``JournalError/schemaVersion(found:expected:)``.
    package init?(bytes: [UInt8]) throws {
        guard bytes.count == Self.size, bytes.starts(with: "COja".utf8) else { return nil }
        func number<Number: FixedWidthInteger>(_ offset: Int) -> Number {
            var number: Number = 0
            withUnsafeMutableBytes(of: &number) { $0.copyBytes(from: bytes[offset...].prefix($0.count)) }
            return Number(littleEndian: number)
        }
        guard Self.sum(Array(bytes.prefix(24))) == number(24) else { return nil }
        let version: UInt32 = number(4)
        guard version == Self.version else {
            throw JournalError.schemaVersion(found: Int(version), expected: Int(Self.version))
        }
        (sequence, checksum) = (number(8), number(16))
    }

    private static func sum(_ bytes: [UInt8]) -> UInt64 {
        var sum = FNV(0)
        sum.add(Data(bytes))
        return sum.value
    }
}
