// map: the results in order, each made once; after a failure, each result that was made is destroyed once.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn) struct MapTests {
    @Test(arguments: [1, 3])
    func `results match those of a serial map`(workers: Int) async throws {
        try await withScheduler(.workers(workers)) { scheduler in
            await forAll(.zip(.int(in: 0...3_000), .int(in: 0...50))) { count, dropped in
                // Too long to be stored inline in a String: each is an object.
                let elements = (0..<count).map { "element number \($0)" }.dropFirst(dropped)
                let expected = elements.map { $0 + "!" }
                let found = try await scheduler.map(elements) { $0 + "!" }
                let foundBlocking = try blocking { try scheduler.map(elements) { $0 + "!" } }
                try #require(found == expected && foundBlocking == expected)
                let numbers = try await scheduler.map(0..<count) { $0 * 3 }
                try #require(numbers == Array(stride(from: 0, to: 3 * count, by: 3)))
            }
        }
    }

    /// For ThreadSanitizer: all arrays without capacity share one object.
    @Test func `maps of no elements, by several threads, write to no memory that they share`() throws {
        try withScheduler(.workers(2)) { scheduler in
            let made = concurrently(4) { thread in
                (0..<200).allSatisfy { _ in (try? scheduler.map(0..<0) { $0 + thread })?.isEmpty == true }
            }
            #expect(made == [true, true, true, true])
        }
    }

    @Test(arguments: [1, 3])
    func `results are destroyed when a call throws`(workers: Int) async throws {
        try await withScheduler(.workers(workers)) { scheduler in
            await forAll(.zip(.int(in: 1...2_000), .int(in: 0...1_999))) { count, wish in
                let bad = wish % count
                for isBlocking in [false, true] {
                    let (made, released) = (Count(), Count())
                    let transform: @Sendable (Int) throws -> Token = { index in
                        if index == bad { throw Fault(element: index) }
                        made.add()
                        return Token(released)
                    }
                    await #expect(throws: Fault(element: bad)) {
                        _ =
                            isBlocking
                            ? try blocking { try scheduler.map(0..<count, transform) }
                            : try await scheduler.map(0..<count, transform)
                    }
                    // The loop itself, and with it the results, may be released a moment after the
                    // call returns.
                    try #require(eventually { released.value == made.value })
                }
            }
        }
    }

    @Test(arguments: [1, 3])
    func `results live as long as the array`(workers: Int) async throws {
        try await withScheduler(.workers(workers)) { scheduler in
            for isBlocking in [false, true] {
                let released = Count()
                var tokens =
                    isBlocking
                    ? try blocking { try scheduler.map(0..<1_000) { _ in Token(released) } }
                    : try await scheduler.map(0..<1_000) { _ in Token(released) }
                #expect(tokens.count == 1_000 && released.value == 0)
                tokens = []
                #expect(released.value == 1_000)
            }
        }
    }

    @Test func `a task cancelled half-way skips the rest, and results are destroyed`()
        async throws
    {
        try await withScheduler(.init(workers: 1, spareWorkers: 0)) { scheduler in
            let (made, released) = (Count(), Count())
            let middle = Middle()
            let task = Task {
                try await scheduler.map(0..<10_000) { index in
                    if index == 200 { middle.stay() }
                    made.add()
                    return Token(released)
                }
            }
            blocking { middle.cancel(task) }
            await #expect(throws: CancellationError.self) { _ = try await task.value }
            #expect(made.value == 201)
            #expect(eventually { released.value == 201 })
        }
    }

    @Test func `a closed scheduler makes nothing`() async throws {
        let scheduler = try Scheduler(.workers(1))
        try await scheduler.shutdown()
        await #expect(throws: SchedulerError(.closed)) { _ = try await scheduler.map([1, 2]) { $0 } }
        #expect(throws: SchedulerError(.closed)) { _ = try blocking { try scheduler.map([1, 2]) { $0 } } }
        await #expect(throws: SchedulerError(.closed)) { _ = try await scheduler.map([Int]()) { $0 } }
    }
}
