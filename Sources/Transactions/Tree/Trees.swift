// The trees of one transaction: one, or those of a joint transaction, whose gates are opened in a fixed order, all or
// none.

struct Trees {
    let first: Tree
    let others: [Tree]
    let isJoint: Bool

    init(_ tree: Tree) { (first, others, isJoint) = (tree, [], false) }

    /// The trees of the members, each once, in the order in which their roots were created; nil without a member.
    init?(of members: [any Transactable]) throws {
        var trees: [UInt64: Tree] = [:]
        for member in members {
            let tree = try member.transactionContext.attachedTree()
            trees[tree.serial] = tree
        }
        self.init(trees.values)
    }

    init?(_ trees: some Sequence<Tree>) {
        let sorted = trees.sorted { $0.serial < $1.serial }
        guard let first = sorted.first else { return nil }
        (self.first, others, isJoint) = (first, Array(sorted.dropFirst()), true)
    }

    func allSatisfy(_ condition: (Tree) throws -> Bool) rethrows -> Bool {
        try condition(first) && others.allSatisfy(condition)
    }

    func forEach(_ body: (Tree) throws -> Void) rethrows {
        try body(first)
        try others.forEach(body)
    }

    /// Opens the gates, then begins all members; when either fails, all trees are left idle.
    func begin(_ transaction: Transaction, _ opener: Tree.Opener) throws {
        try forEach { try $0.requireRoot() }
        guard first.open(transaction, by: opener) else { throw TransactionError.anotherTransactionIsActive }
        for (index, tree) in others.enumerated() where !tree.open(transaction, by: opener) {
            first.close()
            for taken in others[..<index] { taken.close() }
            throw TransactionError.anotherTransactionIsActive
        }
        for tree in others { tree.adopt(first.run) }
        try first.run.begin(transaction, of: self)
    }

    /// Whether a closure over these trees joins one transaction that is active on all of them.
    func join() throws -> Bool {
        let active = first.active
        guard active != nil, allSatisfy({ $0.active == active }) else { return false }
        return try first.joins()
    }

    func perform<Result>(_ body: () throws -> Result) throws -> Result {
        let transaction = Transaction(number: Serial.next())
        try begin(transaction, .closure)
        let result: Result
        do { result = try body() } catch {
            first.abandon(transaction)
            throw error
        }
        try first.close(transaction)
        return result
    }
}

/// Runs `body` in one transaction of the trees of all `members`: all are kept, or none.
///
/// Each phase goes through the trees in the order in which their roots were created, whatever the order of `members`; no
/// tree commits before all are valid. Closures on these trees join. Without members, only `body` runs.
///
/// - Throws: ``TransactionError/anotherTransactionIsActive`` when one of the trees is active, before any hook; otherwise
///   as ``Transactable/transaction(_:)``.
@discardableResult
public func jointTransaction<Result>(over members: [any Transactable], _ body: () throws -> Result) throws
    -> Result
{
    guard let trees = try Trees(of: members) else { return try body() }
    return try trees.join() ? body() : trees.perform(body)
}
