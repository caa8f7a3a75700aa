// FIFO.swift - a queue in an array; the consumed front is removed once it is more than half of the array.

/// Elements are taken in the order in which they were appended; O(1), amortised.
@_spi(Faces) public struct FIFO<Element> {
    // Exactly the elements before `head` are nil.
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    /// An empty queue.
    @inlinable public init() {}

    /// The number of elements.
    @inlinable public var count: Int { elements.count - head }
    /// The next element.
    @inlinable public var first: Element? { head < elements.count ? elements[head] : nil }
    /// The elements, the oldest first.
    @inlinable public var all: [Element] { elements[head...].compactMap(\.self) }

    /// Appends an element.
    @inlinable public mutating func append(_ element: Element) { elements.append(element) }

    /// Takes the oldest element.
    @inlinable public mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let element = elements[head].take()
        head += 1
        if hasGap { close() }
        return element
    }

    /// Whether to remove the consumed front: it is more than half and not small, or the queue is empty and its
    /// capacity is large.
    @inlinable var hasGap: Bool {
        head > 16 ? head * 2 > elements.count : head == elements.count && elements.capacity > 64
    }

    /// Closes the gap; frees the memory if the queue is empty and its capacity is large.
    @usableFromInline
    mutating func close() {
        let isEmpty = head == elements.count
        if isEmpty, elements.capacity > 64 { elements = [] } else { elements.removeFirst(head) }
        head = 0
    }

    /// Takes all elements, the oldest first.
    @inlinable public mutating func takeAll() -> [Element] {
        defer { self = FIFO() }
        return all
    }

    /// Removes the oldest element for which `isGone` holds.
    ///
    /// - Returns: what was removed.
    /// - Complexity: O(n)
    @inlinable public mutating func remove(where isGone: (Element) -> Bool) -> Element? {
        guard let place = elements[head...].firstIndex(where: { $0.map(isGone) == true }) else { return nil }
        let element = elements.remove(at: place)
        if hasGap { close() }
        return element
    }

    /// Removes all elements for which `isGone` holds.
    ///
    /// - Returns: what was removed.
    /// - Complexity: O(n)
    @inlinable public mutating func removeAll(where isGone: (Element) -> Bool) -> [Element] {
        let former = all
        elements = former.filter { !isGone($0) }
        head = 0
        return former.filter(isGone)
    }
}
