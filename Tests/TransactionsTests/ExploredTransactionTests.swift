// ExploredTransactionTests.swift - transactions that suspend, and calls that wait for them, in every order of the tasks.

import CompositeOperationsTestSupport
import PropertyTesting
import PropertyTestingSupport
import Testing
import Transactions

/// Two trees, and a log of what was added.
private actor Bank {
    private let left = Logged(root: "left"), right = Logged(root: "right")
    private(set) var log: [Int] = []

    var numbers: [Int] { [left.number, right.number] }
    var isIdle: Bool { !left.transactionIsActive && !right.transactionIsActive }

    private func tree(_ isLeft: Bool) -> Logged { isLeft ? left : right }

    /// Reads, suspends, and writes: correct only if a transaction keeps other transactions out.
    func add(_ number: Int, failing: Bool = false, waiting: TransactionWait = .untilFree) async throws {
        try await left.withTransaction(waiting: waiting) {
            let former = left.number
            log.append(number)
            await explorationPoint("read")
            left.number = former + number
            await explorationPoint("written")
            if failing { throw TestError(number: number) }
        }
    }

    /// Takes 1 from one tree, and then adds it to the other.
    func move(fromLeft isLeft: Bool) async throws {
        try await tree(isLeft).withTransaction {
            tree(isLeft).number -= 1
            await explorationPoint("taken")
            try await tree(!isLeft).withTransaction { tree(!isLeft).number += 1 }
        }
    }

    /// The same, with both trees held from the beginning.
    func moveJointly(fromLeft isLeft: Bool) async throws {
        try await withJointTransaction(over: [tree(isLeft), tree(!isLeft)]) {
            tree(isLeft).number -= 1
            await explorationPoint("taken")
            tree(!isLeft).number += 1
        }
    }

    /// Two child tasks in one transaction.
    func addTogether() async throws {
        try await left.withTransaction {
            async let one: Void = add(1)
            async let two: Void = addTen()
            _ = try await (one, two)
        }
    }

    private func addTen() async throws {
        try await left.withTransaction {
            await explorationPoint("before")
            left.free += 10
        }
    }
    var free: Int { left.free }
}

@Suite(.inTurn, .watched(testLimit), .leavesNothing) struct ExploredTransactionTests {
    private let seen = Locked<Set<String>>([])
    private func see(_ text: String) { seen.withLock { _ = $0.insert(text) } }
    private var all: Set<String> { seen.withLock { $0 } }

    @Test func `transactions of tasks run one at a time, and a failed one leaves nothing`() async {
        await explore(departures: 2) {
            let bank = Bank()
            async let one: Void = bank.add(1)
            async let two = thrown { try await bank.add(2, failing: true) }
            async let four: Void = bank.add(4)
            _ = try await (one, four)
            let error = await two
            let (numbers, isIdle, log) = await (bank.numbers, bank.isIdle, bank.log)
            #expect(error as? TestError == TestError(number: 2))
            #expect(numbers == [5, 0] && isIdle && log.count == 3)
            see("\(log)")
        }
        #expect(all.count == 6, "\(all)")
    }

    @Test func `a waiter that is cancelled leaves the line, and the next is served`() async {
        await explore(departures: 2) {
            let bank = Bank()
            let tasks = [1, 2, 4].map { number in Task { try await bank.add(number) } }
            async let cancelling: Void = tasks[1].cancel()
            let results = [await tasks[0].result, await tasks[1].result, await tasks[2].result]
            await cancelling
            var sum = 0
            for (result, number) in zip(results, [1, 2, 4]) {
                switch result {
                case .success: sum += number
                case .failure(let error): #expect(error is CancellationError && number == 2)
                }
            }
            let (numbers, isIdle) = await (bank.numbers, bank.isIdle)
            #expect(numbers == [sum, 0] && isIdle)
            see("\(sum)")
        }
        #expect(all == ["5", "7"])
    }

    @Test func `a waiter closing a cycle is refused; the other goes on`() async {
        await explore(departures: 2) {
            let bank = Bank()
            async let one = thrown { try await bank.move(fromLeft: true) }
            async let two = thrown { try await bank.move(fromLeft: false) }
            let errors = [await one, await two]
            let (numbers, isIdle) = await (bank.numbers, bank.isIdle)
            #expect(isIdle && errors.contains { $0 == nil })
            for error in errors where error != nil { #expect(error as? TransactionFault == .deadlock) }
            let expected = [errors[0] == nil ? -1 : 0, errors[1] == nil ? 1 : 0].reduce(0, +)
            #expect(numbers == [expected, -expected])
            see("\(errors.map { $0 == nil })")
        }
        #expect(all.contains("[true, true]") && all.count > 1, "\(all)")
    }

    @Test func `opening several trees at once never forms a cycle`() async {
        await explore(departures: 2) {
            let bank = Bank()
            async let one: Void = bank.moveJointly(fromLeft: true)
            async let two: Void = bank.moveJointly(fromLeft: false)
            async let three: Void = bank.moveJointly(fromLeft: true)
            _ = try await (one, two, three)
            let (numbers, isIdle) = await (bank.numbers, bank.isIdle)
            #expect(numbers == [-1, 1] && isIdle)
        }
    }

    @Test func `child tasks are part of the transaction, and waiters come after them`() async {
        await explore(departures: 2) {
            let bank = Bank()
            async let together: Void = bank.addTogether()
            async let other: Void = bank.add(100)
            _ = try await (together, other)
            let (numbers, free, isIdle) = await (bank.numbers, bank.free, bank.isIdle)
            #expect(numbers == [101, 0] && free == 10 && isIdle)
            see("\(await bank.log)")
        }
        #expect(all == ["[1, 100]", "[100, 1]"])
    }

    @Test func `a timeout and the turn come in either order`() async {
        await explore(departures: 2) {
            let bank = Bank()
            async let one: Void = bank.add(1)
            // An hour away on the real clock, which is read as well; for the explorer, a moment like any other.
            async let two = thrown { try await bank.add(2, waiting: .atMost(.seconds(3_600))) }
            _ = try await one
            let error = await two
            let (numbers, isIdle) = await (bank.numbers, bank.isIdle)
            #expect(error == nil || error as? TransactionFault == .timedOut)
            #expect(numbers == [error == nil ? 3 : 1, 0] && isIdle)
            see("\(error == nil)")
        }
        #expect(all == ["true", "false"])
    }
}

/// The error that a call throws.
private func thrown(_ body: () async throws -> Void) async -> (any Error)? {
    do {
        try await body()
        return nil
    } catch { return error }
}
