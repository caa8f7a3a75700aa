// Each member's hooks are called once each, whatever hooks do: Q3, Q4, Q10 and Q11 on random trees.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@testable import Transactions

private enum Call: Int, CaseIterable {
    case begin, commit, rollback, join, create, leave, move, drop
}

/// The action of one member's hook, the first time that the hook is called.
private struct Prank {
    var member: Int
    var hook: Hook
    var call: Call
    var target: Int

    static let any = Generator<Prank> { source in
        Prank(
            member: Int(source.draw(below: 10)), hook: Hook.allCases[Int(source.draw(below: 4))],
            call: Call.allCases[Int(source.draw(below: 8))], target: Int(source.draw(below: 10)))
    }
}

private struct Storm {
    var parents: [Int]
    var pranks: [Prank]
    var rollsBack: Bool

    static let any = Generator<Storm> { source in
        Storm(
            parents: try Generator.int(in: 0...8).array(count: 2...9).value(from: &source),
            pranks: try Prank.any.array(count: 1...8).value(from: &source),
            rollsBack: source.draw(below: 3) == 0)
    }
}

private final class Scene {
    var members: [Logged?] = []
    var pranks: [Prank]
    let trace = Trace()
    var late: Set<String> = []
    var wrong: [String] = []
    /// Whether a member may have left before it began. Such a member takes no part; a rollback puts
    /// it back.
    var leftEarly = false

    init(_ storm: Storm) {
        pranks = storm.pranks
        members = [Logged(root: "0", trace)]
        for (index, parent) in storm.parents.enumerated() {
            members.append(Logged("\(index + 1)", below: members[parent % members.count]!))
        }
        for member in members { watch(member!) }
    }

    func watch(_ member: Logged) {
        member.onHook = { [unowned self, unowned member] hook in self.play(member, hook) }
    }

    private func play(_ member: Logged, _ hook: Hook) {
        while let index = pranks.firstIndex(where: { "\($0.member)" == member.name && $0.hook == hook }) {
            let prank = pranks.remove(at: index)
            let isEnd = hook == .commit || hook == .rollback
            let phase = ReentrancyTests.phase(hook)
            let target = members[prank.target % members.count] ?? members[0]!
            func expect(_ error: (any Error)?, _ fault: TransactionFault?) {
                if error as? TransactionFault != fault {
                    wrong.append("\(prank): \(String(describing: error))")
                }
            }
            let isDetached = target.transactionContext.isDetached
            switch prank.call {
            case .begin:
                if refusal({ try member.beginTransaction() }) != .anotherTransactionIsActive {
                    wrong.append("\(prank)")
                }
            case .commit: expect(thrown { try member.commitTransaction() }, .reentrant(phase))
            case .rollback: expect(thrown { try member.rollbackTransaction() }, .reentrant(phase))
            case .join: expect(thrown { try member.transaction {} }, isEnd ? .reentrant(phase) : nil)
            case .create:
                let made = Logged("\(members.count)", below: target)
                if isEnd { late.insert(made.name) }
                watch(made)
                members.append(made)
            case .leave:
                guard target !== members[0], !isDetached else { continue }
                leftEarly = leftEarly || hook == .begin
                expect(thrown { try target.transactionContext.leave() }, isEnd ? .reentrant(phase) : nil)
            case .move:
                guard target !== members[0], !isDetached, !member.transactionContext.isDetached else {
                    continue
                }
                let error = thrown { try target.transactionContext.move(to: member) } as? TransactionFault
                if error != .cycle { expect(error, isEnd ? .reentrant(phase) : nil) }
            case .drop:
                guard let index = members.firstIndex(where: { $0 === target }), index != 0 else { continue }
                members[index] = nil
            }
        }
    }

    func run(_ storm: Storm) throws {
        let root = members[0]!
        try root.beginTransaction()
        if storm.rollsBack { try root.rollbackTransaction() } else { try root.commitTransaction() }
        try #require(wrong == [])
        let calls = trace.take()
        let end = storm.rollsBack ? "rollback" : "commit"
        try #require(!calls.contains { $0.hasPrefix(storm.rollsBack ? "commit" : "rollback") })
        var hooks: [String: [String]] = [:]
        for call in calls {
            let words = call.split(separator: " ").map(String.init)
            hooks[words[1], default: []].append(words[0])
        }
        for (name, own) in hooks {
            try #require(own.first == "begin" && own.filter { $0 == "begin" }.count == 1, "\(name): \(own)")
            try #require(own.filter { $0 == end }.count <= 1 && own.dropLast().allSatisfy { $0 != end })
        }
        for member in members.compactMap({ $0 }) {
            let own = hooks[member.name] ?? []
            if late.contains(member.name) {
                try #require(own == [], "it was made while all ended")
            } else if own == [], leftEarly, storm.rollsBack {
                continue
            } else if !member.transactionContext.isDetached {
                try #require(own.first == "begin" && own.last == end, "\(member.name): \(own)")
                try #require(storm.rollsBack || own.contains("validate"), "\(member.name): \(own)")
            } else {
                try #require(own == [] || own.last == end, "\(member.name): \(own)")
            }
        }
        var registered = 0
        root.transactionContext.forEachBelow { context in
            registered += 1
            #expect(context.owner != nil || context.firstChild != nil)
        }
        try #require(root.transactionContext.tree!.members == registered)
        // Once more, without pranks.
        pranks = []
        try root.transaction {}
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct HookStormTests {
    @Test(.promises("Q3", "Q4", "Q10", "Q11", "X8"))
    func `Q3, Q4, Q10, Q11: whatever hooks do, each member gets each hook once, freed ones none`()
        async
    {
        await forAll(Storm.any, cases: scaled(1_000)) { storm in try Scene(storm).run(storm) }
    }
}
