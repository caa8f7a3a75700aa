// Registrations.swift - listeners, in the order in which they came. To come and to leave is O(1), amortised.
//
// A value under a lock of its owner.

internal import Synchronization

/// A listener's place in the list.
@_spi(Faces) public final class Registration: @unchecked Sendable {
    // Unchecked: `place` is used under the owner's lock alone.
    private let isOver = Atomic(false)
    /// Where it is registered; nil: nowhere.
    @usableFromInline var place: Int?

    /// A registration with no list.
    public init() {}

    /// Whether it has not ended.
    public var isOpen: Bool { !isOver.load(ordering: .acquiring) }

    /// Ends it: nothing is told any more.
    ///
    /// - Returns: whether it had not ended before.
    @discardableResult
    public func end() -> Bool { !isOver.exchange(true, ordering: .acquiringAndReleasing) }
}

/// Listeners, in the order in which they came.
@_spi(Faces) public struct Registrations<Element> {
    @usableFromInline var entries: [(registration: Registration, element: Element)?] = []
    /// How many there are.
    public private(set) var count = 0

    /// None.
    public init() {}

    /// Whether nobody listens.
    public var isEmpty: Bool { count == 0 }
    /// All of them.
    public var all: [Element] { entries.compactMap { $0?.element } }

    /// Calls `body` with each.
    @inlinable public func forEach(_ body: (Element) -> Void) {
        for case let entry? in entries { body(entry.element) }
    }

    /// - Parameter registration: for ``remove(_:)``.
    public mutating func append(_ element: Element, _ registration: Registration) {
        registration.place = entries.count
        entries.append((registration, element))
        count += 1
    }

    /// - Returns: nil when it is not here.
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
