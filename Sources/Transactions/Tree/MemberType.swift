// The classes of members: the promises and the hooks of each.
//
//   I12  a hook is in `hooks` until its default has been called for that class. A class that has the default has it for good: its
//        subclasses do not change its conformance.
//   I13  `below` of a context contains the hooks of the context and of all below it, and may contain more.
//
// So once each default of the members' classes has been called, a transaction visits only members with hooks. A tree that was built
// earlier checks its members again when more is known (`Tree.learn`).
//
//   P2  a hook is cleared, then the count is incremented <-> the count is read, then the hooks. A tree that reads an old value calls a
//       default once more.

import CompositeOperationsBasics
import Synchronization

/// The hooks that a member may have.
struct Hooks: OptionSet {
    let rawValue: UInt8
    static let begin = Hooks(rawValue: 1)
    static let validate = Hooks(rawValue: 2)
    static let commit = Hooks(rawValue: 4)
    static let rollback = Hooks(rawValue: 8)
    static let savepoints = Hooks(rawValue: 16)
    static let all: Hooks = [.begin, .validate, .commit, .rollback]
}

/// The promises of a member, determined once from its type.
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

/// The entry of a class; never deallocated.
final class MemberType: Sendable {
    let kind: MemberKind
    private let known: Atomic<UInt8>

    private init(_ kind: MemberKind) {
        self.kind = kind
        let hooks = kind.contains(.savepoints) ? Hooks.all.union(.savepoints) : .all
        known = .init(hooks.rawValue)
    }

    var hooks: Hooks { Hooks(rawValue: known.load(ordering: .relaxed)) }

    /// The type of a context without an owner.
    static let ofNobody = MemberType([])

    private static let table = LockedTable<MemberType>()
    /// Grows whenever a default is called for the first time for a class.
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
    /// As ``MemberType/of(_:)``; most members have the class of the previous one.
    func type(of owner: any Transactable) -> MemberType {
        let id = ObjectIdentifier(Swift.type(of: owner as AnyObject))
        if let last = lastType, last.id == id { return last.type }
        let type = MemberType.of(owner)
        lastType = (id, type)
        return type
    }

    /// Checks all members again if more is known about any class than at the last check, or if many members with hooks have left
    /// since.
    ///
    /// - Complexity: O(members) once for each default of a class, and O(1) for each member that leaves.
    func learn() {
        let now = MemberType.knowledge
        if knowledge == now, departed <= members { return }
        (knowledge, departed) = (now, 0)
        root?.learn()
    }
}

extension TransactionContext {
    /// Updates `hooks` and `below` of this context and all below it.
    func learn() {
        forEachBelow { context in
            context.hooks = context.type.hooks
            context.below = context.hooks
        }
        forEachBelow { $0.parent?.raise($0.below) }
    }

    /// Adds hooks to `below` of this context and its ancestors. A context gets each hook once, so n members cost O(n) in all.
    func raise(_ hooks: Hooks) {
        var above: TransactionContext? = self
        while let context = above, !context.below.isSuperset(of: hooks) {
            context.below.formUnion(hooks)
            above = context.parent
        }
    }
}
