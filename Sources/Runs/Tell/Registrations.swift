// Registrations.swift - listeners, in registration order. Adding and removing is amortised O(1).
//
// A value type, guarded by a lock of its owner.

internal import Synchronization

/// A listener's place in the list.
@_spi(Faces) public final class Registration: @unchecked Sendable {
    // Unchecked: `place` is accessed only under the owner's lock.
    private let isOver = Atomic(false)
    /// The index in the list; nil if it is in none.
    @usableFromInline var place: Int?

    /// A registration that is in no list.
    public init() {}

    /// Whether the registration has not ended.
    public var isOpen: Bool { !isOver.load(ordering: .acquiring) }

    /// Ends the registration: the listener is no longer notified.
    ///
    /// - Returns: false if it had already ended.
    @discardableResult
    public func end() -> Bool { !isOver.exchange(true, ordering: .acquiringAndReleasing) }
}

/// Listeners, in registration order.
@_spi(Faces) public struct Registrations<Element> {
    @usableFromInline var entries: [(registration: Registration, element: Element)?] = []
    /// The number of listeners.
    public private(set) var count = 0

    /// An empty list.
    public init() {}

    /// Whether there are no listeners.
    public var isEmpty: Bool { count == 0 }
    /// All listeners.
    public var all: [Element] { entries.compactMap { $0?.element } }

    /// Calls `body` with each listener.
    @inlinable public func forEach(_ body: (Element) -> Void) {
        for case let entry? in entries { body(entry.element) }
    }

    /// - Parameter registration: to be passed to ``remove(_:)``.
    public mutating func append(_ element: Element, _ registration: Registration) {
        registration.place = entries.count
        entries.append((registration, element))
        count += 1
    }

    /// - Returns: nil if the registration is not in this list.
    public mutating func remove(_ registration: Registration) -> Element? {
        guard let place = registration.place, place < entries.count, let entry = entries[place],
            entry.registration === registration
        else { return nil }
        registration.place = nil
        entries[place] = nil
        count -= 1
        if entries.count > 2 * count + 8 { close() }
        return entry.element
    }

    /// Closes the gaps.
    private mutating func close() {
        entries.removeAll { $0 == nil }
        for (place, entry) in entries.enumerated() { entry?.registration.place = place }
    }
}
