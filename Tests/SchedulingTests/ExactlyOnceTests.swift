// S1 exactly once, S2 completion, S6 conservation: an accepted operation runs once, and the statistics add
//    up.

import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

/// A random tree of operations: each is submitted by its parent, a root by an outside thread.
private struct Program: Sendable {
    let children: [[Int]]
    let roots: [Int]

    init(shape: [Int]) {
        var children = Array(repeating: [Int](), count: shape.count)
        var roots: [Int] = []
        for (index, choice) in shape.enumerated() {
            let parent = choice % (index + 1)
            if parent == index { roots.append(index) } else { children[parent].append(index) }
        }
        self.children = children
        self.roots = roots
    }

    func submit(_ operations: [Int], to scheduler: Scheduler, in counter: CompletionCounter, runs: Runs) {
        let bodies = operations.map { operation in
            { @Sendable in
                runs.note(operation)
                submit(children[operation], to: scheduler, in: counter, runs: runs)
            }
        }
        do {
            switch operations.count % 3 {
            case 0:
                try scheduler.submit(contentsOf: bodies, in: counter)
            case 1:
                for body in bodies { try scheduler.submit(in: counter, body) }
            default:
                try scheduler.submit(0..<operations.count, in: counter) { bodies[$0]() }
            }
        } catch {
            Issue.record(error)
        }
    }
}

extension Stress {
    @Suite(.inTurn) struct ExactlyOnce {
        @Test(arguments: [1, 2, 5])
        func `every operation of a random tree runs exactly once`(workers: Int) async throws {
            let scheduler = try Scheduler(.workers(workers))
            await forAll(.array(of: .int(in: 0...10_000), count: 1...80), cases: scaled(100)) { shape in
                try run(Program(shape: shape), size: shape.count, on: scheduler)
            }
            try await scheduler.shutdown()
        }

        private func run(_ program: Program, size: Int, on scheduler: Scheduler) throws {
            let runs = Runs(size)
            let counter = try CompletionCounter()
            let submitters = 3
            _ = concurrently(submitters) { thread in
                let mine = program.roots.filter { $0 % submitters == thread }
                program.submit(mine, to: scheduler, in: counter, runs: runs)
            }
            try #require(counter.wait(timeout: .seconds(20)) == .completed)
            try #require(runs.areExactlyOnce)
        }

        @Test(arguments: [1, 2, 4], [1, 8])
        func `many threads' submissions run exactly once`(workers: Int, submitters: Int) throws {
            let each = scaled(4000)
            let runs = Runs(submitters * each)
            try withScheduler(.workers(workers)) { scheduler in
                let counter = try CompletionCounter()
                _ = concurrently(submitters) { thread in
                    for index in 0..<each {
                        let operation = thread * each + index
                        do { try scheduler.submit(in: counter) { runs.note(operation) } } catch {
                            Issue.record(error)
                        }
                    }
                }
                counter.wait()
                #expect(runs.areExactlyOnce)
            }
        }

        @Test func `a deep chain, a wide burst and a large bulk run exactly once`() throws {
            let size = scaled(20_000)
            try withScheduler(.workers(2)) { scheduler in
                let counter = try CompletionCounter()
                let chain = Count()
                @Sendable func step(_ left: Int) {
                    chain.add()
                    if left > 1 {
                        do { try scheduler.submit(in: counter) { step(left - 1) } } catch {
                            Issue.record(error)
                        }
                    }
                }
                let burst = Runs(size)
                let bulk = Runs(size)
                try scheduler.submit(in: counter) { step(size) }
                try scheduler.submit(in: counter) {
                    for index in 0..<size {
                        do { try scheduler.submit(in: counter) { burst.note(index) } } catch {
                            Issue.record(error)
                        }
                    }
                }
                try scheduler.submit(
                    contentsOf: (0..<size).map { index in { bulk.note(index) } }, in: counter)
                counter.wait()
                #expect(chain.value == size)
                #expect(burst.areExactlyOnce)
                #expect(bulk.areExactlyOnce)
            }
        }

        @Test func `the statistics add up at quiescence`() throws {
            try withScheduler(.workers(3)) { scheduler in
                let counter = try CompletionCounter()
                let threads = 4
                let each = scaled(2000)
                _ = concurrently(threads) { _ in
                    for _ in 0..<each {
                        do {
                            try scheduler.submit(in: counter) {
                                do { try scheduler.submit(in: counter) {} } catch { Issue.record(error) }
                            }
                        } catch { Issue.record(error) }
                    }
                }
                counter.wait()
                let statistics = scheduler.statistics
                #expect(statistics.submitted == 2 * threads * each)
                #expect(statistics.executed == statistics.submitted)
                #expect(statistics.cancelled == 0)
                #expect(statistics.pending == 0)
                #expect(eventually { scheduler.statistics.running == 0 })
            }
        }
    }
}

@Test func `an empty bulk is accepted, and refused after a shutdown`() async throws {
    let scheduler = try Scheduler(.workers(1))
    try scheduler.submit(contentsOf: [])
    try await scheduler.shutdown()
    #expect(throws: SchedulerError.self) { try scheduler.submit(contentsOf: []) }
}
