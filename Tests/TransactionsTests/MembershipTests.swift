// Members that come, go and move: rows 17 to 26, 30 to 35 of the table of edge cases.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@testable import Transactions

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct MembershipTests {
    let trace = Trace()
    let root: Member
    init() { root = Member(root: "root", trace) }

    @Test(.promises("X10", "E17"))
    func `E17: a node made in the body begins at once, once, is validated and ended`() throws {
        var late: Member?
        try root.transaction {
            _ = trace.take()
            late = Member("late", below: root)
            #expect(trace.take() == ["begin late"])
        }
        #expect(trace.take() == ["validate root", "validate late", "commit late", "commit root"])
        try root.beginTransaction()
        late = nil
        _ = late
        try root.rollbackTransaction()
    }

    @Test(.promises("E18"))
    func `E18: with store, a late node's onBegin can use its context; else its argument`() throws {
        try root.transaction {
            var answer: Bool?
            // `Member` uses the form with `store`.
            let late = Member("late", below: root) { [root] hook in
                if hook == .begin { answer = root.transactionIsActive }
            }
            #expect(answer == true)
            #expect(late.transactionIsActive)
            #expect(Plain(below: root).begun == root.activeTransaction)
        }
    }

    /// Stores its context as programs for the library's first version did.
    final class Plain: Transactable {
        private var context: TransactionContext?
        var transactionContext: TransactionContext { context! }
        var begun: Transaction?
        init(below parent: Member) { context = TransactionContext.createNode(owner: self, parent: parent) }
        func onBegin(transaction: Transaction) { begun = transaction }
        func onValidateCommit() {}
        func onCommit(transaction: Transaction) {}
        func onRollback(transaction: Transaction) {}
    }

    @Test(.promises("X10", "E19"))
    func `E19: a node made in an onBegin is begun once, at once or in its turn`() throws {
        let first = Member("first", below: root)
        let second = Member("second", below: root)
        var made: [Member] = []
        root.onHook = { [unowned root] hook in
            if hook == .begin, made.isEmpty { made.append(Member("a", below: root)) }
        }
        second.onHook = { [unowned first, unowned second] hook in
            if hook == .begin, made.count == 1 {
                made.append(Member("b", below: first))  // `first` has begun
                made.append(Member("c", below: second))  // `second` is beginning
            }
        }
        try root.beginTransaction()
        #expect(
            trace.take() == ["begin root", "begin first", "begin second", "begin b", "begin c", "begin a"])
        try root.rollbackTransaction()
        #expect(trace.take() == ["b", "first", "c", "second", "a", "root"].map { "rollback \($0)" })
    }

    @Test(.promises("X10", "E20"))
    func `E20: a node made in onValidateCommit is begun at once and validated before this commit`()
        throws
    {
        let child = Member("child", below: root)
        var late: Member?
        child.onHook = { [unowned root] hook in
            if hook == .validate, late == nil { late = Member("late", below: root) }
        }
        try root.beginTransaction()
        _ = trace.take()
        try root.commitTransaction()
        let pass = ["validate root", "validate child"]
        #expect(
            trace.take() == pass + ["begin late", "validate late"] + pass + ["validate late"]
                + ["commit child", "commit late", "commit root"])
    }

    @Test(.promises("X10", "E21"), arguments: [Hook.commit, .rollback])
    func `E21: a node made in onCommit or onRollback is a member of the next transaction`(of hook: Hook)
        throws
    {
        var late: Member?
        root.onHook = { [unowned root] called in
            if called == hook, late == nil { late = Member("late", below: root) }
        }
        try root.beginTransaction()
        if hook == .commit { try root.commitTransaction() } else { try root.rollbackTransaction() }
        #expect(late != nil && !trace.take().contains { $0.hasSuffix("late") })
        try root.transaction {}
        #expect(
            trace.take().filter { $0.hasSuffix("late") } == ["begin late", "validate late", "commit late"])
    }

    @Test(.promises("X10", "E22")) func `E22: a late node whose onBegin throws dooms the transaction`() throws
    {
        try root.beginTransaction()
        let late = Member("late", below: root) { if $0 == .begin { throw TestError(number: 1) } }
        _ = trace.take()
        for _ in 1...2 {
            #expect(thrown { try root.commitTransaction() } as? TestError == TestError(number: 1))
        }
        #expect(trace.calls.isEmpty)
        try root.rollbackTransaction()
        #expect(trace.take() == ["rollback root"])
        late.onHook = { _ in }
        try root.transaction {}
        let error = thrown {
            try root.transaction { _ = Member("other", below: root) { _ in throw TestError(number: 2) } }
        }
        #expect(error as? TestError == TestError(number: 2))
        #expect(!root.transactionIsActive)
    }

    @Test(.promises("X11", "E23", "E32"))
    func `E23, E32: a freed owner is unregistered, idle or active, and gets no hook`() throws {
        var gone: Member? = Member("gone", below: root)
        let tree = root.transactionContext.tree!
        #expect(tree.members == 2)
        gone = nil
        #expect(tree.members == 1)
        gone = Member("again", below: root)
        let stays = Member("stays", below: gone!)
        try root.transaction {
            _ = trace.take()
            gone = nil
        }
        #expect(trace.take() == ["validate root", "validate stays", "commit stays", "commit root"])
        #expect(tree.members == 3, "the context of what is gone ties its children into the tree")
        withExtendedLifetime(stays) {}
    }

    @Test(.promises("Q11"), arguments: Hook.allCases)
    func `Q11: an owner freed while a hook runs is skipped`(in hook: Hook) throws {
        let first = Member("first", below: root)
        var gone: Member? = Member("gone", below: root)
        let last = Member("last", below: root)
        first.onHook = { if $0 == hook { gone = nil } }
        try root.beginTransaction()
        if hook == .rollback { try root.rollbackTransaction() } else { try root.commitTransaction() }
        #expect(gone == nil)
        let calls = trace.take()
        let at = try #require(calls.firstIndex(of: "\(hook) first"))
        #expect(!calls[at...].contains { $0.hasSuffix("gone") })
        #expect(calls.contains("\(hook) last"))
        #expect(root.transactionContext.tree!.members == 3)
        withExtendedLifetime(last) {}
    }

    @Test(.promises("X11", "E24")) func `E24: a removed part is validated unless it left`() throws {
        let part = Member("part", below: root)
        let below = Member("below", below: part)
        part.failure = TestError()
        #expect(thrown { try root.transaction {} } is TestError)
        _ = trace.take()
        try root.transaction { try part.transactionContext.leave() }
        #expect(
            trace.take() == ["begin root", "begin part", "begin below", "validate root", "commit root"]
                + ["commit below", "commit part"])
        #expect(part.transactionContext.isDetached && below.transactionContext.isDetached)
        #expect(root.transactionContext.tree!.members == 1)
    }

    @Test(.promises("X2")) func `X2: members that left are ended in the order of leaving`() throws {
        let parts = ["a", "b", "c"].map { Member($0, below: root) }
        try root.transaction {
            for index in [2, 0, 1] { try parts[index].transactionContext.leave() }
            _ = trace.take()
        }
        #expect(trace.take() == ["validate root", "commit root", "commit c", "commit a", "commit b"])
    }

    @Test(.promises("X11"))
    func `X11: a rollback returns members that left to their places with onRollback`() throws {
        let parts = ["a", "b", "c", "d"].map { Member($0, below: root) }
        try root.beginTransaction()
        let late = Member("late", below: root)
        for index in [1, 2, 0, 3] { try parts[index].transactionContext.leave() }
        try parts[2].transactionContext.move(to: root)
        _ = trace.take()
        try root.rollbackTransaction()
        #expect(trace.take() == ["a", "b", "c", "d", "late", "root"].map { "rollback \($0)" })
        #expect(parts.allSatisfy { !$0.transactionContext.isDetached })
        withExtendedLifetime(late) {}
    }

    @Test(.promises("X11"))
    func `X11: a detached member throws, is inactive, and its logged writes are plain`() throws {
        let part = Logged("part", below: root)
        try root.transaction {
            part.number = 1
            try part.transactionContext.leave()
        }
        let context = part.transactionContext
        #expect(fault { try part.beginTransaction() } == .detached)
        #expect(fault { try part.commitTransaction() } == .detached)
        #expect(fault { try part.rollbackTransaction() } == .detached)
        #expect(fault { try part.transaction {} } == .detached)
        #expect(fault { try context.leave() } == .detached)
        #expect(fault { try context.move(to: root) } == .detached)
        #expect(fault { try Member("child", below: root).transactionContext.move(to: part) } == .detached)
        #expect(fault { try jointTransaction(over: [root, part]) {} } == .detached)
        #expect(!part.transactionIsActive && part.activeTransaction == nil)
        part.number = 2
        #expect(part.number == 2 && part.$number.committed == 2)
        #expect(Member("below", below: part).transactionContext.isDetached)
    }

    @Test(.promises("X2")) func `X2: without a transaction, leave and move take effect at once`() throws {
        let a = Member("a", below: root)
        let b = Member("b", below: root)
        try a.transactionContext.move(to: b)
        try root.transaction {}
        #expect(trace.take().prefix(3) == ["begin root", "begin b", "begin a"])
        let other = Member(root: "other")
        try b.transactionContext.move(to: other)
        try other.beginTransaction()
        #expect(a.transactionIsActive && !root.transactionIsActive)
        try other.rollbackTransaction()
        try b.transactionContext.leave()
        #expect(a.transactionContext.isDetached)
    }

    @Test(.promises("X2"))
    func `X2: a member that moves is begun, validated and ended once, behind its new siblings`() throws {
        let a = Member("a", below: root)
        let b = Member("b", below: root)
        let c = Member("c", below: b)
        // While all members begin, a moves below a member that begins later, and c below one that
        // has begun.
        a.onHook = { [unowned a, unowned b] in if $0 == .begin { try a.transactionContext.move(to: b) } }
        b.onHook = { [unowned c, unowned root] in if $0 == .begin { try c.transactionContext.move(to: root) }
        }
        try root.beginTransaction()
        #expect(trace.take() == ["begin root", "begin a", "begin b", "begin c"])
        try root.commitTransaction()
        #expect(
            trace.take() == ["root", "b", "a", "c"].map { "validate \($0)" }
                + ["a", "b", "c", "root"].map { "commit \($0)" })
    }

    @Test(.promises("X2")) func `X2: a member the walk missed begins in another round`() throws {
        let a = Member("a", below: root)
        let b = Member("b", below: root)
        let c = Member("c", below: b)
        b.onHook = { [unowned c, unowned a] in if $0 == .begin { try c.transactionContext.move(to: a) } }
        try root.transaction {}
        #expect(trace.take().prefix(4) == ["begin root", "begin a", "begin b", "begin c"])
    }

    @Test(.promises("Q10", "X18", "E30"), arguments: [0, 1])
    func `E30: a member may leave or move from onBegin and onValidateCommit, while the walk is in it`(
        depth: Int
    )
        throws
    {
        for hook in [Hook.begin, .validate] {
            for leaves in [true, false] {
                let trace = Trace()
                let root = Member(root: "root", trace)
                let a = Member("a", below: root)
                let b = Member("b", below: root)
                let c = Member("c", below: b)
                let d = Member("d", below: root)
                var isDone = false
                [b, c][depth].onHook = { [unowned a, unowned b] called in
                    guard called == hook, !isDone else { return }
                    isDone = true
                    if leaves {
                        try b.transactionContext.leave()
                    } else {
                        try b.transactionContext.move(to: a)
                    }
                }
                try root.beginTransaction()
                try root.commitTransaction()
                let calls = trace.take()
                for member in [root, a, b, c, d] {
                    let own = calls.filter { $0.hasSuffix(" " + member.name) }.map {
                        String($0.prefix { $0 != " " })
                    }
                    if leaves, hook == .begin, depth == 0, member === c {
                        #expect(own == [], "it left before it began")
                    } else {
                        #expect(own.filter { $0 == "begin" }.count == 1, "\(calls)")
                        #expect(own.last == "commit" && own.filter { $0 == "commit" }.count == 1, "\(calls)")
                        if !leaves { #expect(own.contains("validate"), "\(calls)") }
                    }
                }
                #expect(calls.contains("validate d"))
            }
        }
    }

    @Test(.promises("X11", "E25", "E26")) func `E25, E26: a root whose owner is gone`() throws {
        let trace = Trace()
        var root: Member? = Member(root: "root", trace)
        let context = root!.transactionContext
        let child = Logged("child", below: root!)
        let transaction = try child.beginTransaction()
        child.number = 3
        _ = trace.take()
        root = nil
        #expect(context.activeTransaction == transaction)
        #expect(fault { try child.commitTransaction() } == .detached)
        #expect(fault { try context.commitTransaction(transaction) } == .detached)
        #expect(trace.calls.isEmpty)
        try child.rollbackTransaction()
        #expect(trace.take() == ["rollback child"])
        #expect(child.number == 0)
        #expect(!child.transactionIsActive)
        #expect(fault { try child.beginTransaction() } == .detached)
        #expect(fault { try context.commitTransaction() } == .detached)
        #expect(fault { try child.transaction {} } == .detached)
        #expect(trace.calls.isEmpty)
    }

    @Test(.promises("E25")) func `E25: a closure that frees its root's owner is rolled back`() {
        let trace = Trace()
        var root: Member? = Member(root: "root", trace)
        let child = Logged("child", below: root!)
        let error = fault {
            try child.transaction {
                child.number = 4
                root = nil
            }
        }
        #expect(root == nil && error == .detached && child.number == 0 && !child.transactionIsActive)
    }

    @Test(.promises("E25")) func `E25: a node's context that outlives its owner is skipped`() throws {
        var gone: Member? = Member("gone", below: root)
        let context = gone!.transactionContext
        gone = nil
        try root.transaction {}
        #expect(trace.take() == ["begin root", "validate root", "commit root"])
        #expect(gone == nil && !context.isDetached)
    }

    @Test(.promises("X2", "E33")) func `E33: cycles and other trees are refused`() throws {
        let a = Member("a", below: root)
        let b = Member("b", below: a)
        let other = Member(root: "other")
        #expect(fault { try a.transactionContext.move(to: a) } == .cycle)
        #expect(fault { try a.transactionContext.move(to: b) } == .cycle)
        #expect(fault { try root.transactionContext.move(to: b) } == .cycle)
        #expect(fault { try root.transactionContext.move(to: other) } == .otherTree)
        for active in [root, other] {
            try active.beginTransaction()
            #expect(fault { try a.transactionContext.move(to: other) } == .otherTree)
            try active.rollbackTransaction()
        }
        try a.transactionContext.move(to: other)
        #expect(b.transactionContext.tree === other.transactionContext.tree)
    }

    @Test(.promises("E34")) func `E34: an owner that is its own parent stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let root = Member(root: "root")
            _ = TransactionContext.createNode(owner: root, parent: root)
        }
    }

    @Test(.promises("X2"))
    func `X2: a second context of logged state stops the process, unless the first has left its tree`()
        async throws
    {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let root = Member(root: "root")
            let node = Logged("node", below: root)
            _ = TransactionContext.createNode(owner: node, parent: root)
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("the object already has a context"))
        let node = Logged("node", below: root)
        let former = node.transactionContext
        try former.leave()
        let again = TransactionContext.createNode(owner: node, parent: root)
        #expect(former.isDetached && !again.isDetached)
    }

    /// As written by clients of the library's first version.
    private final class Client: TransactableDefaults {
        let trace: Trace
        var context: TransactionContext!
        var transactionContext: TransactionContext { context }
        @Transacted var number = 0
        init(below parent: any Transactable, _ trace: Trace) {
            self.trace = trace
            context = .createNode(owner: self, parent: parent)
        }
        func onCommit(transaction: Transaction) { trace.calls.append("commit") }
    }

    @Test(.promises("X2"))
    func `X2: a member moves by replacing its context, and may be in two trees`() throws {
        let (trace, other) = (Trace(), Member(root: "other"))
        let client = Client(below: root, trace)
        try root.transaction { client.number = 1 }
        #expect(trace.take() == ["commit"])
        client.context = .createNode(owner: client, parent: other)
        try other.transaction { client.number = 2 }
        #expect(trace.take() == ["commit"])
        try root.transaction {}
        #expect(trace.take().isEmpty, "the state does not keep the context that was replaced")
        try? other.transaction {
            client.number = 3
            throw TestError()
        }
        #expect(client.number == 2)
        // Also within a transaction.
        try other.transaction {
            client.context = .createNode(owner: client, parent: Member("below", below: other))
        }
        client.context = .createRoot(owner: client)
        client.context = .createRoot(owner: client)
        try client.transaction { client.number = 4 }
        #expect(trace.take().last == "commit" && client.number == 4)
        let second = TransactionContext.createNode(owner: client, parent: root)
        trace.calls = []
        try root.transaction {}
        try client.context.beginTransaction()
        try client.context.commitTransaction()
        #expect(trace.take() == ["commit", "commit"] && !second.isDetached)
    }

    @Test(.promises("X2")) func `X2: a root that leaves stops the process`() async {
        await #expect(processExitsWith: .failure) { try Member(root: "root").transactionContext.leave() }
    }

    @Test(.promises("Q5", "X2", "E35")) func `E35: siblings have one order, that of registration`() throws {
        let names = (0..<50).map { "m\($0)" }
        let members = names.map { Member($0, below: root) }
        members[30].failure = TestError(number: 30)
        members[20].failure = TestError(number: 20)
        #expect(thrown { try root.transaction {} } as? TestError == TestError(number: 20))
        let begun = ["begin root"] + names.map { "begin \($0)" }
        #expect(Array(trace.take().prefix(51)) == begun)
        withExtendedLifetime(members) {}
    }
}
