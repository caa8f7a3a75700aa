// The classes of members: what each has promised, and which hooks it has.
//
//   I12  a hook is of `hooks` until the default of it has been called for that class. That a class has the default is so for good: what
//        a class conforms to is not changed by its subclasses.
//   I13  `below` of a context has the hooks of the context and of all below it, and may have more.
//
// So a transaction goes only where hooks are, as soon as each default of a class has been called once. A tree that was built before
// looks at its members again when more is known (`Tree.learn`).
//
//   P2  a hook goes, then the count grows <-> the count is read, then hooks. A tree that reads an old value calls a default once more.

import CompositeOperationsBasics
import Synchronization

/// The calls that a member may want.
struct Hooks: OptionSet {
    let rawValue: UInt8
    static let begin = Hooks(rawValue: 1)
    static let validate = Hooks(rawValue: 2)
    static let commit = Hooks(rawValue: 4)
    static let rollback = Hooks(rawValue: 8)
    static let savepoints = Hooks(rawValue: 16)
    static let all: Hooks = [.begin, .validate, .commit, .rollback]
}

/// The promises of a member, read off its type once.
struct MemberKind: OptionSet {
    let rawValue: UInt8
    static let logged = MemberKind(rawValue: 1)
    static let savepoints = MemberKind(rawValue: 2)

    init(rawValue: UInt8) { self.rawValue = rawValue }
    init(_ owner: any Transactable) {
        self = []
        if owner is any LoggedTransactable { insert(.logged) }
        if owner is any SavepointTransactable { insert(.savepoints) }
    }
}

/// An entry for each class; they stay.
final class MemberType: Sendable {
    let kind: MemberKind
    private let known: Atomic<UInt8>

    private init(_ kind: MemberKind) {
        self.kind = kind
        let hooks = kind.contains(.savepoints) ? Hooks.all.union(.savepoints) : .all
        known = .init(hooks.rawValue)
    }

    var hooks: Hooks { Hooks(rawValue: known.load(ordering: .relaxed)) }

    /// Of a context that has no owner.
    static let ofNobody = MemberType([])

    private static let table = LockedTable<MemberType>()
    /// Grows whenever a default was called for the first time.
    private static let learned = Atomic<Int>(0)

    static var knowledge: Int { learned.load(ordering: .acquiring) }

    static func of(_ owner: any Transactable) -> MemberType {
        let id = ObjectIdentifier(type(of: owner as AnyObject))
        if let found = table.locked({ $0[id] }) { return found }
        let new = MemberType(MemberKind(owner))
        return table.locked { types in
            let found = types[id] ?? new
            types[id] = found
            return found
        }
    }

    /// Called by the default of a hook.
    static func hasDefault(_ hook: Hooks, _ owner: any Transactable) {
        let former = of(owner).known.bitwiseAnd(~hook.rawValue, ordering: .relaxed).oldValue
        if Hooks(rawValue: former).contains(hook) { learned.add(1, ordering: .releasing) }
    }
}

extension Tree {
    /// As ``MemberType/of(_:)``; most members are of the class of the one before.
    func type(of owner: any Transactable) -> MemberType {
        let id = ObjectIdentifier(Swift.type(of: owner as AnyObject))
        if let last = lastType, last.id == id { return last.type }
        let type = MemberType.of(owner)
        lastType = (id, type)
        return type
    }

    /// Looks at all members again, if more is known of any class than when it did so last, or many that had hooks have gone since.
    ///
    /// - Complexity: O(members) once for each default of a class, and O(1) for each that goes.
    func learn() {
        let now = MemberType.knowledge
        if knowledge == now, departed <= members { return }
        (knowledge, departed) = (now, 0)
        root?.learn()
    }
}

extension TransactionContext {
    /// Of it and all below it.
    func learn() {
        forEachBelow { context in
            context.hooks = context.type.hooks
            context.below = context.hooks
        }
        forEachBelow { $0.parent?.raise($0.below) }
    }

    /// Tells those above that there are hooks below. A context is told of each once: so n members cost O(n) in all.
    func raise(_ hooks: Hooks) {
        var above: TransactionContext? = self
        while let context = above, !context.below.isSuperset(of: hooks) {
            context.below.formUnion(hooks)
            above = context.parent
        }
    }
}
