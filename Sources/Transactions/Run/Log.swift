// What a transaction would have to take back: values that were overwritten, and places that members had.

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
        static let start = Mark()
    }

    private(set) var values: [SavedValue] = []
    private(set) var places: [(context: TransactionContext, place: Place)] = []

    var mark: Mark { Mark(values: values.count, places: places.count) }

    mutating func saved(_ value: SavedValue) { values.append(value) }
    mutating func joined(_ context: TransactionContext) { places.append((context, .joined)) }
    mutating func placed(_ context: TransactionContext, from place: Place) { places.append((context, place)) }

    mutating func popValue(to mark: Mark) -> SavedValue? {
        values.count > mark.values ? values.removeLast() : nil
    }

    mutating func popMembership(to mark: Mark) -> (TransactionContext, Place)? {
        places.count > mark.places ? places.removeLast() : nil
    }

    /// Empties it. Who takes what was in it releases that outside of any access to the log: `deinit` may be anyone's.
    mutating func takeValues() -> [SavedValue] {
        defer { values = [] }
        return values
    }

    mutating func takePlaces() -> [(context: TransactionContext, place: Place)] {
        defer { places = [] }
        return places
    }
}

/// A value as it was before the first write in a scope; what it is of is known to the subclass.
class SavedValue {
    /// The scope in which it was saved.
    let scope: UInt64
    private let instance = Instance(.savedValues)
    init(scope: UInt64) { self.scope = scope }
    func restore() { fatalError("SavedValue.restore: a subclass does it") }
    func keep(_ transaction: Transaction) { fatalError("SavedValue.keep: a subclass does it") }
    /// Of the first value that was saved of a property, what has become of it.
    func change(of transaction: Transaction) -> PropertyChange? {
        fatalError("SavedValue.change: a subclass does it")
    }
}
