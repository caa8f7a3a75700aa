// Notices.swift - notices that are delivered in order, by one thread at a time.
//
// A value, under a lock of the object that the notices are about.
//
// Invariants:
//   I1  each notice is taken once, in the order of appending.
//   I2  one thread at a time delivers: the one whose claim succeeded. It stops in the critical section in which it finds nothing
//       left; so a thread that appends after that can claim the delivery, and no notice is stranded.
//   I3  no lock is held while a notice is delivered, or released.

/// Notices that wait for delivery, first in, first out.
@_spi(Faces) public struct Notices<Notice> {
    @usableFromInline var notices = FIFO<Notice>()
    @usableFromInline var isDelivering = false

    /// No notices.
    @inlinable public init() {}

    /// The next notice.
    @inlinable public var first: Notice? { notices.first }

    /// The number of notices.
    @inlinable public var count: Int { notices.count }

    /// Appends a notice. The delivery must be claimed (``claim()``) after that.
    @inlinable public mutating func append(_ notice: Notice) { notices.append(notice) }

    /// - Returns: whether the caller must deliver: there are notices, and no other thread is delivering.
    @inlinable public mutating func claim() -> Bool {
        guard !isDelivering, notices.count > 0 else { return false }
        isDelivering = true
        return true
    }

    /// - Returns: whether the caller has become the deliverer, although there are no notices yet. Notices appended meanwhile wait
    ///   for it.
    @inlinable public mutating func claimEmpty() -> Bool { notices.count == 0 && claimAny() }

    /// - Returns: whether the caller has become the deliverer, whether or not there are notices.
    @inlinable public mutating func claimAny() -> Bool {
        if isDelivering { return false }
        isDelivering = true
        return true
    }

    /// Takes the next notice. For the deliverer.
    ///
    /// - Returns: nil when nothing is left; the caller is then no longer the deliverer (I2).
    @inlinable public mutating func next() -> Notice? {
        guard let notice = notices.popFirst() else {
            isDelivering = false
            return nil
        }
        return notice
    }

    /// Takes all notices. For the deliverer.
    ///
    /// - Returns: none when nothing is left; the caller is then no longer the deliverer (I2).
    @inlinable public mutating func takeAll() -> [Notice] {
        if notices.count == 0 {
            isDelivering = false
            return []
        }
        return notices.takeAll()
    }

    /// Whether nothing is left; the caller is then no longer the deliverer (I2).
    @inlinable public mutating func isOver() -> Bool {
        isDelivering = notices.count > 0
        return !isDelivering
    }
}
