// Random trees and programs, each executed by a tree of members and by the reference model: Q1 to Q6 and Q8.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing

@testable import Transactions

/// A step of a program; members are named by a number, modulo how many there are.
indirect enum Step {
    case write(Int, Int)
    case create(below: Int)
    case leave(Int)
    case move(Int, to: Int)
    case drop(Int)
    case joined([Step], throwing: Bool)
    case savepoint([Step], throwing: Bool)

    static func steps(depth: Int) -> Generator<[Step]> {
        Generator { source in
            var steps: [Step] = []
            for _ in 0..<source.draw(below: depth > 2 ? 9 : 5) {
                steps.append(try source.span { try step(depth: depth, &$0) })
            }
            return steps
        }
    }

    private static func step(depth: Int, _ source: inout Source) throws -> Step {
        func number(_ bound: UInt64, _ source: inout Source) -> Int { Int(source.draw(below: bound)) }
        switch source.draw(below: depth > 0 ? 14 : 11) {
        case 0..<4: return .write(number(20, &source), number(14, &source))
        case 4..<7: return .create(below: number(20, &source))
        case 7: return .leave(number(20, &source))
        case 8, 9: return .move(number(20, &source), to: number(20, &source))
        case 10: return .drop(number(20, &source))
        case 11:
            return .joined(
                try steps(depth: depth - 1).value(from: &source), throwing: source.draw(below: 2) == 1)
        default:
            return .savepoint(
                try steps(depth: depth - 1).value(from: &source), throwing: source.draw(below: 3) > 0)
        }
    }
}

struct Program {
    enum End: Int {
        case closure, throwing, commit, rollback, rollbackInside, commitInside, idle
    }

    var steps: [Step]
    var end: End
    var collects: Bool

    static let any = Generator<Program> { source in
        let end = End(rawValue: Int(source.draw(below: 7)))!
        let collects = source.draw(below: 2) == 1
        return Program(steps: try Step.steps(depth: 3).value(from: &source), end: end, collects: collects)
    }
}

/// A tree and its model, which perform the same steps.
private final class Pair {
    private let trace = Trace()
    private var members: [Logged?]
    private var model = ReferenceModel()
    private static func isInvalid(_ number: Int) -> Bool { number == 13 }

    init() { members = [Logged(root: "0", trace)] }

    private var root: Logged { members[0]! }

    private func pick(_ number: Int) -> (index: Int, member: Logged)? {
        let index = number % members.count
        return members[index].map { (index, $0) }
    }

    private func watch(_ member: Logged) {
        member.onHook = { [unowned member] hook in
            if hook == .validate, Self.isInvalid(member.number) { throw TestError(number: Int(member.name)!) }
        }
    }

    func run(_ program: Program) throws {
        watch(root)
        root.transactionContext.validation = program.collects ? .collectAll : .failFast
        let before = model.state
        var error: (any Error)?
        var expected: (any Error)?

        func validated() -> Bool {
            let failing = model.validate(all: program.collects, fails: Self.isInvalid)
            expected = failing.first.map { TestError(number: $0) }
            return failing.isEmpty
        }

        switch program.end {
        case .idle:
            try perform(program.steps)
        case .closure, .throwing:
            error = try found {
                try root.transaction {
                    model.begin()
                    try perform(program.steps)
                    if program.end == .throwing { throw TestError(number: -1) }
                }
            }
            if program.end == .throwing {
                expected = TestError(number: -1)
                model.rollBack(before)
            } else if validated() {
                model.commit()
            } else {
                model.rollBack(before)
            }
        case .commit, .rollback:
            try root.beginTransaction()
            model.begin()
            try perform(program.steps)
            if program.end == .commit {
                error = try found { try root.commitTransaction() }
                if validated() {
                    model.commit()
                } else {
                    try #require(root.transactionIsActive)
                    let listed = root.transactionContext.validationFailures
                    try #require(listed.first.map { $0.error as? TestError } == expected as? TestError)
                    try root.rollbackTransaction()
                    model.rollBack(before)
                }
            } else {
                try root.rollbackTransaction()
                model.rollBack(before)
            }
        case .rollbackInside, .commitInside:
            error = try found {
                try root.transaction {
                    model.begin()
                    try perform(program.steps)
                    if program.end == .rollbackInside {
                        try root.rollbackTransaction()
                        model.rollBack(before)
                        expected = TransactionFault.rolledBackInsideBody
                    } else if validated() {
                        try root.commitTransaction()
                        model.commit()
                    } else {
                        try root.commitTransaction()
                    }
                }
            }
            if model.isActive { model.rollBack(before) }
        }
        try #require(error as? TestError == expected as? TestError)
        try #require(error as? TransactionFault == expected as? TransactionFault)
        try check()
    }

