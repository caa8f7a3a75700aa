// The value that names one transaction, and the source of numbers that are never reused.

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

    /// The active transaction, whichever it is.
    public static let any = Transaction(number: 0)

    /// Equal for equal descriptors and different for all others, including those of other processes. For
    /// ``any`` all bits are 0.
    public var id: UUID {
        if number == 0 { return UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) }
        func byte(_ word: UInt64, _ index: UInt64) -> UInt8 {
            UInt8(truncatingIfNeeded: word >> (8 * (7 - index)))
        }
        let process = Self.process
        // Version 8 of RFC 9562: custom bits. 58 of them are random and fixed for the process, and 64 are the
        // number.
        return UUID(
            uuid: (
                byte(process, 0), byte(process, 1), byte(process, 2), byte(process, 3), byte(process, 4),
                byte(process, 5), 0x80 | byte(process, 6) & 0x0F, byte(process, 7),
                0x80 | byte(number, 0) & 0x3F, byte(number, 1), byte(number, 2), byte(number, 3),
                byte(number, 4), byte(number, 5), byte(number, 6), byte(number, 7)
            ))
    }

    private static let process = UInt64.random(in: 0...UInt64.max)
}

/// Numbers of transactions, savepoints and trees: one sequence, so the later of two has the greater number.
enum Serial {
    private static let last = Atomic<UInt64>(0)
    static func next() -> UInt64 { last.add(1, ordering: .relaxed).newValue }
}
