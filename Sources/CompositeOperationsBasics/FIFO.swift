// FIFO.swift - a queue in an array: its taken front goes when it is more than half.

/// What was appended first is taken first; O(1), amortised.
package struct FIFO<Element> {
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    @inlinable package init() {}

    @inlinable package var count: Int { elements.count - head }
    @inlinable package var first: Element? { head < elements.count ? elements[head] : nil }

    @inlinable package mutating func append(_ element: Element) { elements.append(element) }

    @inlinable package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        defer {
            elements[head] = nil
            head += 1
            if head * 2 > elements.count, head > 16 {
                elements.removeFirst(head)
                head = 0
            }
        }
        return elements[head]
    }

    @inlinable package var all: [Element] { elements[head...].compactMap(\.self) }

    /// - Returns: what was removed.
    @inlinable package mutating func removeAll(where isGone: (Element) -> Bool) -> [Element] {
        let former = all
        elements = former.filter { !isGone($0) }
        head = 0
        return former.filter(isGone)
    }
}
