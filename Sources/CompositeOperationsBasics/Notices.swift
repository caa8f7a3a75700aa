// Notices.swift - notices that are delivered in order, by one thread at a time.
//
// A value under a lock of whoever owns what is told about.
//
// Invariants:
//   I1  what is appended is taken once, in the order in which it was appended.
//   I2  one at a time delivers: the one to which `claim` said so. It has stopped in the section in which it sees that nothing
//       is left; so whoever appends after that has it delivered, and nothing stays.
//   I3  no lock is held while a notice is delivered, or released.

/// Notices that wait for their delivery, first in, first out.
@_spi(Faces) public struct Notices<Notice> {
    @usableFromInline var notices = FIFO<Notice>()
    @usableFromInline var isDelivering = false

    /// None.
    @inlinable public init() {}

    /// The next one.
    @inlinable public var first: Notice? { notices.first }

    /// How many there are.
    @inlinable public var count: Int { notices.count }

    /// Appends one. Somebody has to ``claim()`` the delivery after that.
    @inlinable public mutating func append(_ notice: Notice) { notices.append(notice) }

    /// - Returns: whether the caller is to deliver: there is something, and nobody else does.
    @inlinable public mutating func claim() -> Bool {
        guard !isDelivering, notices.count > 0 else { return false }
        isDelivering = true
        return true
    }

    /// - Returns: whether the caller is the one that delivers, though nothing is there yet. Notices that come meanwhile wait for it.
    @inlinable public mutating func claimEmpty() -> Bool { notices.count == 0 && claimAny() }

    /// - Returns: whether the caller is the one that delivers, whatever is there.
    @inlinable public mutating func claimAny() -> Bool {
        if isDelivering { return false }
        isDelivering = true
        return true
    }

    /// Takes the next one. For whoever delivers.
    ///
    /// - Returns: nil when nothing is left: then the caller delivers no more (I2).
    @inlinable public mutating func next() -> Notice? {
        guard let notice = notices.popFirst() else {
            isDelivering = false
            return nil
        }
        return notice
    }

    /// Takes all that are there. For whoever delivers.
    ///
    /// - Returns: none when nothing is left: then the caller delivers no more (I2).
    @inlinable public mutating func takeAll() -> [Notice] {
        if notices.count == 0 {
            isDelivering = false
            return []
        }
        return notices.takeAll()
    }

    /// Whether nothing is left: then the caller, who delivers, does so no more (I2).
    @inlinable public mutating func isOver() -> Bool {
        isDelivering = notices.count > 0
        return !isDelivering
    }
}
