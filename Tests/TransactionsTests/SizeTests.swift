// A million members, deep or wide, on a stack of 8 MiB, in linear time: row 31, Q12.

import CompositeOperationsTestSupport
import Glibc
import PropertyTestingSupport
import Testing

@testable import Transactions

@Suite(.inTurn, .serialized, .watched(testLimit), .leavesNothing) struct SizeTests {
    final class Small: TransactableDefaults, LoggedTransactable {
        private var context: TransactionContext?
        var transactionContext: TransactionContext { context! }
        init() { context = TransactionContext.createRoot(owner: self) }
        init(below parent: Small) { context = TransactionContext.createNode(owner: self, parent: parent) }
    }

    enum Shape: CaseIterable {
        case deep, wide, comb
    }

    /// Builds a tree, runs each phase, moves and removes members, and takes the tree apart.
    @Test(.promises("Q12", "E31"), arguments: Shape.allCases)
    func `Q12: a million members work, on a small stack`(shape: Shape) async {
        // A tenth of that in debug builds: even that depth would overflow so small a stack if
        // anything recursed.
        #if DEBUG
            let count = isSanitized ? 50_000 : 100_000
        #else
            let count = isSanitized ? 50_000 : 1_000_000
        #endif
        await onSmallStack { Self.run(shape, count) }
    }

    private final class Counter: TransactableDefaults, LoggedTransactable {
        @Transacted var number = 0
        private var context: TransactionContext?
        var transactionContext: TransactionContext { context! }
        init() { context = TransactionContext.createRoot(owner: self) }
    }

    @Test(.promises("Q12"), arguments: [true, false])
    func `Q12: values saved by many savepoints are freed iteratively`(commits: Bool) async {
        let count = isSanitized ? 20_000 : 100_000
        await onSmallStack {
            let root = Counter()
            try? root.transaction {
                for number in 1...count { try root.transaction(nesting: .savepoint) { root.number = number } }
                if !commits { throw TestError() }
            }
            #expect(root.number == (commits ? count : 0))
        }
    }

    private static func run(_ shape: Shape, _ count: Int) {
        let root = Small()
        let tree = root.transactionContext.tree!
        var members: [Small] = []
        members.reserveCapacity(count)
        func add(below parent: Small) { members.append(Small(below: parent)) }
        for index in 0..<count {
            switch shape {
            case .deep: add(below: members.last ?? root)
            case .wide: add(below: root)
            case .comb: add(below: index % 2 == 0 ? (members.dropLast().last ?? root) : members[index - 1])
            }
        }
        try! root.transaction {}
        try! members[count - 1].beginTransaction()
        try! members[0].transactionContext.leave()
        try! members[count / 2].transactionContext.move(to: root)
        try! root.transaction(nesting: .savepoint) {}
        try? root.transaction(nesting: .savepoint) { throw TestError() }
        try! members[count - 1].rollbackTransaction()
        #expect(tree.members == count + 1)
        // Parents are released first, so that the members below retain the contexts; then all are
        // released at once.
        members.reverse()
        while members.count > 1 { members.removeLast() }
        members = []
        #expect(tree.members == 1)
    }

    /// Compares the thread's CPU time, the best of three runs: other threads share the caches.
    @Test(.promises("Q12", "E31"), arguments: [Shape.deep, .wide])
    func `Q12: time grows with the number of members`(shape: Shape) {
        func time(_ count: Int) -> Int {
            var best = Int.max
            for _ in 1...3 {
                let before = threadTime()
                let root = Small()
                var members: [Small] = []
                for _ in 0..<count {
                    members.append(Small(below: shape == .deep ? members.last ?? root : root))
                }
                try! root.transaction {}
                members.reverse()
                while members.popLast() != nil {}
                best = min(best, threadTime() - before)
            }
            return best
        }
        let few = isSanitized ? 300 : 1_500
        // Linear growth takes 64 times as long, and more beyond the caches; quadratic growth takes
        // 4,096 times.
        #expect(time(64 * few) < 1_000 * time(few))
    }

    @Test(.promises("X3")) func `X3: the cost of a query ignores a member's depth`() throws {
        let root = Small()
        var members = [root]
        for _ in 0..<1_000 { members.append(Small(below: members[members.count - 1])) }
        let transaction = try members[1_000].beginTransaction()
        #expect(members[1_000].activeTransaction == transaction && members[500].transactionIsActive)
        try members[700].rollbackTransaction()
    }
}
