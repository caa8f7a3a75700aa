// All that a transaction would have to take back: values that were overwritten, places that members had, and members that began late.

import CompositeOperationsBasics

struct Log {
    /// Where a member was before a change.
    enum Place {
        /// Nowhere: it was registered here, and stays registered.
        case joined
        /// Below a parent, behind a sibling; or before all.
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

    /// Members that began late, and are told nothing of a rollback.
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

    /// Empties it. Who takes what was in it releases that outside of any access to the log: `deinit` may be anyone's.
    mutating func takeValues() -> [LoggedState] {
        if values.isEmpty { return [] }
        defer { values = [] }
        return values
    }

    /// Room for the values of the next transaction, which has none so far.
    mutating func keepRoom(of taken: consuming [LoggedState]) {
        if values.capacity < taken.capacity, taken.capacity <= Self.most { values = taken }
    }

    /// So much room stays.
    private static let most = 1024

    mutating func takeMembers() -> (
        places: [(context: TransactionContext, place: Place)], late: [TransactionContext]
    ) {
        defer { (places, late) = ([], []) }
        return (places, late)
    }
}
