// ChildOrder.swift - which child of a composite is next: the pure part of a cascade and of a transactional operation.
//
// A value without threads or locks, tested by random events (ChildOrderTests). Children are numbers, in the order of
// their registration.
//
// Invariants:
//   I1  at most `width` children are in flight. A cascade is the order of width 1: it starts child k + 1 only after
//       child k has finished.
//   I2  each child is started at most once per attempt, in the order of registration; a finished child is never
//       started.

/// The order in which children are started.
package struct ChildOrder: Sendable {
    /// How many children may be in flight.
    package let width: Int
    package private(set) var inFlight = 0
    /// The first child that has not been considered in this attempt.
    package private(set) var current = 0

    /// - Parameter width: nil: all.
    package init(width: Int?) { self.width = width ?? .max }

    /// One child after another.
    package static var cascade: ChildOrder { ChildOrder(width: 1) }

    /// - Parameters:
    ///   - count: how many children there are.
    ///   - isFinished: whether a child has finished already: by hand, or in an earlier attempt.
    /// - Returns: the child to start now.
    @inline(__always)
    package mutating func next(of count: Int, isFinished: (Int) -> Bool) -> Int? {
        while current < count, inFlight < width {
            let child = current
            current += 1
            if !isFinished(child) {
                inFlight += 1
                return child
            }
        }
        return nil
    }

    /// A child has finished.
    @inline(__always)
    package mutating func finished(_ child: Int) { if child < current { inFlight -= 1 } }

    /// Takes over children that were started elsewhere until now.
    package mutating func join(current: Int, inFlight: Int) {
        (self.current, self.inFlight) = (current, inFlight)
    }

    /// A new attempt begins: with the first child that has not finished.
    ///
    /// - Parameter first: the children before it have finished.
    package mutating func restart(at first: Int = 0) { (current, inFlight) = (first, 0) }
}
