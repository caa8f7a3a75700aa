// Begin, commit, rollback and closures: rows 1 to 16 of the table of edge cases.

import CompositeOperationsTestSupport
import PropertyTestingSupport
import Testing
import Transactions

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ContractTests {
    let trace: Trace
    let root: Member
    let left: Member
    let leaf: Member
    let right: Member

    init() {
        trace = Trace()
        root = Member(root: "root", trace)
        left = Member("left", below: root)
        leaf = Member("leaf", below: left)
        right = Member("right", below: root)
    }

    var members: [Member] { [root, left, leaf, right] }
    static let begun = ["begin root", "begin left", "begin leaf", "begin right"]
    static let validated = ["validate root", "validate left", "validate leaf", "validate right"]
    static let committed = ["commit leaf", "commit left", "commit right", "commit root"]
    static let rolledBack = ["rollback leaf", "rollback left", "rollback right", "rollback root"]

    @Test(.promises("Q5"))
    func `Q5: begin and validate have parents first, commit and rollback children first`() throws {
        try root.transaction {}
        #expect(trace.take() == Self.begun + Self.validated + Self.committed)
        try root.beginTransaction()
        try root.rollbackTransaction()
        #expect(trace.take() == Self.begun + Self.rolledBack)
    }

    @Test(.promises("Q9", "X3", "E1"))
    func `E1: begin while active is refused by every member, and calls no hook`() throws {
        try root.beginTransaction()
        _ = trace.take()
        for member in members {
            #expect(refusal { try member.beginTransaction() } == .anotherTransactionIsActive)
        }
        #expect(trace.calls.isEmpty)
    }

    @Test(.promises("Q9", "E2", "E3"))
    func `E2, E3: ending while idle is refused; the descriptor is checked first`() throws {
        let stale = try root.beginTransaction()
        try root.rollbackTransaction()
        _ = trace.take()
        for member in members {
            #expect(refusal { try member.commitTransaction() } == .transactionIsNotActive)
            #expect(refusal { try member.rollbackTransaction() } == .transactionIsNotActive)
            #expect(refusal { try member.commitTransaction(stale) } == .wrongTransactionDescriptor)
            #expect(refusal { try member.rollbackTransaction(stale) } == .wrongTransactionDescriptor)
        }
        #expect(trace.calls.isEmpty)
    }

    @Test(.promises("Q9", "E4"))
    func `E4: a stale or foreign descriptor is refused, and the transaction stays`() throws {
        let stale = try root.beginTransaction()
        try root.rollbackTransaction()
        let other = Member(root: "other")
        let foreign = try other.beginTransaction()
        let active = try root.beginTransaction()
        _ = trace.take()
        for member in members {
            for descriptor in [stale, foreign] {
                #expect(refusal { try member.commitTransaction(descriptor) } == .wrongTransactionDescriptor)
                #expect(refusal { try member.rollbackTransaction(descriptor) } == .wrongTransactionDescriptor)
            }
            #expect(member.activeTransaction == active)
        }
        #expect(trace.calls.isEmpty)
    }

    @Test(.promises("Q6", "X9", "E5")) func `E5: a direct commit that fails stays active, and is repaired`()
        throws
    {
        try root.beginTransaction()
        left.failure = TestError(number: 1)
        _ = trace.take()
        #expect(thrown { try leaf.commitTransaction() } as? TestError == TestError(number: 1))
        #expect(root.transactionIsActive)
        #expect(trace.take() == ["validate root", "validate left"])
        left.failure = nil
        try root.commitTransaction()
        #expect(trace.take() == Self.validated + Self.committed)
    }

    @Test(.promises("Q6", "Q7", "E6")) func `E6: a closure whose validation throws is rolled back`() {
        right.failure = TestError(number: 2)
        #expect(thrown { try left.transaction {} } as? TestError == TestError(number: 2))
        #expect(!root.transactionIsActive)
        #expect(trace.take() == Self.begun + Self.validated + Self.rolledBack)
    }

    @Test(.promises("E7")) func `E7: a closure whose body throws is rolled back without validation`() {
        #expect(thrown { try leaf.transaction { throw TestError() } } is TestError)
        #expect(!root.transactionIsActive)
        #expect(trace.take() == Self.begun + Self.rolledBack)
    }

    @Test(.promises("Q8", "E8", "E9"))
    func `E8, E9: a joined closure runs its body and nothing else, returns or throws`() throws {
        try root.transaction {
            _ = trace.take()
            let values = [try leaf.transaction { 5 }, try right.doTransactionally { 6 }]
            #expect(values == [5, 6])
            #expect(
                thrown { try left.transaction { throw TestError(number: 3) } } as? TestError
                    == TestError(number: 3))
            #expect(trace.calls.isEmpty)
        }
        #expect(trace.take() == Self.validated + Self.committed)
    }

    @Test(.promises("Q7", "E11", "E12")) func `E11, E12: a body that rolls back by hand`() {
        #expect(fault { try root.transaction { try leaf.rollbackTransaction() } } == .rolledBackInsideBody)
        let error = thrown {
            try root.transaction {
                try leaf.rollbackTransaction()
                throw TestError(number: 4)
            }
        }
        #expect(error as? TestError == TestError(number: 4))
        #expect(trace.take() == Self.begun + Self.rolledBack + Self.begun + Self.rolledBack)
    }

    @Test(.promises("Q7", "E13", "E14")) func `E13, E14: a body that commits by hand`() throws {
        let value = try root.transaction {
            try root.commitTransaction()
            return 8
        }
        #expect(value == 8)
        let error = thrown {
            try root.transaction {
                try root.commitTransaction()
                throw TestError(number: 5)
            }
        }
        #expect(error as? TestError == TestError(number: 5))
        let once = Self.begun + Self.validated + Self.committed
        #expect(trace.take() == once + once)
    }

    @Test(.promises("Q7", "E15")) func `E15: a body that begins another transaction leaves it alone`() throws
    {
        for throwing in [false, true] {
            for commits in [false, true] {
                var second: Transaction?
                let error = thrown {
                    try root.transaction {
                        if commits { try root.commitTransaction() } else { try root.rollbackTransaction() }
                        second = try root.beginTransaction()
                        if throwing { throw TestError(number: 6) }
                    }
                }
                if throwing {
                    #expect(error as? TestError == TestError(number: 6))
                } else {
                    #expect((error as? TransactionFault) == (commits ? nil : .rolledBackInsideBody))
                }
                #expect(root.activeTransaction == second)
                try root.rollbackTransaction()
            }
        }
    }

    @Test(.promises("E11")) func `E11: also when another transaction was committed in the meantime`() throws {
        let error = fault {
            try root.transaction {
                try root.rollbackTransaction()
                try root.transaction {}
            }
        }
        #expect(error == .rolledBackInsideBody)
        try root.transaction {}
    }

    @Test(.promises("E16")) func `E16: a body that opens another root's transaction`() throws {
        let other = Member(root: "other")
        let error = thrown {
            try root.transaction {
                try other.transaction {}
                throw TestError()
            }
        }
        #expect(error is TestError)
        #expect(other.trace.take() == ["begin other", "validate other", "commit other"])
        #expect(trace.take() == Self.begun + Self.rolledBack)
    }

    @Test(.promises("X1")) func `X1: a hook that throws keeps the transaction from beginning`() throws {
        leaf.onHook = { if $0 == .begin { throw TestError(number: 7) } }
        #expect(thrown { try root.beginTransaction() } as? TestError == TestError(number: 7))
        #expect(trace.take() == ["begin root", "begin left", "begin leaf", "rollback left", "rollback root"])
        #expect(!root.transactionIsActive)
        leaf.onHook = { _ in }
        try root.transaction {}
        #expect(trace.take() == Self.begun + Self.validated + Self.committed)
    }

    @Test(.promises("X4"))
    func `X4: a scoped transaction that is dropped, or whose commit fails, is rolled back`() throws {
        do { _ = try leaf.scopedTransaction() }
        #expect(trace.take() == Self.begun + Self.rolledBack)
        do {
            let scoped = try leaf.scopedTransaction()
            #expect(root.activeTransaction == scoped.transaction)
            try scoped.commit()
        }
        #expect(trace.take() == Self.begun + Self.validated + Self.committed)
        root.failure = TestError(number: 8)
        let error = thrown {
            let scoped = try leaf.scopedTransaction()
            try scoped.commit()
        }
        #expect(error as? TestError == TestError(number: 8))
        #expect(trace.take() == Self.begun + ["validate root"] + Self.rolledBack)
        do {
            let scoped = try root.scopedTransaction()
            scoped.rollback()
            #expect(!root.transactionIsActive)
        }
        do {
            let scoped = try root.scopedTransaction()
            try root.rollbackTransaction()
            try root.beginTransaction()
            scoped.rollback()
        }
        #expect(root.transactionIsActive, "another transaction is not touched")
    }

    @Test(.promises("X4"))
    func `X4: descriptors equal only themselves, and so do their identifiers`() throws {
        let first = try root.beginTransaction()
        try root.rollbackTransaction()
        let second = try root.beginTransaction()
        let nothing: Transaction? = nil
        #expect(root.activeTransaction == second && root.activeTransaction != nothing)
        #expect(Set([first, second, .any]).count == 3)
        #expect(Set([first.id, second.id, Transaction.any.id]).count == 3)
        #expect(second.id == second.id)
        #expect("\(Transaction.any.id)" == "00000000-0000-0000-0000-000000000000")
        // The first half of an ID is drawn once per process; version and variant are those of RFC 9562.
        #expect("\(first.id)".prefix(18) == "\(second.id)".prefix(18))
        #expect("\(first.id)".prefix(13) != "00000000-0000")
        #expect(
            "\(first.id)".dropFirst(14).first == "8" && "89AB".contains("\(first.id)".dropFirst(19).first!))
        try root.rollbackTransaction()
    }

    @Test(.promises("Q8")) func `Q8: joined nesting of any depth has one begin and one commit`() throws {
        func nest(_ depth: Int) throws {
            guard depth > 0 else { return }
            try leaf.transaction { try nest(depth - 1) }
        }
        try nest(200)
        #expect(trace.take() == Self.begun + Self.validated + Self.committed)
    }
}
