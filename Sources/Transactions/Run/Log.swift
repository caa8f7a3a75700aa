// Everything that a rollback has to undo: overwritten values, former places of members, and members that
// began late.

import CompositeOperationsBasics

struct Log {
    /// Where a member was before a change.
    enum Place {
        /// Nowhere: it was registered in this transaction, and stays registered.
        case joined
        /// Below a parent: after a sibling, or first.
        case below(TransactionContext, after: TransactionContext?)
        /// In no tree.
        case outside
    }

    struct Mark {
        fileprivate(set) var values = 0
        fileprivate(set) var places = 0
        fileprivate(set) var late = 0
        static let start = Mark()
    }

    private(set) var values: [LoggedState] = []
    private(set) var places: [(context: TransactionContext, place: Place)] = []

    /// Members that began late and have no rollback hook.
    private var late: [TransactionContext] = []

    var mark: Mark { Mark(values: values.count, places: places.count, late: late.count) }

    mutating func saved(_ state: LoggedState) { values.append(state) }
    mutating func joined(_ context: TransactionContext) { places.append((context, .joined)) }
    mutating func placed(_ context: TransactionContext, from place: Place) { places.append((context, place)) }

    mutating func began(_ context: TransactionContext) { late.append(context) }

    mutating func popValue(to mark: Mark) -> LoggedState? {
        values.count > mark.values ? values.removeLast() : nil
    }

    mutating func popMembership(to mark: Mark) -> (TransactionContext, Place)? {
        places.count > mark.places ? places.removeLast() : nil
    }

    mutating func popLate(to mark: Mark) -> TransactionContext? {
        late.count > mark.late ? late.removeLast() : nil
    }

    /// Empties the list. The caller releases the states outside any access to the log: a release may run a
    /// user's `deinit`.
    mutating func takeValues() -> [LoggedState] {
        if values.isEmpty { return [] }
        defer { values = [] }
        return values
    }

    /// Reuses the capacity of the emptied list for the next transaction, which has no values yet.
    mutating func keepRoom(of taken: consuming [LoggedState]) {
        if values.capacity < taken.capacity, taken.capacity <= Self.most { values = taken }
    }

    /// The largest capacity that is kept.
    private static let most = 1024

    mutating func takeMembers() -> (
        places: [(context: TransactionContext, place: Place)], late: [TransactionContext]
    ) {
        defer { (places, late) = ([], []) }
        return (places, late)
    }
}
