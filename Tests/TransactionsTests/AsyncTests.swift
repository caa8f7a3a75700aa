// Transactions across suspensions, and the callers that wait for them: row 37, X7, Q13, Q16.

import CompositeOperationsTestSupport
import Glibc
import PropertyTestingSupport
import Testing

@testable import Transactions

/// Where the trees of these tests live.
@globalActor actor Home {
    static let shared = Home()
}

/// A one-shot gate for tasks.
@Home final class Signal {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    nonisolated init() {}
    func open() {
        isOpen = true
        waiting.forEach { $0.resume() }
        waiting = []
    }
    func opened() async {
        if isOpen { return }
        await withCheckedContinuation { waiting.append($0) }
    }
}

/// Errors that tasks caught.
@Home private final class Mailbox {
    var errors: [any Error] = []
    nonisolated init() {}
}

@Home @Suite(.inTurn, .watched(testLimit), .leavesNothing) struct AsyncTests {
    let root = Logged(root: "root")
    var tree: Tree { root.transactionContext.tree! }

    /// Waits until `count` callers wait for the tree.
    func waiting(_ count: Int) async {
        while tree.line.count != count { await Task.yield() }
    }

    @Test(.promises("X5")) func `X5: a body that suspends is committed, and its value is returned`()
        async throws
    {
        let value = try await root.withTransaction {
            await Task.yield()
            root.number = 1
            return 2
        }
        #expect(value == 2 && root.number == 1)
        #expect(root.trace.take() == ["begin root", "validate root", "commit root"])
    }

    @Test(.promises("X13"), arguments: Intrusion.allCases)
    func `X13: another task's write during a suspended transaction traps`(_ what: Intrusion)
        async
    {
        await #expect(processExitsWith: .failure) { [what] in await Self.intrude(what) }
    }

    enum Intrusion: CaseIterable, Codable {
        case write, writeOutside, create
    }

    private static func intrude(_ what: Intrusion) async {
        let root = Logged(root: "root")
        let (isOpen, isOver) = (Signal(), Signal())
        let task = Task { @Home in
            try await root.withTransaction {
                root.number = 1
                isOpen.open()
                await isOver.opened()
                throw TestError()
            }
        }
        await isOpen.opened()
        switch what {
        case .write: root.number += 1000
        case .writeOutside: root.free += 1000
        case .create: _ = Logged("late", below: root)
        }
        isOver.open()
        _ = await task.result
    }

    @Test(.promises("Q7", "X5")) func `Q7: a body that throws is rolled back, and its error thrown`() async {
        await #expect(throws: TestError(number: 1)) {
            try await root.withTransaction {
                root.number = 1
                await Task.yield()
                throw TestError(number: 1)
            }
        }
        #expect(root.number == 0 && !root.transactionIsActive)
        root.failure = TestError(number: 2)
        await #expect(throws: TestError(number: 2)) { try await root.withTransaction { root.number = 1 } }
        #expect(root.number == 0 && !root.transactionIsActive)
    }

    /// The first child ends its savepoint while the second child's is still open; then the second ends its own. Each
    /// ends with or without an error.
    @Test(.promises("X6"), arguments: [true, false], [true, false])
    func `X6: interleaved savepoints of two child tasks revert the whole transaction`(
        firstThrows: Bool, secondThrows: Bool
    ) async {
        let faults = Mailbox()
        let error: (any Error)?
        do {
            try await root.withTransaction {
                root.number = 1
                let (isSet, isOver) = (Signal(), Signal())
                @Home func child(
                    _ number: Int, throwing: Bool, _ meanwhile: @escaping @Home @Sendable () async -> Void
                ) -> Task<Void, Never> {
                    Task { @Home in
                        do {
                            try await root.withTransaction(nesting: .savepoint) {
                                root.number = number
                                await meanwhile()
                                if throwing { throw TestError(number: number) }
                            }
                        } catch { faults.errors.append(error) }
                    }
                }
                let first = child(2, throwing: firstThrows) { await isSet.opened() }
                let second = child(3, throwing: secondThrows) {
                    isSet.open()
                    await isOver.opened()
                }
                await first.value
                // No other savepoint can be set.
                var hasRun = false
                #expect(
                    fault { try root.transaction(nesting: .savepoint) { hasRun = true } }
                        == .savepointsInterleave)
                #expect(!hasRun)
                isOver.open()
                await second.value
            }
            error = nil
        } catch let thrown { error = thrown }
        #expect(error as? TransactionFault == .savepointsInterleave)
        #expect(faults.errors.count == 2)
        for (index, isThrown) in [firstThrows, secondThrows].enumerated() {
            #expect((faults.errors[index] is TestError) == isThrown)
            #expect((faults.errors[index] as? TransactionFault == .savepointsInterleave) == !isThrown)
        }
        #expect(root.number == 0 && !root.transactionIsActive)
        // The next transaction is not affected.
        #expect(
            thrown { try root.transaction { try root.transaction(nesting: .savepoint) { root.number = 5 } } }
                == nil)
        #expect(root.number == 5)
    }

    @Test(.promises("X7"))
    func `X7: the task's transaction is joined by either kind of closure and by children`()
        async throws
    {
        try await root.withTransaction {
            try await root.withTransaction { root.number = 1 }
            try root.transaction { root.number += 1 }
            try? await root.withTransaction(nesting: .savepoint) {
                await Task.yield()
                root.number = 9
                throw TestError()
            }
            #expect(root.number == 2)
            try await Task { @Home in try await root.withTransaction { root.number += 1 } }.value
        }
        #expect(root.number == 3)
        #expect(root.trace.take() == ["begin root", "validate root", "commit root"])
    }

    @Test(.promises("X7")) func `X7: another task cannot join or end it, and may wait`() async throws {
        let inside = Signal(), done = Signal()
        let first = Task { @Home in
            try await root.withTransaction {
                root.number = 1
                inside.open()
                await done.opened()
            }
        }
        await inside.opened()
        #expect(refusal { try root.transaction {} } == .anotherTransactionIsActive)
        #expect(refusal { try jointTransaction(over: [root]) {} } == .anotherTransactionIsActive)
        #expect(refusal { try root.beginTransaction() } == .anotherTransactionIsActive)
        #expect(fault { try root.commitTransaction() } == .ownedByAnotherTask)
        #expect(fault { try root.rollbackTransaction() } == .ownedByAnotherTask)
        #expect(thrown { try root.$number.set(3) } is TransactionError)
        let second = Task { @Home in try await root.withTransaction { root.number += 10 } }
        await waiting(1)
        done.open()
        try await first.value
        try await second.value
        #expect(root.number == 11)
    }

    @Test(.promises("X7")) func `X7: a transaction can be joined by its descriptor`() async throws {
        let inside = Signal(), done = Signal()
        let first = Task { @Home in
            try await root.withTransaction {
                inside.open()
                await done.opened()
            }
        }
        await inside.opened()
        try await root.withTransaction(joining: root.activeTransaction) {
            root.number = 5
            try root.transaction { root.number += 1 }
        }
        #expect(root.$number.committed == 0)
        done.open()
        try await first.value
        #expect(root.number == 6)
    }

    @Test(.promises("X7")) func `X7: a transaction begun by hand is awaited, and joined by closures`()
        async throws
    {
        try root.beginTransaction()
        let waiter = Task { @Home in try await root.withTransaction { root.number += 1 } }
        await waiting(1)
        try root.transaction { root.number = 1 }
        #expect(root.number == 1)
        try root.commitTransaction()
        try await waiter.value
        #expect(root.number == 2)
    }

    @Test(.promises("Q16", "X7")) func `Q16: waiters are FIFO, and a cancelled one leaves`() async throws {
        try root.beginTransaction()
        var tasks: [Task<Void, any Error>] = []
        for index in 0..<5 {
            tasks.append(Task { @Home in try await root.withTransaction { root.list.append(index) } })
            await waiting(index + 1)
        }
        tasks[2].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[2].value }
        await waiting(4)
        tasks[0].cancel()
        await waiting(3)
        try root.rollbackTransaction()
        for index in [1, 3, 4] { try await tasks[index].value }
        #expect(root.list == [1, 3, 4])
    }

    @Test(.promises("X7")) func `X7: a synchronous begin may slip in, and waiters keep their places`()
        async throws
    {
        try root.beginTransaction()
        let first = Task { @Home in try await root.withTransaction { root.list.append(1) } }
        await waiting(1)
        let second = Task { @Home in try await root.withTransaction { root.list.append(2) } }
        await waiting(2)
        try root.commitTransaction()
        // The first waiter has been woken, but has not run yet.
        try root.beginTransaction()
        root.list.append(0)
        await Task.yield()
        await waiting(2)
        try root.commitTransaction()
        try await first.value
        try await second.value
        #expect(root.list == [0, 1, 2])
    }

    @Test(.promises("Q16", "X7")) func `X7: a woken waiter that is cancelled wakes the next`() async throws {
        try root.beginTransaction()
        let first = Task { @Home in try await root.withTransaction {} }
        await waiting(1)
        let second = Task { @Home in try await root.withTransaction { root.number = 1 } }
        await waiting(2)
        try root.commitTransaction()
        first.cancel()
        try await second.value
        #expect(root.number == 1)
        _ = await first.result
    }

    @Test(.promises("X7")) func `X7: a waiter that times out leaves`() async throws {
        try root.beginTransaction()
        await #expect(throws: TransactionFault.timedOut) {
            try await root.withTransaction(waiting: .atMost(.zero)) {}
        }
        await #expect(throws: TransactionFault.timedOut) {
            try await root.withTransaction(waiting: .atMost(.milliseconds(2))) {}
        }
        #expect(tree.line.count == 0)
        try root.rollbackTransaction()
        try await root.withTransaction(waiting: .atMost(.zero)) {}
    }

    @Test(.promises("Q16", "E37")) func `E37: a body that is cancelled is rolled back`() async throws {
        let inside = Signal()
        let task = Task { @Home in
            try await root.withTransaction {
                root.number = 1
                inside.open()
                while !Task.isCancelled { await Task.yield() }
            }
        }
        await inside.opened()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(root.number == 0 && !root.transactionIsActive)
        #expect(root.trace.take() == ["begin root", "rollback root"])
    }

    @Test(.promises("Q16", "X7"))
    func `Q16: cancelled, a body that throws E throws E; a cancelled task does not begin`() async throws {
        let task = Task { @Home in
            try await root.withTransaction {
                withUnsafeCurrentTask { $0?.cancel() }
                throw TestError(number: 3)
            }
        }
        await #expect(throws: TestError(number: 3)) { try await task.value }
        _ = root.trace.take()
        let late = Task { @Home in
            withUnsafeCurrentTask { $0?.cancel() }
            try await root.withTransaction {}
        }
        await #expect(throws: CancellationError.self) { try await late.value }
        #expect(root.trace.calls.isEmpty)
    }

    @Test(.promises("Q16", "X7")) func `Q16: cancellation is ignored after validation began`()
        async throws
    {
        root.onHook = { if $0 == .validate { withUnsafeCurrentTask { $0?.cancel() } } }
        let task = Task { @Home in try await root.withTransaction { root.number = 1 } }
        try await task.value
        #expect(root.number == 1)
    }

    @Test(.promises("Q16", "X7")) func `Q16: a commit by hand stays, cancelled or not`()
        async throws
    {
        let task = Task { @Home in
            try await root.withTransaction {
                root.number = 1
                try root.commitTransaction()
                withUnsafeCurrentTask { $0?.cancel() }
                return 5
            }
        }
        #expect(try await task.value == 5)
        #expect(root.number == 1)
    }

    @Test(.promises("E11", "E13")) func `E11, E13: bodies that end their transaction by hand`() async throws {
        await #expect(throws: TransactionFault.rolledBackInsideBody) {
            try await root.withTransaction { try root.rollbackTransaction() }
        }
        let value = try await root.withTransaction {
            root.number = 1
            try root.commitTransaction()
            return 3
        }
        #expect(value == 3 && root.number == 1)
    }

    @Test(.promises("X7")) func `X7: begin when free, by hand`() async throws {
        try root.beginTransaction()
        let task = Task { @Home in
            let transaction = try await root.beginTransactionWhenFree()
            #expect(root.activeTransaction == transaction)
            try root.commitTransaction(transaction)
        }
        await waiting(1)
        try root.rollbackTransaction()
        try await task.value
        #expect(!root.transactionIsActive)
    }

    @Test(.promises("X7")) func `X7: waiting and leaving take constant time, however many wait`() {
        /// The CPU time of the thread, because other threads run, too.
        func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
        }
        func time(_ count: Int, first: Bool) -> Double {
            let line = Line()
            let waiters = (0..<count).map { _ in Waiter() }
            let before = now()
            for waiter in waiters { line.add(waiter) }
            for waiter in first ? waiters : waiters.reversed() {
                line.remove(waiter)
                _ = line.first
            }
            #expect(line.count == 0 && line.first == nil)
            return now() - before
        }
        for first in [true, false] {
            let few = (1...3).map { _ in time(500, first: first) }.min()!
            // Quadratic would be a factor of 1024.
            #expect(time(16_000, first: first) < 300 * max(few, 20))
        }
    }

    @Test(.promises("Q13")) func `Q13: of many tasks that begin, one runs at a time`() async throws {
        var inside = 0
        let tasks = (0..<50).map { index in
            Task { @Home in
                try await root.withTransaction {
                    inside += 1
                    #expect(inside == 1)
                    await Task.yield()
                    root.number += 1
                    inside -= 1
                    if index % 7 == 0 { throw TestError() }
                }
            }
        }
        for task in tasks { _ = await task.result }
        #expect(root.number == 50 - 8 && tree.line.count == 0)
    }

    @Test(.promises("Q14", "X16"))
    func `X16: a joint transaction waits for all of its trees, and no two wait for each other`()
        async throws
    {
        let other = Logged(root: "other")
        try other.beginTransaction()
        let joint = Task { @Home in
            try await withJointTransaction(over: [other, root]) {
                await Task.yield()
                root.list.append(1)
                other.list.append(1)
                try await withJointTransaction(over: [root]) { root.list.append(2) }
            }
        }
        await waiting(1)
        let reverse = Task { @Home in
            try await withJointTransaction(over: [root, other]) {
                await Task.yield()
                root.list.append(3)
                other.list.append(3)
            }
        }
        await waiting(2)
        let single = Task { @Home in try await root.withTransaction { root.list.append(4) } }
        await waiting(3)
        try other.rollbackTransaction()
        try await joint.value
        try await reverse.value
        try await single.value
        #expect(root.list == [1, 2, 3, 4] && other.list == [1, 3])
        #expect(try await withJointTransaction(over: []) { 3 } == 3)
    }

    @Test(.promises("X7")) func `X7: waiting for one's own transaction is refused`() async throws {
        let other = Logged(root: "other")
        try await root.withTransaction {
            await #expect(throws: TransactionError.anotherTransactionIsActive) {
                try await withJointTransaction(over: [root, other]) {}
            }
            await #expect(throws: TransactionError.anotherTransactionIsActive) {
                try await root.beginTransactionWhenFree()
            }
            #expect(tree.line.count == 0 && other.transactionContext.tree!.line.count == 0)
            #expect(!other.transactionIsActive)
        }
    }

    @Test(.promises("X7")) func `X7: waiting for one's own begin by hand is refused`() async throws {
        try root.beginTransaction()
        await #expect(throws: TransactionFault.deadlock) { try await root.withTransaction {} }
        await #expect(throws: TransactionFault.timedOut) {
            try await root.withTransaction(waiting: .atMost(.milliseconds(1))) {}
        }
        #expect(tree.line.count == 0 && root.transactionIsActive)
        // Waiting for another task is allowed.
        let other = Task { @Home in try await root.withTransaction { root.number += 1 } }
        await waiting(1)
        try root.commitTransaction()
        try await other.value
        #expect(root.number == 1)
    }

    /// Each task opens a tree, and then wants the tree of the next task.
    private func circle(_ count: Int, limited: Bool = false) async -> [Result<Void, any Error>] {
        let roots = (0..<count).map { Logged(root: "\($0)") }
        let areOpen = (0..<count).map { _ in Signal() }
        let tasks = (0..<count).map { index in
            Task { @Home in
                try await roots[index].withTransaction {
                    roots[index].number = 1
                    areOpen[index].open()
                    for signal in areOpen { await signal.opened() }
                    let waiting =
                        limited && index == 0 ? TransactionWait.atMost(.milliseconds(1)) : .untilFree
                    try await roots[(index + 1) % count].withTransaction(waiting: waiting) {
                        roots[(index + 1) % count].list.append(index)
                    }
                }
            }
        }
        var results: [Result<Void, any Error>] = []
        for task in tasks { results.append(await task.result) }
        for root in roots { #expect(!root.transactionIsActive) }
        return results
    }

    @Test(.promises("X7"))
    func `X7: one of a cycle of waiters is refused, and the others continue`() async {
        for count in 2...5 {
            let results = await circle(count)
            let faults = results.compactMap { if case .failure(let error) = $0 { error } else { nil } }
            #expect(faults.count == 1 && faults.first as? TransactionFault == .deadlock)
            let late = await circle(count, limited: true)
            let timedOut = late.compactMap { if case .failure(let error) = $0 { error } else { nil } }
            #expect(timedOut.count == 1 && timedOut.first as? TransactionFault == .timedOut)
        }
    }

    @Test(.promises("X7")) func `X7: a finished wait closes no cycle`() async throws {
        let other = Logged(root: "other")
        let otherTree = other.transactionContext.tree!
        // A task holds the first tree and waits for the other; then the trees swap roles.
        for (held, wanted) in [(root, other), (other, root)] {
            let goOn = Signal()
            let holder = Task { @Home in try await wanted.withTransaction { await goOn.opened() } }
            while !wanted.transactionIsActive { await Task.yield() }
            let waiter = Task { @Home in
                try await held.withTransaction { try await wanted.withTransaction { wanted.number += 1 } }
            }
            while tree.line.count + otherTree.line.count != 1 { await Task.yield() }
            goOn.open()
            try await holder.value
            try await waiter.value
        }
        #expect(root.number == 1 && other.number == 1)
    }

    @Test(.promises("X7")) func `X7: queueing behind a waiter for oneself is refused`() async throws {
        let other = Logged(root: "other")
        try other.beginTransaction()
        let isOpen = Signal()
        let first = Task { @Home in
            try await root.withTransaction {
                isOpen.open()
                while other.transactionContext.tree!.line.count != 1 { await Task.yield() }
                // The call ahead of it in the line waits for this task's tree.
                await #expect(throws: TransactionFault.deadlock) { try await other.withTransaction {} }
            }
        }
        await isOpen.opened()
        let joint = Task { @Home in try await withJointTransaction(over: [root, other]) { root.number = 1 } }
        try await first.value
        try other.rollbackTransaction()
        try await joint.value
        #expect(root.number == 1)
    }

    @Test(.promises("X7")) func `X7: an open transaction is recorded once, however deep joins nest`()
        async throws
    {
        func nest(_ depth: Int) async throws {
            if depth == 0 { return #expect(OpenTransactions.all.count == 1) }
            try await root.withTransaction { try await nest(depth - 1) }
        }
        try await nest(100)
    }

    @Test(.promises("Q14", "X16")) func `X16: a joint transaction that times out leaves all lines`()
        async throws
    {
        let other = Logged(root: "other")
        try other.beginTransaction()
        let joint = Task { @Home in try await withJointTransaction(over: [root, other]) {} }
        await waiting(1)
        let single = Task { @Home in try await root.withTransaction { root.number = 1 } }
        await waiting(2)
        joint.cancel()
        try await single.value
        #expect(root.number == 1 && other.transactionContext.tree!.line.count == 0)
        try other.rollbackTransaction()
    }
}
