// Fork and join: both branches run exactly once, in parallel where a worker is free, and the join returns after
// both.

import CScheduler
import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

extension Stress {
    @Suite(.inTurn) struct Join {
        /// A computation: leaves are numbers, inner nodes join.
        indirect enum Tree: Sendable {
            case leaf(Int)
            case node(Tree, Tree)

            static func generator(depth: Int) -> Generator<Tree> {
                Generator { source in random(depth: depth, &source) }
            }

            private static func random(depth: Int, _ source: inout Source) -> Tree {
                // A draw of 0, the simplest choice, yields a leaf; all others yield a node.
                guard depth > 0, source.draw(below: 8) > 0 else {
                    return .leaf(Int(source.draw(below: 1_000)))
                }
                return .node(random(depth: depth - 1, &source), random(depth: depth - 1, &source))
            }

            var leaves: Int {
                switch self {
                case .leaf: 1
                case .node(let left, let right): left.leaves + right.leaves
                }
            }

            var sum: Int {
                switch self {
                case .leaf(let number): number
                case .node(let left, let right): left.sum + right.sum
                }
            }

            func joined(counting visits: Count) -> Int {
                switch self {
                case .leaf(let number):
                    visits.add()
                    return number
                case .node(let left, let right):
                    let (first, second) = Scheduler.join(
                        { left.joined(counting: visits) }, { right.joined(counting: visits) })
                    return first + second
                }
            }
        }

        @Test(arguments: [1, 2, 4])
        func `a tree of joins matches its serial form`(workers: Int) async throws {
            try await withScheduler(.workers(workers)) { scheduler in
                await forAll(
                    Tree.generator(depth: 9), cases: scaled(60),
                    covering: [.cover(30, "more than 50 leaves") { $0.leaves > 50 }]
                ) { tree in
                    let visits = Count()
                    let result = Count()
                    let counter = try CompletionCounter()
                    try scheduler.submit(in: counter) { result.add(tree.joined(counting: visits)) }
                    try await counter.wait()
                    #expect(result.value == tree.sum)
                    #expect(visits.value == tree.leaves)
                }
                #expect(eventually { scheduler.statistics.submitted == scheduler.statistics.executed })
            }
        }

        @Test func `branches run at the same time`() throws {
            try withScheduler(.workers(2)) { scheduler in
                for _ in 0..<scaled(100) {
                    try evaluate(on: scheduler) {
                        let (first, second) = (Gate(), Gate())
                        _ = Scheduler.join(
                            {
                                first.open()
                                second.wait()
                            },
                            {
                                second.open()
                                first.wait()
                            })
                    }
                }
            }
        }

        /// The branch that was taken has forked nothing that the joining worker could run. So the joining worker sleeps,
        /// and the end of the branch must wake it.
        @Test func `a join sleeps until the branch that was taken has ended`() throws {
            try withScheduler(.init(workers: 2)) { scheduler in
                for _ in 0..<scaled(100) {
                    let (taken, finish) = (Gate(), Gate())
                    let parkedBefore = Count()
                    let counter = try CompletionCounter()
                    try scheduler.submit(in: counter) {
                        let (_, value) = Scheduler.join(
                            {
                                taken.wait()
                                parkedBefore.reset(to: Int(scheduler.statistics.parked))
                            },
                            {
                                taken.open()
                                finish.wait()
                                return 7
                            })
                        if value != 7 { Issue.record("a branch returned \(value)") }
                    }
                    taken.wait()
                    #expect(eventually { Int(scheduler.statistics.parked) > parkedBefore.value })
                    finish.open()
                    try #require(counter.wait(timeout: .seconds(20)) == .completed)
                }
            }
        }

