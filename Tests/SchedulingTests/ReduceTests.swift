// reduce: the answer of a serial reduce, for any associative operation.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Testing

@Suite(.inTurn) struct ReduceTests {
    /// Concatenation is associative, but not commutative: a result in any other order than that of
    /// the elements is detected.
    @Test(arguments: [1, 3])
    func `elements are combined in their order`(workers: Int) async throws {
        try await withScheduler(.workers(workers)) { scheduler in
            await forAll(.int(in: 0...1_000)) { count in
                let words = (0..<count).map { "\($0) " }
                let expected = words.joined()
                let found = try await scheduler.reduce(words, "", +)
                let foundBlocking = try blocking { try scheduler.reduce(words, "", +) }
                try #require(found == expected && foundBlocking == expected)
                let lists = try await scheduler.reduce(0..<count, into: [Int]()) {
                    $0.append($1)
                } combine: {
                    $0 += $1
                }
                try #require(lists == Array(0..<count))
                let blockingLists = try blocking {
                    try scheduler.reduce(0..<count, into: [Int]()) {
                        $0.append($1)
                    } combine: {
                        $0 += $1
                    }
                }
                try #require(blockingLists == lists)
            }
        }
    }

    @Test func `nothing is the identity`() async throws {
        try await withScheduler(.workers(2)) { scheduler in
            let found = try await scheduler.reduce([Int](), 7, +)
            let foundBlocking = try blocking { try scheduler.reduce([Int](), 7, +) }
            #expect(found == 7 && foundBlocking == 7)
        }
    }

    @Test func `the first error is thrown, from each of the closures`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            await #expect(throws: Fault(element: 5)) {
                _ = try await scheduler.reduce(1...9, 0) { sum, element in
                    if element == 5 { throw Fault(element: 5) }
                    return sum + element
                }
            }
            #expect(throws: Fault(element: 6)) {
                _ = try blocking {
                    try scheduler.reduce(1...9, into: 0) {
                        $0 += $1
                    } combine: { _, partial in
                        if partial >= 6 { throw Fault(element: 6) }
                    }
                }
            }
        }
    }

    @Test func `a task cancelled half-way skips the rest`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let begun = Count()
            let middle = Middle()
            let task = Task {
                try await scheduler.reduce(0..<10_000, into: 0) { sum, element in
                    begun.add()
                    if element == 7 { middle.stay() }
                    sum += element
                } combine: {
                    $0 += $1
                }
            }
            blocking { middle.cancel(task) }
            await #expect(throws: CancellationError.self) { _ = try await task.value }
            #expect(begun.value == 8)
        }
    }
}
