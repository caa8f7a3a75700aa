// The value that names one transaction, and the source of numbers that are never used twice.

import Synchronization

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Names one transaction, or with ``any`` whichever is active.
public struct Transaction: Hashable, Sendable {
    /// Never reused; 0 is ``any``.
    let number: UInt64

    /// Stands for the transaction that is active, whichever it is.
    public static let any = Transaction(number: 0)

    /// The same for equal descriptors, different for others of this process.
    public var id: UUID {
        func byte(_ index: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: number >> (8 * (7 - index))) }
        // Version 8 of RFC 9562: bits of our own.
        return UUID(
            uuid: (
                0, 0, 0, 0, 0, 0, 0x80, 0, 0x80 | byte(0) & 0x3F, byte(1), byte(2), byte(3), byte(4), byte(5),
                byte(6), byte(7)
            ))
    }
}

/// Numbers of transactions, savepoints and trees: one sequence, so that of two the later has the greater.
enum Serial {
    private static let last = Atomic<UInt64>(0)
    static func next() -> UInt64 { last.add(1, ordering: .relaxed).newValue }
}