    /// Returns the error that `body` throws. The error of a failed expectation is rethrown.
    private func found(_ body: () throws -> Void) throws -> (any Error)? {
        do { try body() } catch let error as ExpectationFailedError { throw error } catch { return error }
        return nil
    }

    private func check() throws {
        try #require(!root.transactionIsActive)
        try #require(trace.take() == model.takeTrace())
        for (index, member) in members.enumerated() {
            guard let member else { continue }
            try #require(member.number == model.state.numbers[index])
            try #require(member.transactionContext.isDetached == model.detached.contains(index))
            try #require(member.$number.committed == member.number)
        }
        var order: [Int] = []
        root.transactionContext.forEachBelow {
            if let owner = $0.owner as? Logged { order.append(Int(owner.name)!) }
        }
        try #require(order == model.parentsFirst().filter { model.isAlive[$0] })
        // I2 and Q11: a registered member is alive, or connects members that are alive.
        var registered = 0
        root.transactionContext.forEachBelow { context in
            registered += 1
            #expect(context.owner != nil || context.firstChild != nil)
        }
        try #require(root.transactionContext.tree!.members == registered)
    }

    private func perform(_ steps: [Step]) throws {
        for step in steps { try perform(step) }
    }

    private func perform(_ step: Step) throws {
        switch step {
        case .write(let number, let value):
            guard let (index, member) = pick(number), !model.ended.contains(index) else { return }
            guard model.isActive || model.detached.contains(index) else { return }
            member.number = value
            model.state.numbers[index] = value
        case .create(let number):
            guard let (index, parent) = pick(number), members.count < 30 else { return }
            let made = Logged("\(members.count)", below: parent)
            watch(made)
            members.append(made)
            model.create(below: index)
        case .leave(let number):
            guard let (index, member) = pick(number), index != 0 else { return }
            let error = fault { try member.transactionContext.leave() }
            try #require(error == (model.detached.contains(index) ? .detached : nil))
            if error == nil { model.leave(index) }
        case .move(let number, let target):
            guard let (index, member) = pick(number), let (above, parent) = pick(target) else { return }
            let error = fault { try member.transactionContext.move(to: parent) }
            let expected: TransactionFault? =
                model.detached.contains(index) || model.detached.contains(above)
                ? .detached : model.isBelow(above, index) ? .cycle : index == 0 ? .otherTree : nil
            try #require(error == expected)
            if error == nil { model.move(index, to: above) }
        case .drop(let number):
            guard let (index, _) = pick(number), index != 0 else { return }
            members[index] = nil
            model.isAlive[index] = false
        case .joined(let steps, let throwing):
            guard model.isActive else { return try perform(steps) }
            let error = try found {
                try root.transaction {
                    try perform(steps)
                    if throwing { throw TestError(number: -2) }
                }
            }
            try #require((error as? TestError)?.number == (throwing ? -2 : nil))
        case .savepoint(let steps, let throwing):
            guard model.isActive else { return try perform(steps) }
            let (state, begun) = (model.state, model.begun)
            let error = try found {
                try root.transaction(nesting: .savepoint) {
                    try perform(steps)
                    if throwing { throw TestError(number: -3) }
                }
            }
            try #require((error as? TestError)?.number == (throwing ? -3 : nil))
            if throwing { model.rollBack(to: state, begunBefore: begun) }
        }
    }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ModelTests {
    @Test(.promises("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q8", "X8"))
    func `Q1, Q2, Q3, Q4, Q6, Q8: random programs match the model, hook by hook`() async {
        await forAll(Program.any.array(count: 1...6), cases: scaled(600)) { programs in
            let pair = Pair()
            for program in programs { try pair.run(program) }
        }
    }
}
