// Observers, views, undo steps and joint transactions: rows 38, X14 to X19.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@testable import Transactions

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct TellingTests {
    let root = Logged(root: "root")

    // MARK: Notifications

    @Test(.promises("X17")) func `X17: a commit is reported once, with its changes; a rollback has none`()
        throws
    {
        var told: [TransactionChanges] = []
        var rolledBack: [Transaction] = []
        let subscriptions = [
            root.transactionContext.didCommit { told.append($0) },
            root.transactionContext.didRollback { rolledBack.append($0) },
        ]
        let old = Logged("old", below: root)
        let below = Logged("below", below: old)
        var late: Logged?
        let first = try root.beginTransaction()
        root.number = 1
        root.number = 2
        root.list = [3]
        late = Logged("late", below: root)
        late?.number = 4
        try old.transactionContext.leave()
        try root.commitTransaction()
        let changes = try #require(told.first)
        #expect(told.count == 1 && changes.transaction == first)
        #expect(changes.changes.map { ($0.member as! Logged).name } == ["root", "root", "late"])
        #expect(changes.changes[0].property == \Logged.number && changes.changes[1].property == \Logged.list)
        #expect(changes.changes[0].old as? Int == 0 && changes.changes[0].new as? Int == 2)
        #expect(changes.changes[1].new as? [Int] == [3])
        #expect(changes.added.map { ($0 as! Logged).name } == ["late"])
        #expect(changes.removed.map { ($0 as! Logged).name } == ["old", "below"])
        let second = try root.beginTransaction()
        root.number = 5
        try root.rollbackTransaction()
        #expect(told.count == 1 && rolledBack == [second])
        withExtendedLifetime((subscriptions, below)) {}
    }

    @Test(.promises("X17"))
    func `X17: members that came and left, and changes a savepoint rolled back, are not reported`()
        throws
    {
        var told: [TransactionChanges] = []
        let subscription = root.transactionContext.didCommit { told.append($0) }
        var members: [Logged] = []
        try root.transaction {
            members.append(Logged("a", below: root))
            try members[0].transactionContext.leave()
            try? root.transaction(nesting: .savepoint) {
                members.append(Logged("b", below: root))
                root.number = 1
                throw TestError()
            }
        }
        #expect(told.count == 1 && told[0].added.isEmpty && told[0].changes.isEmpty)
        #expect(told[0].removed.isEmpty)
        withExtendedLifetime(subscription) {}
    }

    @Test(.promises("X17"))
    func `X17: observers are notified in order, on an idle tree, and of their own changes later`()
        throws
    {
        var told: [String] = []
        let root = root
        var subscriptions: [TransactionSubscription] = []
        subscriptions.append(
            root.transactionContext.didCommit { changes in
                #expect(!root.transactionIsActive)
                told.append("first \(changes.changes.last?.new ?? "")")
                if root.number < 3 { try! root.transaction { root.number += 1 } }
            })
        subscriptions.append(
            root.transactionContext.didCommit { told.append("second \($0.changes.last?.new ?? "")") })
        try root.transaction { root.number = 1 }
        #expect(told == ["first 1", "second 1", "first 2", "second 2", "first 3", "second 3"])
        subscriptions[0].cancel()
        try root.transaction { root.number = 7 }
        subscriptions = []
        try root.transaction { root.number = 8 }
        #expect(told.suffix(1) == ["second 7"])
    }

    @Test(.promises("X17"))
    func `X17: all trees of a joint transaction report before an observer's own changes do`()
        throws
    {
        let other = Logged(root: "other"), root = root
        var told: [String] = []
        var first = Transaction.any
        let subscriptions = [
            root.transactionContext.didCommit { _ in
                told.append("root")
                if other.number == 2 { try! other.transaction { other.number = 3 } }
                told.append("root done")
            },
            root.transactionContext.didRollback { _ in
                told.append("root back")
                try? other.transaction { throw TestError() }
            },
            other.transactionContext.didCommit { told.append("other \($0.changes.last?.new ?? "")") },
            other.transactionContext.didRollback { told.append("other \($0 == first ? "" : "inner ")back") },
        ]
        try jointTransaction(over: [root, other]) { other.number = 2 }
        #expect(told == ["root", "root done", "other 2", "other 3"])
        told = []
        try? jointTransaction(over: [root, other]) {
            first = other.transactionContext.tree!.active!
            throw TestError()
        }
        #expect(told == ["root back", "other back", "other inner back"])
        withExtendedLifetime(subscriptions) {}
    }

    @Test(.promises("X17"))
    func `X17: state is not idle before the last hook, and a failed begin reports a rollback`()
        throws
    {
        var count = 0
        let subscription = root.transactionContext.didRollback { _ in count += 1 }
        root.onHook = { if $0 == .begin { throw TestError() } }
        #expect(thrown { try root.beginTransaction() } is TestError)
        #expect(count == 1)
        withExtendedLifetime(subscription) {}
    }

    @Test(.promises("X17")) func `X17: cancelling may release an object that cancels it again`()
        throws
    {
        final class Listener {
            var subscription: TransactionSubscription?
            deinit { subscription?.cancel() }
        }
        weak var listening: Listener?
        let subscription: TransactionSubscription
        do {
            let listener = Listener()
            listening = listener
            subscription = root.transactionContext.didCommit { _ in withExtendedLifetime(listener) {} }
            listener.subscription = subscription
        }
        #expect(listening != nil)
        subscription.cancel()
        #expect(listening == nil)
        try root.transaction {}
    }

    @Test(.promises("X17")) func `X17: objects freed after notices may commit`() throws {
        let keeper = Keeper()
        try keeper.transaction { keeper.going = [Going { [unowned keeper] in keeper.number += 1 }] }
        var told = 0
        let subscription = keeper.transactionContext.didCommit { [unowned keeper] _ in
            told += 1
            if told == 1 { try! keeper.transaction { keeper.going = [] } }
        }
        try keeper.transaction {}
        #expect(keeper.number == 1 && told == 3)
        withExtendedLifetime(subscription) {}
    }

    // MARK: Views

    @Test(.promises("X14")) func `X14: a view has the value of the last commit`() throws {
        let view = CommittedView(of: root) { [unowned root] in root.number }
        #expect(view.value == 0 && view.version == 0)
        try root.transaction {
            root.number = 1
            #expect(view.value == 0)
        }
        #expect(view.value == 1 && view.version == 1)
        try? root.transaction {
            root.number = 2
            throw TestError()
        }
        #expect(view.value == 1 && view.version == 1)
    }

    @Test(.promises("X14")) func `X14: a view is replaced after the last hook, before any notice`()
        throws
    {
        let view = CommittedView(of: root) { [unowned root] in root.number }
        var seen: [Int] = []
        root.onHook = { if $0 == .commit { seen.append(view.value) } }
        let subscription = root.transactionContext.didCommit { _ in seen.append(view.value) }
        try root.transaction { root.number = 1 }
        #expect(seen == [0, 1])
        withExtendedLifetime(subscription) {}
    }

    @Test(.promises("X14")) func `X14: values and closures die with their view`() throws {
        let count = LiveCount("TransactionsTests.view")
        let inClosure = LiveCount("TransactionsTests.compute")
        do {
            let counted = Counted(inClosure)
            let view = CommittedView(of: root) {
                withExtendedLifetime(counted) {}
                return Counted(count)
            }
            for _ in 1...5 { try root.transaction {} }
            #expect(count.value == 1, "none but the current one is kept")
            withExtendedLifetime(view) {}
        }
        try root.transaction {}
        #expect(count.value == 0 && inClosure.value == 0)
    }

    @Test(.promises("X14")) func `X14: a view's computation may make another view`() throws {
        let root = root
        var made: [CommittedView<Int>] = []
        let view = CommittedView(of: root) { [unowned root] in
            made.append(CommittedView(of: root) { [unowned root] in root.number })
            return root.number
        }
        try root.transaction { root.number = 3 }
        #expect(view.value == 3 && made.map(\.value) == [3, 3])
        try root.transaction { root.number = 4 }
        #expect(made.map(\.value) == [4, 4, 4])
        made = []
    }

    @Test(.promises("X14")) func `X14: objects a view frees may commit`() throws {
        let keeper = Keeper()
        do {
            let going = Going { [unowned keeper] in keeper.number += 1 }
            _ = CommittedView(of: keeper) {
                withExtendedLifetime(going) {}
                return 0
            }
        }
        try keeper.transaction {}
        #expect(keeper.number == 1)
    }

    @Test(.promises("X14")) func `X14: a view's computation that commits stops the process`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let keeper = Keeper()
            let view = CommittedView(of: keeper) { [unowned keeper] in
                if keeper.going.isEmpty { return 0 }
                keeper.number += 1
                return keeper.number
            }
            try keeper.transaction { keeper.going = [Going {}] }
            withExtendedLifetime(view) {}
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("committed by a view's computation"))
    }

    @Test(.promises("Q13", "X14")) func `Q13: readers on other threads never see half a transaction`() throws
    {
        let commits = scaled(2_000)
        let numbers = CommittedNumbers()
        let results = concurrently(3) { thread in
            thread == 0 ? numbers.write(commits) : numbers.read(until: commits)
        }
        #expect(results == [0, 0, 0])
    }

    /// Two numbers whose sum is 100, and a view of both.
    final class CommittedNumbers: @unchecked Sendable {
        // Unchecked: the tree is used by one thread.
        private let root = Logged(root: "root")
        private let child: Logged
        private let view: CommittedView<[Int]>

        init() {
            child = Logged("child", below: root)
            try! root.transaction { [root] in root.number = 100 }
            view = CommittedView(of: root) { [unowned root, unowned child] in [root.number, child.number] }
        }

        func write(_ commits: Int) -> Int {
            root.trace.calls = []
            for number in 1...commits {
                try! root.transaction {
                    root.number = 100 - number % 100
                    child.number = number % 100
                }
                root.trace.calls = []
            }
            return 0
        }

        /// The number of wrong reads.
        func read(until last: Int) -> Int {
            var wrong = 0
            var version = 0
            while version < last {
                if view.value.reduce(0, +) != 100 { wrong += 1 }
                let next = view.version
                if next < version { wrong += 1 }
                version = next
            }
            return wrong
        }
    }

    @Test(.promises("Q13", "X15", "E36")) func `E36: of threads that begin at once, one wins`() {
        final class Shared: @unchecked Sendable {
            let root = Plain()
        }
        final class Plain: TransactableDefaults {
            private var context: TransactionContext?
            var transactionContext: TransactionContext { context! }
            init() { context = TransactionContext.createRoot(owner: self) }
        }
        for _ in 1...scaled(50) {
            let shared = Shared()
            let won = concurrently(4) { _ in (try? shared.root.beginTransaction()) != nil }
            #expect(won.filter { $0 }.count == 1)
            try? shared.root.rollbackTransaction()
        }
    }

    @Test(.promises("X15")) func `X15: a closure of another thread does not join a closure`() throws {
        final class Shared: @unchecked Sendable {
            let root = Logged(root: "root")
        }
        let shared = Shared()
        try shared.root.transaction {
            let refused = concurrently(1) { _ in refusal { try shared.root.transaction {} } }
            #expect(refused == [.anotherTransactionIsActive])
        }
    }

    @Test(.promises("X15"))
    func `X15: another thread's closure has its own transaction, or does not run`() {
        final class Shared: @unchecked Sendable {
            let root = Keeper()
        }
        let shared = Shared()
        let outside = concurrently(2) { _ in
            var outside = 0
            for _ in 0..<scaled(30_000) {
                try? shared.root.transaction {
                    let tree = shared.root.transactionContext.tree!
                    if tree.active == nil || !tree.isMine { outside += 1 }
                }
            }
            return outside
        }
        #expect(outside == [0, 0])
    }

    @Test(.promises("X15")) func `X15: a write from outside the closure's thread stops the process`()
        async
    {
        await #expect(processExitsWith: .failure) {
            final class Shared: @unchecked Sendable {
                let root = Logged(root: "root")
            }
            let shared = Shared()
            try shared.root.transaction {
                _ = concurrently(1) { _ in shared.root.number = 1 }
            }
        }
    }

    @Test(.promises("X17"))
    func `X17: a property that savepoints also saved is reported once, with first and last value`()
        throws
    {
        var told: [TransactionChanges.Change] = []
        let subscription = root.transactionContext.didCommit { told += $0.changes }
        try root.transaction {
            root.number = 1
            try root.transaction(nesting: .savepoint) {
                root.number = 2
                try root.transaction(nesting: .savepoint) { root.number = 3 }
            }
            try root.transaction(nesting: .savepoint) { root.number = 4 }
        }
        #expect(told.count == 1 && told.first?.old as? Int == 0 && told.first?.new as? Int == 4)
        subscription.cancel()
    }

    @Test(.promises("X17"))
    func `X17: threads that share a tree report their transactions in turn, each once`()
        throws
    {
        final class Shared: @unchecked Sendable {
            let root = Logged(root: "root")
            var told: [UInt64] = []
        }
        let shared = Shared()
        let subscription = shared.root.transactionContext.didCommit {
            shared.told.append($0.transaction.number)
        }
        let committed = concurrently(2) { _ in
            var committed = 0
            for _ in 0..<scaled(20_000) {
                if (try? shared.root.transaction { shared.root.number += 1 }) != nil { committed += 1 }
            }
            return committed
        }
        #expect(shared.root.number == committed.reduce(0, +))
        #expect(shared.told.count == shared.root.number && Set(shared.told).count == shared.told.count)
        subscription.cancel()
    }

    // MARK: Undo steps

    @Test(.promises("X19"))
    func `X19: a commit is undone and redone, with validation, values and membership`() throws {
        var step: TransactionUndoStep?
        let context = root.transactionContext
        let old = Logged("old", below: root)
        try root.transaction { root.children = [old] }
        do {
            let subscription = context.didCommit { step = $0.undoStep() }
            try root.transaction {
                root.number = 5
                root.children = [Logged("new", below: root)]
                root.children[0].number = 6
                try old.transactionContext.leave()
            }
            subscription.cancel()
        }
        let new = root.children[0]
        let undo = try #require(step)
        for _ in 1...2 {
            try undo.undo()
            #expect(root.number == 0 && root.children.map(\.name) == ["old"] && new.number == 0)
            #expect(!old.transactionContext.isDetached && new.transactionContext.isDetached)
            #expect(context.tree!.members == 2)
            #expect(fault { try undo.undo() } == .outOfOrder)
            try undo.redo()
            #expect(root.number == 5 && root.children.map(\.name) == ["new"] && new.number == 6)
            #expect(old.transactionContext.isDetached && !new.transactionContext.isDetached)
            #expect(context.tree!.members == 2)
            #expect(fault { try undo.redo() } == .outOfOrder)
        }
        root.failure = TestError()
        #expect(thrown { try undo.undo() } is TestError)
        #expect(root.number == 5 && root.children.map(\.name) == ["new"])
        #expect(
            old.transactionContext.isDetached && !new.transactionContext.isDetached
                && context.tree!.members == 2)
        root.failure = nil
        try root.transaction { root.list = [1] }
        try undo.undo()
        try root.transaction { root.number = 1 }
        #expect(fault { try undo.redo() } == .outOfOrder)
    }

    @Test(.promises("X19"))
    func `X19: a step is refused when its members are elsewhere, or would be below themselves`() throws {
        let a = Logged("a", below: root)
        let b = Logged("b", below: root)
        let c = Logged("c", below: b)
        var steps: [TransactionUndoStep] = []
        let subscription = root.transactionContext.didCommit { steps.append($0.undoStep()!) }
        try root.transaction { try c.transactionContext.move(to: a) }
        subscription.cancel()
        try steps[0].undo()
        #expect(c.transactionContext.parent === b.transactionContext)
        try steps[0].redo()
        try root.transaction { try b.transactionContext.move(to: c) }
        #expect(fault { try steps[0].undo() } == .outOfOrder, "b is below c")
        #expect(!root.transactionIsActive && c.transactionContext.parent === a.transactionContext)
        try root.transaction { try b.transactionContext.move(to: root) }
        try root.transaction { try c.transactionContext.move(to: root) }
        #expect(fault { try steps[0].undo() } == .outOfOrder)
        try root.transaction { try c.transactionContext.move(to: a) }
        try root.transaction { try b.transactionContext.leave() }
        #expect(fault { try steps[0].undo() } == .outOfOrder, "b is of no tree")
    }

    @Test(.promises("X19")) func `X19: released objects do not prevent an undo or a redo`() throws {
        var step: TransactionUndoStep?
        let subscription = root.transactionContext.didCommit { step = $0.undoStep() }
        // This member keeps unlogged state, and is released; the members below it stay.
        var unlogged: Member? = Member("unlogged", below: root)
        let below = Logged("below", below: try #require(unlogged))
        unlogged = nil
        var goes: Logged? = Logged("goes", below: root)
        try root.transaction {
            below.number = 1
            goes?.number = 1
        }
        let first = try #require(step)
        try root.transaction { try goes?.transactionContext.leave() }
        goes = nil
        try first.undo()
        #expect(below.number == 0)
        try first.redo()
        #expect(below.number == 1)
        withExtendedLifetime(subscription) {}
    }

    @Test(.promises("X19")) func `X19: a member with unlogged state prevents an undo`() throws {
        var steps: [Bool] = []
        let subscription = root.transactionContext.didCommit { steps.append($0.undoStep() != nil) }
        try root.transaction {}
        do {
            let member = Member("member", below: root)
            try root.transaction {}
            withExtendedLifetime(member) {}
        }
        try root.transaction {}
        #expect(steps == [true, false, true])
        withExtendedLifetime(subscription) {}
    }

    // MARK: Joint transactions

    @Test(.promises("X16"))
    func `X16: phases run root by root in creation order, and no root commits before all are valid`()
        throws
    {
        let trace = Trace()
        let roots = (0..<3).map { Member(root: "r\($0)", trace) }
        let child = Member("child", below: roots[1])
        let names = ["r0", "r1", "child", "r2"], ends = ["r0", "child", "r1", "r2"]
        try jointTransaction(over: [roots[2], child, roots[0], roots[1], roots[2]]) {
            let descriptors = Set(roots.map { $0.activeTransaction! })
            #expect(descriptors.count == 1)
            try roots[2].transaction {}
            try jointTransaction(over: [roots[1], roots[0]]) {}
        }
        let begun = names.map { "begin \($0)" }, validated = names.map { "validate \($0)" }
        #expect(trace.take() == begun + validated + ends.map { "commit \($0)" })
        roots[2].failure = TestError(number: 2)
        #expect(
            thrown { try jointTransaction(over: roots) {} } as? TestError == TestError(number: 2))
        #expect(trace.take() == begun + validated + ends.map { "rollback \($0)" })
    }

    @Test(.promises("X16"))
    func `X16: gates are taken all or none, before any hook; without any, the body runs`() throws {
        let trace = Trace()
        let roots = (0..<3).map { Member(root: "r\($0)", trace) }
        for busy in roots {
            try busy.beginTransaction()
            _ = trace.take()
            #expect(refusal { try jointTransaction(over: roots) {} } == .anotherTransactionIsActive)
            #expect(trace.calls.isEmpty && roots.filter { $0.transactionIsActive }.map(\.name) == [busy.name])
            try busy.rollbackTransaction()
        }
        #expect(try jointTransaction(over: []) { 3 } == 3)
        _ = trace.take()
        roots[1].onHook = { if $0 == .begin { throw TestError() } }
        #expect(thrown { try jointTransaction(over: roots) {} } is TestError)
        #expect(trace.take() == ["begin r0", "begin r1", "rollback r0"])
        #expect(roots.allSatisfy { !$0.transactionIsActive })
    }

    @Test(.promises("E38")) func `E38: a root of a joint transaction is not ended by hand`() throws {
        let other = Logged(root: "other")
        for roots in [[root, other], [other]] {
            try jointTransaction(over: roots) {
                for root in roots {
                    #expect(fault { try root.commitTransaction() } == .partOfJointTransaction)
                    #expect(
                        fault { try root.rollbackTransaction(root.activeTransaction!) }
                            == .partOfJointTransaction)
                }
            }
        }
    }

    @Test(.promises("Q14")) func `Q14: any of m roots, in any order, may fail: all are kept or none`()
        async
    {
        let roots = (0..<4).map { Logged(root: "r\($0)") }
        let orders = Generator.int(in: 0...23)
        await forAll(.zip(.int(in: 0...15), orders), cases: 200) { failing, order in
            for (index, root) in roots.enumerated() {
                root.failure = failing >> index & 1 == 1 ? TestError(number: index) : nil
            }
            var rest = roots
            var listed: [Logged] = []
            var code = order
            while !rest.isEmpty {
                listed.append(rest.remove(at: code % rest.count))
                code /= rest.count + 1
            }
            let before = roots.map(\.number)
            let error = thrown {
                try jointTransaction(over: listed) { for root in roots { root.number += 1 } }
            }
            let first = (0..<4).first { failing >> $0 & 1 == 1 }
            try #require((error as? TestError)?.number == first)
            try #require(roots.map(\.number) == before.map { first == nil ? $0 + 1 : $0 })
            try #require(roots.allSatisfy { !$0.transactionIsActive })
            roots.forEach { $0.trace.calls = [] }
        }
    }

    @Test(.promises("X16"))
    func `X16: observers of each root get its changes, and undo reverts all`() throws {
        let other = Logged(root: "other")
        var told: [String] = []
        var step: TransactionUndoStep?
        let subscriptions = [root, other].map { observed in
            observed.transactionContext.didCommit { changes in
                told += changes.changes.map { "\(observed.name): \(($0.member as! Logged).name) \($0.new)" }
                step = changes.undoStep()
            }
        }
        try jointTransaction(over: [other, root]) { (root.number, other.number) = (1, 2) }
        #expect(told == ["root: root 1", "other: other 2"])
        try #require(step).undo()
        #expect(root.number == 0 && other.number == 0)
        withExtendedLifetime(subscriptions) {}
    }

    @Test(.promises("X16"))
    func `X16: a validation that changes another root repeats the pass over all`() throws {
        let other = Logged(root: "other")
        other.onHook = { [unowned root] in if $0 == .validate, root.number == 0 { root.number = 1 } }
        try jointTransaction(over: [root, other]) {}
        #expect(root.trace.take() == ["begin root", "validate root", "validate root", "commit root"])
    }
}
