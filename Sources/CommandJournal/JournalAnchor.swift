// JournalAnchor.swift - what the last record was, kept outside of the log: so that it is found when the end of that is lost.
//
// SQLite takes the frames of its log up to the first that is not whole: where a bit has flipped, or when the log is gone, what comes
// behind is dropped as if it had never been. The checksum of a record is that of all before it, too, so one is enough.
//
// Invariant:
//   A1  the record that an anchor names was durable before the anchor was written. So it may lag behind, as after a loss of power;
//       ahead it is of a file that has lost records, until these have been reported.

internal import Foundation

/// The last record of a journal.
package struct JournalAnchor: Equatable, Sendable {
    /// Of the bytes below.
    package static let version: UInt32 = 1
    /// How many bytes it has.
    package static let size = 32

    /// 0: there was none.
    package let sequence: Int64
    package let checksum: UInt64

    package init(sequence: Int64, checksum: UInt64) {
        self.sequence = sequence
        self.checksum = checksum
    }

    /// Letters, version, number, checksum, and the checksum of these. As few as are written at once.
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

    /// - Returns: nil when it was not written whole.
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