        @Test func `a join stays on its worker's scheduler, and outside uses the shared one`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let inside = try evaluate(on: scheduler) {
                    Scheduler.join({ Scheduler.current === scheduler }, { Scheduler.current === scheduler })
                }
                #expect(inside == (true, true))
            }
            let outside = Scheduler.join(
                { Scheduler.current === Scheduler.shared }, { Scheduler.current === Scheduler.shared })
            #expect(outside == (true, true))
        }

        @Test func `submissions of the first branch run, too, and do not hide the second`() throws {
            try withScheduler(.workers(1)) { scheduler in
                let submitted = Count()
                let counter = try CompletionCounter()
                let result = try evaluate(on: scheduler) {
                    Scheduler.join(
                        {
                            for _ in 0..<200 {
                                do { try scheduler.submit(in: counter) { submitted.add() } } catch {
                                    Issue.record(error)
                                }
                            }
                            return 1
                        }, { 2 })
                }
                #expect(result == (1, 2))
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(submitted.value == 200)
            }
        }

        private struct Failure: Error, Equatable { let branch: Int }

        @Test func `the first branch's error wins, after both have run`() throws {
            let ran = Count()
            func join(_ first: Int?, _ second: Int?) throws(Failure) -> (Int, Int) {
                @Sendable func branch(_ number: Int?) throws(Failure) -> Int {
                    ran.add()
                    if let number { throw Failure(branch: number) }
                    return 0
                }
                return try Scheduler.join(
                    { () throws(Failure) in try branch(first) }, { () throws(Failure) in try branch(second) })
            }
            #expect(throws: Failure(branch: 1)) { try join(1, nil) }
            #expect(throws: Failure(branch: 2)) { try join(nil, 2) }
            #expect(throws: Failure(branch: 1)) { try join(1, 2) }
            #expect(try join(nil, nil) == (0, 0))
            #expect(ran.value == 8)
        }

        @Test func `a suspension keeps no started body from joining`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let (started, suspended) = (Gate(), Gate())
                let counter = try CompletionCounter()
                let sum = Count()
                try scheduler.submit(in: counter) {
                    started.open()
                    suspended.wait()
                    sum.add(Tree.node(.node(.leaf(1), .leaf(2)), .leaf(4)).joined(counting: Count()))
                }
                started.wait()
                scheduler.suspend()
                suspended.open()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
                #expect(sum.value == 7)
                scheduler.resume()
            }
        }

        /// The second branch lies below those operations in the deque, and must run although the scheduler is suspended.
        @Test(arguments: [1, 5, 31])
        func `a second branch runs before the first one's submissions`(number: Int) throws {
            try withScheduler(.workers(1)) { scheduler in
                let ran = Count()
                let ranBefore = try evaluate(on: scheduler) {
                    let (_, before) = Scheduler.join(
                        {
                            for _ in 0..<number { _ = code { try scheduler.submit { ran.add() } } }
                            scheduler.suspend()
                        }, { ran.value })
                    scheduler.resume()
                    return before
                }
                #expect(ranBefore == 0)
                #expect(eventually { ran.value == number })
            }
        }

        /// The deque is deep enough that its owner occasionally pops the oldest operation.
        @Test func `nested joins above a deep deque run nothing else`() throws {
            let ran = Count()
            let nested = Count()
            try withScheduler(.workers(1)) { scheduler in
                let others = Array(repeating: { @Sendable in _ = ran.add() }, count: 199)
                let counter = try CompletionCounter()
                scheduler.suspend()
                try scheduler.submit(in: counter) {
                    let last: @Sendable () -> Void = {
                        let before = ran.value
                        nest(40)
                        nested.add(1 + ran.value - before)
                    }
                    _ = code { try scheduler.submit(contentsOf: others + [last], in: counter) }
                }
                scheduler.resume()
                #expect(counter.wait(timeout: .seconds(20)) == .completed)
            }
            #expect(ran.value == 199)
            #expect(nested.value == 1)
        }

        /// A fork and an operation may have the same context: that of a struct whose first member is a fork.
        @Test func `an operation at a fork's address is no fork`() throws {
            try withScheduler(.workers(1)) { scheduler in
                // Unsafe: the C side synchronises every call.
                nonisolated(unsafe) let counter = try #require(csched_completion_create())
                try evaluate(on: scheduler) {
                    let fork = UnsafeMutablePointer<csched_fork>.allocate(capacity: 1)
                    defer { fork.deallocate() }
                    #expect(
                        csched_fork_begin(
                            fork, csched_branch(function: { _ in branches.add() }, context: nil)))
                    let operation = csched_operation(
                        run: { _, _, _ in operations.add() }, context: fork, extra: nil, counter: counter)
                    #expect(csched_submit(csched_scheduler_current()!, operation) == .ok)
                    if csched_fork_end(fork) { branches.add() }
                }
                #expect(csched_completion_wait(counter, 20_000_000_000) == .completed)
                csched_completion_release(counter)
            }
            #expect(branches.value == 1)
            #expect(operations.value == 1)
        }

        /// A thread that takes the second branch after the shutdown began is notified of the cancellation, but must run
        /// the branch all the same.
        @Test(arguments: [1, 2, 4])
        func `a shutdown that cancels leaves no join without its branch`(workers: Int) throws {
            for _ in 0..<scaled(50) {
                let scheduler = try Scheduler(.workers(workers))
                let (started, closed) = (Gate(), Gate())
                let results = Count()
                try scheduler.submit {
                    let (left, right) = Scheduler.join(
                        {
                            started.open()
                            closed.wait()
                            return Tree.node(.leaf(1), .leaf(2)).joined(counting: Count())
                        }, { Tree.node(.leaf(3), .leaf(4)).joined(counting: Count()) })
                    results.add(left + right)
                }
                started.wait()
                let outcomes = concurrently(2) { thread in
                    if thread == 0 { return code { try scheduler.shutdown(.cancelPending) } }
                    defer { closed.open() }
                    return code { while true { try scheduler.submit {} } }
                }
                #expect(outcomes == [nil, .closed])
                #expect(results.value == 10)
            }
        }

        @Test func `with little stack left the branches run one after the other`() throws {
            try withScheduler(.workers(2)) { scheduler in
                let before = scheduler.statistics.submitted
                let result = try evaluate(on: scheduler) {
                    // Leaves 200 KiB of the usual 8 MiB of stack, which is less than a wait keeps in reserve.
                    withUnsafeTemporaryAllocation(byteCount: 8 * 1024 * 1024 - 200 * 1024, alignment: 16) {
                        buffer in
                        explicit_bzero(buffer.baseAddress!, 1)  // so that a release build has the buffer, too
                        return Scheduler.join({ 1 }, { 2 })
                    }
                }
                #expect(result == (1, 2))
                #expect(scheduler.statistics.submitted == before + 1)
            }
        }

        @Test func `a worker of one scheduler joins on another`() throws {
            try withScheduler(.workers(1)) { other in
                try withScheduler(.workers(2)) { scheduler in
                    let ran = Count()
                    try evaluate(on: scheduler) {
                        let counter: CompletionCounter
                        do {
                            counter = try CompletionCounter()
                            try other.submit(in: counter) { _ = Scheduler.join({ ran.add() }, { ran.add() }) }
                        } catch {
                            Issue.record(error)
                            return
                        }
                        counter.wait()
                    }
                    #expect(ran.value == 2)
                }
            }
        }

        @Test func `outside a worker no fork begins`() {
            var fork = csched_fork()
            #expect(!csched_fork_begin(&fork, csched_branch(function: { _ in }, context: nil)))
        }
    }
}

// Global, because C functions capture nothing.
private let branches = Count()
private let operations = Count()

private func nest(_ depth: Int) {
    if depth > 0 { _ = Scheduler.join({ nest(depth - 1) }, {}) }
}

/// Runs `body` on a worker, and returns its value.
@discardableResult
private func evaluate<Value: Sendable>(
    on scheduler: Scheduler, _ body: @escaping @Sendable () -> Value
) throws -> Value {
    let result = Result<Value>()
    let counter = try CompletionCounter()
    try scheduler.submit(in: counter) { result.value = body() }
    try #require(counter.wait(timeout: .seconds(60)) == .completed)
    return try #require(result.value)
}

/// Written by an operation, read after its counter was waited for.
private final class Result<Value: Sendable>: Sendable {
    // Unsafe: the counter orders the two.
    nonisolated(unsafe) var value: Value?
}
