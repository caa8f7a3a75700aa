// ChildOrder.swift - which child of a composite is next: the pure part of a cascade and of a transactional operation.
//
// Values without threads or locks, tested by random events (ChildOrderTests). Children are numbers, in the order of
// their registration.
//
// Invariants:
//   I1  a cascade starts child k + 1 only after child k has finished, and each child at most once per attempt.
//   I2  a transactional operation has at most `width` children in flight.
//   I3  a composite is complete when its registration is closed and each child has finished; never before.

/// One child after another.
package struct CascadeMachine: Sendable {
    /// The child whose turn it is, or will be when it is registered.
    package private(set) var current = 0
    /// It has been started in this attempt.
    package private(set) var isUnderWay = false

    package init() {}

    /// - Parameters:
    ///   - count: how many children there are.
    ///   - isFinished: whether a child has finished already: by hand, or in an earlier attempt.
    /// - Returns: the child to start now.
    package mutating func next(of count: Int, isFinished: (Int) -> Bool) -> Int? {
        if isUnderWay { return nil }
        while current < count {
            guard isFinished(current) else {
                isUnderWay = true
                return current
            }
            current += 1
        }
        return nil
    }

    /// A child has finished.
    package mutating func finished(_ child: Int) {
        guard child == current else { return }
        current += 1
        isUnderWay = false
    }

    /// A new attempt begins: with the first child that has not finished.
    package mutating func restart() { self = CascadeMachine() }
}

/// All children at once, or `width` of them.
package struct TransactionalMachine: Sendable {
    package let width: Int
    package private(set) var inFlight = 0
    package private(set) var current = 0

    package init(width: Int?) { self.width = width ?? .max }

    /// As ``CascadeMachine/next(of:isFinished:)``.
    package mutating func next(of count: Int, isFinished: (Int) -> Bool) -> Int? {
        while current < count, inFlight < width {
            defer { current += 1 }
            if !isFinished(current) {
                inFlight += 1
                return current
            }
        }
        return nil
    }

    /// A child has finished.
    package mutating func finished(_ child: Int) { if child < current { inFlight -= 1 } }

    package mutating func restart() { self = TransactionalMachine(width: width) }
}
