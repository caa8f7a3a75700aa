// Logged state, savepoints and what validation reports: rows 9 and 10, X6, X8, X12, X13.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@testable import Transactions

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct StateTests {
    let root = Logged(root: "root")

    @Test(.promises("X12"))
    func `X12: a rollback restores the first saved value, whatever was written`() throws {
        try root.transaction { root.list = [1] }
        try root.beginTransaction()
        for number in 1...5 {
            root.number = number
            root.list.append(number)
        }
        #expect(root.$number.committed == 0 && root.$list.committed == [1])
        #expect(root.transactionContext.tree!.run.log.values.count == 2, "each property is saved once")
        try root.rollbackTransaction()
        #expect(root.number == 0 && root.list == [1])
        try root.transaction { root.number = 9 }
        #expect(root.number == 9 && root.$number.committed == 9)
    }

    @Test(.promises("X12")) func `X12: hooks of a rollback see restored state`() throws {
        let child = Logged("child", below: root)
        var seen: [Int] = []
        root.onHook = { [unowned root, unowned child] in
            if $0 == .rollback { seen = [root.number, child.number] }
        }
        try root.beginTransaction()
        (root.number, child.number) = (1, 2)
        try root.rollbackTransaction()
        #expect(seen == [0, 0])
    }

    /// Counts its copies.
    struct Copied {
        final class Storage { var value = 0 }
        private var storage = Storage()
        static nonisolated(unsafe) var copies = 0
        mutating func change() {
            if !isKnownUniquelyReferenced(&storage) {
                Self.copies += 1
                storage = Storage()
            }
            storage.value += 1
        }
        var value: Int { storage.value }
    }

    final class Holder: LoggedTransactable, TransactableDefaults {
        @Transacted var copied = Copied()
        private var context: TransactionContext?
        var transactionContext: TransactionContext { context! }
        init() { context = TransactionContext.createRoot(owner: self) }
    }

    @Test(.promises("X12")) func `X12: after the first write, values are changed in place`() throws {
        let holder = Holder()
        Copied.copies = 0
        try holder.transaction { for _ in 1...10 { holder.copied.change() } }
        #expect(Copied.copies == 1, "for what was saved")
    }

    final class Assigned: LoggedTransactable, TransactableDefaults {
        @Transacted var number = 1
        @Transacted var text: String
        private var context: TransactionContext?
        var transactionContext: TransactionContext { context! }
        init(_ number: Int, below parent: Logged) {
            text = "text"
            self.number = number
            text += "!"
            context = TransactionContext.createNode(owner: self, parent: parent)
        }
    }

    @Test(.promises("X12")) func `X12: assigning in an initialiser initialises, idle or active`() throws {
        let idle = Assigned(5, below: root)
        #expect(idle.number == 5 && idle.text == "text!")
        try root.beginTransaction()
        let active = Assigned(6, below: root)
        active.number = 7
        #expect(active.$number.committed == 6)
        try root.rollbackTransaction()
        #expect(active.number == 6 && active.text == "text!")
    }

    @Test(.promises("X12")) func `X12: a reused address is another owner's`() throws {
        // The contexts outlive their owners, and new owners reuse the addresses of earlier ones.
        var contexts: [TransactionContext] = []
        for number in 0..<200 {
            let owner = Assigned(number, below: root)
            #expect(owner.number == number)
            contexts.append(owner.transactionContext)
        }
    }

    @Test(.promises("X12")) func `X12: state without the wrapper reverts, too`() throws {
        let state = TransactionalState("a", in: root.transactionContext)
        try root.beginTransaction()
        state.value += "b"
        #expect(state.value == "ab" && state.committed == "a")
        try root.rollbackTransaction()
        #expect(state.value == "a")
        try state.set("c")
        #expect(state.value == "c")
    }

    @Test(.promises("Q1")) func `Q1: objects made inside are freed by a rollback`() throws {
        weak var made: Logged?
        try root.beginTransaction()
        root.children.append(Logged("made", below: root))
        made = root.children[0]
        made?.number = 1
        try root.rollbackTransaction()
        #expect(made == nil)
        #expect(root.transactionContext.tree!.members == 1)
    }

    @Test(.promises("X12")) func `X12: removed objects are freed by a commit`() throws {
        try root.transaction { root.children = [Logged("gone", below: root)] }
        weak let gone = root.children[0]
        try root.transaction { try root.children.removeFirst().transactionContext.leave() }
        #expect(gone == nil)
        #expect(root.transactionContext.tree!.members == 1)
    }

    @Test(.promises("X12")) func `X12: a released object may read the property`() throws {
        let keeper = Keeper()
        var seen: Int?
        try keeper.beginTransaction()
        keeper.going = [Going { [unowned keeper] in seen = keeper.going.count }]
        try keeper.rollbackTransaction()
        #expect(seen == 0)
    }

    /// Joins again with another context.
    final class Returning: LoggedTransactable, TransactableDefaults {
        @Transacted var number = 0
        private var context: TransactionContext?
        var transactionContext: TransactionContext { context! }
        func join(_ parent: Logged) { context = TransactionContext.createNode(owner: self, parent: parent) }
    }

    @Test(.promises("X12")) func `X12: a member that rejoined with another context reverts, too`() throws {
        let part = Returning()
        part.join(root)
        try root.transaction {
            part.number = 1
            try part.transactionContext.leave()
        }
        part.number = 2
        part.join(root)
        try root.beginTransaction()
        part.number = 3
        #expect(part.$number.committed == 2)
        try root.rollbackTransaction()
        #expect(part.number == 2)
    }

    // MARK: Outside of a transaction

    @Test(.promises("X13")) func `X13: a write outside stops the process`() async {
        await #expect(processExitsWith: .failure) { Logged(root: "root").number = 1 }
    }

    @Test(.promises("X13")) func `X13: a write outside may be a transaction of its own`() throws {
        root.free = 4
        root.free += 1
        #expect(root.free == 5)
        let once = ["begin root", "validate root", "commit root"]
        #expect(root.trace.take() == once + once)
    }

    @Test(.promises("X13")) func `X13: a refused write stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let root = Logged(root: "root")
            root.failure = TestError()
            root.free = 1
        }
    }

    @Test(.promises("X13")) func `X13: set throws instead, in both modes, and restores`() throws {
        try root.$number.set(1)
        try root.$free.set(2)
        #expect(root.number == 1 && root.free == 2)
        root.failure = TestError(number: 3)
        #expect(thrown { try root.$number.set(4) } as? TestError == TestError(number: 3))
        #expect(thrown { try root.$free.set(5) } as? TestError == TestError(number: 3))
        #expect(root.number == 1 && root.free == 2 && !root.transactionIsActive)
        try root.beginTransaction()
        try root.$number.set(6)
        try root.rollbackTransaction()
        #expect(root.number == 1)
    }

    @Test(.promises("X13")) func `X13: a write from onCommit stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let root = Logged(root: "root")
            root.onHook = { [unowned root] in if $0 == .commit { root.number = 1 } }
            try root.transaction {}
        }
    }

    @Test(.promises("X13")) func `X13: a write from onRollback stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let root = Logged(root: "root")
            root.onHook = { [unowned root] in if $0 == .rollback { root.number = 1 } }
            try root.beginTransaction()
            try root.rollbackTransaction()
        }
    }

    @Test(.promises("X13"))
    func `X13: an in-place change outside that throws half-way is undone`() throws {
        func change(_ list: inout [Int]) throws {
            list.append(1)
            throw TestError()
        }
        let free = TransactionalState([0], outside: .transact)
        free.bind(to: root, as: \Logged.list)
        #expect(thrown { try change(&free.value) } is TestError)
        #expect(free.value == [0] && !root.transactionIsActive)
        #expect(root.trace.take() == ["begin root", "rollback root"])
        // In an open transaction the change belongs to that transaction, like any other.
        try root.transaction { try? change(&free.value) }
        #expect(free.value == [0, 1])
    }

    /// Counts its instances in `keeper`, also when deallocated.
    private final class Counted {
        unowned let keeper: Logged
        init(_ keeper: Logged) {
            self.keeper = keeper
            keeper.number += 1
        }
        deinit { keeper.number -= 1 }
    }

    private final class Shelf: LoggedTransactable, TransactableDefaults {
        @Transacted var counted: [Counted] = []
        private var context: TransactionContext?
        var transactionContext: TransactionContext { context! }
        init(below parent: Member) { context = .createNode(owner: self, parent: parent) }
    }

    @Test(.promises("X13"))
    func `X13: writes by deinit stay at a commit, and are undone at a rollback`() throws {
        let shelf = Shelf(below: root)
        try root.transaction { shelf.counted = [Counted(root), Counted(root), Counted(root)] }
        #expect(root.number == 3)
        try root.transaction { _ = shelf.counted.removeLast() }
        #expect(root.number == 2 && shelf.counted.count == 2)
        for isRemoved in [true, false] {
            try? root.transaction {
                if isRemoved { shelf.counted.removeLast() }
                shelf.counted.append(Counted(root))
                throw TestError()
            }
            #expect(root.number == 2 && shelf.counted.count == 2)
        }
        try root.transaction {
            try? root.transaction(nesting: .savepoint) {
                shelf.counted.append(Counted(root))
                throw TestError()
            }
            #expect(root.number == 2)
            shelf.counted = []
        }
        #expect(root.number == 0)
        #expect(root.$number.committed == 0)
    }

    @Test(.promises("X13")) func `X13: writing to a member ended by a savepoint stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let root = Logged(root: "root")
            try root.beginTransaction()
            var late: Logged?
            try? root.transaction(nesting: .savepoint) {
                late = Logged("late", below: root)
                throw TestError()
            }
            late?.number = 1
        }
    }

    @Test(.promises("X6"))
    func `X6: below a member a savepoint ended, others begin, are validated and end`() throws {
        let node = Logged("node", below: root)
        try root.beginTransaction()
        var late: Logged?
        try? root.transaction(nesting: .savepoint) {
            late = Logged("late", below: root)
            throw TestError()
        }
        let above = try #require(late)
        let below = Logged("below", below: above)
        below.number = 1
        try node.transactionContext.move(to: above)
        _ = root.trace.take()
        below.failure = TestError(number: 2)
        #expect(thrown { try root.commitTransaction() } as? TestError == TestError(number: 2))
        below.failure = nil
        _ = root.trace.take()
        try root.commitTransaction()
        #expect(
            root.trace.take() == [
                "validate root", "validate below", "validate node", "commit below", "commit node",
                "commit root",
            ])
    }

    // MARK: Savepoints

    @Test(.promises("Q8", "X6", "E10"))
    func `E10: a savepoint's changes are undone if it throws, and the outer continues`() throws {
        var late: Logged?
        try root.transaction {
            root.number = 1
            let error = thrown {
                try root.doTransactionally(nesting: .savepoint) {
                    root.number = 2
                    root.list = [2]
                    late = Logged("late", below: root)
                    late?.number = 3
                    throw TestError(number: 1)
                }
            }
            #expect(error as? TestError == TestError(number: 1))
            #expect(root.number == 1 && root.list == [] && late?.number == 0)
            #expect(root.$number.committed == 0)
            root.list = [4]
        }
        #expect(root.number == 1 && root.list == [4])
        #expect(
            root.trace.take() == [
                "begin root", "begin late", "rollback late", "validate root", "commit root",
            ])
        try root.transaction {}
        #expect(root.trace.take().contains("begin late"), "it stays a member")
    }

    @Test(.promises("Q8", "E9")) func `E9: a joined body's changes stay if its error is caught`() throws {
        try root.transaction {
            try? root.transaction {
                root.number = 2
                throw TestError()
            }
        }
        #expect(root.number == 2)
    }

    @Test(.promises("X6")) func `X6: savepoints nest, and a released one reverts with the outer`()
        throws
    {
        try root.transaction {
            root.number = 1
            try? root.transaction(nesting: .savepoint) {
                try root.transaction(nesting: .savepoint) { root.number = 2 }
                root.number = 3
                #expect(
                    thrown {
                        try root.transaction(nesting: .savepoint) {
                            root.number = 4; throw TestError()
                        }
                    } != nil)
                #expect(root.number == 3)
                throw TestError()
            }
            #expect(root.number == 1)
        }
        #expect(root.number == 1)
    }

    @Test(.promises("X6")) func `X6: without a transaction, a savepoint's closure is one`() throws {
        #expect(
            thrown {
                try root.transaction(nesting: .savepoint) {
                    root.number = 1; throw TestError()
                }
            } is TestError)
        #expect(root.number == 0 && root.trace.take() == ["begin root", "rollback root"])
    }

    @Test(.promises("X6")) func `X6: a member without logged state or hooks prevents savepoints`()
        throws
    {
        var plain: Member? = Member("plain", below: root)
        let below = Logged("below", below: plain!)
        var ran = false
        try root.transaction {
            #expect(
                fault { try root.transaction(nesting: .savepoint) { ran = true } } == .savepointUnsupported)
            plain = nil
            // The context of the released member still exists, because the member below needs it.
            try root.transaction(nesting: .savepoint) { ran = true }
        }
        #expect(ran && plain == nil)
        withExtendedLifetime(below) {}
    }

    final class Saver: Member, SavepointTransactable {
        var savepoints: [Savepoint] = []
        var whenSet: () -> Void = {}
        func onSavepoint(_ savepoint: Savepoint) {
            savepoints.append(savepoint)
            trace.calls.append("set \(name)")
            whenSet()
        }
        func onRollback(to savepoint: Savepoint) {
            trace.calls.append("back \(name) \(savepoints.removeLast() == savepoint)")
        }
        func onRelease(_ savepoint: Savepoint) {
            trace.calls.append("release \(name) \(savepoints.removeLast() == savepoint)")
        }
    }

    @Test(.promises("X6"))
    func `X6: hooks for savepoints, parents first when set, children first when it ends`() throws {
        let root = Saver(root: "root")
        let child = Saver("child", below: root)
        try root.transaction {
            _ = root.trace.take()
            try child.transaction(nesting: .savepoint) {}
            #expect(
                root.trace.take() == ["set root", "set child", "release child true", "release root true"])
            try? child.transaction(nesting: .savepoint) {
                _ = Saver("late", below: child)
                throw TestError()
            }
            #expect(
                root.trace.take() == [
                    "set root", "set child", "begin late", "back child true", "back root true",
                ])
        }
    }

    @Test(.promises("X6")) func `X6: a member gone before a savepoint has its hooks, too`() throws {
        let root = Saver(root: "root")
        let child = Saver("child", below: root)
        try root.transaction {
            try child.transactionContext.leave()
            _ = root.trace.take()
            try root.transaction(nesting: .savepoint) {}
            #expect(
                root.trace.take() == ["set root", "set child", "release root true", "release child true"])
            try? root.transaction(nesting: .savepoint) { throw TestError() }
            #expect(root.trace.take() == ["set root", "set child", "back root true", "back child true"])
        }
    }

    @Test(.promises("Q1")) func `Q1: a savepoint reverts leave and move, and the doom of late members`()
        throws
    {
        let a = Logged("a", below: root)
        let b = Logged("b", below: root)
        let c = Logged("c", below: root)
        try root.transaction {
            try? root.transaction(nesting: .savepoint) {
                try b.transactionContext.leave()
                try a.transactionContext.move(to: c)
                _ = Logged("late", below: root) { _ in throw TestError() }
                throw TestError()
            }
            _ = root.trace.take()
        }
        #expect(root.trace.take().prefix(4) == ["validate root", "validate a", "validate b", "validate c"])
    }

    @Test(.promises("E11")) func `E11: a savepoint's body that rolls back by hand`() throws {
        try root.beginTransaction()
        #expect(
            fault { try root.transaction(nesting: .savepoint) { try root.rollbackTransaction() } }
                == .rolledBackInsideBody)
        let outer = fault {
            try root.transaction {
                #expect(
                    fault { try root.transaction(nesting: .savepoint) { try root.rollbackTransaction() } }
                        == .rolledBackInsideBody)
            }
        }
        #expect(outer == .rolledBackInsideBody)
        try root.transaction {}
    }

    // MARK: Validation

    @Test(.promises("Q2", "Q6", "X8"))
    func `X8: collect-all lists every failing member, and throws the first error`() throws {
        let members = (0..<6).map { Logged("m\($0)", below: root) }
        for index in [1, 3, 4] { members[index].failure = TestError(number: index) }
        let context = root.transactionContext
        context.validation = .collectAll
        try root.beginTransaction()
        #expect(thrown { try root.commitTransaction() } as? TestError == TestError(number: 1))
        #expect(context.validationFailures.map { ($0.member as? Logged)?.name } == ["m1", "m3", "m4"])
        #expect(context.validationFailures.map { ($0.error as? TestError)?.number } == [1, 3, 4])
        for member in members { member.failure = nil }
        try root.commitTransaction()
        #expect(context.validationFailures.isEmpty)
        context.validation = .failFast
        members[2].failure = TestError(number: 2)
        members[5].failure = TestError(number: 5)
        #expect(thrown { try members[0].transaction {} } as? TestError == TestError(number: 2))
        #expect(members[0].transactionContext.validationFailures.count == 1)
    }

    @Test(.promises("Q2", "Q6", "X8")) func `X8: validation is repeated until it changes nothing`() throws {
        let child = Logged("child", below: root)
        child.onHook = { [unowned root, unowned child] in
            if $0 == .validate, child.number < 3 {
                (child.number, root.number) = (child.number + 1, child.number + 1)
            }
        }
        try root.beginTransaction()
        _ = root.trace.take()
        try root.commitTransaction()
        let pass = ["validate root", "validate child"]
        #expect(root.trace.take() == pass + pass + pass + pass + ["commit child", "commit root"])
        #expect(root.number == 3)
    }

    @Test(.promises("X8")) func `X8: validation changes reverted in a savepoint change nothing`()
        throws
    {
        let child = Logged("child", below: root)
        let aside = Logged("aside", below: root)
        child.onHook = { [unowned root, unowned child, unowned aside] in
            guard $0 == .validate else { return }
            try? root.transaction(nesting: .savepoint) {
                root.number = 1
                try child.transactionContext.move(to: aside)
                try aside.transactionContext.leave()
                throw TestError()
            }
        }
        try root.beginTransaction()
        _ = root.trace.take()
        try root.commitTransaction()
        #expect(root.trace.take().filter { $0 == "validate root" || $0 == "validate aside" }.count == 2)
        #expect(root.number == 0)
    }

    @Test(.promises("X8"))
    func `X8: a member that moves at each validation is also abandoned after 16 passes`() throws {
        let saver = Saver("saver", below: root)
        saver.onHook = { [unowned root, unowned saver] in
            if $0 == .validate { try saver.transactionContext.move(to: root) }
        }
        try root.beginTransaction()
        _ = root.trace.take()
        #expect(fault { try root.commitTransaction() } == .validationDoesNotSettle)
        #expect(root.trace.take().count == 32)
        saver.whenSet = { [unowned root, unowned saver] in try! saver.transactionContext.move(to: root) }
        try root.transaction(nesting: .savepoint) {}
        #expect(root.trace.take() == ["set saver", "release saver true"])
        try root.rollbackTransaction()
    }

    @Test(.promises("X8")) func `X8: savepoints keep the 16-pass limit`() throws {
        let saver = Saver("saver", below: root)
        saver.onHook = { [unowned root, unowned saver] in
            guard $0 == .validate else { return }
            try root.transaction(nesting: .savepoint) {}
            try saver.transactionContext.move(to: root)
        }
        try root.beginTransaction()
        _ = root.trace.take()
        #expect(fault { try root.commitTransaction() } == .validationDoesNotSettle)
        #expect(root.trace.take().filter { $0.hasPrefix("validate") }.count == 32)
        try root.rollbackTransaction()
    }

    @Test(.promises("Q2", "Q6", "X8"))
    func `X8: unsettled validation is abandoned after 16 passes`() throws {
        root.onHook = { [unowned root] in if $0 == .validate { root.number += 1 } }
        try root.beginTransaction()
        _ = root.trace.take()
        #expect(fault { try root.commitTransaction() } == .validationDoesNotSettle)
        #expect(root.trace.take().count == 16)
        root.onHook = { [unowned root] in if $0 == .validate, root.number < 31 { root.number += 1 } }
        try root.commitTransaction()
        #expect(root.number == 31, "the 16th pass may be the one that changes nothing")
    }
}
