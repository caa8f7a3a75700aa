// A member's place in its tree, and the calls that act on the tree.

import CompositeOperationsBasics

/// Ties an object into a tree of members.
///
/// An owner holds its context; the context refers to its owner weakly, and holds the contexts above it. So a tree keeps no owner
/// alive, and a context unregisters itself when it is deallocated. Contexts are not `Sendable`: they stay in the isolation in
/// which they were created.
public final class TransactionContext {
    private(set) weak var owner: (any Transactable)?
    private let ownerID: ObjectIdentifier?
    unowned(unsafe) let type: MemberType
    var kind: MemberKind { type.kind }
    /// The owner's hooks, and the union of the hooks of this context and all contexts below it: I13.
    var hooks: Hooks
    var below: Hooks

    /// Nil for a member that left, and for the limbo.
    @inline(__always)
    var tree: Tree? {
        get { treeReference?.takeUnretainedValue() }
        set {
            let former = treeReference
            treeReference = newValue.map { .passRetained($0) }
            former?.release()
        }
    }
    /// As ``tree``, but unmanaged: for code that need not retain the tree.
    @exclusivity(unchecked) private(set) var treeReference: Unmanaged<Tree>?
    var parent: TransactionContext?
    unowned(unsafe) var firstChild: TransactionContext?
    unowned(unsafe) var lastChild: TransactionContext?
    unowned(unsafe) var previousSibling: TransactionContext?
    unowned(unsafe) var nextSibling: TransactionContext?

    /// The last transaction that marked this context, and the last savepoint set before that; `part` is its role in that
    /// transaction.
    @exclusivity(unchecked) var begunIn: UInt64 = 0
    var begunAfter: UInt64 = 0
    /// The last validation pass that visited this member; a member that moves can be reached twice in one walk.
    var visitedIn: UInt64 = 0
    /// The last savepoint whose walk visited this member.
    var markedIn: UInt64 = 0
    @exclusivity(unchecked) var part = Part.ended
    /// The owner has a newer context.
    private(set) var isReplaced = false
    private let instance = Instance(.contexts)

    enum Part: UInt8 {
        /// Joined during the transaction, and has yet to begin.
        case absent
        case beginning, failedToBegin, takesPart, ended
    }

    private init(owner: (any Transactable)?, tree: Tree?) {
        self.owner = owner
        treeReference = tree.map { .passRetained($0) }
        ownerID = owner.map { ObjectIdentifier($0) }
        type = owner.map { tree?.type(of: $0) ?? MemberType.of($0) } ?? .ofNobody
        hooks = type.hooks
        below = hooks
        if let ownerID, let former = Owners.add(self, of: ownerID) {
            demand(
                !kind.contains(.logged),
                "TransactionContext: the object already has a context, which is in a tree, and state that is logged there"
            )
            former.isReplaced = true
        }
        tree?.count(self)
    }

    /// A parent for the members that leave during a transaction.
    static func limbo() -> TransactionContext { TransactionContext(owner: nil, tree: nil) }

    deinit {
        if let ownerID { Owners.remove(self, of: ownerID) }
        var above = unlink()
        tree?.forget(self)
        tree = nil
        // In a loop, because the recursive release of a chain of 10^6 contexts would need as many frames.
        while above != nil, isKnownUniquelyReferenced(&above) {
            let next = above?.unlink()
            above = next
        }
    }

    /// Creates the context of the root of a new tree.
    ///
    /// An owner may have several contexts at a time, in one tree or in several, and gets the hooks of each. A context that is
    /// replaced lives until its owner, its nodes and all other holders release it. ``move(to:)`` moves the nodes with it.
    ///
    /// - Precondition: a ``LoggedTransactable`` has no other context that is in a tree.
    /// - Complexity: O(1).
    public static func createRoot(owner: any Transactable) -> TransactionContext {
        let tree = Tree()
        let context = TransactionContext(owner: owner, tree: tree)
        tree.root = context
        return context
    }

    /// Creates the context of a member below `parent`.
    ///
    /// During a transaction the member begins at once. Its `onBegin` must not read its context, which exists for it only after
    /// this call returns; see ``createNode(owner:parent:store:)``. The commit throws the error of that hook.
    ///
    /// - Precondition: an owner is not its own parent, and no transaction of another task or thread is active; and as for
    ///   ``createRoot(owner:)``.
    /// - Complexity: O(1), excluding the hook.
    public static func createNode(owner: any Transactable, parent: any Transactable) -> TransactionContext {
        createNode(owner: owner, parent: parent) { _ in }
    }

    /// As ``createNode(owner:parent:)``, but passes the context to `store` before `onBegin` is called.
    @discardableResult
    public static func createNode(
        owner: any Transactable, parent: any Transactable, store: (TransactionContext) -> Void
    ) -> TransactionContext {
        demand(owner !== parent, "TransactionContext.createNode: an object cannot be its own parent")
        let above = parent.transactionContext
        demand(
            above.tree?.isMine ?? true,
            "TransactionContext.createNode: a transaction of another task or thread is active, and could undo it"
        )
        let context = TransactionContext(owner: owner, tree: above.tree)
        above.tree?.run.came(context)
        above.insert(context, after: above.lastChild)
        store(context)
        context.tree?.run.join(context)
        return context
    }

    /// Whether a transaction is active in the tree. O(1).
    public var transactionIsActive: Bool { activeTransaction != nil }

    /// The transaction that is active in the tree. O(1).
    public var activeTransaction: Transaction? { tree?.active }

    /// Begins a transaction by hand; see ``Transactable/beginTransaction()``.
    @discardableResult public func beginTransaction() throws -> Transaction {
        try attachedTree().begin(.byHand)
    }

    /// Validates, then keeps the changes; see ``Transactable/commitTransaction(_:)``.
    public func commitTransaction(_ transaction: Transaction = Transaction.any) throws {
        try attachedTree().commit(transaction)
    }

    /// Rolls the changes back; see ``Transactable/rollbackTransaction(_:)``.
    public func rollbackTransaction(_ transaction: Transaction = Transaction.any) throws {
        try attachedTree().rollback(transaction)
    }

    func attachedTree() throws -> Tree {
        guard let tree else { throw TransactionFault.detached }
        return tree
    }

    /// How commits of the tree proceed after a member's validation threw.
    public var validation: ValidationMode {
        get { tree?.validation ?? .failFast }
        set { tree?.validation = newValue }
    }

    /// The members whose validation threw in the last attempt to commit, in the order of validation.
    public var validationFailures: [ValidationFailure] { tree?.failures ?? [] }
}

/// How a commit proceeds after a member's validation threw.
public enum ValidationMode: Hashable, Sendable {
    /// The commit stops at the first failure.
    case failFast
    /// The other members are validated as well, and ``TransactionContext/validationFailures`` lists all failures.
    case collectAll
}
