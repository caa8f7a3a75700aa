// forEach over collections: every element once; after the first error or a cancellation, elements that
// have not begun are left out.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

@Suite(.inTurn) struct ForEachElementTests {
    @Test(arguments: [1, 3])
    func `the body is called once for each element`(workers: Int) async throws {
        try await withScheduler(.workers(workers)) { scheduler in
            await forAll(.zip(.int(in: 0...3_000), .int(in: 0...50))) { count, dropped in
                let elements = Array(0..<count)
                let runs = Runs(count)
                try await scheduler.forEach(elements) { runs.note($0) }
                try #require(runs.areExactlyOnce)
                // A collection whose indices do not begin at 0.
                let rest = Runs(count)
                try blocking { try scheduler.forEach(elements.dropFirst(dropped)) { rest.note($0) } }
                try #require(rest.each == elements.map { $0 < dropped ? 0 : 1 })
                // A collection whose indices are not numbers.
                let letters = Count()
                try await scheduler.forEach(elements.map(String.init).reversed()) {
                    letters.add($0.utf8.count)
                }
                try #require(letters.value == elements.map { String($0).utf8.count }.reduce(0, +))
            }
        }
    }

    /// One worker: the last element that it began threw, and it began none after that.
    @Test(arguments: [false, true])
    func `the first error is thrown, and the rest is not begun`(isBlocking: Bool) async throws {
        try await withScheduler(.init(workers: 1, spareWorkers: 0)) { scheduler in
            await forAll(.zip(.int(in: 1...2_000), .int(in: 0...1_999))) { count, wish in
                let bad = wish % count
                let begun = Locked<[Int]>([])
                let body: @Sendable (Int) throws -> Void = { index in
                    begun.withLock { $0.append(index) }
                    if index >= bad { throw Fault(element: index) }
                }
                let error = await #expect(throws: Fault.self) {
                    if isBlocking {
                        try blocking { try scheduler.forEach(Array(0..<count), body) }
                    } else {
                        try await scheduler.forEach(0..<count, body)
                    }
                }
                let indices = begun.withLock { $0 }
                try #require(indices.last == error?.element)
                try #require(indices.count { $0 >= bad } == 1 && Set(indices).count == indices.count)
            }
        }
    }

    /// All elements fail, several at the same time: the error of one of them is thrown.
    @Test func `one of many errors is thrown`() async throws {
        try await withScheduler(.workers(3)) { scheduler in
            for _ in 0..<200 {
                let runs = Runs(1_000)
                let error = await #expect(throws: Fault.self) {
                    try await scheduler.forEach(0..<1_000) { index in
                        runs.note(index)
                        throw Fault(element: index)
                    }
                }
                let thrown = try #require(error)
                #expect(runs.each[thrown.element] == 1)
                #expect(runs.areAtMostOnce)
                // After the first error each worker begins at most what it had decided to begin.
                #expect(runs.total < 1_000)
            }
        }
    }

    /// The body waits in the first run of adjacent elements, the one that is begun first.
    @Test func `a task cancelled half-way skips the rest`() async throws {
        try await withScheduler(.init(workers: 1, spareWorkers: 0)) { scheduler in
            let runs = Runs(10_000)
            let middle = Middle()
            let task = Task {
                try await scheduler.forEach(Array(0..<10_000)) { index in
                    runs.note(index)
                    if index == 7 { middle.stay() }
                }
            }
            blocking { middle.cancel(task) }
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(runs.total == 8)
        }
    }

    @Test func `a task cancelled first begins nothing`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let begun = Count()
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await scheduler.forEach([1, 2, 3]) { _ in begun.add() }
            }
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(begun.value == 0)
        }
    }

    @Test func `a cancellation that comes too late changes nothing`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let middle = Middle()
            let task = Task { try await scheduler.forEach([1]) { _ in middle.stay() } }
            blocking { middle.cancel(task) }
            try await task.value
        }
    }

    @Test(arguments: [1, 3])
    func `a shutdown that cancels cuts a loop short`(workers: Int) async throws {
        let scheduler = try Scheduler(.workers(workers))
        let runs = Runs(100_000)
        let middle = Middle()
        let task = Task {
            try await scheduler.forEach(Array(0..<100_000)) { index in
                runs.note(index)
                middle.stay()
            }
        }
        blocking { middle.started.wait() }
        let ending = Task { try await scheduler.shutdown(.cancelPending) }
        #expect(eventually { code { try scheduler.submit {} } == .closed })
        middle.gate.open()
        try await ending.value
        await #expect(throws: SchedulerError(.closed)) { try await task.value }
        #expect(runs.areAtMostOnce && runs.total < 100_000)
        #expect(throws: SchedulerError(.closed)) { try blocking { try scheduler.forEach([1]) { _ in } } }
    }

    @Test func `a loop within a loop, on one worker`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let runs = Runs(400)
            try await scheduler.forEach(Array(0..<20)) { row in
                try scheduler.forEach(Array(0..<20)) { runs.note(row * 20 + $0) }
            }
            #expect(runs.areExactlyOnce)
        }
    }

    /// Plain memory: a loop that ended too early would be a data race.
    @Test func `writes by the calls are visible after the loop`() async throws {
        try await withScheduler(.workers(3)) { scheduler in
            let slots = Slots(count: 5_000)
            try await scheduler.forEach(Array(0..<5_000)) { slots[$0] = 1 }
            #expect(slots.sum == 5_000)
            try blocking { try scheduler.forEach(Array(0..<5_000)) { slots[$0] = 2 } }
            #expect(slots.sum == 10_000)
        }
    }
}
