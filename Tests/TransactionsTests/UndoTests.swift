// Undo steps that move members, in any order: X19.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@testable import Transactions

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct UndoTests {
    let root = Logged(root: "root")

    private func step(_ body: () throws -> Void) throws -> TransactionUndoStep {
        try made(by: { try root.transaction(body) })
    }

    private func made(by commit: () throws -> Void) throws -> TransactionUndoStep {
        var step: TransactionUndoStep?
        let subscription = root.transactionContext.didCommit { step = $0.undoStep() }
        try commit()
        subscription.cancel()
        return try #require(step)
    }

    private func leave(_ member: Logged) throws { try member.transactionContext.leave() }
    private func move(_ member: Logged, to parent: Logged) throws {
        try member.transactionContext.move(to: parent)
    }

    /// The parent of each member; nil for members outside any tree, and for the top of each subtree that
    /// left.
    private func parents(_ members: [Logged]) -> [String?] {
        members.map { ($0.transactionContext.parent?.owner as? Logged)?.name }
    }

    private func check(_ step: TransactionUndoStep, _ members: [Logged], before: [String?]) throws {
        let after = parents(members)
        let detached = members.map(\.transactionContext.isDetached)
        for _ in 1...2 {
            try step.undo()
            try #require(parents(members) == before)
            try step.redo()
            try #require(parents(members) == after)
            try #require(members.map(\.transactionContext.isDetached) == detached)
        }
        root.failure = TestError()
        try #require(thrown { try step.undo() } is TestError)
        root.failure = nil
        try #require(parents(members) == after)
        try #require(members.map(\.transactionContext.isDetached) == detached)
    }

    @Test(.promises("X19"))
    func `X19: a member that came, was written and left in one transaction prevents no undo`()
        throws
    {
        var kept: [Logged] = []
        let first = try step { root.number = 1 }
        var told = 0
        let subscription = root.transactionContext.didCommit { told += $0.added.count + $0.removed.count }
        let second = try step {
            root.number = 2
            let passing = Logged("passing", below: root)
            let below = Logged("below", below: passing)
            passing.number = 3
            below.number = 4
            try leave(passing)
            kept = [passing, below]
        }
        #expect(told == 0)
        subscription.cancel()
        for _ in 1...2 {
            try second.undo()
            #expect(root.number == 1)
            try first.undo()
            #expect(root.number == 0)
            try first.redo()
            try second.redo()
            #expect(root.number == 2)
        }
        #expect(kept.map(\.number) == [3, 4] && kept.allSatisfy(\.transactionContext.isDetached))
    }

    @Test(.promises("X19")) func `X19: a member that left with a new one is restored, and leaves again`()
        throws
    {
        let member = Logged("member", below: root)
        let below = Logged("below", below: member)
        var kept: Logged?
        let step = try step {
            let passing = Logged("passing", below: root)
            try move(member, to: passing)
            try leave(passing)
            kept = passing
        }
        for _ in 1...2 {
            try step.undo()
            #expect(parents([member, below]) == ["root", "member"] && !member.transactionContext.isDetached)
            try step.redo()
            #expect(member.transactionContext.isDetached && below.transactionContext.isDetached)
        }
        try step.undo()
        try root.transaction { below.number = 1 }
        #expect(kept?.transactionContext.isDetached == true && below.number == 1)
    }

    @Test(.promises("X19")) func `X19: members that left after their parents return`() throws {
        let parent = Logged("parent", below: root)
        let child = Logged("child", below: parent)
        let step = try step {
            try leave(parent)
            try leave(child)
        }
        try check(step, [parent, child], before: ["root", "parent"])
        try step.undo()
        #expect(root.transactionContext.tree!.members == 3)
    }

    @Test(.promises("X19"))
    func `X19: a member with another context is not restored while that is in a tree`()
        throws
    {
        let parent = Logged("parent", below: root)
        let child = Logged("child", below: parent)
        let step = try step { try leave(parent) }
        let other = Logged(root: "other")
        let second = TransactionContext.createNode(owner: child, parent: other)
        #expect(fault { try step.undo() } == .outOfOrder)
        #expect(parent.transactionContext.isDetached && child.transactionContext.isDetached)
        #expect(root.transactionContext.tree!.members == 1 && !root.transactionIsActive)
        try second.leave()
        try step.undo()
        #expect(parents([parent, child]) == ["root", "parent"] && second.isDetached)
    }

    @Test(.promises("X19")) func `X19: a member swaps places with one below it`() throws {
        let upper = Logged("upper", below: root)
        let lower = Logged("lower", below: upper)
        let aside = Logged("aside", below: root)
        let step = try step {
            try move(upper, to: aside)
            try move(lower, to: root)
            try move(upper, to: lower)
        }
        try check(step, [upper, lower, aside], before: ["root", "upper", "root"])
    }

    @Test(.promises("X19")) func `X19: a member made before its parent is restored`() throws {
        var made: [Logged] = []
        let step = try step {
            made = [Logged("child", below: root), Logged("parent", below: root)]
            try move(made[0], to: made[1])
        }
        try step.undo()
        #expect(parents(made) == [nil, nil] && made.allSatisfy(\.transactionContext.isDetached))
        try step.redo()
        #expect(parents(made) == ["parent", "root"] && root.transactionContext.tree!.members == 3)
        #expect(made.allSatisfy { $0.transactionIsActive == false && !$0.transactionContext.isDetached })
    }

    @Test(.promises("X19")) func `X19: a step is refused when a member that it would write left since`()
        throws
    {
        let child = Logged("child", below: root)
        let both = try step { (root.number, child.number) = (1, 1) }
        let one = try step { child.list = [1] }
        try root.transaction { try leave(child) }
        #expect(fault { try both.undo() } == .outOfOrder)
        #expect(fault { try one.undo() } == .outOfOrder)
        #expect(root.number == 1 && child.number == 1 && child.list == [1])
    }

    @Test(.promises("X19")) func `X19: a refused step keeps members below one that left`() throws {
        let upper = Logged("upper", below: root)
        let child = Logged("child", below: root)
        let step = try step { try move(child, to: upper) }
        try root.transaction { try leave(upper) }
        #expect(fault { try step.undo() } == .outOfOrder)
        #expect(child.transactionContext.isDetached && parents([child]) == ["upper"])
        #expect(root.transactionContext.tree!.members == 1)
    }

    @Test(.promises("X19")) func `X19: a commit that changed nothing is undone once, and redone`() throws {
        let step = try step {}
        for _ in 1...2 {
            try step.undo()
            #expect(fault { try step.undo() } == .outOfOrder)
            try step.redo()
            #expect(fault { try step.redo() } == .outOfOrder)
        }
    }

    @Test(.promises("X19"))
    func `X19: steps of one property are undone last first, and redone first first`() throws {
        let child = Logged("child", below: root)
        let steps = try [
            step { root.number = 1 },
            step { (root.number, child.number) = (2, 2) },
            step { try root.transaction { child.number = 3 } },
        ]
        for _ in 1...2 {
            for (step, values) in zip(steps.reversed(), [[2, 2], [1, 0], [0, 0]]) {
                for other in steps where other !== step {
                    #expect(fault { try other.undo() } == .outOfOrder)
                }
                try step.undo()
                #expect([root.number, child.number] == values)
            }
            #expect(fault { try steps[1].redo() } == .outOfOrder)
            for (step, values) in zip(steps, [[1, 0], [2, 2], [2, 3]]) {
                try step.redo()
                #expect([root.number, child.number] == values)
            }
        }
        try steps[2].undo()
        root.failure = TestError()
        #expect(thrown { try steps[1].undo() } is TestError)
        root.failure = nil
        try root.transaction { root.number = 7 }
        #expect(fault { try steps[1].undo() } == .outOfOrder)
        #expect([root.number, child.number] == [7, 2])
        try steps[2].redo()
        #expect([root.number, child.number] == [7, 3])
    }

    @Test(.promises("X19")) func `X19: an undo is a commit, and can be undone itself`() throws {
        let first = try step { root.number = 1 }
        let second = try step { root.number = 2 }
        let undo = try made(by: second.undo)
        try undo.undo()
        #expect(root.number == 2)
        try undo.redo()
        #expect(root.number == 1)
        try second.redo()
        #expect(fault { try first.undo() } == .outOfOrder)
        try second.undo()
        try first.undo()
        #expect(root.number == 0)
    }

    @Test(.promises("X19")) func `X19: changes by hooks during an undo are part of it`() throws {
        for hook in [Hook.begin, .validate] {
            let test = UndoTests()
            let (root, first) = (test.root, try test.step { test.root.number = 1 })
            let second = try test.step { root.number = 2 }
            var isChanged = false
            root.onHook = { [unowned root] each in
                guard each == hook, !isChanged else { return }
                isChanged = true
                if hook == .begin {
                    root.number = 9
                } else {
                    try root.transaction(nesting: .savepoint) { root.number = 9 }
                }
            }
            let undo = try test.made(by: second.undo)
            #expect(root.number == (hook == .begin ? 1 : 9))
            isChanged = false
            try second.redo()
            isChanged = false
            try second.undo()
            root.onHook = { _ in }
            #expect(fault { try undo.redo() } == .outOfOrder)
            try first.undo()
            #expect(root.number == 0)
            try first.redo()
            try second.redo()
            #expect(root.number == 2)
        }
    }

    @Test(.promises("X19")) func `X19: an undo that is refused leaves no trace`() throws {
        let first = try step { root.number = 1 }
        let second = try step { root.number = 2 }
        root.failure = TestError()
        #expect(thrown { try second.undo() } is TestError)
        root.failure = nil
        let third = try step { root.number = 3 }
        #expect(fault { try first.undo() } == .outOfOrder)
        #expect(fault { try second.undo() } == .outOfOrder)
        for step in [third, second, first] { try step.undo() }
        #expect(root.number == 0)
    }

    @Test(.promises("X19")) func `X19: changes by a hook during an undo belong to it`() throws {
        let first = try step { root.number = 1 }
        let second = try step { root.number = 2 }
        root.onHook = { [unowned root] hook in if hook == .validate, root.number < 10 { root.number += 10 } }
        try second.undo()
        root.onHook = { _ in }
        #expect(root.number == 11)
        try first.undo()
        #expect(root.number == 0)
    }

    @Test(.promises("X19")) func `X19: a stack of steps goes back to any of its states, and on again`() async
    {
        let edit = Generator.zip(.int(in: 0...2), .int(in: 0...9))
        let edits = edit.array(count: 0...3).array(count: 1...6)
        let walk = Generator.int(in: 0...6).array(count: 1...12)
        await forAll(.zip(edits, walk), cases: scaled(200)) { commits, targets in
            let test = UndoTests()
            let members = [test.root, Logged("a", below: test.root), Logged("b", below: test.root)]
            var states = [members.map(\.number)]
            let steps = try commits.map { edits in
                let step = try test.step { for (index, value) in edits { members[index].number = value } }
                states.append(members.map(\.number))
                return step
            }
            var index = steps.count
            for target in targets.map({ min($0, steps.count) }) {
                while index > target {
                    index -= 1
                    try steps[index].undo()
                    try #require(members.map(\.number) == states[index])
                }
                while index < target {
                    try steps[index].redo()
                    index += 1
                    try #require(members.map(\.number) == states[index])
                }
            }
        }
    }

    @Test(.promises("X19")) func `X19: any moves and leaves undo and redo`() async {
        let call = Generator.zip(.int(in: 1...6), .int(in: 0...7))
        await forAll(call.array(count: 1...12), cases: scaled(300)) { calls in
            let test = UndoTests()
            var members = [test.root]
            for index in 1...6 { members.append(Logged("\(index)", below: members[index / 2])) }
            let before = test.parents(members)
            let step = try test.step {
                test.root.number = 1
                // A refused call has no effect.
                for (index, target) in calls {
                    let context = members[index].transactionContext
                    if target == 7 { try? context.leave() } else { try? context.move(to: members[target]) }
                }
            }
            try test.check(step, members, before: before)
        }
    }
}
