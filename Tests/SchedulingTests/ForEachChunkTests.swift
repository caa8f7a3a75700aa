// forEach over chunks: together they are the collection, and each has the requested length.

import Glibc
import PropertyTesting
import PropertyTestingSupport
import Scheduling
import Synchronization
import Testing

@Suite(.inTurn) struct ForEachChunkTests {
    @Test(arguments: [1, 3])
    func `chunks together are the collection`(workers: Int) async throws {
        try await withScheduler(.workers(workers)) { scheduler in
            await forAll(.zip(.int(in: 0...2_000), .int(in: 1...2_500))) { count, size in
                let elements = Array(0..<count).dropFirst(count / 10)
                let found = Locked<[[Int]]>([])
                try await scheduler.forEach(elements, chunksOf: size) { chunk in
                    found.withLock { $0.append(Array(chunk)) }
                }
                try blocking {
                    try scheduler.forEach(elements, chunksOf: size) { chunk in
                        found.withLock { $0.append(Array(chunk)) }
                    }
                }
                let expected = stride(from: elements.startIndex, to: elements.endIndex, by: size).map {
                    Array(elements[$0..<min($0 + size, elements.endIndex)])
                }
                let sorted = found.withLock { $0 }.sorted { $0[0] < $1[0] }
                try #require(sorted == expected.flatMap { [$0, $0] })
            }
        }
    }

    @Test func `a size may be the largest integer`() async throws {
        try await withScheduler(.workers(2)) { scheduler in
            let sizes = Locked<[Int]>([])
            try await scheduler.forEach([1, 2, 3], chunksOf: .max) { chunk in
                sizes.withLock { $0.append(chunk.count) }
            }
            #expect(sizes.withLock { $0 } == [3])
        }
    }

    @Test func `the first error is thrown, and the rest is not begun`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let runs = Runs(100)
            await #expect(throws: Fault(element: 5)) {
                try await scheduler.forEach(0..<100, chunksOf: 10) { chunk in
                    runs.note(chunk.lowerBound)
                    if chunk.contains(5) { throw Fault(element: 5) }
                }
            }
            #expect(runs.total == 1)
        }
    }

    @Test func `a task cancelled half-way skips the rest`() async throws {
        try await withScheduler(.workers(1)) { scheduler in
            let begun = Count()
            let middle = Middle()
            let task = Task {
                try await scheduler.forEach(0..<1_000, chunksOf: 10) { _ in
                    begun.add()
                    middle.stay()
                }
            }
            blocking { middle.cancel(task) }
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(begun.value == 1)
        }
    }

    @Test func `an invalid size traps with a sentence`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await Scheduler.shared.forEach([1], chunksOf: 0) { _ in }
        }
        let told = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(told.contains("forEach(_:chunksOf:_:): the chunk size is 0, and must be at least 1"))
    }
}
