// Calls from inside hooks: rows 27 to 30 of the table of edge cases.

import CompositeOperationsTestSupport
import PropertyTestingSupport
import Testing
import Transactions

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ReentrancyTests {
    /// Runs a transaction, and calls `body` once, in the given hook of the middle one of three
    /// members. Returns the error of `body`.
    func inHook(_ hook: Hook, late: Bool = false, _ body: (Member) throws -> Void) throws -> (any Error)? {
        let trace = Trace()
        let root = Member(root: "root", trace)
        let child = Member("child", below: root)
        let leaf = Member("leaf", below: child)
        var found: (any Error)?
        var count = 0
        try withoutActuallyEscaping(body) { body in
            child.onHook = { [unowned child] called in
                guard called == hook else { return }
                count += 1
                found = thrown { try body(child) }
            }
            defer { child.onHook = { _ in } }
            try root.beginTransaction()
            if hook == .rollback { try root.rollbackTransaction() } else { try root.commitTransaction() }
        }
        #expect(count == 1 && !root.transactionIsActive)
        let ends = hook == .rollback ? ["rollback leaf", "rollback child", "rollback root"] : []
        let commits = ["commit leaf", "commit child", "commit root"]
        let validated = ["validate root", "validate child", "validate leaf"]
        #expect(
            trace.take() == ["begin root", "begin child", "begin leaf"]
                + (hook == .rollback ? ends : validated + commits))
        withExtendedLifetime(leaf) {}
        return found
    }

    static func phase(_ hook: Hook) -> TransactionPhase {
        switch hook {
        case .begin: .begin
        case .validate: .validate
        case .commit: .commit
        case .rollback: .rollback
        }
    }

    @Test(.promises("Q10", "X18", "E27"), arguments: Hook.allCases)
    func `E27: commit or rollback from a hook is re-entrant, and changes nothing`(_ hook: Hook) throws {
        let expected = TransactionFault.reentrant(Self.phase(hook))
        #expect(try inHook(hook) { try $0.commitTransaction() } as? TransactionFault == expected)
        #expect(try inHook(hook) { try $0.rollbackTransaction() } as? TransactionFault == expected)
        #expect(
            try inHook(hook) { try $0.rollbackTransaction($0.activeTransaction ?? .any) } as? TransactionFault
                == expected
        )
    }

    @Test(.promises("Q10", "X18", "E28"), arguments: Hook.allCases)
    func `E28: a begin in a hook is refused`(_ hook: Hook) throws {
        #expect(
            try inHook(hook) { try $0.beginTransaction() } as? TransactionError == .anotherTransactionIsActive
        )
    }

    @Test(.promises("Q10", "X18", "E29"), arguments: Hook.allCases)
    func `E29: a closure from a hook joins, or is re-entrant`(_ hook: Hook) throws {
        for throwing in [false, true] {
            var ran = false
            let error = try inHook(hook) {
                try $0.transaction {
                    ran = true
                    if throwing { throw TestError() }
                }
            }
            switch hook {
            case .begin, .validate:
                #expect(ran && (error is TestError) == throwing)
            case .commit, .rollback:
                #expect(!ran && error as? TransactionFault == .reentrant(Self.phase(hook)))
            }
        }
    }

    @Test(.promises("Q10", "X18", "E30"), arguments: [Hook.commit, .rollback])
    func `E30: leave and move from the hooks of an end are re-entrant`(_ hook: Hook) throws {
        let expected = TransactionFault.reentrant(Self.phase(hook))
        #expect(try inHook(hook) { try $0.transactionContext.leave() } as? TransactionFault == expected)
        let root = Member(root: "another")
        _ = root
        #expect(
            try inHook(hook) { child in
                let sibling = Member("sibling", below: child)
                try sibling.transactionContext.leave()
            } as? TransactionFault == expected)
    }

    @Test(.promises("Q10"), arguments: Hook.allCases)
    func `Q10: the transaction is active in every hook, with its descriptor`(_ hook: Hook) throws {
        var seen: Transaction?
        #expect(try inHook(hook) { seen = $0.activeTransaction } == nil)
        #expect(seen != nil)
    }

    @Test(.promises("Q10", "X18", "E27")) func `E27: also from the onBegin of a late node`() throws {
        let root = Member(root: "root")
        try root.beginTransaction()
        var error: TransactionFault?
        let late = Member("late", below: root) { [unowned root] hook in
            if hook == .begin { error = fault { try root.commitTransaction() } }
        }
        #expect(error == .reentrant(.begin))
        try late.commitTransaction()
    }
}
