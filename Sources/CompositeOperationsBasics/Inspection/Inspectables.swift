// Inspectables.swift - registers live objects for dumps, from the moment they begin, but only while inspection is on.
//
// Code that creates or begins something checks `inspection_is_on()` first, which is one load and a branch, and calls `keep`
// only if inspection is on, under no lock. Nothing is kept alive: an object is kept as a weak reference, a transaction as a
// closure over values, which is removed when the transaction ends.
//
// Invariants:
//   I1  the switch is checked again under the lock of a shard, and `stop` empties each shard after turning the switch off, so
//       nothing is left after a stop.
//   I2  under the lock of a shard, no other lock is taken and no user object is released; references to objects are loaded
//       and released under no lock.
//   I3  dead entries are swept when a shard has twice as many entries as after the last sweep, in a detached task: a sweep
//       may release the last reference to an object, and the caller of `keep` may hold a lock that the object's `deinit`
//       takes.
//   I4  a section is O(1), or O(entries of a shard) for a sweep: a 256th of all entries of a kind.

internal import CInspection
internal import Synchronization

/// An object that dumps show.
package protocol Inspectable: AnyObject {
    /// Whether there is nothing left to report about it. Called under no lock.
    var isPastInspection: Bool { get }
    /// Adds nodes for the object, and for what is below it. Called under no lock; takes each of its own locks for a short
    /// section.
    func inspect(_ inspector: inout Inspector)
}

/// The objects that are kept for dumps.
package enum Inspectables {
    /// Objects that are kept together, and shown together.
    package enum Kind: Int, CaseIterable, Sendable {
        case operations, queues, invokers, transactions, actions, gates
    }

    /// One entry.
    package final class Kept: @unchecked Sendable {
        // Unchecked: immutable; an object synchronises its own inspection.

        /// In the order of registration, across all kinds.
        package let number: Int
        /// The time of registration.
        package let since = ContinuousClock.now
        /// Usually the name of a type.
        package let name: String?
        private weak let weakObject: (any Inspectable)?
        private let node: (@Sendable () -> InspectedNode)?
        private let instance = Instance(.kept)

        fileprivate init(
            _ number: Int, _ name: String?, _ object: (any Inspectable)?,
            _ node: (@Sendable () -> InspectedNode)?
        ) {
            self.number = number
            self.name = name
            weakObject = object
            self.node = node
        }

        /// The object, while it is alive. Read under no lock.
        package var object: (any Inspectable)? { weakObject }
        /// The node of an entry without an object.
        package var value: InspectedNode? { node?() }
        /// Whether the object is gone or has nothing left to report. An entry without an object is removed only by
        /// ``Inspectables/forget(_:key:)``. Read under no lock.
        fileprivate var isOver: Bool { node == nil && object?.isPastInspection != false }
    }

    private final class Shard: @unchecked Sendable {
        // Unchecked: the variables are used only under `lock`.
        private let lock = InspectionLock()
        private var kept: [UInt: Kept] = [:]
        private var most = Inspectables.least
        private var isSwept = false

        var count: Int { lock.locked { kept.count } }

        /// - Returns: whether the shard must be swept.
        func add(_ key: UInt, _ one: Kept, unless isThere: (Kept) -> Bool) -> Bool {
            lock.locked {
                guard inspection_is_on() else { return false }  // I1
                if let former = kept[key], isThere(former) { return false }
                kept[key] = one
                guard kept.count >= most, !isSwept else { return false }
                isSwept = true
                return true
            }
        }

        func remove(_ key: UInt) -> Kept? { lock.locked { kept.removeValue(forKey: key) } }

        func removeAll() -> [UInt: Kept] {
            lock.locked {
                defer { kept = [:] }
                most = Inspectables.least
                return kept
            }
        }

        /// - Returns: some entries, and how many there are in all.
        func some(_ most: Int) -> (some: [Kept], count: Int) {
            lock.locked { (kept.values.prefix(most).map(\.self), kept.count) }
        }

        func sweep() {
            let all = lock.locked { kept.map { (key: $0.key, one: $0.value) } }
            let over = all.filter { $0.one.isOver }
            lock.locked {
                for (key, one) in over where kept[key] === one { kept[key] = nil }
                most = max(Inspectables.least, 2 * kept.count)
                isSwept = false
            }
        }
    }

    private static let least = 16
    private static let shards = Kind.allCases.map { _ in (0..<256).map { _ in Shard() } }
    private static let last = Atomic(0)

    private static func shard(_ kind: Kind, _ key: UInt) -> Shard {
        // The low bits are the same in all addresses.
        let mixed = (key >> 4 ^ key) &* 0x9E37_79B9_7F4A_7C15
        return shards[kind.rawValue][Int(mixed >> 56)]
    }

    private static func key(of object: AnyObject) -> UInt { UInt(bitPattern: ObjectIdentifier(object)) }

    private static func nextNumber() -> Int { last.add(1, ordering: .relaxed).newValue }

    // MARK: Registration

    /// Keeps an entry for an object until the object is deallocated. Called under no lock, after the caller has checked that
    /// inspection is on.
    package static func keep(_ object: any Inspectable, _ kind: Kind, name: String? = nil) {
        let key = key(of: object)
        let shard = shard(kind, key)
        let one = Kept(nextNumber(), name, object, nil)
        // The caller holds the object, so a reference to it released here is not the last one. Any other object that was at
        // its address is gone (I2).
        let isToBeSwept = shard.add(key, one) { $0.object === object }
        if isToBeSwept { Task.detached { shard.sweep() } }  // I3
    }

    /// Keeps an entry for something known by values only, until it is forgotten.
    ///
    /// - Parameters:
    ///   - key: a number that is unique within the kind.
    ///   - node: describes it. Called under no lock, on any thread.
    package static func keep(
        _ kind: Kind, key: UInt, name: String?, _ node: @escaping @Sendable () -> InspectedNode
    ) {
        _ = shard(kind, key).add(key, Kept(nextNumber(), name, nil, node)) { _ in false }
    }

    /// Forgets an object that has ended.
    package static func forget(_ kind: Kind, key: UInt) {
        let former = shard(kind, key).remove(key)
        withExtendedLifetime(former) {}
    }

    // MARK: Inspecting

    /// From now on, objects are kept when they begin.
    package static func start() { inspection_turn(true) }

    /// From now on, nothing is kept, and all entries are forgotten.
    package static func stop() {
        inspection_turn(false)
        for shard in shards.joined() {
            let former = shard.removeAll()
            withExtendedLifetime(former) {}
        }
        InspectedWaits.removeAll()
    }

    /// Whether objects are kept when they begin.
    package static var areKept: Bool { inspection_is_on() }

    /// The number of entries of all kinds, including dead ones that have yet to be swept.
    package static var count: Int { shards.joined().reduce(0) { $0 + $1.count } }

    /// The most entries taken from a shard in one section.
    private static let mostOfAShard = 1_024

    /// Some entries of a kind, the oldest first.
    ///
    /// - Parameter most: about how many.
    /// - Returns: these entries, and how many others there are, some of which may be dead.
    package static func some(of kind: Kind, most: Int) -> (some: [Kept], others: Int) {
        var (some, count): ([Kept], Int) = ([], 0)
        for shard in shards[kind.rawValue] {
            let (more, number) = shard.some(max(0, min(mostOfAShard, most - some.count)))
            some += more
            count += number
        }
        return (some.sorted { $0.number < $1.number }, count - some.count)
    }
}

extension InstanceCount {
    static let kept = InstanceCount("objects kept for dumps")
}
